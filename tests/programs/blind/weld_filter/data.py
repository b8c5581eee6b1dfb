import numpy as np


def seams(count, size, seed):
    """Synthetic camera pictures of weld seams and the maps of seam probability."""
    rng = np.random.default_rng(seed)
    y, x = np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size), indexing="ij")
    pics, maps = [], []
    for _ in range(count):
        a, b = rng.uniform(-0.5, 0.5, 2)
        d = y - a - b * x
        m = np.exp(-60.0 * d * d)
        gray = 0.7 * m + 0.15 * rng.normal(size=m.shape)
        heat = 0.5 * m + 0.3 * np.exp(-8.0 * d * d) + 0.1 * rng.normal(size=m.shape)
        pics.append(np.stack([gray, heat]))
        maps.append(m[2:-2, 2:-2])
    return np.array(pics, dtype=np.float32), np.array(maps, dtype=np.float32)
