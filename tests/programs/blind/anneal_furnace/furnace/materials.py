"""Material laws for the annealing furnace model (temperatures are scaled to 1000 K)."""

from dataclasses import dataclass

import warp as wp


@dataclass
class Alloy:
    rho_cp: float = 1.4
    emissivity: float = 0.25
    ambient: float = 0.3


@wp.func
def conductivity(t: float, k0: float, slope: float):
    return k0 * wp.exp(-slope * (t - 0.3))


@wp.kernel
def eval_conductivity(temp: wp.array(dtype=float), law: wp.array(dtype=float), kappa: wp.array(dtype=float)):
    i = wp.tid()
    t_face = 0.5 * (temp[i] + temp[i + 1])
    kappa[i] = conductivity(t_face, law[0], law[1])
