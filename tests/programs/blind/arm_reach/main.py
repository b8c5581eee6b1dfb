"""Plan a four-link arm motion along a path with effort and joint limit terms."""

from dataclasses import dataclass, field

import numpy as np
import warp as wp
from warp.optim import Adam

import arm


@dataclass
class Weights:
    path: float = 1.0
    effort: float = 3.0
    limits: float = 2.0


@dataclass
class Plan:
    steps: int = 40
    iterations: int = 10
    lr: float = 0.05
    weights: Weights = field(default_factory=Weights)


class Planner:
    def __init__(self, plan):
        self.plan = plan
        rng = np.random.default_rng(1)
        self.knots = wp.array((0.5 + 0.6 * rng.normal(size=(4, 4))).astype(np.float32), dtype=float, requires_grad=True)
        self.links = wp.array([0.8, 0.7, 0.5, 0.3], dtype=float)
        phi = np.linspace(0.2, 1.4, plan.steps)
        self.path = wp.array(np.stack([1.6 * np.cos(phi), 1.3 * np.sin(phi)], 1).astype(np.float32), dtype=wp.vec2)
        self.opt = Adam([self.knots.flatten()], lr=plan.lr)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def kinematics(self):
        n = self.plan.steps
        angles = wp.zeros((n, 4), dtype=float, requires_grad=True)
        tip = wp.zeros(n, dtype=wp.vec2, requires_grad=True)
        wp.launch(arm.interpolate, dim=(n, 4), inputs=[self.knots, n], outputs=[angles])
        wp.launch(arm.tip_positions, dim=n, inputs=[angles, self.links], outputs=[tip])
        return angles, tip

    def iterate(self):
        n, w = self.plan.steps, self.plan.weights
        self.loss.zero_()
        tape = wp.Tape()
        with tape:
            angles, tip = self.kinematics()
            wp.launch(arm.follow, dim=n, inputs=[tip, self.path, w.path / n], outputs=[self.loss])
            wp.launch(arm.joint_limits, dim=(n, 4), inputs=[angles, 1.2, w.limits / n], outputs=[self.loss])
        wp.launch(arm.effort, dim=(n - 1, 4), inputs=[angles, w.effort], outputs=[self.loss])
        tape.backward(self.loss)
        self.step()
        tape.zero()
        return float(self.loss.numpy()[0])

    def step(self):
        self.opt.step([self.knots.grad.flatten()])


def main():
    planner = Planner(Plan())
    for it in range(planner.plan.iterations):
        print(f"{it} cost {planner.iterate():.6f}")
    print(np.round(planner.knots.numpy(), 3))


if __name__ == "__main__":
    main()
