import warp as wp


@wp.struct
class Dough:
    conductivity: float
    moisture_loss: float
    boiling: float
    spacing: float


@wp.func
def softplus(x: float):
    return wp.log(1.0 + wp.exp(-wp.abs(x))) + wp.max(x, 0.0)


@wp.func_grad(softplus)
def adj_softplus(x: float, adj_ret: float):
    wp.adjoint[x] += adj_ret / (1.0 + wp.exp(-x))


@wp.kernel
def bake(
    loaf: wp.array2d(dtype=wp.vec2),
    air: wp.array(dtype=float),
    dough: Dough,
    t: int,
    dt: float,
):
    """One step for all layers of a loaf; loaf[t, k] = (temperature, moisture), layer 0 is the crust."""
    k = wp.tid()
    n = loaf.shape[1]
    c = loaf[t, k]
    if k == 0:
        above = air[t]
    else:
        above = loaf[t, k - 1][0]
    if k == n - 1:
        below = c[0]
    else:
        below = loaf[t, k + 1][0]
    lap = (above - 2.0 * c[0] + below) / (dough.spacing * dough.spacing)
    steam = dough.moisture_loss * softplus(12.0 * (c[0] - dough.boiling)) / 12.0 * c[1]
    loaf[t + 1, k] = wp.vec2(c[0] + dt * (dough.conductivity * lap - 1.5 * steam), c[1] - dt * steam)


@wp.kernel
def crumb(loaf: wp.array2d(dtype=wp.vec2), last: int, want: wp.array(dtype=float), loss: wp.array(dtype=float)):
    k = wp.tid()
    d = loaf[last, k][1] - want[k]
    e = loaf[last, k][0] - 0.95
    wp.atomic_add(loss, 0, 10.0 * d * d + 1.0 * e * e)


@wp.kernel
def gas(air: wp.array(dtype=float), price: float, loss: wp.array(dtype=float)):
    t = wp.tid()
    wp.atomic_add(loss, 0, price * air[t] * air[t])


@wp.kernel
def core(loaf: wp.array2d(dtype=wp.vec2), last: int, out: wp.array(dtype=float)):
    out[0] = loaf[last, loaf.shape[1] - 1][0]
