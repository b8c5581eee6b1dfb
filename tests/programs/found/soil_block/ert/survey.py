"""The measured data: voltages from a dense direct solve of the true block."""
import numpy as np


def edge(a, b):
    return 2.0 * a * b / (a + b)


def dense_potential(sigma, current, ground):
    """Finite-volume potential with conductance `ground` from every cell of the lowest row to earth."""
    n = sigma.shape[0]
    A = np.zeros((n * n, n * n))
    for i in range(n):
        for j in range(n):
            k = i * n + j
            for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                p, q = i + di, j + dj
                if 0 <= p < n and 0 <= q < n:
                    c = edge(sigma[i, j], sigma[p, q])
                    A[k, k] += c
                    A[k, p * n + q] -= c
            if i == n - 1:
                A[k, k] += ground
    return np.linalg.solve(A, current.ravel()).reshape(n, n)


class Survey:
    def __init__(self, side=6, ground=2.0):
        self.side, self.ground = side, ground
        yy, xx = np.mgrid[0:side, 0:side] / (side - 1.0)
        self.truth = 1.0 + 1.5 * np.exp(-(((xx - 0.35) ** 2 + (yy - 0.4) ** 2) / 0.06))
        self.injections = []
        self.voltages = []
        for col in (1, side // 2, side - 2):
            current = np.zeros((side, side))
            current[0, col] = 1.0
            self.injections.append(current)
            self.voltages.append(dense_potential(self.truth, current, ground)[0])
