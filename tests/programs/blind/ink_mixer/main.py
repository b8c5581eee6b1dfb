"""Find ink recipes for a set of colour patches."""

import logging
from dataclasses import dataclass

import numpy as np
import warp as wp
from warp.optim import SGD

import optics


@dataclass
class Config:
    patches: int = 5
    bands: int = 8
    epochs: int = 10
    lr: float = 1.5


class RecipeSearch:
    def __init__(self, cfg):
        rng = np.random.default_rng(11)
        self.cfg = cfg
        self.absorb = wp.array(rng.uniform(0.05, 3.0, (4, cfg.bands)).astype(np.float32), dtype=float)
        self.scatter = wp.array([1.0, 1.4, 0.8, 2.0], dtype=float)
        self.target = wp.array(rng.uniform(0.2, 0.7, (cfg.patches, cfg.bands)).astype(np.float32), dtype=float)
        self.logits = wp.array(
            rng.normal(0.0, 0.3, (cfg.patches, 4)).astype(np.float32), dtype=float, requires_grad=True
        )
        self.opt = SGD([self.logits.flatten()], lr=cfg.lr)

    def forward(self):
        c = self.cfg
        amount = wp.zeros((c.patches, 4), dtype=float, requires_grad=True)
        total = wp.zeros(c.patches, dtype=float, requires_grad=True)
        refl = wp.zeros((c.patches, c.bands), dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        wp.launch(optics.raw_amounts, dim=(c.patches, 4), inputs=[self.logits], outputs=[amount])
        wp.launch(optics.patch_total, dim=(c.patches, 4), inputs=[amount], outputs=[total])
        wp.launch(optics.normalise, dim=(c.patches, 4), inputs=[amount, total])
        wp.launch(optics.reflectance, dim=(c.patches, c.bands), inputs=[amount, self.absorb, self.scatter], outputs=[refl])
        wp.launch(optics.colour_error, dim=(c.patches, c.bands), inputs=[refl, self.target], outputs=[self.loss])

    def epoch(self):
        tape = wp.Tape()
        with tape:
            self.forward()
        tape.backward(self.loss)
        self.update()
        tape.zero()
        return float(self.loss.numpy()[0])

    def update(self):
        self.opt.step([self.logits.grad.flatten()])


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    search = RecipeSearch(Config())
    for e in range(search.cfg.epochs):
        logging.info("epoch %d error %.6f", e, search.epoch())
    z = np.exp(search.logits.numpy())
    logging.info("recipes\n%s", np.round(z / z.sum(axis=1, keepdims=True), 3))


if __name__ == "__main__":
    main()
