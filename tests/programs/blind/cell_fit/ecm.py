"""Equivalent circuit of a lithium cell with a lumped thermal node."""

import warp as wp


@wp.struct
class Circuit:
    r0: wp.array(dtype=float)
    r1: wp.array(dtype=float)
    tau: wp.array(dtype=float)
    cooling: wp.array(dtype=float)


@wp.kernel
def pulse(x: wp.array(dtype=wp.vec3), cell: Circuit, current: wp.array(dtype=float), t: int, dt: float, out: wp.array(dtype=wp.vec3), volt: wp.array(dtype=float)):
    """x = (state of charge, RC voltage, temperature rise)"""
    q = x[0]
    i = current[t]
    r0 = cell.r0[0] * wp.exp(-0.03 * q[2])
    v1 = q[1] + dt * (i * cell.r1[0] - q[1]) / cell.tau[0]
    heat = i * i * r0 + i * v1
    temp = q[2] + dt * (0.5 * heat - cell.cooling[0] * q[2])
    out[0] = wp.vec3(q[0] - dt * i / 300.0, v1, temp)
    volt[t] = 3.0 + 1.1 * q[0] - 0.2 * q[0] * q[0] - i * r0 - v1


@wp.kernel
def volt_error(volt: wp.array(dtype=float), seen: wp.array(dtype=float), w: float, err: wp.array(dtype=float)):
    t = wp.tid()
    d = volt[t] - seen[t]
    wp.atomic_add(err, 0, w * d * d)


@wp.kernel
def temp_error(x: wp.array(dtype=wp.vec3), seen: float, w: float, err: wp.array(dtype=float)):
    d = x[0][2] - seen
    wp.atomic_add(err, 0, w * d * d)


@wp.kernel
def total(a: wp.array(dtype=float), b: wp.array(dtype=float), out: wp.array(dtype=float)):
    out[0] = a[0] + b[0]
