"""Drain spacing below a dam: the ground settles for a season before the drains are opened."""
import numpy as np
import warp as wp

NODES = 30
SETTLE = 100  # steps before the drains open; nothing here depends on them
OPEN = 40


@wp.kernel
def diffuse(h: wp.array(dtype=float), head: float, out: wp.array(dtype=float)):
    i = wp.tid()
    up = head
    if i > 0:
        up = h[i - 1]
    down = float(0.0)
    if i < NODES - 1:
        down = h[i + 1]
    out[i] = h[i] + 0.2 * (up - 2.0 * h[i] + down)


@wp.kernel
def drained(h: wp.array(dtype=float), drain: wp.array(dtype=float), head: float, out: wp.array(dtype=float)):
    i = wp.tid()
    up = head
    if i > 0:
        up = h[i - 1]
    down = float(0.0)
    if i < NODES - 1:
        down = h[i + 1]
    out[i] = h[i] + 0.2 * (up - 2.0 * h[i] + down) - 0.1 * drain[i // 5] * h[i] * h[i]


@wp.kernel
def uplift(h: wp.array(dtype=float), drain: wp.array(dtype=float), scale: float, cost: wp.array(dtype=float)):
    i = wp.tid()
    c = h[i] * h[i] * scale
    if i % 5 == 0:
        c += 0.01 * drain[i // 5] * drain[i // 5]
    wp.atomic_add(cost, 0, c)


def settle(a, b):
    """The state before the drains open. Two buffers that take turns, off the tape."""
    for _ in range(SETTLE):
        wp.launch(diffuse, NODES, inputs=[a, 1.0], outputs=[b])
        a, b = b, a
    return a


def main():
    a = wp.zeros(NODES, dtype=float)
    b = wp.zeros(NODES, dtype=float)
    drain = wp.full(NODES // 5, 0.2, dtype=float, requires_grad=True)
    h = [wp.zeros(NODES, dtype=float, requires_grad=True) for _ in range(OPEN + 1)]
    cost = wp.zeros(1, dtype=float, requires_grad=True)

    # the cost is measured in units of the first day's uplift; the unit is fixed once and for all
    a.zero_()
    ground = settle(a, b)
    unit = 1.0 / float((ground.numpy() ** 2).sum())

    for week in range(15):
        a.zero_()
        ground = settle(a, b)
        h[0].assign(ground)
        cost.zero_()
        with wp.Tape() as tape:
            for k in range(OPEN):
                wp.launch(drained, NODES, inputs=[h[k], drain, 1.0], outputs=[h[k + 1]])
            wp.launch(uplift, NODES, inputs=[h[OPEN], drain, unit], outputs=[cost])
        tape.backward(cost)
        g = drain.grad.numpy()
        drain.assign(np.clip(drain.numpy() - 1.0 * g, 0.0, 5.0).astype(np.float32))
        if week % 3 == 0:
            print(f"week {week:2d}  cost {cost.numpy()[0]:.5f}  drains {np.round(drain.numpy(), 3)}")
        tape.zero()


if __name__ == "__main__":
    main()
