import warp as wp

wp.set_module_options({"max_unroll": 64})


@wp.kernel
def convolve(
    pics: wp.array4d(dtype=float),
    weights: wp.array4d(dtype=float),
    bias: wp.array(dtype=float),
    out: wp.array4d(dtype=float),
):
    """3x3 valid convolution followed by tanh; (picture, channel, row, column)."""
    n, f, r, c = wp.tid()
    s = bias[f]
    for k in range(2):
        for i in range(3):
            for j in range(3):
                s += weights[f, k, i, j] * pics[n, k, r + i, c + j]
    out[n, f, r, c] = wp.tanh(s)


@wp.kernel
def classify(
    hidden: wp.array4d(dtype=float),
    weights: wp.array4d(dtype=float),
    maps: wp.array3d(dtype=float),
    first: int,
    share: float,
    loss: wp.array(dtype=float),
):
    n, r, c = wp.tid()
    s = float(0.0)
    for k in range(2):
        for i in range(3):
            for j in range(3):
                s += weights[0, k, i, j] * hidden[n, k, r + i, c + j]
    want = maps[first + n, r, c]
    wp.atomic_add(loss, 0, share * (wp.log(1.0 + wp.exp(s)) - want * s))
