"""Thermal response test: heating of the borehole, relaxation, fibre readings."""
import numpy as np
import warp as wp

import ground
from layers import Profile


class Exchanger:
    def __init__(self, opts):
        self.o = opts
        self.profile = Profile(opts["knots"], opts["columns"])
        self.shape = (opts["columns"], opts["shells"])
        self.radius = wp.array(0.3 * 1.22 ** np.arange(opts["shells"] + 1), dtype=float)
        self.fibre = wp.zeros((opts["readings"], opts["columns"]), dtype=float)
        self.stride = opts["steps"] // opts["readings"]
        self.states = [wp.zeros(self.shape, dtype=float, requires_grad=True) for _ in range(opts["steps"] + 1)]
        self.commands = []
        self.out = wp.zeros(1, dtype=float, requires_grad=True)

    def power(self, k):
        return self.o["power"] if k < self.o["heating_steps"] else 0.15 * self.o["power"]

    def _prepare(self, cond):
        """The march is several hundred identical launches; they are packed once and played back."""
        for k in range(self.o["steps"]):
            cmd = wp.launch(
                ground.heat_step,
                self.shape,
                inputs=[self.states[k], cond, self.radius, self.power(k), self.o["dt"]],
                outputs=[self.states[k + 1]],
                record_cmd=True,
            )
            self.commands.append(cmd)

    def march(self, cond):
        if not self.commands:
            self._prepare(cond)
        for cmd in self.commands:
            cmd.set_param_by_name("cond", cond)
            cmd.launch()

    def forward(self, log_k):
        o = self.o
        self.out.zero_()
        cond = self.profile.conductivity(log_k)
        self.march(cond)
        for row in range(o["readings"]):
            k = (row + 1) * self.stride
            wp.launch(
                ground.fibre_misfit,
                o["columns"],
                inputs=[self.states[k], cond, self.power(k), o["grout"], self.fibre, row, o["scale"]],
                outputs=[self.out],
            )
        wp.launch(ground.roughness, o["knots"] - 1, inputs=[log_k, o["rough"]], outputs=[self.out])

    def measure(self, log_k, noise, seed):
        cond = self.profile.conductivity(wp.array(log_k, dtype=float))
        self.march(cond)
        rng = np.random.default_rng(seed)
        k = cond.numpy()
        rows = []
        for row in range(self.o["readings"]):
            step = (row + 1) * self.stride
            wall = self.states[step].numpy()[:, 0]
            rows.append(wall + self.power(step) * self.o["grout"] / (0.3 + k) + rng.normal(0.0, noise, len(k)))
        self.fibre.assign(np.array(rows, np.float32))
