"""Reaction-diffusion model of a tumour section: cell density and oxygen on a square grid."""
import warp as wp


@wp.struct
class Rates:
    log_growth: wp.array(dtype=float)
    log_motility: wp.array(dtype=float)
    log_uptake: wp.array(dtype=float)


@wp.func
def laplace(f: wp.array2d(dtype=float), i: int, j: int):
    n = f.shape[0]
    m = f.shape[1]
    return (
        f[wp.max(i - 1, 0), j]
        + f[wp.min(i + 1, n - 1), j]
        + f[i, wp.max(j - 1, 0)]
        + f[i, wp.min(j + 1, m - 1)]
        - 4.0 * f[i, j]
    )


@wp.kernel
def advance(
    cells: wp.array2d(dtype=float),
    oxygen: wp.array2d(dtype=float),
    tissue: wp.array2d(dtype=int),
    rates: Rates,
    dt: float,
    cells_new: wp.array2d(dtype=float),
    oxygen_new: wp.array2d(dtype=float),
):
    i, j = wp.tid()
    t = tissue[i, j]
    u = cells[i, j]
    o = oxygen[i, j]
    growth = wp.exp(rates.log_growth[t])
    motility = wp.exp(rates.log_motility[t])
    uptake = wp.exp(rates.log_uptake[0])
    cells_new[i, j] = u + dt * (growth * u * (1.0 - u) * o / (o + 0.2) + motility * laplace(cells, i, j))
    oxygen_new[i, j] = o + dt * (0.3 * laplace(oxygen, i, j) + 0.4 * (1.0 - o) - uptake * u * o)


@wp.kernel
def scan_misfit(
    cells: wp.array2d(dtype=float), scan: wp.array2d(dtype=float), weight: float, out: wp.array(dtype=float)
):
    i, j = wp.tid()
    d = cells[i, j] - scan[i, j]
    wp.atomic_add(out, 0, weight * d * d)


@wp.kernel
def prior(x: wp.array(dtype=float), centre: float, weight: float, out: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - centre
    wp.atomic_add(out, 0, weight * d * d)
