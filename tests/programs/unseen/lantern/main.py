"""Cut a paper lantern so that its light falls evenly; small holes preferred (weight decay)."""
import numpy as np
import warp as wp

HOLES = 7
WALL = 15
LR, DECAY = 0.01, 0.05


@wp.kernel
def shine(hole: wp.array(dtype=float), light: wp.array(dtype=float)):
    w, h = wp.tid()
    d = 3.0 * float(w) / float(WALL - 1) - 3.0 * float(h) / float(HOLES - 1)
    area = hole[h] * hole[h]
    wp.atomic_add(light, w, area / (0.1 + d * d))


@wp.kernel
def contrast(light: wp.array(dtype=float), bright: wp.array(dtype=float)):
    w = wp.tid()
    bright[w] = wp.log(light[w])


@wp.kernel
def unevenness(bright: wp.array(dtype=float), out: wp.array(dtype=float)):
    w = wp.tid()
    d = bright[w] - bright[(w + 1) % WALL]
    wp.atomic_add(out, 0, d * d + 0.1 * bright[w] * bright[w])


holes = wp.array(0.3 + 0.1 * np.cos(np.arange(HOLES)), dtype=float, requires_grad=True)
bright = wp.zeros(WALL, dtype=float, requires_grad=True, retain_grad=True)

for evening in range(12):
    light = wp.zeros(WALL, dtype=float, requires_grad=True)
    out = wp.zeros(1, dtype=float, requires_grad=True)
    before = wp.clone(holes)
    tape = wp.Tape()
    with tape:
        wp.launch(shine, (WALL, HOLES), inputs=[holes], outputs=[light])
        wp.launch(contrast, WALL, inputs=[light], outputs=[bright])
        wp.launch(unevenness, WALL, inputs=[bright], outputs=[out])
    tape.backward(out)
    sensitive = int(np.abs(bright.grad.numpy()).argmax())
    g = holes.grad.numpy().copy()
    tape.zero()
    holes.assign(holes.numpy() - LR * (g + DECAY * holes.numpy()))
    moved = np.abs(holes.numpy() - before.numpy()).max()
    print(f"evening {evening}: {out.numpy()[0]:.5f}, worst spot {sensitive}, holes moved by {moved:.4f}")
