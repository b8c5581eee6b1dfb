"""Steady conduction with a design-dependent conductivity; the linear system is solved by conjugate gradients on the host."""
import numpy as np
import warp as wp

F = wp.float64


@wp.kernel
def interpolate(rho: wp.array(dtype=F), k_min: F, power: F, k: wp.array(dtype=F)):
    i = wp.tid()
    k[i] = k_min + (F(1.0) - k_min) * wp.pow(rho[i], power)


@wp.kernel
def smooth(rho: wp.array(dtype=F), n: int, out: wp.array(dtype=F)):
    """Cone filter over the four neighbours."""
    c = wp.tid()
    i = c / n
    j = c % n
    s = F(2.0) * rho[c]
    w = F(2.0)
    if i > 0:
        s += rho[c - n]
        w += F(1.0)
    if i < n - 1:
        s += rho[c + n]
        w += F(1.0)
    if j > 0:
        s += rho[c - 1]
        w += F(1.0)
    if j < n - 1:
        s += rho[c + 1]
        w += F(1.0)
    out[c] = s / w


@wp.kernel
def face_conductance(k: wp.array(dtype=F), face: wp.array(dtype=wp.vec2i), g: wp.array(dtype=F)):
    f = wp.tid()
    a = k[face[f][0]]
    b = k[face[f][1]]
    g[f] = F(2.0) * a * b / (a + b)


def faces(n):
    idx = np.arange(n * n).reshape(n, n)
    return np.concatenate(
        [np.stack([idx[:-1].ravel(), idx[1:].ravel()], 1), np.stack([idx[:, :-1].ravel(), idx[:, 1:].ravel()], 1)]
    )


class Network:
    """K(g) T = q with K assembled from face conductances plus the contact to the sink."""

    def __init__(self, n, sink):
        self.pairs = faces(n)
        self.sink = sink
        self.n = n

    def apply(self, g, x):
        y = self.sink * x
        a, b = self.pairs.T
        flow = g * (x[a] - x[b])
        np.add.at(y, a, flow)
        np.add.at(y, b, -flow)
        return y

    def solve(self, g, rhs, tol=1e-12):
        a, b = self.pairs.T
        d = self.sink.copy()
        np.add.at(d, a, g)
        np.add.at(d, b, g)
        x = rhs / d
        r = rhs - self.apply(g, x)
        z = r / d
        p = z.copy()
        rz = r @ z
        stop = tol * np.linalg.norm(rhs)
        for _ in range(5 * len(rhs)):
            if np.linalg.norm(r) < stop:
                break
            kp = self.apply(g, p)
            alpha = rz / (p @ kp)
            x += alpha * p
            r -= alpha * kp
            z = r / d
            rz, old = r @ z, rz
            p = z + rz / old * p
        return x

    def temperature(self, g, load, temp, tape=None):
        """temp = K(g)^-1 load; the solve is entered on the tape with its own adjoint."""
        gh = g.numpy().copy()
        t = self.solve(gh, load)
        temp.assign(t)
        if tape is not None:

            def back():
                lam = self.solve(gh, temp.grad.numpy().copy())
                a, b = self.pairs.T
                g.grad.assign(g.grad.numpy() - (lam[a] - lam[b]) * (t[a] - t[b]))
                temp.grad.zero_()

            tape.record_func(back, [g, temp])
