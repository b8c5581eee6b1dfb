"""Shoaling waves over a reef in one dimension, double precision."""
import warp as wp


@wp.func
def depth(reef: wp.array(dtype=wp.float64), x: wp.float64):
    """Two smooth humps on a bottom of depth one; reef = (height, place, width) twice."""
    h = wp.float64(1.0)
    for k in range(2):
        r = (x - reef[3 * k + 1]) / reef[3 * k + 2]
        h -= reef[3 * k] * wp.exp(-r * r)
    return h


@wp.kernel
def spread(
    reef: wp.array(dtype=wp.float64),
    eta: wp.array(dtype=wp.float64),
    flow: wp.array(dtype=wp.float64),
    paddle: wp.array(dtype=wp.float64),
    t: int,
    dt: wp.float64,
    dx: wp.float64,
    flow_out: wp.array(dtype=wp.float64),
):
    """Momentum with a weak non-linearity and bottom drag that grows where it is shallow."""
    i = wp.tid()
    n = eta.shape[0]
    if i == 0:
        flow_out[i] = paddle[t]
    elif i == n - 1:
        flow_out[i] = flow[i - 1]
    else:
        h = depth(reef, wp.float64(i) * dx)
        u = flow[i]
        slope = (eta[i] - eta[i - 1]) / dx
        drag = wp.float64(0.04) * u * wp.abs(u) / h
        flow_out[i] = u - dt * (slope + drag + wp.float64(0.1) * u * (flow[i + 1] - flow[i - 1]) / (wp.float64(2.0) * dx))


@wp.kernel
def level(
    reef: wp.array(dtype=wp.float64),
    eta: wp.array(dtype=wp.float64),
    flow: wp.array(dtype=wp.float64),
    dt: wp.float64,
    dx: wp.float64,
    eta_out: wp.array(dtype=wp.float64),
):
    i = wp.tid()
    n = eta.shape[0]
    if i == n - 1:
        eta_out[i] = eta[i - 1]
    else:
        x = wp.float64(i) * dx
        a = (depth(reef, x) + wp.float64(0.3) * eta[i]) * flow[i]
        b = (depth(reef, x + dx) + wp.float64(0.3) * eta[i]) * flow[i + 1]
        eta_out[i] = eta[i] - dt * (b - a) / dx


@wp.kernel
def record(
    eta: wp.array(dtype=wp.float64),
    buoys: wp.array(dtype=int),
    seen: wp.array2d(dtype=wp.float64),
    t: int,
    w: wp.float64,
    misfit: wp.array(dtype=wp.float64),
):
    k = wp.tid()
    d = eta[buoys[k]] - seen[t, k]
    wp.atomic_add(misfit, 0, w * d * d)
