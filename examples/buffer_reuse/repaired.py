"""Estimate how fast a bacterial colony grows and spreads from one picture of the dish."""
import numpy as np
import warp as wp

SITES = 48
HOURS = 30
DT = 0.25
ITERATIONS = 12
RATE = np.array([0.02, 0.04])


@wp.kernel
def grow(
    density: wp.array(dtype=float),
    rates: wp.array(dtype=float),
    later: wp.array(dtype=float),
):
    i = wp.tid()
    here = density[i]
    left = density[wp.max(i - 1, 0)]
    right = density[wp.min(i + 1, SITES - 1)]
    spread = rates[0] * (left - 2.0 * here + right)
    growth = rates[1] * here * (1.0 - here)
    later[i] = here + DT * (spread + growth)


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
    def __init__(self, rates):
        x = np.arange(SITES)
        self.inoculum = wp.array(0.6 * np.exp(-(((x - 14) / 2.5) ** 2)), dtype=float)
        self.rates = wp.array(rates, dtype=float, requires_grad=True)
        self.density = [wp.zeros(SITES, dtype=float, requires_grad=True) for _ in range(HOURS + 1)]
        self.mismatch = wp.zeros(1, dtype=float, requires_grad=True)

    def incubate(self):
        wp.copy(self.density[0], self.inoculum)
        for h in range(HOURS):
            wp.launch(grow, SITES, inputs=[self.density[h], self.rates], outputs=[self.density[h + 1]])
        return self.density[HOURS]


def take_picture(true_rates):
    return wp.array(Dish(true_rates).incubate().numpy(), dtype=float)


def main():
    picture = take_picture([0.8, 0.5])
    dish = Dish([0.5, 0.3])

    for it in range(ITERATIONS):
        dish.mismatch.zero_()
        tape = wp.Tape()
        with tape:
            final = dish.incubate()
            wp.launch(compare, SITES, inputs=[final, picture], outputs=[dish.mismatch])
        tape.backward(dish.mismatch)

        step = dish.rates.grad.numpy().copy()
        tape.zero()
        p = dish.rates.numpy().copy()
        print(f"iteration {it:2d}  loss {dish.mismatch.numpy()[0]:.5f}  spread {p[0]:.4f}  growth {p[1]:.4f}  gradient {step}")
        dish.rates.assign(p - RATE * step)


if __name__ == "__main__":
    main()
