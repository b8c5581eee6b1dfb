"""Tune a choir: the gradient of four recordings is summed before the singers are told."""
import numpy as np
import warp as wp

SINGERS, RECORDINGS = 8, 4
rng = np.random.default_rng(21)


@wp.kernel
def blend(pitch: wp.array(dtype=float), mix: wp.array2d(dtype=float), r: int, heard: wp.array(dtype=float)):
    s = wp.tid()
    wp.atomic_add(heard, 0, mix[r, s] * wp.sin(pitch[s]))


@wp.kernel
def judge(heard: wp.array(dtype=float), wanted: wp.array(dtype=float), r: int, loss: wp.array(dtype=float)):
    d = heard[0] - wanted[r]
    loss[0] = d * d


mix = wp.array(rng.uniform(0.1, 1.0, (RECORDINGS, SINGERS)), dtype=float)
wanted = wp.array(rng.uniform(0.5, 2.5, RECORDINGS), dtype=float)
pitch = wp.array(rng.uniform(0.2, 0.8, SINGERS), dtype=float, requires_grad=True)


def listen(r):
    tape = wp.Tape()
    with tape:
        heard = wp.zeros(1, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        wp.launch(blend, SINGERS, inputs=[pitch, mix, r], outputs=[heard])
        wp.launch(judge, 1, inputs=[heard, wanted, r], outputs=[loss])
    tape.backward(loss)
    return loss.numpy()[0], pitch.grad.numpy()


for rehearsal in range(6):
    pitch.grad.zero_()
    total, gradient = 0.0, np.zeros(SINGERS)
    for r in range(RECORDINGS):
        value, g = listen(r)
        total += value
        gradient += g
    pitch.assign(pitch.numpy() - 0.01 * gradient)
    print(f"rehearsal {rehearsal}: {total:.5f}")
