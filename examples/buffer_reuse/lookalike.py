"""Estimate where a dye was dropped into a dish of water, from one picture after it has spread."""
import numpy as np
import warp as wp

SITES = 24
HOURS = 20
DT = 0.25
ITERATIONS = 4
RATE = 2.0


@wp.kernel
def spread(
    density: wp.array(dtype=float),
    drops: wp.array(dtype=float),
    later: wp.array(dtype=float),
):
    i = wp.tid()
    here = density[i]
    left = density[wp.max(i - 1, 0)]
    right = density[wp.min(i + 1, SITES - 1)]
    later[i] = here + DT * (0.8 * (left - 2.0 * here + right) + 0.05 * drops[i / 6])


@wp.kernel
def compare(
    density: wp.array(dtype=float),
    picture: wp.array(dtype=float),
    mismatch: wp.array(dtype=float),
):
    i = wp.tid()
    d = density[i] - picture[i]
    wp.atomic_add(mismatch, 0, d * d)


class Dish:
    def __init__(self, drops):
        self.clear = wp.zeros(SITES, dtype=float)
        self.drops = wp.array(drops, dtype=float, requires_grad=True)
        self.today = wp.zeros(SITES, dtype=float, requires_grad=True)
        self.tomorrow = wp.zeros(SITES, dtype=float, requires_grad=True)
        self.mismatch = wp.zeros(1, dtype=float, requires_grad=True)

    def wait(self):
        wp.copy(self.today, self.clear)
        now, then = self.today, self.tomorrow
        for _ in range(HOURS):
            wp.launch(spread, SITES, inputs=[now, self.drops], outputs=[then])
            now, then = then, now
        return now


def take_picture(true_drops):
    return wp.array(Dish(true_drops).wait().numpy(), dtype=float)


def main():
    picture = take_picture([0.0, 1.0, 0.2, 0.6])
    dish = Dish([0.4, 0.4, 0.4, 0.4])

    for it in range(ITERATIONS):
        dish.mismatch.zero_()
        tape = wp.Tape()
        with tape:
            final = dish.wait()
            wp.launch(compare, SITES, inputs=[final, picture], outputs=[dish.mismatch])
        tape.backward(dish.mismatch)

        step = dish.drops.grad.numpy().copy()
        tape.zero()
        p = dish.drops.numpy().copy()
        print(f"iteration {it:2d}  loss {dish.mismatch.numpy()[0]:.5f}  drops {np.round(p, 3)}  gradient {step}")
        dish.drops.assign(p - RATE * step)


if __name__ == "__main__":
    main()
