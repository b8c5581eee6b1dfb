"""Oven schedule: the core of every loaf should reach 96 degrees, the crust should not burn."""
import numpy as np
import warp as wp

LOAVES = 4
MINUTES = 15


@wp.kernel
def bake(core: wp.array2d(dtype=float), crust: wp.array2d(dtype=float), oven: wp.array(dtype=float), size: wp.array(dtype=float), m: int):
    k = wp.tid()
    flow = (crust[m, k] - core[m, k]) / size[k]
    core[m + 1, k] = core[m, k] + 0.15 * flow
    crust[m + 1, k] = crust[m, k] + 0.4 * (oven[m] - crust[m, k]) - 0.1 * flow


@wp.kernel
def taste(core: wp.array2d(dtype=float), crust: wp.array2d(dtype=float), score: wp.array2d(dtype=float)):
    m, k = wp.tid()
    burnt = wp.max(crust[m + 1, k] - 1.6, 0.0)
    score[m, k] = burnt * burnt
    if m == MINUTES - 1:
        d = core[m + 1, k] - 0.96
        score[m, k] = burnt * burnt + 5.0 * d * d


oven = wp.full(MINUTES, 1.7, dtype=float, requires_grad=True)
size = wp.array([0.6, 1.0, 1.4, 0.9], dtype=float)
weight = np.full((MINUTES, LOAVES), 1.0 / LOAVES, dtype=np.float32)

for batch in range(10):
    core = wp.zeros((MINUTES + 1, LOAVES), dtype=float, requires_grad=True)
    crust = wp.zeros((MINUTES + 1, LOAVES), dtype=float, requires_grad=True)
    score = wp.zeros((MINUTES, LOAVES), dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for m in range(MINUTES):
            wp.launch(bake, LOAVES, inputs=[core, crust, oven, size, m])
        wp.launch(taste, (MINUTES, LOAVES), inputs=[core, crust], outputs=[score])
    score.grad.assign(weight)
    tape.backward()
    complaint = float((weight * score.numpy()).sum())
    heat = oven.numpy() - 0.1 * oven.grad.numpy()
    tape.zero()
    oven.assign(np.clip(heat, 0.0, 3.0))
    print(f"batch {batch}: complaints {complaint:.5f}")
