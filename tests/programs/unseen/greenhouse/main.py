"""Vent openings of a greenhouse over one day, optimised with Adam."""
import numpy as np
import warp as wp
import warp.optim

HOURS = 12


@wp.struct
class Air:
    temp: wp.array(dtype=float)
    vapour: wp.array(dtype=float)


@wp.struct
class Controls:
    vent: wp.array(dtype=float)
    mist: wp.array(dtype=float)


@wp.struct
class House:
    air: Air
    controls: Controls
    leak: float


class Hour:
    """The air in the two bays at one hour."""

    def __init__(self, temp=0.0, vapour=0.0):
        self.air = Air()
        self.air.temp = wp.full(2, temp, dtype=wp.float32, requires_grad=True)
        self.air.vapour = wp.full(2, vapour, dtype=wp.float32, requires_grad=True)


@wp.kernel
def advance(house: House, sun: float, hour: int, nxt: Air):
    b = wp.tid()
    t = house.air.temp[b]
    q = house.air.vapour[b]
    other = house.air.temp[1 - b]
    open_ = 1.0 / (1.0 + wp.exp(-house.controls.vent[hour]))
    spray = house.controls.mist[hour] * house.controls.mist[hour]
    nxt.temp[b] = t + 0.2 * sun - (0.4 * open_ + house.leak) * (t - 0.3) + 0.1 * (other - t) - 0.1 * spray * (1.0 - q)
    nxt.vapour[b] = q + 0.3 * spray * (1.0 - q) - 0.3 * open_ * q


@wp.kernel
def discomfort(air: Air, total: wp.array(dtype=float)):
    b = wp.tid()
    dt = air.temp[b] - 0.5
    dq = air.vapour[b] - 0.6
    wp.atomic_add(total, 0, dt * dt + 0.5 * dq * dq)


controls = Controls()
controls.vent = wp.zeros(HOURS, dtype=float, requires_grad=True)
controls.mist = wp.full(HOURS, 0.4, dtype=float, requires_grad=True)
opt = warp.optim.Adam([controls.vent, controls.mist], lr=0.1)

for day in range(8):
    hours = [Hour(0.2, 0.5)] + [Hour() for _ in range(HOURS)]
    total = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for h in range(HOURS):
            house = House()
            house.air = hours[h].air
            house.controls = controls
            house.leak = 0.05
            wp.launch(advance, 2, inputs=[house, float(np.sin(np.pi * h / HOURS)), h, hours[h + 1].air])
            wp.launch(discomfort, 2, inputs=[hours[h + 1].air, total])
    tape.backward(total)
    opt.step([controls.vent.grad, controls.mist.grad])
    tape.zero()
    print("day", day, "discomfort", float(total.numpy()[0]))
