"""Least-squares fix of a ground receiver (ECEF, metres) from satellite pseudoranges, by gradient descent with line search."""
import numpy as np
import warp as wp

SATS = 9
EARTH = 6.371e6
ORBIT = 2.656e7


@wp.kernel
def pseudorange_misfit(
    sat: wp.array(dtype=wp.vec3),
    measured: wp.array(dtype=float),
    approx: wp.vec3,
    state: wp.array(dtype=float),
    out: wp.array(dtype=float),
):
    i = wp.tid()
    here = approx + wp.vec3(state[0], state[1], state[2])
    rho = wp.length(sat[i] - here) + state[3]
    r = rho - measured[i]
    wp.atomic_add(out, 0, 0.5 * r * r)


def sky(seed):
    """Directions of the visible satellites, all well above the horizon of (0, 0, 1)."""
    rng = np.random.default_rng(seed)
    az = rng.uniform(0.0, 2.0 * np.pi, SATS)
    el = np.deg2rad(rng.uniform(15.0, 85.0, SATS))
    u = np.stack([np.cos(el) * np.cos(az), np.cos(el) * np.sin(az), np.sin(el)], axis=1)
    site = np.array([0.0, 0.0, EARTH])
    b = u @ site
    reach = -b + np.sqrt(b * b + ORBIT**2 - EARTH**2)
    return site + reach[:, None] * u


APPROX = np.array([0.0, 0.0, EARTH])
TRUE_STATE = np.array([24.31, -17.42, 9.27, 31.13])
SKY = sky(3)
RANGES = np.linalg.norm(SKY - APPROX - TRUE_STATE[:3], axis=1) + TRUE_STATE[3]

sat = wp.array(SKY, dtype=wp.vec3)
measured = wp.array(RANGES, dtype=float)
approx = wp.vec3(*APPROX)


def loss_at(p):
    state = wp.array(p, dtype=float)
    out = wp.zeros(1, dtype=float)
    wp.launch(pseudorange_misfit, SATS, inputs=[sat, measured, approx, state], outputs=[out])
    return float(out.numpy()[0])


def grad_at(p):
    state = wp.array(p, dtype=float, requires_grad=True)
    out = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(pseudorange_misfit, SATS, inputs=[sat, measured, approx, state], outputs=[out])
    tape.backward(out)
    return state.grad.numpy().astype(float)


def line_search(p, g, j, t):
    """Backtracking with the Armijo rule."""
    while t > 1e-6:
        if loss_at(p - t * g) < j - 0.3 * t * (g @ g):
            return t
        t *= 0.5
    return 0.0


if __name__ == "__main__":
    p = np.zeros(4)
    t = 0.4
    for it in range(400):
        j, g = loss_at(p), grad_at(p)
        t = line_search(p, g, j, min(2.0 * t, 0.4))
        if it % 20 == 0 or t == 0.0:
            err = np.linalg.norm(p[:3] - TRUE_STATE[:3])
            print(f"{it:4d} J={j:11.5f} |g|={np.linalg.norm(g):9.4f} step={t:.2e} position error={err:7.3f} m")
        if t == 0.0:
            print("line search failed")
            break
        p = p - t * g
    print("state", np.round(p, 3), "expected", TRUE_STATE)
