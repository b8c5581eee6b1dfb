"""Air temperature over the baking time, so that crust and crumb get their moisture (temperatures in units of 100 C)."""
from dataclasses import dataclass, field

import numpy as np
import warp as wp

import oven


@dataclass
class Recipe:
    steps: int = 80
    layers: int = 7
    dt: float = 0.4
    price: float = 2.0e-4
    want: list = field(default_factory=lambda: [0.10, 0.25, 0.36, 0.40, 0.42, 0.43, 0.43])


class Bakery:
    def __init__(self, recipe):
        self.r = recipe
        self.dough = oven.Dough()
        self.dough.conductivity, self.dough.moisture_loss, self.dough.boiling, self.dough.spacing = 0.05, 0.35, 1.0, 0.25
        self.want = wp.array(recipe.want, dtype=float)
        self.air = wp.full(recipe.steps, 2.0, dtype=float, requires_grad=True)
        self.loaf = wp.array(np.tile([0.3, 0.45], (recipe.steps + 1, recipe.layers, 1)), dtype=wp.vec2, requires_grad=True)
        self.momentum = np.zeros(recipe.steps)

    def run(self):
        r = self.r
        loss, core = (wp.zeros(1, dtype=float, requires_grad=True) for _ in range(2))
        tape = wp.Tape()
        with tape:
            for t in range(r.steps):
                wp.launch(oven.bake, dim=r.layers, inputs=[self.loaf, self.air, self.dough, t, r.dt])
            wp.launch(oven.crumb, dim=r.layers, inputs=[self.loaf, r.steps, self.want], outputs=[loss])
            wp.launch(oven.gas, dim=r.steps, inputs=[self.air, r.price], outputs=[loss])
            wp.launch(oven.core, dim=1, inputs=[self.loaf, r.steps], outputs=[core])
        return tape, loss, core

    def core_influence(self, tape, core):
        """When does the air still reach the core? Minutes weighted with the sensitivity of the core temperature."""
        keep = {a: a.grad.numpy().copy() for a in (self.air, self.loaf)}
        tape.zero()
        tape.backward(core)
        s = np.abs(self.air.grad.numpy())
        center = float((s * np.arange(len(s))).sum() / s.sum()) * self.r.dt
        for a, g in keep.items():
            a.grad.assign(g)
        return center

    def iterate(self):
        tape, loss, core = self.run()
        tape.backward(loss)
        note = self.core_influence(tape, core)
        g = self.air.grad.numpy()
        self.momentum = 0.7 * self.momentum - 0.5 * g
        self.air.assign((self.air.numpy() + self.momentum).astype(np.float32))
        tape.zero()
        return float(loss.numpy()[0]), float(core.numpy()[0]), note


def main():
    bakery = Bakery(Recipe())
    for it in range(12):
        loss, core, note = bakery.iterate()
        print(f"{it:2d} loss {loss:.5f} core {100 * core:.1f} C, core follows the air at {note:.1f} min")
    print("air", bakery.air.numpy()[::10].round(3))


if __name__ == "__main__":
    main()
