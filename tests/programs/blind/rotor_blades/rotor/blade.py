"""Blade element model with a fixed inflow."""

import numpy as np
import warp as wp


@wp.kernel
def incidence(twist: wp.array(dtype=float), radius: wp.array(dtype=float), wind: float, omega: float, alpha: wp.array(dtype=float)):
    i = wp.tid()
    phi = wp.atan2(0.67 * wind, omega * radius[i])
    alpha[i] = phi - twist[i]


@wp.kernel
def section_power(
    twist: wp.array(dtype=float),
    chord: wp.array(dtype=float),
    radius: wp.array(dtype=float),
    alpha: wp.array(dtype=float),
    coef: wp.array2d(dtype=float),
    wind: float,
    omega: float,
    totals: wp.array(dtype=float),
):
    i = wp.tid()
    phi = alpha[i] + twist[i]
    v2 = 0.45 * wind * wind + omega * omega * radius[i] * radius[i]
    tang = coef[i, 0] * wp.sin(phi) - coef[i, 1] * wp.cos(phi)
    axial = coef[i, 0] * wp.cos(phi) + coef[i, 1] * wp.sin(phi)
    q = 0.5 * v2 * chord[i] / float(radius.shape[0])
    wp.atomic_add(totals, 0, q * tang * radius[i])
    wp.atomic_add(totals, 1, q * axial * radius[i])


@wp.kernel
def score(totals: wp.array(dtype=float), twist: wp.array(dtype=float), chord: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    if i == 0:
        wp.atomic_add(loss, 0, -totals[0] + 0.02 * totals[1] * totals[1])
    else:
        dt = twist[i] - twist[i - 1]
        dc = chord[i] - chord[i - 1]
        wp.atomic_add(loss, 0, 0.5 * dt * dt + 4.0 * dc * dc)


class Blade:
    def __init__(self, sections=14):
        self.n = sections
        r = np.linspace(0.2, 1.0, sections)
        self.radius = wp.array(r.astype(np.float32), dtype=float)
        self.twist = wp.array((0.30 * (1.0 - r) + 0.02).astype(np.float32), dtype=float, requires_grad=True)
        self.chord = wp.array((0.16 - 0.08 * r).astype(np.float32), dtype=float, requires_grad=True)

    def totals(self, polar, wind, omega):
        alpha = wp.zeros(self.n, dtype=float, requires_grad=True)
        totals = wp.zeros(2, dtype=float, requires_grad=True)
        wp.launch(incidence, dim=self.n, inputs=[self.twist, self.radius, wind, omega], outputs=[alpha])
        coef = polar(alpha)
        wp.launch(
            section_power,
            dim=self.n,
            inputs=[self.twist, self.chord, self.radius, alpha, coef, wind, omega],
            outputs=[totals],
        )
        return totals
