"""Where does the pollen come from? A Gaussian plume model is normalised to the released mass and
compared with station counts."""

import argparse

import numpy as np
import warp as wp


@wp.struct
class Source:
    place: wp.array(dtype=wp.vec2d)
    spread: wp.array(dtype=wp.float64)


@wp.kernel
def plume(src: Source, n: int, conc: wp.array2d(dtype=wp.float64)):
    i, j = wp.tid()
    x = wp.float64(i) / wp.float64(n)
    y = wp.float64(j) / wp.float64(n)
    total = wp.float64(0.0)
    for k in range(2):
        dx = x - src.place[k][0]
        dy = y - src.place[k][1]
        down = wp.float64(0.5) * (wp.float64(1.0) + wp.tanh(dx * wp.float64(6.0)))
        s = src.spread[k] * (wp.float64(0.4) + down)
        total += down * wp.exp(-dy * dy / (wp.float64(2.0) * s * s))
    conc[i, j] = total


@wp.kernel
def station_error(
    conc: wp.array2d(dtype=wp.float64),
    mass: wp.array(dtype=wp.float64),
    at: wp.array2d(dtype=int),
    counts: wp.array(dtype=wp.float64),
    scale: wp.float64,
    loss: wp.array(dtype=wp.float64),
):
    s = wp.tid()
    d = scale * conc[at[s, 0], at[s, 1]] / mass[0] - counts[s]
    wp.atomic_add(loss, 0, d * d)


class SourceFinder:
    def __init__(self, n, stations, seed):
        self.n = n
        rng = np.random.default_rng(seed)
        self.at = wp.array(rng.integers(n // 4, n, (stations, 2)).astype(np.int32), dtype=int)
        self.src = Source()
        self.src.place = wp.array([[0.1, 0.3], [0.3, 0.7]], dtype=wp.vec2d, requires_grad=True)
        self.src.spread = wp.array([0.12, 0.12], dtype=wp.float64, requires_grad=True)
        truth = Source()
        truth.place = wp.array([[0.15, 0.4], [0.2, 0.62]], dtype=wp.vec2d)
        truth.spread = wp.array([0.2, 0.16], dtype=wp.float64)
        conc = self.field(truth)
        c = conc.numpy()
        a = self.at.numpy()
        self.counts = wp.array(n * n * c[a[:, 0], a[:, 1]] / c.sum(), dtype=wp.float64)

    def field(self, src):
        conc = wp.zeros((self.n, self.n), dtype=wp.float64, requires_grad=True)
        wp.launch(plume, dim=conc.shape, inputs=[src, self.n], outputs=[conc])
        return conc

    def objective(self):
        conc = self.field(self.src)
        mass = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        wp.utils.array_sum(conc.flatten(), out=mass)
        self.loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        wp.launch(
            station_error,
            dim=self.at.shape[0],
            inputs=[conc, mass, self.at, self.counts, float(self.n * self.n)],
            outputs=[self.loss],
        )

    def iterate(self, rate):
        tape = wp.Tape()
        with tape:
            self.objective()
        tape.backward(self.loss)
        self.move(self.src.place.grad.numpy(), self.src.spread.grad.numpy(), rate)
        tape.zero()
        return float(self.loss.numpy()[0])

    def move(self, g_place, g_spread, rate):
        self.src.place.assign(self.src.place.numpy() - rate * g_place)
        self.src.spread.assign(np.maximum(self.src.spread.numpy() - rate * g_spread, 0.03))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--grid", type=int, default=32)
    ap.add_argument("--stations", type=int, default=20)
    ap.add_argument("--rate", type=float, default=2.0e-4)
    cfg = ap.parse_args()
    finder = SourceFinder(cfg.grid, cfg.stations, 9)
    for it in range(8):
        print(f"{it} chi2 {finder.iterate(cfg.rate):.6f} {finder.src.place.numpy().round(4).tolist()} {finder.src.spread.numpy().round(4)}")


if __name__ == "__main__":
    main()
