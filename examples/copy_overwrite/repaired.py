"""Choose the pump powers that bring a chain of reservoirs close to their wanted levels, at little cost."""
import numpy as np
import warp as wp

POOLS = 10
PUMPS = 3
HOURS = 12
ITERATIONS = 100
RATE = 0.2
PRICE = 0.05


@wp.kernel
def flow(
    level: wp.array(dtype=float),
    power: wp.array(dtype=float),
    later: wp.array(dtype=float),
):
    i = wp.tid()
    here = level[i]
    left = level[wp.max(i - 1, 0)]
    right = level[wp.min(i + 1, POOLS - 1)]
    later[i] = here + 0.2 * (left - 2.0 * here + right) + 0.1 * power[i * PUMPS // POOLS]


@wp.kernel
def spill(level: wp.array(dtype=float), kept: wp.array(dtype=float)):
    i = wp.tid()
    kept[i] = wp.tanh(level[i])


@wp.kernel
def misfit(level: wp.array(dtype=float), wanted: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = level[i] - wanted[i]
    wp.atomic_add(loss, 0, d * d / float(POOLS))


@wp.kernel
def cost(power: wp.array(dtype=float), loss: wp.array(dtype=float)):
    p = wp.tid()
    wp.atomic_add(loss, 0, PRICE * power[p] * power[p])


class Chain:
    def __init__(self):
        self.power = wp.full(PUMPS, 0.1, dtype=float, requires_grad=True)
        self.levels = [wp.zeros(POOLS, dtype=float, requires_grad=True) for _ in range(HOURS + 1)]
        self.moved = [wp.zeros(POOLS, dtype=float, requires_grad=True) for _ in range(HOURS)]
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.wanted = wp.array(np.linspace(1.3, 0.2, POOLS), dtype=float)

    def forward(self):
        for h in range(HOURS):
            wp.launch(flow, POOLS, inputs=[self.levels[h], self.power], outputs=[self.moved[h]])
            wp.launch(spill, POOLS, inputs=[self.moved[h]], outputs=[self.levels[h + 1]])
        wp.launch(misfit, POOLS, inputs=[self.levels[HOURS], self.wanted], outputs=[self.loss])
        wp.launch(cost, PUMPS, inputs=[self.power], outputs=[self.loss])


def main():
    chain = Chain()
    for it in range(ITERATIONS):
        chain.loss.zero_()
        tape = wp.Tape()
        with tape:
            chain.forward()
        tape.backward(chain.loss)

        gradient = chain.power.grad.numpy().copy()
        tape.zero()
        power = chain.power.numpy()
        if it % 20 == 0 or it == ITERATIONS - 1:
            print(f"iteration {it:2d}  loss {chain.loss.numpy()[0]:.5f}  power {power}  gradient {gradient}")
        chain.power.assign(power - RATE * gradient)


if __name__ == "__main__":
    main()
