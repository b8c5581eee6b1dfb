"""Explicit finite-volume solver for a rod that is heated along its length."""

import numpy as np
import warp as wp

from .materials import Alloy, eval_conductivity


@wp.kernel
def advance(
    temp: wp.array(dtype=float),
    kappa: wp.array(dtype=float),
    heater: wp.array(dtype=float),
    profile: wp.array2d(dtype=float),
    inv_dx2: float,
    dt: float,
    rho_cp: float,
    eps: float,
    ambient: float,
    temp_new: wp.array(dtype=float),
):
    i = wp.tid()
    n = temp.shape[0]
    flux = float(0.0)
    if i > 0:
        flux += kappa[i - 1] * (temp[i - 1] - temp[i])
    if i < n - 1:
        flux += kappa[i] * (temp[i + 1] - temp[i])
    power = float(0.0)
    for j in range(4):
        power += heater[j] * profile[j, i]
    t = temp[i]
    loss = eps * (t * t * t * t - ambient * ambient * ambient * ambient)
    temp_new[i] = t + dt / rho_cp * (flux * inv_dx2 + power - loss)


@wp.kernel
def profile_error(temp: wp.array(dtype=float), wanted: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = temp[i] - wanted[i]
    wp.atomic_add(loss, 0, d * d / float(temp.shape[0]))


class Rod:
    def __init__(self, cells, steps, dt, alloy=None):
        self.cells, self.steps, self.dt = cells, steps, dt
        self.alloy = alloy or Alloy()
        x = (np.arange(cells) + 0.5) / cells
        centres = np.array([0.12, 0.38, 0.62, 0.88])
        prof = np.exp(-(((x[None, :] - centres[:, None]) / 0.12) ** 2))
        self.profile = wp.array(prof.astype(np.float32), dtype=float)
        self.inv_dx2 = 16.0
        start = 0.3 + 0.5 * np.exp(-((x - 0.2) / 0.1) ** 2)
        self.temps = [wp.zeros(cells, dtype=float, requires_grad=True) for _ in range(steps + 1)]
        self.temps[0].assign(start.astype(np.float32))
        self.kappa = wp.zeros(cells - 1, dtype=float, requires_grad=True)

    def run(self, law, heater):
        a = self.alloy
        for s in range(self.steps):
            wp.launch(eval_conductivity, dim=self.cells - 1, inputs=[self.temps[s], law], outputs=[self.kappa])
            wp.launch(
                advance,
                dim=self.cells,
                inputs=[self.temps[s], self.kappa, heater, self.profile, self.inv_dx2, self.dt, a.rho_cp, a.emissivity, a.ambient],
                outputs=[self.temps[s + 1]],
            )
        return self.temps[-1]
