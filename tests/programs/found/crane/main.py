"""Move a crane's trolley so that the load arrives without a swing. Controls: the trolley's acceleration in 20 slices."""
import numpy as np
import warp as wp

SLICES, SUB = 20, 4
DT = 0.05


@wp.struct
class Load:
    position: wp.array(dtype=wp.vec2)
    swing: wp.array(dtype=wp.vec2)


@wp.kernel
def slice_step(control: wp.array(dtype=float), k: int, before: Load, after: Load):
    a = control[k / SUB]
    p = before.position[0]
    s = before.swing[0]
    rate = s[1] + DT * (-9.81 * wp.sin(s[0]) - a * wp.cos(s[0])) - DT * 0.05 * s[1]
    speed = p[1] + DT * a
    after.position[0] = wp.vec2(p[0] + DT * speed, speed)
    after.swing[0] = wp.vec2(s[0] + DT * rate, rate)


@wp.kernel
def arrival(end: Load, control: wp.array(dtype=float), cost: wp.array(dtype=float)):
    p = end.position[0]
    s = end.swing[0]
    total = 4.0 * (p[0] - 2.0) * (p[0] - 2.0) + p[1] * p[1] + 3.0 * s[0] * s[0] + s[1] * s[1]
    for k in range(SLICES):
        total += 0.001 * control[k] * control[k]
    cost[0] = total


def make_load():
    load = Load()
    load.position = wp.zeros(1, dtype=wp.vec2, requires_grad=True)
    load.swing = wp.zeros(1, dtype=wp.vec2, requires_grad=True)
    return load


class NumpyAdam:
    def __init__(self, size, rate):
        self.rate, self.t = rate, 0
        self.m, self.v = np.zeros(size), np.zeros(size)

    def direction(self, gradient):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient * gradient
        return self.rate * (self.m / (1 - 0.9**self.t)) / (np.sqrt(self.v / (1 - 0.999**self.t)) + 1e-8)


class Planner:
    def __init__(self):
        self.control = wp.array(0.3 * np.cos(np.arange(SLICES)), dtype=float, requires_grad=True)
        self.loads = [make_load() for _ in range(SLICES * SUB + 1)]
        self.cost = wp.zeros(1, dtype=float, requires_grad=True)
        self.adam = NumpyAdam(SLICES, 0.05)
        self.gradient = np.zeros(SLICES)

    def rollout(self):
        for k in range(SLICES * SUB):
            wp.launch(slice_step, 1, inputs=[self.control, k, self.loads[k]], outputs=[self.loads[k + 1]])
        wp.launch(arrival, 1, inputs=[self.loads[-1], self.control], outputs=[self.cost])

    def improve(self):
        tape = wp.Tape()
        with tape:
            self.rollout()
        tape.backward(self.cost)
        step = self.adam.direction(self.gradient)
        self.gradient = self.control.grad.numpy().copy()
        self.control.assign(self.control.numpy() - step)
        tape.zero()
        return float(self.cost.numpy()[0])


planner = Planner()
for attempt in range(12):
    print(f"attempt {attempt}: cost {planner.improve():.4f}")
