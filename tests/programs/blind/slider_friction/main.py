"""Identify the friction of a linear guide from a recorded motion under a known drive force."""
from dataclasses import dataclass, field

import numpy as np
import warp as wp

from friction import Guide, stribeck


@wp.kernel
def slide(
    law: wp.array(dtype=float),
    guide: Guide,
    drive: wp.array(dtype=float),
    x: wp.array2d(dtype=float),
    v: wp.array2d(dtype=float),
    t: int,
    dt: float,
):
    run = wp.tid()
    vel = v[t, run]
    f = drive[t] * (1.0 + 0.25 * float(run)) - guide.spring * (x[t, run] - guide.rest)
    f = f - stribeck(vel, law[0], law[1], law[2]) - law[3] * vel
    nv = vel + dt * f / guide.mass
    v[t + 1, run] = nv
    x[t + 1, run] = x[t, run] + dt * nv


@wp.kernel
def residual(x: wp.array2d(dtype=float), seen: wp.array2d(dtype=float), scale: float, loss: wp.array(dtype=float)):
    t, run = wp.tid()
    d = x[t + 1, run] - seen[t, run]
    wp.atomic_add(loss, 0, scale * d * d)


@dataclass
class Rig:
    steps: int = 120
    runs: int = 3
    dt: float = 0.01
    guide: Guide = field(default_factory=Guide)

    def __post_init__(self):
        self.guide.mass, self.guide.spring, self.guide.rest = 0.5, 6.0, 0.0
        t = np.arange(self.steps) * self.dt
        force = 4.0 * np.sin(9.0 * t) + 1.5 * np.cos(17.0 * t)
        self.drive = wp.array(force.astype(np.float32), dtype=float)

    def motion(self, law):
        x = wp.zeros((self.steps + 1, self.runs), dtype=float, requires_grad=True)
        v = wp.zeros((self.steps + 1, self.runs), dtype=float, requires_grad=True)
        for t in range(self.steps):
            wp.launch(slide, dim=self.runs, inputs=[law, self.guide, self.drive, x, v, t, self.dt])
        return x


def gauss_scaled(g, law):
    """Gradient with respect to the logarithms."""
    return g * law


def main():
    rig = Rig()
    seen = rig.motion(wp.array([0.8, 2.4, 0.35, 0.4], dtype=float, requires_grad=True)).numpy()[1:].copy()
    seen = wp.array(seen, dtype=float)
    law = wp.array([0.5, 1.9, 0.5, 0.6], dtype=float, requires_grad=True)
    scale = 1000.0 / (rig.steps * rig.runs)
    step = 0.08
    last = None
    for it in range(12):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            x = rig.motion(law)
            wp.launch(residual, dim=seen.shape, inputs=[x, seen, scale, loss])
        tape.backward(loss)
        value = loss.numpy()[0]
        if last is not None and value > last:
            step *= 0.5
        last = value
        now = law.numpy()
        g = gauss_scaled(law.grad.numpy(), now)
        tape.zero()
        print(f"{it:2d} loss {value:.5f} coulomb {now[0]:.4f} stick {now[1]:.4f} speed {now[2]:.4f} viscous {now[3]:.4f}")
        law.assign(now * np.exp(-step * g / (np.abs(g).max() + 1e-6)))


if __name__ == "__main__":
    main()
