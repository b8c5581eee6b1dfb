"""Fit the Rayleigh and Prandtl numbers of a thermosyphon (closed convection loop) to its recorded flow and temperatures.

The loop model has three modes: flow rate u, temperature difference c across the loop, and d between top and bottom.
"""
import numpy as np
import warp as wp

DT = 0.01
SECONDS = 20.0
STEPS = int(SECONDS / DT)
SAMPLE = 20
START = np.array([1.5, 1.0, 22.0])
PUBLISHED = np.array([10.0, 28.0])
real = wp.float64


@wp.func
def rate(s: wp.vec3d, pr: real, ra: real):
    return wp.vec3d(
        pr * (s[1] - s[0]),
        ra * s[0] - s[1] - s[0] * s[2],
        s[0] * s[1] - real(8.0 / 3.0) * s[2],
    )


@wp.kernel
def rk4(traj: wp.array(dtype=wp.vec3d), k: int, param: wp.array(dtype=real)):
    s = traj[k]
    pr = param[0]
    ra = param[1]
    h = real(DT)
    half = real(0.5)
    a = rate(s, pr, ra)
    b = rate(s + half * h * a, pr, ra)
    c = rate(s + half * h * b, pr, ra)
    d = rate(s + h * c, pr, ra)
    traj[k + 1] = s + h / real(6.0) * (a + real(2.0) * b + real(2.0) * c + d)


@wp.kernel
def misfit(
    traj: wp.array(dtype=wp.vec3d),
    record: wp.array(dtype=wp.vec3d),
    scale: real,
    out: wp.array(dtype=real),
):
    i = wp.tid()
    e = traj[(i + 1) * SAMPLE] - record[i]
    wp.atomic_add(out, 0, scale * wp.dot(e, e))


def integrate(param, steps, traj):
    for k in range(steps):
        wp.launch(rk4, 1, inputs=[traj, k, param])


def make_record(seed=5):
    traj = wp.array(np.tile(START, (STEPS + 1, 1)), dtype=wp.vec3d)
    integrate(wp.array(PUBLISHED, dtype=real), STEPS, traj)
    clean = traj.numpy()[SAMPLE::SAMPLE]
    return wp.array(clean + np.random.default_rng(seed).normal(0.0, 0.1, clean.shape), dtype=wp.vec3d)


def run(p, record, steps, with_grad):
    param = wp.array(p, dtype=real, requires_grad=with_grad)
    traj = wp.array(np.tile(START, (steps + 1, 1)), dtype=wp.vec3d, requires_grad=with_grad)
    out = wp.zeros(1, dtype=real, requires_grad=with_grad)
    n = steps // SAMPLE
    tape = wp.Tape() if with_grad else None
    if with_grad:
        with tape:
            integrate(param, steps, traj)
            wp.launch(misfit, n, inputs=[traj, record, real(1.0 / n)], outputs=[out])
        tape.backward(out)
    else:
        integrate(param, steps, traj)
        wp.launch(misfit, n, inputs=[traj, record, real(1.0 / n)], outputs=[out])
    return param, float(out.numpy()[0])


def loss_at(p, record, steps=STEPS):
    return run(p, record, steps, False)[1]


def grad_at(p, record, steps=STEPS):
    return run(p, record, steps, True)[0].grad.numpy().copy()


if __name__ == "__main__":
    record = make_record()
    p = np.array([9.9, 27.8])
    m = np.zeros(2)
    v = np.zeros(2)
    for it in range(1, 9):
        g = grad_at(p, record)
        m = 0.9 * m + 0.1 * g
        v = 0.99 * v + 0.01 * g * g
        p = p - 0.02 * (m / (1 - 0.9**it)) / (np.sqrt(v / (1 - 0.99**it)) + 1e-12)
        print(f"{it:2d} loss={loss_at(p, record):9.3f} Pr={p[0]:.4f} Ra={p[1]:.4f} grad={g}")
