"""Kernels of the radial heat conduction around a borehole, one radial column per depth."""
import warp as wp


@wp.kernel
def heat_step(
    temp: wp.array2d(dtype=float),
    cond: wp.array(dtype=float),
    radius: wp.array(dtype=float),
    power: float,
    dt: float,
    temp_new: wp.array2d(dtype=float),
):
    z, r = wp.tid()
    nr = radius.shape[0] - 1
    k = cond[z]
    inner = radius[r]
    outer = radius[r + 1]
    mid = 0.5 * (inner + outer)
    width = outer - inner
    flow_in = power
    if r > 0:
        flow_in = k * inner * (temp[z, r - 1] - temp[z, r]) / (mid - 0.5 * (radius[r - 1] + inner))
    flow_out = float(0.0)
    if r < nr - 1:
        flow_out = k * outer * (temp[z, r] - temp[z, r + 1]) / (0.5 * (outer + radius[r + 2]) - mid)
    temp_new[z, r] = temp[z, r] + dt * (flow_in - flow_out) / (mid * width)


@wp.kernel
def fibre_misfit(
    temp: wp.array2d(dtype=float),
    cond: wp.array(dtype=float),
    power: float,
    grout: float,
    fibre: wp.array2d(dtype=float),
    row: int,
    scale: float,
    out: wp.array(dtype=float),
):
    """The fibre hangs in the grout: it reads the wall temperature plus the drop across the grouted annulus."""
    z = wp.tid()
    reading = temp[z, 0] + power * grout / (0.3 + cond[z])
    d = reading - fibre[row, z]
    wp.atomic_add(out, 0, scale * d * d)


@wp.kernel
def roughness(log_k: wp.array(dtype=float), weight: float, out: wp.array(dtype=float)):
    i = wp.tid()
    d = log_k[i + 1] - log_k[i]
    wp.atomic_add(out, 0, weight * d * d)
