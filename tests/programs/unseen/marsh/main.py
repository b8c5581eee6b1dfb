"""Water in a marsh over a season; seepage is fitted to the level at its end."""

import numpy as np
import warp as wp

POOLS = 20
DAYS = 24
FLUSH = 8  # days after which the tape is emptied, or it eats the memory


@wp.kernel
def day(level: wp.array(dtype=float), seep: wp.array(dtype=float), rain: float, out: wp.array(dtype=float)):
    i = wp.tid()
    n = level.shape[0]
    h = level[i]
    exchange = level[(i + 1) % n] + level[(i + n - 1) % n] - 2.0 * h
    out[i] = h + 0.1 * exchange - 0.05 * seep[i % 4] * h * wp.sqrt(h + 0.01) + rain


@wp.kernel
def misfit(level: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = level[i] - seen[i]
    wp.atomic_add(loss, 0, d * d)


def rain(d):
    return 0.02 + 0.02 * float(np.sin(0.7 * d))


class Season:
    def __init__(self, flush):
        self.flush = flush
        self.start = wp.array(1.0 + 0.3 * np.cos(np.arange(POOLS)), dtype=float)
        self.tape = wp.Tape()

    def simulate(self, seep):
        level = self.start
        for d in range(DAYS):
            if self.flush and d % FLUSH == 0:
                self.tape.reset()
            after = wp.zeros(POOLS, dtype=float, requires_grad=True)
            wp.launch(day, POOLS, inputs=[level, seep, rain(d)], outputs=[after])
            level = after
        return level


def main():
    seen = Season(flush=False).simulate(wp.array([0.7, 0.3, 0.5, 0.9], dtype=float))
    season = Season(flush=True)
    seep = wp.array([0.4, 0.4, 0.4, 0.4], dtype=float, requires_grad=True)
    for it in range(6):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with season.tape:
            level = season.simulate(seep)
            wp.launch(misfit, POOLS, inputs=[level, seen], outputs=[loss])
        season.tape.backward(loss)
        g = seep.grad.numpy().copy()
        season.tape.zero()
        seep.assign(seep.numpy() - 0.1 * g)
        print(f"season {it}: misfit {loss.numpy()[0]:.6f} seep {np.round(seep.numpy(), 4)}")


if __name__ == "__main__":
    main()
