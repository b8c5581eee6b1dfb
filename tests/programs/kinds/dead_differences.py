"""Firing schedule of a kiln: total energy of a shift in joules, of which the schedule moves a few."""

import numpy as np
import warp as wp

ZONES = 32
HOURS = 6
BASE = 3.0e5  # what the kiln takes in any case, joules a zone


@wp.func
def emit(t: float):
    return t * t * t * t


@wp.func_grad(emit)
def adj_emit(t: float, adj_ret: float):
    wp.adjoint[t] += adj_ret * 4.0 * t * t


@wp.kernel
def fire(temp: wp.array(dtype=float), schedule: wp.array(dtype=float), hour: int, out: wp.array(dtype=float)):
    i = wp.tid()
    t = temp[i]
    out[i] = t + 0.1 * (schedule[hour] - emit(t))


@wp.kernel
def bill(temp: wp.array(dtype=float), base: float, energy: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(energy, 0, base + 0.004 * emit(temp[i]))


@wp.kernel
def descend(schedule: wp.array(dtype=float), slope: wp.array(dtype=float), rate: float):
    i = wp.tid()
    schedule[i] = wp.clamp(schedule[i] - rate * slope[i], 0.0, 4.0)


def main():
    schedule = wp.array(np.linspace(1.4, 2.2, HOURS), dtype=float, requires_grad=True)
    start = wp.array(0.8 + 0.3 * np.sin(np.arange(ZONES)), dtype=float)
    for shift in range(6):
        temps = [start] + [wp.zeros(ZONES, dtype=float, requires_grad=True) for _ in range(HOURS)]
        energy = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            for h in range(HOURS):
                wp.launch(fire, ZONES, inputs=[temps[h], schedule, h], outputs=[temps[h + 1]])
            wp.launch(bill, ZONES, inputs=[temps[-1], BASE], outputs=[energy])
        tape.backward(energy)
        wp.launch(descend, HOURS, inputs=[schedule, schedule.grad, 0.5])
        tape.zero()
        print(f"shift {shift}: {energy.numpy()[0]:.1f} J, schedule {np.round(schedule.numpy(), 3)}")


if __name__ == "__main__":
    main()
