"""Re-aim a small heliostat field after a storm shifted the mirrors."""
import numpy as np
import warp as wp

import field
import optics

N = 18
SUN = np.array([0.3, -0.45, 0.84])
SUN /= np.linalg.norm(SUN)
AIM = np.array([0.0, 0.0, 25.0])


class Adam:
    def __init__(self, p, lr):
        self.p, self.lr, self.t = p, lr, 0
        self.m = np.zeros(p.numpy().shape)
        self.v = np.zeros(p.numpy().shape)

    def step(self, g):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.99 * self.v + 0.01 * g * g
        mh, vh = self.m / (1 - 0.9**self.t), self.v / (1 - 0.99**self.t)
        self.p.assign(self.p.numpy() - self.lr * mh / (np.sqrt(vh) + 1e-9))


def evaluate(tilt, rest, site, tower, ws):
    wp.launch(optics.turn, dim=N, inputs=[tilt, rest], outputs=[ws.normal])
    wp.launch(optics.reflect, dim=N, inputs=[ws.normal, tower], outputs=[ws.ray, ws.power])
    wp.launch(optics.land, dim=N, inputs=[site, ws.ray, tower], outputs=[ws.spot])
    wp.launch(optics.intercept, dim=N, inputs=[ws.spot, ws.power, tower], outputs=[ws.loss])


def main():
    pos = field.sites(N)
    site = wp.array(pos, dtype=wp.vec3)
    rest = wp.array(field.rest_turns(pos, SUN, AIM), dtype=wp.quat)
    tower = optics.Tower()
    tower.sun, tower.aim = wp.vec3(*SUN), wp.vec3(*AIM)
    tower.plane_y, tower.spread = 0.0, 3.0
    rng = np.random.default_rng(8)
    tilt = wp.array((0.05 * rng.normal(size=(N, 2))).astype(np.float32), dtype=wp.vec2, requires_grad=True)
    ws = field.Workspace(N)
    opt = Adam(tilt, 4e-3)
    for it in range(14):
        ws.loss.zero_()
        tape = wp.Tape()
        with tape:
            evaluate(tilt, rest, site, tower, ws)
        tape.backward(ws.loss)
        g = tilt.grad.numpy().copy()
        tape.zero()
        print(f"{it:2d} collected {-ws.loss.numpy()[0] / N:.4f} mean miss {np.linalg.norm(ws.spot.numpy(), axis=1).mean():.3f} m")
        opt.step(g)


if __name__ == "__main__":
    main()
