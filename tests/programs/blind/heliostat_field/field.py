import numpy as np
import warp as wp


def sites(n):
    k = np.arange(n)
    ang = np.linspace(-0.7, 0.7, n)
    r = 30.0 + 7.0 * (k % 3)
    return np.stack([r * np.sin(ang), -r * np.cos(ang), np.full(n, 2.0)], axis=1).astype(np.float32)


def rest_turns(pos, sun, aim):
    """Rotation that takes the y axis to the normal which sends the sun to the aim point."""
    out = []
    for p in pos:
        to = aim - p
        n = to / np.linalg.norm(to) + sun
        n /= np.linalg.norm(n)
        y = np.array([0.0, 1.0, 0.0])
        q = np.append(np.cross(y, n), 1.0 + y @ n)
        out.append(q / np.linalg.norm(q))
    return np.array(out, dtype=np.float32)


class Workspace:
    """Buffers of one evaluation, allocated once."""

    def __init__(self, n):
        self.normal = wp.zeros(n, dtype=wp.vec3, requires_grad=True)
        self.ray = wp.empty(n, dtype=wp.vec3)
        self.spot = wp.zeros(n, dtype=wp.vec2, requires_grad=True)
        self.power = wp.zeros(n, dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
