import numpy as np
import warp as wp


def layout():
    """Twelve microphones on the walls and the ceiling of a hall, and one on the lectern."""
    rng = np.random.default_rng(21)
    walls = []
    for k in range(12):
        p = rng.uniform([0.0, 0.0, 1.5], [18.0, 10.0, 4.0])
        p[k % 2] = [18.0, 10.0][k % 2] * (k // 2 % 2)
        walls.append(p)
    return np.array(walls + [[3.0, 5.0, 1.5]], dtype=np.float32)


@wp.kernel
def arrival(
    talker: wp.array(dtype=wp.vec3),
    mic: wp.array(dtype=wp.vec3),
    slowness: wp.array(dtype=float),
    t: wp.array2d(dtype=float),
):
    s, m = wp.tid()
    d = talker[s] - mic[m]
    t[s, m] = slowness[0] * wp.sqrt(wp.dot(d, d))


@wp.kernel
def lag_error(
    t: wp.array2d(dtype=float),
    first: wp.array(dtype=float),
    lag: wp.array2d(dtype=float),
    weight: float,
    loss: wp.array(dtype=float),
):
    s, m = wp.tid()
    d = t[s, m] - first[s] - lag[s, m]
    wp.atomic_add(loss, 0, weight * d * d)
