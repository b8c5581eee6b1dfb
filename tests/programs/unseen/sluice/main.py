"""Gate openings of three sluices: the level of each pond should follow a schedule."""
import numpy as np
import warp as wp

PONDS, HOURS = 3, 10


@wp.kernel
def flow(level: wp.array2d(dtype=float), gate: wp.array2d(dtype=float), h: int):
    p = wp.tid()
    come = float(0.35)
    if p > 0:
        come = gate[h, p - 1] * wp.sqrt(level[h, p - 1])
    go = gate[h, p] * wp.sqrt(level[h, p])
    level[h + 1, p] = level[h, p] + 0.5 * (come - go)


@wp.kernel
def wear(gate: wp.array2d(dtype=float), J: wp.array(dtype=float)):
    h, p = wp.tid()
    if h > 0:
        d = gate[h, p] - gate[h - 1, p]
        wp.atomic_add(J, 0, d * d)
    wp.atomic_add(J, 0, 0.01 * gate[h, p] * gate[h, p])


@wp.kernel
def schedule(level: wp.array2d(dtype=float), want: wp.array2d(dtype=float), J: wp.array(dtype=float)):
    h, p = wp.tid()
    d = level[h, p] - want[h, p]
    wp.atomic_add(J, 0, d * d)


want = wp.array(0.8 + 0.1 * np.outer(np.arange(HOURS + 1) / HOURS, [1, -1, 2]), dtype=float)
gate = wp.full((HOURS, PONDS), 0.3, dtype=float, requires_grad=True)

for plan in range(8):
    level = wp.full((HOURS + 1, PONDS), 0.9, dtype=float, requires_grad=True)
    J = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for h in range(HOURS):
            wp.launch(flow, PONDS, inputs=[level, gate, h])
        wp.launch(wear, (HOURS, PONDS), inputs=[gate, J])
    wp.launch(schedule, (HOURS + 1, PONDS), inputs=[level, want, J])
    tape.backward(J)
    gate.assign(gate.numpy() - 0.2 * gate.grad.numpy())
    gate.grad.zero_()
    print("plan", plan, "J", float(J.numpy()[0]))
