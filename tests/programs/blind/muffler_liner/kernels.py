"""Finite-difference time-domain kernels for a lined duct of varying cross-section."""
import warp as wp


@wp.kernel
def update_velocity(
    p: wp.array(dtype=float),
    u: wp.array(dtype=float),
    ratio: float,
    inflow: float,
    cells: int,
    u_new: wp.array(dtype=float),
):
    i = wp.tid()
    if i == 0:
        u_new[i] = inflow
    elif i == cells:
        u_new[i] = p[cells - 1]
    else:
        u_new[i] = u[i] - ratio * (p[i] - p[i - 1])


@wp.kernel
def update_pressure(
    p: wp.array(dtype=float),
    u: wp.array(dtype=float),
    m: wp.array(dtype=float),
    log_area: wp.array(dtype=float),
    admittance: wp.array(dtype=float),
    ratio: float,
    dt: float,
    p_new: wp.array(dtype=float),
):
    i = wp.tid()
    left = wp.exp(log_area[i])
    right = wp.exp(log_area[i + 1])
    div = (right * u[i + 1] - left * u[i]) / (0.5 * (left + right))
    p_new[i] = p[i] - ratio * div - dt * admittance[i] * m[i]


@wp.kernel
def update_liner(
    p: wp.array(dtype=float),
    m: wp.array(dtype=float),
    rate: float,
    m_new: wp.array(dtype=float),
):
    i = wp.tid()
    m_new[i] = m[i] + rate * (p[i] - m[i])


@wp.kernel
def listen(p: wp.array(dtype=float), cell: int, weight: float, energy: wp.array(dtype=float)):
    q = p[cell]
    wp.atomic_add(energy, 0, weight * q * q)


@wp.kernel
def area_penalty(log_area: wp.array(dtype=float), weight: float, energy: wp.array(dtype=float)):
    i = wp.tid()
    d = log_area[i + 1] - log_area[i]
    wp.atomic_add(energy, 0, weight * (d * d + 0.1 * log_area[i] * log_area[i]))
