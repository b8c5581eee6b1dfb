"""Plan the thrust of a tug so that three barges meet the pilot station at the end of the ebb with little fuel."""
from dataclasses import dataclass

import numpy as np
import warp as wp

from charts import Charts


@dataclass
class Plan:
    hours: int = 14
    substeps: int = 2
    barges: int = 3
    fuel: float = 0.02
    rate: float = 0.02

    @property
    def dt(self):
        return 1.0 / self.substeps


@wp.func
def current_at(field: wp.array2d(dtype=wp.vec2), p: wp.vec2, cell: float):
    x = wp.clamp(p[0] / cell, 0.0, float(field.shape[0]) - 1.001)
    y = wp.clamp(p[1] / cell, 0.0, float(field.shape[1]) - 1.001)
    i = int(wp.floor(x))
    j = int(wp.floor(y))
    a = x - float(i)
    b = y - float(j)
    low = field[i, j] * (1.0 - a) + field[i + 1, j] * a
    high = field[i, j + 1] * (1.0 - a) + field[i + 1, j + 1] * a
    return low * (1.0 - b) + high * b


@wp.kernel
def sail(
    field: wp.array2d(dtype=wp.vec2),
    thrust: wp.array2d(dtype=wp.vec2),
    track: wp.array2d(dtype=wp.vec2),
    hour: int,
    k: int,
    cell: float,
    dt: float,
):
    b = wp.tid()
    p = track[k, b]
    mid = p + 0.5 * dt * (current_at(field, p, cell) + thrust[hour, b])
    track[k + 1, b] = p + dt * (current_at(field, mid, cell) + thrust[hour, b])


@wp.kernel
def burn(thrust: wp.array2d(dtype=wp.vec2), price: float, cost: wp.array(dtype=float)):
    h, b = wp.tid()
    wp.atomic_add(cost, 0, price * wp.dot(thrust[h, b], thrust[h, b]))


@wp.kernel
def miss(track: wp.array2d(dtype=wp.vec2), last: int, station: wp.vec2, cost: wp.array(dtype=float)):
    b = wp.tid()
    d = track[last, b] - station
    wp.atomic_add(cost, 0, 0.1 * wp.dot(d, d))


class Tow:
    def __init__(self, plan):
        self.plan = plan
        self.charts = Charts()
        self.start = np.array([[3.0, 4.0], [4.0, 8.5], [2.5, 11.0]], dtype=np.float32)
        self.station = wp.vec2(15.0, 9.0)
        self.thrust = wp.zeros((plan.hours, plan.barges), dtype=wp.vec2, requires_grad=True)

    def voyage(self):
        p = self.plan
        steps = p.hours * p.substeps
        track0 = np.zeros((steps + 1, p.barges, 2), dtype=np.float32)
        track0[0] = self.start
        track = wp.array(track0, dtype=wp.vec2, requires_grad=True)
        k = 0
        for h in range(p.hours):
            field = self.charts.turn_to(h)
            for _ in range(p.substeps):
                wp.launch(sail, dim=p.barges, inputs=[field, self.thrust, track, h, k, self.charts.cell, p.dt])
                k += 1
        return track

    def improve(self):
        p = self.plan
        cost = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            track = self.voyage()
            wp.launch(miss, dim=p.barges, inputs=[track, p.hours * p.substeps, self.station, cost])
            wp.launch(burn, dim=self.thrust.shape, inputs=[self.thrust, p.fuel, cost])
        tape.backward(cost)
        g = self.thrust.grad.numpy()
        value = float(cost.numpy()[0])
        self.thrust.assign(self.thrust.numpy() - p.rate * g)
        tape.zero()
        return value, track.numpy()[-1]


def main():
    tow = Tow(Plan())
    for it in range(12):
        value, arrived = tow.improve()
        print(f"{it:2d} cost {value:.4f} arrivals " + " ".join(f"({x:.2f},{y:.2f})" for x, y in arrived))


if __name__ == "__main__":
    main()
