"""A rod's heaters from the temperatures that were measured along it: what a tape's recording is asked for, and how often.

The first argument says it; what is true of each stands in tests/end_to_end/test_real_kinds.py.
"""

import sys

import numpy as np
import warp as wp

CELLS, STEPS, RATE = 12, 9, 0.04


@wp.kernel
def conduct(now: wp.array(dtype=wp.float32), heat: wp.array(dtype=wp.float32), out: wp.array(dtype=wp.float32)):
    i = wp.tid()
    n = now.shape[0]
    left, right = now[(i + n - 1) % n], now[(i + 1) % n]
    out[i] = now[i] + 0.2 * (left - 2.0 * now[i] + right) + 0.1 * heat[i % heat.shape[0]]


@wp.kernel
def spread(now: wp.array(dtype=wp.float32), out: wp.array(dtype=wp.float32)):
    i = wp.tid()
    n = now.shape[0]
    out[i] = 0.5 * now[i] + 0.3 * now[(i + 1) % n] + 0.2 * now[(i + n - 1) % n]


@wp.kernel
def deviation(now: wp.array(dtype=wp.float32), wanted: wp.array(dtype=wp.float32), cost: wp.array(dtype=wp.float32)):
    i = wp.tid()
    d = now[i] - wanted[i]
    wp.atomic_add(cost, 0, d * d)


@wp.kernel
def power(heat: wp.array(dtype=wp.float32), cost: wp.array(dtype=wp.float32)):
    i = wp.tid()
    wp.atomic_add(cost, 0, 0.3 * heat[i] * heat[i])


def scalar():
    return wp.zeros(1, dtype=float, requires_grad=True)


def profile(kept=True):
    return wp.array(np.linspace(0.0, 0.5, CELLS), dtype=float, requires_grad=kept)


def simulate(heat, variant):
    rows = [profile()]
    for _ in range(STEPS):
        rows.append(profile(variant != "held"))
        wp.launch(conduct, CELLS, inputs=[rows[-2], heat], outputs=[rows[-1]])
    if variant == "mixed":
        wp.launch(spread, CELLS, inputs=[rows[-1]], outputs=[rows[-1]])
    return rows[-1]


def main(variant):
    heat = wp.array([0.4, 1.2, 0.7], dtype=float, requires_grad=True)
    wanted = [wp.array(1.0 + 0.5 * np.cos(np.arange(CELLS) + b), dtype=float) for b in range(4)]
    seed = wp.array([0.25], dtype=float)
    for it in range(6):
        total = 0.0
        for batch in range(4 if variant == "batches" else 1):
            cost, second = scalar(), scalar()
            with wp.Tape() as tape:
                end = simulate(heat, variant)
                wp.launch(deviation, CELLS, inputs=[end, wanted[batch]], outputs=[cost])
                if variant == "apart":
                    wp.launch(power, 3, inputs=[heat], outputs=[second])
                else:
                    wp.launch(power, 3, inputs=[heat], outputs=[cost], record_tape=variant != "summand")
            if variant == "batches":
                tape.backward(grads={cost: seed})
            elif variant == "seeded":
                tape.backward(grads={cost: seed})
                tape.backward(grads={cost: wp.clone(seed)})  # again
            else:
                tape.backward(cost)
            if variant == "zeroed":
                tape.zero()
                tape.backward(cost)
            elif variant == "apart":
                tape.backward(second)
            elif variant in ("twice", "thrice"):
                for _ in range(1 if variant == "twice" else 2):
                    tape.backward(cost)  # again
            total += float(cost.numpy()[0]) + float(second.numpy()[0])
        heat.assign(heat.numpy() - RATE * heat.grad.numpy())
        heat.grad.zero_()
        print(f"{it} cost {total:.6f} heat {np.round(heat.numpy(), 3)}")


if __name__ == "__main__":
    main(sys.argv[1])
