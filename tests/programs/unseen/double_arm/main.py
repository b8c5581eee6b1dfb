"""Throw a double pendulum so that its tip ends at a given height. Double precision."""
import numpy as np
import warp as wp

STEPS = 500
DT = 0.02


@wp.kernel
def rotate(s: wp.array2d(dtype=wp.float64), t: int, dt: wp.float64):
    half = wp.float64(0.5)
    two = wp.float64(2.0)
    g = wp.float64(9.81)
    a = s[t, 0]
    b = s[t, 1]
    wa = s[t, 2]
    wb = s[t, 3]
    c = wp.cos(a - b)
    sn = wp.sin(a - b)
    den = two - c * c
    fa = -sn * wb * wb - two * g * wp.sin(a)
    fb = sn * wa * wa - g * wp.sin(b)
    wa2 = wa + dt * (fa - c * fb) / den
    wb2 = wb + dt * (two * fb - c * fa) / den
    s[t + 1, 2] = wa2
    s[t + 1, 3] = wb2
    s[t + 1, 0] = a + dt * half * (wa + wa2)
    s[t + 1, 1] = b + dt * half * (wb + wb2)


@wp.kernel
def tip(s: wp.array2d(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    y = wp.cos(s[STEPS, 0]) + wp.cos(s[STEPS, 1])
    d = y + wp.float64(0.5)
    loss[0] = d * d


@wp.kernel
def wind_up(kick: wp.array(dtype=wp.float64), s: wp.array2d(dtype=wp.float64)):
    s[0, 0] = kick[0]
    s[0, 1] = kick[1]


throw = wp.array([2.0, 2.5], dtype=wp.float64, requires_grad=True)
for attempt in range(8):
    s = wp.zeros((STEPS + 1, 4), dtype=wp.float64, requires_grad=True)
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(wind_up, 1, inputs=[throw, s])
        for t in range(STEPS):
            wp.launch(rotate, 1, inputs=[s, t, DT])
        wp.launch(tip, 1, inputs=[s, loss])
    tape.backward(loss)
    g = throw.grad.numpy().copy()
    tape.zero()
    print(f"attempt {attempt}: loss {loss.numpy()[0]:.5f}  gradient {g}")
    throw.assign(throw.numpy() - 0.01 * g / (1.0 + np.linalg.norm(g)))
