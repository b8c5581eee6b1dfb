"""Rate-based recurrent network with a soft-plus transfer function."""

import warp as wp


@wp.struct
class Cell:
    gain: wp.array(dtype=float)
    bias: wp.array(dtype=float)
    leak: float


@wp.func
def softplus(x: float, beta: float):
    z = beta * x
    return wp.where(z > 30.0, x, wp.log(1.0 + wp.exp(z)) / beta)


@wp.kernel
def drive(rate: wp.array(dtype=float), weight: wp.array2d(dtype=float), stim: wp.array2d(dtype=float), t: int, current: wp.array(dtype=float)):
    i = wp.tid()
    s = stim[t, i]
    for j in range(8):
        s += weight[i, j] * rate[j]
    current[i] = s


@wp.kernel
def respond(rate: wp.array(dtype=float), current: wp.array(dtype=float), cell: Cell, dt: float, out: wp.array(dtype=float)):
    i = wp.tid()
    r = softplus(cell.gain[i] * current[i] + cell.bias[i], 8.0)
    out[i] = rate[i] + dt * (r - cell.leak * rate[i])


@wp.kernel
def misfit(rate: wp.array(dtype=float), wanted: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = rate[i] - wanted[i]
    wp.atomic_add(loss, 0, d * d / float(rate.shape[0]))


@wp.kernel
def guarded_step(p: wp.array(dtype=float), g: wp.array(dtype=float), lr: float, cap: float):
    i = wp.tid()
    gi = g[i]
    if not wp.isfinite(gi):
        gi = 0.0
    p[i] = p[i] - lr * wp.clamp(gi, -cap, cap)
