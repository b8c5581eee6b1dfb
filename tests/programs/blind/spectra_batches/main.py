"""Unmix spectra into Gaussian lines. Batches are processed one after another and their gradients
are summed before one optimizer update; the loss on screen lags by one epoch to save a sync."""

from dataclasses import dataclass

import numpy as np
import warp as wp
from warp.optim import Adam


@dataclass
class Options:
    spectra: int = 24
    batch: int = 6
    channels: int = 40
    epochs: int = 8
    clip: float = 500.0


@wp.struct
class Lines:
    centre: wp.array(dtype=float)
    width: wp.array(dtype=float)


@wp.kernel
def render(lines: Lines, amp: wp.array2d(dtype=float), first: int, channels: int, model: wp.array2d(dtype=float)):
    b, c = wp.tid()
    x = float(c) / float(channels)
    s = float(0.0)
    for k in range(3):
        z = (x - lines.centre[k]) / lines.width[k]
        s += amp[first + b, k] * wp.exp(-0.5 * z * z)
    model[b, c] = s


@wp.kernel
def batch_loss(model: wp.array2d(dtype=float), seen: wp.array2d(dtype=float), first: int, norm: float, loss: wp.array(dtype=float)):
    b, c = wp.tid()
    d = model[b, c] - seen[first + b, c]
    wp.atomic_add(loss, 0, norm * d * d)


class Unmixer:
    def __init__(self, opt):
        self.o = opt
        rng = np.random.default_rng(21)
        self.amp = wp.array(rng.uniform(0.3, 1.2, (opt.spectra, 3)).astype(np.float32), dtype=float)
        self.seen = wp.zeros((opt.spectra, opt.channels), dtype=float)
        truth = self.lines([0.25, 0.5, 0.78], [0.06, 0.09, 0.05])
        wp.launch(render, dim=self.seen.shape, inputs=[truth, self.amp, 0, opt.channels], outputs=[self.seen])
        self.fit = self.lines([0.30, 0.46, 0.74], [0.08, 0.08, 0.08], grad=True)
        self.params = [self.fit.centre, self.fit.width]
        self.adam = Adam(self.params, lr=0.008)
        self.history = []

    @staticmethod
    def lines(centre, width, grad=False):
        ln = Lines()
        ln.centre = wp.array(centre, dtype=float, requires_grad=grad)
        ln.width = wp.array(width, dtype=float, requires_grad=grad)
        return ln

    def accumulate(self, first):
        o = self.o
        model = wp.zeros((o.batch, o.channels), dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(render, dim=model.shape, inputs=[self.fit, self.amp, first, o.channels], outputs=[model])
            wp.launch(batch_loss, dim=model.shape, inputs=[model, self.seen, first, 100.0 / self.seen.size], outputs=[loss])
        tape.backward(loss)
        return loss

    def epoch(self):
        for p in self.params:
            p.grad.zero_()
        self.parts = [self.accumulate(first) for first in range(0, self.o.spectra, self.o.batch)]
        norm = np.sqrt(sum(float((p.grad.numpy() ** 2).sum()) for p in self.params))
        if norm > self.o.clip:
            raise RuntimeError(f"gradient norm {norm} is out of range")
        self.update()
        self.history.append(self.parts)

    def update(self):
        self.adam.step([p.grad for p in self.params])

    def lagged(self):
        return sum(float(x.numpy()[0]) for x in self.history[-2]) if len(self.history) > 1 else float("nan")


def main():
    un = Unmixer(Options())
    for e in range(un.o.epochs):
        un.epoch()
        print(f"epoch {e} previous loss {un.lagged():.6f} centres {np.round(un.fit.centre.numpy(), 4)}")


if __name__ == "__main__":
    main()
