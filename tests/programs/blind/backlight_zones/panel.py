import warp as wp


@wp.kernel
def driver(level: wp.array2d(dtype=float), steps: float, duty: wp.array2d(dtype=float)):
    i, j = wp.tid()
    x = wp.clamp(level[i, j], 0.0, 1.0)
    duty[i, j] = wp.round(x * steps) / steps


@wp.kernel
def diffuse(duty: wp.array2d(dtype=float), lens: wp.array2d(dtype=float), light: wp.array2d(dtype=float)):
    """Light on pixel (x, y): every zone spreads with the lens profile."""
    x, y = wp.tid()
    px = (float(x) + 0.5) / float(light.shape[0]) * float(duty.shape[0]) - 0.5
    py = (float(y) + 0.5) / float(light.shape[1]) * float(duty.shape[1]) - 0.5
    s = float(0.0)
    for i in range(duty.shape[0]):
        for j in range(duty.shape[1]):
            dx = px - float(i)
            dy = py - float(j)
            s += duty[i, j] * lens[i, j] * wp.exp(-0.8 * (dx * dx + dy * dy))
    light[x, y] = s


@wp.kernel
def mismatch(light: wp.array2d(dtype=float), picture: wp.array2d(dtype=float), w: float, loss: wp.array(dtype=float)):
    x, y = wp.tid()
    d = light[x, y] - picture[x, y]
    wp.atomic_add(loss, 0, w * d * d)


@wp.kernel
def consumption(level: wp.array2d(dtype=float), w: float, loss: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(loss, 0, w * level[i, j] * level[i, j])
