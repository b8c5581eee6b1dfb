"""Regional epidemic with an incubation delay. Infected and recovered shares live in a cyclic
history so that memory does not grow with the number of days."""

import numpy as np
import warp as wp


@wp.kernel
def day_step(
    now: wp.array(dtype=wp.vec2),
    late: wp.array(dtype=wp.vec2),
    beta: wp.array(dtype=float),
    mix: wp.array2d(dtype=float),
    recover: float,
    nxt: wp.array(dtype=wp.vec2),
):
    r = wp.tid()
    s = 1.0 - now[r][0] - now[r][1]
    pressure = float(0.0)
    for q in range(6):
        pressure += mix[r, q] * late[q][0]
    new = beta[r] * s * pressure
    rec = recover * now[r][0]
    nxt[r] = wp.vec2(now[r][0] + new - rec, now[r][1] + rec)


@wp.kernel
def compare(state: wp.array(dtype=wp.vec2), seen: wp.array2d(dtype=float), day: int, scale: float, loss: wp.array(dtype=float)):
    r = wp.tid()
    d = state[r][0] + state[r][1] - seen[day, r]
    wp.atomic_add(loss, 0, scale * d * d)


class Epidemic:
    def __init__(self, days=40, delay=4, slots=6):
        self.days, self.delay, self.slots = days, delay, slots
        rng = np.random.default_rng(14)
        m = 0.04 * rng.uniform(0.2, 1.0, (6, 6)) + np.eye(6)
        self.mix = wp.array(m.astype(np.float32), dtype=float)
        self.seed = np.zeros((6, 2), dtype=np.float32)
        self.seed[:, 0] = [0.01, 0.002, 0.004, 0.001, 0.006, 0.003]

    def run(self, beta, on_day):
        hist = wp.array(np.tile(self.seed, (self.slots, 1, 1)), dtype=wp.vec2, requires_grad=True)
        for t in range(self.days):
            now = hist[t % self.slots]
            late = hist[(t - self.delay) % self.slots]
            nxt = hist[(t + 1) % self.slots]
            wp.launch(day_step, dim=6, inputs=[now, late, beta, self.mix, 0.12], outputs=[nxt])
            on_day(t, nxt)
