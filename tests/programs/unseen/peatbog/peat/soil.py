"""Water content of a peat profile, explicit in time."""
import warp as wp


@wp.func
def conductivity(theta: float, k: float, b: float):
    return k * wp.pow(theta, b)


@wp.kernel
def drain(theta: wp.array(dtype=float), soil: wp.array(dtype=float), rain: float, dt: float, theta_next: wp.array(dtype=float)):
    i = wp.tid()
    n = theta.shape[0]
    inflow = rain
    if i > 0:
        inflow = conductivity(theta[i - 1], soil[0], soil[1])
    outflow = conductivity(theta[i], soil[0], soil[1])
    if i == n - 1:
        outflow = outflow * 0.5
    theta_next[i] = theta[i] + dt * (inflow - outflow)


@wp.kernel
def against_gauge(theta: wp.array(dtype=float), gauge: wp.array2d(dtype=float), row: int, loss: wp.array(dtype=float)):
    i = wp.tid()
    d = theta[i] - gauge[row, i]
    wp.atomic_add(loss, 0, d * d)
