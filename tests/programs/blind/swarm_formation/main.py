"""Spin commands that bring eight craft to their posts. The whole evaluation is captured once and replayed."""
import numpy as np
import warp as wp
import warp.optim

import craft


class Swarm:
    def __init__(self, n=8, steps=30, dt=0.1):
        self.n, self.steps, self.dt = n, steps, dt
        rng = np.random.default_rng(17)
        arr = lambda a, kind: wp.array(a.astype(np.float32), dtype=kind, requires_grad=True)
        self.home = arr(rng.uniform(-1, 1, (n, 3)), wp.vec3)
        q = rng.normal(size=(n, 4))
        self.pose = arr(q / np.linalg.norm(q, axis=1, keepdims=True), wp.quat)
        ang = 2 * np.pi * np.arange(n) / n
        self.post = wp.array(np.stack([2 * np.cos(ang), 2 * np.sin(ang), 0 * ang], axis=1).astype(np.float32), dtype=wp.vec3)
        self.spin = wp.array((0.1 * rng.normal(size=(steps, n, 3))).astype(np.float32), dtype=wp.vec3, requires_grad=True)
        self.heading = wp.zeros((steps + 1, n), dtype=wp.quat, requires_grad=True)
        self.pos, self.vel = (wp.zeros(n, dtype=wp.vec3, requires_grad=True) for _ in range(2))
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.all_grads = [a.grad for a in (self.home, self.pose, self.spin, self.heading, self.pos, self.vel, self.loss)]
        self.graph = None

    def forward(self):
        n = self.n
        wp.launch(craft.rewind, dim=n, inputs=[self.home, self.pose], outputs=[self.pos, self.vel, self.loss, self.heading])
        for t in range(self.steps):
            wp.launch(craft.steer, dim=n, inputs=[self.spin, self.heading, t, self.dt])
            wp.launch(craft.thrust, dim=n, inputs=[self.heading, self.vel, t, 1.5, self.dt])
            wp.launch(craft.drag, dim=n, inputs=[self.vel, 0.96])
            wp.launch(craft.coast, dim=n, inputs=[self.pos, self.vel, self.dt])
        wp.launch(craft.formation, dim=n, inputs=[self.pos, self.vel, self.post], outputs=[self.loss])
        wp.launch(craft.effort, dim=self.spin.shape, inputs=[self.spin, 0.01], outputs=[self.loss])

    def evaluate(self):
        if self.graph is None:
            wp.load_module(craft, device="cpu")
            with wp.ScopedCapture(device="cpu") as capture:
                for g in self.all_grads:
                    g.zero_()
                tape = wp.Tape()
                with tape:
                    self.forward()
                tape.backward(self.loss)
            self.graph = capture.graph
        wp.capture_launch(self.graph)
        return float(self.loss.numpy()[0])


def clip(grad, limit):
    g = grad.numpy()
    norm = np.linalg.norm(g)
    if norm > limit:
        grad.assign(g * np.float32(limit / norm))
    return norm


def main():
    wp.init()
    with wp.ScopedDevice("cpu"):
        swarm = Swarm()
        flat = swarm.spin.flatten()
        opt = warp.optim.Adam([flat], lr=0.08)
        for it in range(12):
            loss = swarm.evaluate()
            norm = clip(swarm.spin.grad, 20.0)
            opt.step([swarm.spin.grad.flatten()])
            print(f"{it:2d} loss {loss:.4f} |g| {norm:.3f}")


if __name__ == "__main__":
    main()
