"""Tabulated airfoil polars. The tables are constant, so the module is compiled for evaluation only,
which keeps build times short."""

import numpy as np
import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.kernel
def lookup(alpha: wp.array(dtype=float), table: wp.array2d(dtype=float), a0: float, da: float, out: wp.array2d(dtype=float)):
    i = wp.tid()
    s = (alpha[i] - a0) / da
    k = wp.clamp(int(wp.floor(s)), 0, table.shape[0] - 2)
    f = s - float(k)
    out[i, 0] = (1.0 - f) * table[k, 0] + f * table[k + 1, 0]
    out[i, 1] = (1.0 - f) * table[k, 1] + f * table[k + 1, 1]


class Polar:
    def __init__(self, lo=-0.3, hi=0.6, count=46):
        a = np.linspace(lo, hi, count)
        lift = 5.7 * a / (1.0 + np.exp((a - 0.28) * 25.0)) + 1.0 / (1.0 + np.exp(-(a - 0.28) * 25.0))
        drag = 0.01 + 0.02 * lift**2 + 0.6 * np.maximum(a - 0.2, 0.0) ** 2
        self.table = wp.array(np.stack([lift, drag], 1).astype(np.float32), dtype=float)
        self.lo, self.step = lo, (hi - lo) / (count - 1)

    def __call__(self, alpha):
        out = wp.zeros((alpha.shape[0], 2), dtype=float, requires_grad=True)
        wp.launch(lookup, dim=alpha.shape[0], inputs=[alpha, self.table, self.lo, self.step], outputs=[out])
        return out
