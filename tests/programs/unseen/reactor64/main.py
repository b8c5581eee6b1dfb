"""Rate constants of A -> B <-> C in double precision; the guess is read from rates.txt, progress is saved."""
import os

import numpy as np
import warp as wp

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS, DT = 30, 0.2


@wp.kernel
def react(c: wp.array(dtype=wp.vec3d), lnk: wp.array(dtype=wp.float64), dt: wp.float64, out: wp.array(dtype=wp.vec3d)):
    a = c[0][0]
    b = c[0][1]
    d = c[0][2]
    r1 = wp.exp(lnk[0]) * a * a
    r2 = wp.exp(lnk[1]) * b
    r3 = wp.exp(lnk[2]) * d
    out[0] = wp.vec3d(a - dt * r1, b + dt * (r1 - r2 + r3), d + dt * (r2 - r3))


@wp.kernel
def sample(c: wp.array(dtype=wp.vec3d), seen: wp.array(dtype=wp.vec3d), k: int, chi2: wp.array(dtype=wp.float64)):
    d = c[0] - seen[k]
    wp.atomic_add(chi2, 0, wp.dot(d, d))


def simulate(lnk):
    c = [wp.array([[1.0, 0.0, 0.0]], dtype=wp.vec3d, requires_grad=True)]
    for _ in range(STEPS):
        c.append(wp.zeros(1, dtype=wp.vec3d, requires_grad=True))
        wp.launch(react, 1, inputs=[c[-2], lnk, DT], outputs=[c[-1]])
    return c


assay = np.array([x.numpy()[0] for x in simulate(wp.array([-0.6, -1.0, -1.5], dtype=wp.float64))])
seen = wp.array(assay, dtype=wp.vec3d)
lnk = wp.array(np.loadtxt(os.path.join(HERE, "rates.txt")), dtype=wp.float64, requires_grad=True)

for it in range(15):
    chi2 = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    tape = wp.Tape()
    with tape:
        c = simulate(lnk)
        for k in range(5, STEPS + 1, 5):
            wp.launch(sample, 1, inputs=[c[k], seen, k], outputs=[chi2])
    tape.backward(chi2)
    g = lnk.grad.numpy().copy()
    lnk.grad.zero_()
    lnk.assign(lnk.numpy() - 1.0 * g)
    np.savez(os.path.join(HERE, "checkpoint.npz"), lnk=lnk.numpy(), iteration=it)
    print(f"{it:3d}  chi2 {chi2.numpy()[0]:.9f}  ln k {lnk.numpy()}")
