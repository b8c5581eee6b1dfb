"""Design problem: where to put conductor so that the hottest chip stays cool."""
import numpy as np
import warp as wp

import conduction as cd
from conduction import F


class Layout:
    def __init__(self, n=14, budget=0.4, norm=8.0, penalty=6.0):
        self.n, self.cells = n, n * n
        self.budget, self.norm, self.penalty = budget, norm, penalty
        self.frozen = np.zeros((n, n), bool)
        self.frozen[: n // 5, n // 2 - 2 : n // 2 + 2] = True
        self.frozen = self.frozen.ravel()
        sink = np.zeros((n, n))
        sink[0, n // 2 - 2 : n // 2 + 2] = 5.0
        load = np.full((n, n), 0.01)
        load[n - 4, 3] = load[n - 3, n - 4] = 0.5
        load[n // 2, n // 2 + 3] = 0.3
        self.load = load.ravel()
        self.network = cd.Network(n, sink.ravel())
        self.face = wp.array(self.network.pairs, dtype=wp.vec2i)

    def start(self):
        rho = np.full(self.cells, self.budget)
        rho[self.frozen] = 1.0
        return rho

    def _forward(self, rho, grad, tape=None):
        mk = lambda size: wp.zeros(size, dtype=F, requires_grad=grad)
        soft, k, g, temp = mk(self.cells), mk(self.cells), mk(len(self.network.pairs)), mk(self.cells)
        wp.launch(cd.smooth, self.cells, inputs=[rho, self.n], outputs=[soft])
        wp.launch(cd.interpolate, self.cells, inputs=[soft, F(0.02), F(3.0)], outputs=[k])
        wp.launch(cd.face_conductance, len(self.network.pairs), inputs=[k, self.face], outputs=[g])
        self.network.temperature(g, self.load, temp, tape)
        return soft, temp

    def _peak(self, t):
        """p-norm of the temperatures and its derivative."""
        top = t.max()
        s = np.sum((t / top) ** self.norm)
        peak = top * s ** (1.0 / self.norm)
        return peak, (t / peak) ** (self.norm - 1.0)

    def _volume(self, soft):
        excess = max(0.0, soft.mean() - self.budget)
        return self.penalty * excess**2, 2.0 * self.penalty * excess / soft.size

    def objective(self, x):
        soft, temp = self._forward(wp.array(x, dtype=F), False)
        return self._peak(temp.numpy())[0] + self._volume(soft.numpy())[0]

    def gradient(self, x):
        rho = wp.array(x, dtype=F, requires_grad=True)
        tape = wp.Tape()
        with tape:
            soft, temp = self._forward(rho, True, tape)
        peak, d_peak = self._peak(temp.numpy())
        cost, d_cost = self._volume(soft.numpy())
        seeds = {
            temp: wp.array(d_peak, dtype=F),
            soft: wp.full(self.cells, F(d_cost), dtype=F),
        }
        tape.backward(grads=seeds)
        g = rho.grad.numpy().copy()
        g[self.frozen] = 0.0
        return peak + cost, g
