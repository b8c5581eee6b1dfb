"""Degree-day snow model: calibrate melt factor and base temperature on a discharge record."""
import numpy as np
import warp as wp

DAYS = 30
RESERVOIR = 0.25


@wp.kernel
def melt(snow: wp.array(dtype=float), par: wp.array(dtype=float), air: wp.array(dtype=float), day: int, water: wp.array(dtype=float), left: wp.array(dtype=float)):
    z = wp.tid()
    warm = air[day] - 0.3 * float(z) - par[1]
    m = par[0] * wp.log(1.0 + wp.exp(4.0 * warm)) / 4.0
    m = m * snow[z] / (0.2 + snow[z])
    left[z] = snow[z] - m
    wp.atomic_add(water, day, m)


@wp.kernel(enable_backward=False)
def route(water: wp.array(dtype=float), day: int, store: wp.array(dtype=float)):
    if day == 0:
        store[0] = water[0]
    else:
        store[day] = (1.0 - RESERVOIR) * store[day - 1] + water[day]


@wp.kernel
def nash(store: wp.array(dtype=float), water: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    d = wp.tid()
    e = RESERVOIR * store[d] - seen[d]
    wp.atomic_add(loss, 0, e * e + 0.05 * water[d] * water[d])


air = wp.array(np.linspace(-0.8, 1.5, DAYS) + 0.3 * np.sin(np.arange(DAYS)), dtype=float)


def season(par):
    snow = wp.full(3, 1.0, dtype=float, requires_grad=True)
    water = wp.zeros(DAYS, dtype=float, requires_grad=True)
    store = wp.zeros(DAYS, dtype=float, requires_grad=True)
    for day in range(DAYS):
        left = wp.zeros(3, dtype=float, requires_grad=True)
        wp.launch(melt, 3, inputs=[snow, par, air, day], outputs=[water, left])
        wp.launch(route, 1, inputs=[water, day], outputs=[store])
        snow = left
    return store, water


seen = wp.array(RESERVOIR * season(wp.array([0.12, 0.1], dtype=float))[0].numpy(), dtype=float)
p = np.array([0.2, 0.3])
for year in range(10):
    par = wp.array(p, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        store, water = season(par)
        wp.launch(nash, DAYS, inputs=[store, water, seen], outputs=[loss])
    tape.backward(loss)
    print(f"year {year}: loss={loss.numpy()[0]:.6f} melt={p[0]:.4f} base={p[1]:.4f}")
    p = p - 0.05 * par.grad.numpy()
