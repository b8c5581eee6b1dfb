"""Reverse mode by segments: keep the states between segments, record one segment at a time."""
import warp as wp

from .kernels import compare, follow
from .record import initial, leader


class SegmentedPlatoon:
    def __init__(self, cfg, seen):
        self.cfg = cfg
        n = cfg.cars
        zeros = lambda: wp.zeros(n, dtype=float, requires_grad=True)  # noqa: E731
        self.x = [zeros() for _ in range(cfg.segment + 1)]
        self.v = [zeros() for _ in range(cfg.segment + 1)]
        self.kept = [(wp.zeros(n, dtype=float), wp.zeros(n, dtype=float)) for _ in range(cfg.segments + 1)]
        x0, v0 = initial(cfg)
        self.kept[0][0].assign(x0)
        self.kept[0][1].assign(v0)
        self.x_seen = wp.array(seen[0], dtype=float)
        self.v_seen = wp.array(seen[1], dtype=float)
        self.cost = wp.zeros(1, dtype=float, requires_grad=True)

    def load(self, s):
        wp.copy(self.x[0], self.kept[s][0])
        wp.copy(self.v[0], self.kept[s][1])

    def run(self, s, law):
        c = self.cfg
        for k in range(c.segment):
            wp.launch(
                follow,
                c.cars,
                inputs=[self.x[k], self.v[k], law, c.dt, float(leader(c, s * c.segment + k))],
                outputs=[self.x[k + 1], self.v[k + 1]],
            )

    def forward(self, law):
        for s in range(self.cfg.segments):
            self.load(s)
            self.run(s, law)
            wp.copy(self.kept[s + 1][0], self.x[-1])
            wp.copy(self.kept[s + 1][1], self.v[-1])

    def gradient(self, law):
        """Value of the cost; the derivative is left in law.grad."""
        self.forward(law)
        carry = None
        for s in reversed(range(self.cfg.segments)):
            self.load(s)
            tape = wp.Tape()
            with tape:
                self.run(s, law)
                if carry is None:
                    self.cost.zero_()
                    wp.launch(
                        compare,
                        self.cfg.cars,
                        inputs=[self.x[-1], self.v[-1], self.x_seen, self.v_seen],
                        outputs=[self.cost],
                    )
            if carry is None:
                tape.backward(self.cost)
            else:
                tape.backward(grads={self.x[-1]: carry})
            carry = wp.clone(self.x[0].grad)
            kept = wp.clone(law.grad)
            tape.zero()
            law.grad.assign(kept)
        return float(self.cost.numpy()[0])
