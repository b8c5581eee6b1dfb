"""Throwing velocities of four balls that shall land in the hands."""
import numpy as np
import warp as wp

wp.config.quiet = True


@wp.kernel
def throw(v: wp.array(dtype=wp.vec3), p: wp.array(dtype=wp.vec3), t: float):
    i = wp.tid()
    drag = wp.exp(-0.3 * t)
    p[i] = v[i] * t * drag + wp.vec3(0.0, -4.9 * t * t, 0.0)


@wp.kernel
def land(p: wp.array(dtype=wp.vec3), hand: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = p[i] - hand[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


class Juggler:
    def __init__(self):
        rng = np.random.default_rng(8)
        self.v = wp.array(rng.normal(0, 1, (4, 3)) + [0, 5, 0], dtype=wp.vec3, requires_grad=True)
        self.hand = wp.array([[0.5, 0, 0], [-0.5, 0, 0], [0.5, 0, 0.2], [-0.5, 0, 0.2]], dtype=wp.vec3)
        self.history = {"loss": [], "grad": [np.zeros((4, 3), dtype=np.float32)]}

    def forward(self):
        p = wp.zeros(4, dtype=wp.vec3, requires_grad=True)
        wp.launch(throw, 4, inputs=[self.v, p, 0.9])
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        wp.launch(land, 4, inputs=[p, self.hand, loss])
        return loss

    def descend(self, rate):
        last = self.history["grad"][-1]
        self.v.assign(self.v.numpy() - rate * last)

    def practice(self, rounds, rate):
        for _ in range(rounds):
            with wp.Tape() as tape:
                loss = self.forward()
            tape.backward(loss)
            self.descend(rate)
            self.history["grad"].append(self.v.grad.numpy().copy())
            self.history["loss"].append(float(loss.numpy()[0]))
            tape.zero()


juggler = Juggler()
juggler.practice(10, 0.35)
print("\n".join(f"{k}: {x:.4f}" for k, x in enumerate(juggler.history["loss"])))
