import warp as wp


@wp.kernel
def residuals(shot: wp.array2d(dtype=float), coef: wp.array(dtype=float), first: int, out: wp.array(dtype=float)):
    """Peak particle velocity law  log v = a - b log r + c log w, with a soft robust loss."""
    i = first + wp.tid()
    guess = coef[0] - coef[1] * shot[i, 0] + coef[2] * shot[i, 1]
    d = guess - shot[i, 2]
    wp.atomic_add(out, 0, wp.sqrt(1.0 + d * d) - 1.0)
