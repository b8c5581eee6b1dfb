"""A column of rising smoke: buoyancy, mixing, and the louvres that let it out."""

import warp as wp

LAYERS = 24
DT = 0.08


@wp.struct
class Smoke:
    heat: wp.array(dtype=float)
    lift: wp.array(dtype=float)


@wp.kernel
def warm(power: wp.array(dtype=float), heat: wp.array(dtype=float)):
    i = wp.tid()
    heat[i] = 0.3 + power[i % 4] * wp.exp(-0.1 * float(i))


@wp.kernel
def rise(now: Smoke, then: Smoke):
    i = wp.tid()
    below = wp.max(i - 1, 0)
    above = wp.min(i + 1, 23)
    lap = now.heat[above] - 2.0 * now.heat[i] + now.heat[below]
    then.lift[i] = now.lift[i] + 0.08 * (now.heat[i] * now.heat[i] - 0.4 * now.lift[i])
    then.heat[i] = now.heat[i] + 0.08 * (lap - now.lift[i] * now.heat[i])


@wp.kernel
def through_louvres(smoke: Smoke, opening: wp.array(dtype=float), draught: wp.array(dtype=float)):
    i = wp.tid()
    draught[i] = opening[i % 4] * smoke.lift[i] * smoke.heat[i]


@wp.kernel
def against(draught: wp.array(dtype=float), wanted: float, opening: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = draught[i] - wanted
    o = opening[i % 4] - 0.5
    wp.atomic_add(loss, 0, d * d + 0.02 * o * o)


def fresh():
    smoke = Smoke()
    smoke.heat = wp.zeros(LAYERS, dtype=float, requires_grad=True)
    smoke.lift = wp.zeros(LAYERS, dtype=float, requires_grad=True)
    return smoke
