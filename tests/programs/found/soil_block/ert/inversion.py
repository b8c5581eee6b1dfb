import numpy as np
import warp as wp

from .kernels import conductivity, descend, electrode_misfit
from .poisson import PotentialSolver


class Inversion:
    def __init__(self, survey, rate):
        n = survey.side
        self.survey, self.rate, self.n = survey, rate, n
        self.logsigma = wp.zeros((n, n), dtype=float, requires_grad=True)
        self.sigma = wp.zeros((n, n), dtype=float, requires_grad=True)
        self.currents = [wp.array(c, dtype=float) for c in survey.injections]
        self.volts = [wp.array(v, dtype=float) for v in survey.voltages]
        self.solvers = [PotentialSolver(n, survey.ground) for _ in self.currents]
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def image(self):
        return np.exp(self.logsigma.numpy())

    def forward(self):
        self.loss.zero_()
        wp.launch(conductivity, (self.n, self.n), inputs=[self.logsigma], outputs=[self.sigma])
        for solver, current, volts in zip(self.solvers, self.currents, self.volts):
            u = solver.solve(self.sigma, current, 0)
            wp.launch(electrode_misfit, self.n, inputs=[u, volts], outputs=[self.loss])

    def update(self, i):
        tape = wp.Tape()
        with tape:
            self.forward()
        tape.backward(self.loss)
        size = float(np.linalg.norm(self.logsigma.grad.numpy()))
        wp.launch(descend, (self.n, self.n), inputs=[self.logsigma, self.logsigma.grad, self.rate])
        tape.zero()
        value = float(self.loss.numpy()[0])
        print(f"update {i:2d}: misfit {value:.5f}, gradient {size:.5f}")
        return value
