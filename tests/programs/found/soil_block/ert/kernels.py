import warp as wp


@wp.func
def edge(a: float, b: float):
    return 2.0 * a * b / (a + b)


@wp.kernel
def conductivity(image: wp.array2d(dtype=float), sigma: wp.array2d(dtype=float)):
    i, j = wp.tid()
    sigma[i, j] = wp.exp(image[i, j])


@wp.kernel
def sweep(
    u: wp.array2d(dtype=float),
    sigma: wp.array2d(dtype=float),
    current: wp.array2d(dtype=float),
    ground: float,
    n: int,
    out: wp.array2d(dtype=float),
):
    i, j = wp.tid()
    s = sigma[i, j]
    diag = float(0.0)
    flux = current[i, j]
    if i > 0:
        c = edge(s, sigma[i - 1, j])
        diag += c
        flux += c * u[i - 1, j]
    if i < n - 1:
        c = edge(s, sigma[i + 1, j])
        diag += c
        flux += c * u[i + 1, j]
    else:
        diag += ground
    if j > 0:
        c = edge(s, sigma[i, j - 1])
        diag += c
        flux += c * u[i, j - 1]
    if j < n - 1:
        c = edge(s, sigma[i, j + 1])
        diag += c
        flux += c * u[i, j + 1]
    out[i, j] = flux / diag


@wp.kernel
def electrode_misfit(u: wp.array2d(dtype=float), volts: wp.array(dtype=float), out: wp.array(dtype=float)):
    j = wp.tid()
    d = u[0, j] - volts[j]
    wp.atomic_add(out, 0, d * d)


@wp.kernel
def descend(image: wp.array2d(dtype=float), grad: wp.array2d(dtype=float), rate: float):
    i, j = wp.tid()
    image[i, j] = image[i, j] - rate * grad[i, j]
