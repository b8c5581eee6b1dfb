"""Tridiagonal systems on the host (Thomas algorithm, no pivoting; the rows are diagonally dominant)."""
import numpy as np


def thomas(low, diag, up, rhs):
    """Solve low[i] x[i-1] + diag[i] x[i] + up[i] x[i+1] = rhs[i]; low[0] and up[-1] are ignored."""
    n = len(diag)
    c = np.empty(n)
    d = np.empty(n)
    c[0] = up[0] / diag[0]
    d[0] = rhs[0] / diag[0]
    for i in range(1, n):
        m = diag[i] - low[i] * c[i - 1]
        c[i] = up[i] / m
        d[i] = (rhs[i] - low[i] * d[i - 1]) / m
    x = np.empty(n)
    x[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


def residual(low, diag, up, x, rhs):
    r = diag * x - rhs
    r[1:] += low[1:] * x[:-1]
    r[:-1] += up[:-1] * x[1:]
    return r
