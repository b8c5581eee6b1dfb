import numpy as np
import warp as wp

from .kernels import coat, day, outflow, penalty, sum_up, upkeep
from .pool import FieldPool
from .settings import BedSettings


class CoatingStudy:
    def __init__(self, settings: BedSettings):
        self.s = settings
        self.pool = FieldPool()
        for name in ("capacity", "uptake", "total", "out"):
            self.pool.get(name, settings.layers)
        depth = np.linspace(0.0, 1.0, settings.layers)
        self.thickness = wp.array(0.2 - 0.3 * depth, dtype=float, requires_grad=True)
        self.inflow = wp.array(1.0 + 0.3 * np.sin(np.arange(settings.days)), dtype=float)
        self.cost = wp.zeros(1, dtype=float, requires_grad=True)

    def simulate(self):
        s = self.s
        capacity = self.pool.get("capacity", s.layers)
        uptake = self.pool.get("uptake", s.layers * s.days)
        out = self.pool.get("out", s.days)
        self.cost.zero_()
        wp.launch(coat, s.layers, inputs=[self.thickness], outputs=[capacity])
        for d in range(s.days):
            wp.launch(day, s.layers, inputs=[capacity, 0.8, s.layers, d], outputs=[uptake])
        total = self.pool.get("total", s.days)
        total.zero_()
        wp.launch(sum_up, (s.days, s.layers), inputs=[uptake, s.layers], outputs=[total])
        wp.launch(outflow, s.days, inputs=[total, self.inflow], outputs=[out])
        wp.launch(penalty, s.days, inputs=[out, s.limit], outputs=[self.cost])
        wp.launch(upkeep, s.layers, inputs=[self.thickness, s.upkeep], outputs=[self.cost])

    def round(self):
        with wp.Tape() as tape:
            self.simulate()
        tape.backward(self.cost)
        grad = self.thickness.grad.numpy().copy()
        tape.zero()
        self.thickness.assign(self.thickness.numpy() - self.s.rate * grad)
        return {"cost": float(self.cost.numpy()[0]), "gradient": float(np.linalg.norm(grad))}
