"""The bench: arrays on the device and the recorded forward model for one phase screen."""
import numpy as np
import warp as wp

from optics import Pupil, focal_field, lost_light, mirror_phase


class Bench:
    def __init__(self, cfg):
        self.cfg = cfg
        self.pupil = Pupil(cfg["pixels_across"])
        self.n = len(self.pupil.xy)
        self.pixel = wp.array(self.pupil.xy, dtype=wp.vec2)
        self.where = wp.array(self.pupil.actuators, dtype=wp.vec2)
        self.command = wp.zeros(len(self.pupil.actuators), dtype=float, requires_grad=True)

    def screen(self, index):
        return wp.array(self.pupil.screen(self.cfg["seed"] + index, self.cfg["turbulence"]), dtype=float)

    def expose(self, screen, weight, merit):
        """One exposure; adds its weighted loss of light to merit."""
        grad = self.command.requires_grad
        phase = wp.zeros(self.n, dtype=float, requires_grad=grad)
        re = wp.zeros(1, dtype=float, requires_grad=grad)
        im = wp.zeros(1, dtype=float, requires_grad=grad)
        wp.launch(
            mirror_phase,
            self.n,
            inputs=[self.command, self.where, self.pixel, self.cfg["width"], self.cfg["stroke"]],
            outputs=[phase],
        )
        wp.launch(focal_field, self.n, inputs=[phase, screen], outputs=[re, im])
        wp.launch(lost_light, 1, inputs=[re, im, weight], outputs=[merit])

    def batch_merit(self, command, indices):
        self.command.assign(np.asarray(command, np.float32))
        merit = wp.zeros(1, dtype=float)
        for i in indices:
            self.expose(self.screen(i), 1.0 / len(indices), merit)
        return float(merit.numpy()[0])
