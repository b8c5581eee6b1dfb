"""Forward march with two alternating grids, and the reverse sweep from stored snapshots."""
import numpy as np
import warp as wp

import model


class TwoGrids:
    """Value-only march: two grids are written in turn."""

    def __init__(self, shape):
        self.shape = shape
        self.grids = [[wp.zeros(shape, dtype=float) for _ in range(2)] for _ in range(2)]

    def start(self, cells, oxygen):
        self.now = 0
        self.grids[0][0].assign(cells)
        self.grids[0][1].assign(oxygen)

    def step(self, tissue, rates, dt):
        a, b = self.grids[self.now], self.grids[1 - self.now]
        wp.launch(model.advance, self.shape, inputs=[*a, tissue, rates, dt], outputs=b)
        self.now = 1 - self.now

    @property
    def cells(self):
        return self.grids[self.now][0]

    def snapshot(self):
        return tuple(g.numpy().copy() for g in self.grids[self.now])


class Rollout:
    def __init__(self, cfg, tissue, first_scan, oxygen, rates):
        self.cfg = cfg
        self.shape = tissue.shape
        self.tissue = wp.array(tissue, dtype=int)
        self.initial = (first_scan.astype(np.float32), oxygen.astype(np.float32))
        self.rates = rates
        self.pair = TwoGrids(self.shape)
        self.out = wp.zeros(1, dtype=float, requires_grad=True)
        k = cfg.stride
        self.cells = [wp.zeros(self.shape, dtype=float, requires_grad=True) for _ in range(k + 1)]
        self.oxygen = [wp.zeros(self.shape, dtype=float, requires_grad=True) for _ in range(k + 1)]
        self.scans = {}

    def _score(self, cells, step):
        if step in self.scans:
            w = 4.0 / (self.shape[0] * self.shape[1])
            wp.launch(model.scan_misfit, self.shape, inputs=[cells, self.scans[step], w], outputs=[self.out])

    def _prior(self):
        c = self.cfg
        r = self.rates
        wp.launch(model.prior, 3, inputs=[r.log_growth, c.prior_growth, c.prior_weight], outputs=[self.out])
        wp.launch(model.prior, 3, inputs=[r.log_motility, c.prior_motility, c.prior_weight], outputs=[self.out])

    def forward(self, keep=None):
        self.out.zero_()
        self.pair.start(*self.initial)
        for step in range(self.cfg.steps):
            if keep is not None and step % self.cfg.stride == 0:
                keep.append(self.pair.snapshot())
            self.pair.step(self.tissue, self.rates, self.cfg.dt)
            self._score(self.pair.cells, step + 1)
        self._prior()
        return float(self.out.numpy()[0])

    def reverse(self):
        """Gradient arrays of the rates are filled; returns the objective."""
        keep = []
        value = self.forward(keep)
        for array in (self.rates.log_growth, self.rates.log_motility, self.rates.log_uptake):
            array.grad.zero_()
        behind = None
        for block in range(len(keep) - 1, -1, -1):
            base = block * self.cfg.stride
            self.cells[0].assign(keep[block][0])
            self.oxygen[0].assign(keep[block][1])
            for a in (*self.cells, *self.oxygen):
                a.grad.zero_()
            tape = wp.Tape()
            with tape:
                for j in range(self.cfg.stride):
                    wp.launch(
                        model.advance,
                        self.shape,
                        inputs=[self.cells[j], self.oxygen[j], self.tissue, self.rates, self.cfg.dt],
                        outputs=[self.cells[j + 1], self.oxygen[j + 1]],
                    )
                    self._score(self.cells[j + 1], base + j + 1)
                if behind is None:
                    self._prior()
            if behind is not None:
                self.cells[-1].grad.assign(behind[0])
                self.oxygen[-1].grad.assign(behind[1])
            tape.backward(self.out)
            behind = (self.cells[0].grad.numpy().copy(), self.oxygen[0].grad.numpy().copy())
        return value
