"""Predator and prey: rate constants from yearly counts. Each year starts from the counted animals."""
import numpy as np
import warp as wp

YEARS = 5
SUB = 10


@wp.kernel
def live(pop: wp.array(dtype=wp.vec2), rate: wp.array(dtype=float), after: wp.array(dtype=wp.vec2)):
    y = wp.tid()
    hare = pop[y][0]
    lynx = pop[y][1]
    h = hare + 0.1 * (rate[0] * hare - rate[1] * hare * lynx)
    l = lynx + 0.1 * (rate[1] * 0.5 * hare * lynx - rate[2] * lynx)
    after[y] = wp.vec2(h, l)


@wp.kernel
def count_error(pop: wp.array(dtype=wp.vec2), counted: wp.array(dtype=wp.vec2), year: int, loss: wp.array(dtype=float)):
    d = pop[0] - counted[year + 1]
    wp.atomic_add(loss, 0, wp.dot(d, d))


counts = np.array([[1.0, 0.5], [1.3, 0.52], [1.65, 0.6], [2.0, 0.75], [2.2, 1.05], [2.1, 1.5]], dtype=np.float32)
counted = wp.array(counts, dtype=wp.vec2)
rate = wp.array([0.7, 0.6, 0.3], dtype=float, requires_grad=True)

for fit in range(12):
    sse = 0.0
    for year in range(YEARS):
        pop = wp.array(counts[year : year + 1], dtype=wp.vec2, requires_grad=True)
        err = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            for _ in range(SUB):
                after = wp.zeros_like(pop)
                wp.launch(live, 1, inputs=[pop, rate], outputs=[after])
                pop = after
            wp.launch(count_error, 1, inputs=[pop, counted, year], outputs=[err])
        tape.backward(err)
        sse += float(err.numpy()[0])
    print(f"fit {fit}: sse {sse:.5f}  rates {rate.numpy()}")
    rate.assign(rate.numpy() - 0.01 * rate.grad.numpy())
    rate.grad.zero_()
