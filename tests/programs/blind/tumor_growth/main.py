"""Fit tumour growth parameters and find a dose plan that reaches a wanted scan."""

import logging

import numpy as np
import warp as wp
from warp.optim import Adam

import grid
from model import Biology, Tumour, burden, toxicity

log = logging.getLogger("tumour")


class Planner:
    def __init__(self, n=24, days=6):
        self.model = Tumour(n, days, substeps=4, dt=0.2)
        self.bio = Biology()
        self.bio.diffusion = wp.array([0.12], dtype=float, requires_grad=True)
        self.bio.growth = wp.array([0.55], dtype=float, requires_grad=True)
        self.bio.kill = 0.8
        self.doses = wp.array(np.linspace(0.5, 0.2, days), dtype=float, requires_grad=True)
        self.wanted = wp.array(grid.blob(n, (0.5, 0.5), 0.08) * 0.5, dtype=float)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.params = [self.bio.diffusion, self.bio.growth, self.doses]
        self.opt = Adam(self.params, lr=0.02)

    def objective(self):
        n = self.model.n
        c = self.model.simulate(self.bio, self.doses)
        wp.launch(burden, dim=(n, n), inputs=[c, self.wanted, 40.0 / (n * n)], outputs=[self.loss])
        wp.launch(toxicity, dim=self.doses.shape[0], inputs=[self.doses, 0.05], outputs=[self.loss])

    def train_once(self):
        self.loss.zero_()
        tape = wp.Tape()
        with tape:
            self.objective()
        tape.backward(self.loss)
        self.apply()
        tape.zero()
        return float(self.loss.numpy()[0])

    def apply(self):
        self.opt.step([p.grad for p in self.params])


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    planner = Planner()
    for it in range(8):
        value = planner.train_once()
        log.info(
            "it %d loss %.5f D %.4f rho %.4f doses %s",
            it, value, planner.bio.diffusion.numpy()[0], planner.bio.growth.numpy()[0], np.round(planner.doses.numpy(), 3),
        )


if __name__ == "__main__":
    main()
