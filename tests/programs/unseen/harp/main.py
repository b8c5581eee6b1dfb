"""Tune a harp: string tensions for a given scale, the frame bends under the load."""
import numpy as np
import warp as wp

STRINGS = 7
scale = 2.0 ** (np.array([0, 2, 4, 5, 7, 9, 11]) / 12.0)


@wp.kernel
def load(tension: wp.array(dtype=float), total: wp.array(dtype=float)):
    s = wp.tid()
    wp.atomic_add(total, 0, tension[s])


@wp.kernel
def pitch(tension: wp.array(dtype=float), total: wp.array(dtype=float), freq: wp.array(dtype=float)):
    s = wp.tid()
    length = 1.0 - 0.02 * total[0]
    freq[s] = wp.sqrt(tension[s]) / length


@wp.kernel
def mistuning(freq: wp.array(dtype=float), wanted: wp.array(dtype=float), loss: wp.array(dtype=float)):
    s = wp.tid()
    cents = wp.log(freq[s] / wanted[s])
    wp.atomic_add(loss, 0, cents * cents)


wanted = wp.array(scale, dtype=float)
tension = wp.array(np.linspace(0.8, 2.0, STRINGS), dtype=float, requires_grad=True)
freq = wp.zeros(STRINGS, dtype=float, requires_grad=True, retain_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)


def play():
    wp.launch(pitch, STRINGS, inputs=[tension, total], outputs=[freq])


for round_ in range(10):
    total = wp.zeros(1, dtype=float, requires_grad=True)
    loss.zero_()
    tape = wp.Tape()
    with tape:
        wp.launch(load, STRINGS, inputs=[tension], outputs=[total])
        play()
        heard = freq
        play()
        wp.launch(mistuning, STRINGS, inputs=[heard, wanted], outputs=[loss])
    tape.backward(loss)
    turn = tension.grad.numpy().copy()
    tape.zero()
    print(f"round {round_}: mistuning {loss.numpy()[0]:.6f}")
    tension.assign(tension.numpy() - 0.4 * turn)
