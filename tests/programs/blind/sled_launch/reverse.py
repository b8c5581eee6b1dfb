"""Adjoint of a long rollout with little memory: halve the interval until it is short enough to tape."""
import warp as wp


class Bisection:
    def __init__(self, step, running, leaf):
        self.step, self.running, self.leaf = step, running, leaf

    def forward(self, state, a, b):
        for t in range(a, b):
            nxt = wp.zeros_like(state)
            self.step(state, t, nxt)
            state = nxt
        return state

    def sweep(self, state, a, b, seed):
        """Run back from b to a; `seed` is the adjoint of the state at b, returned is the one at a, and the running cost."""
        if b - a > self.leaf:
            mid = (a + b) // 2
            half = self.forward(state, a, mid)
            back, late = self.sweep(half, mid, b, seed)
            back, early = self.sweep(state, a, mid, back)
            return back, late + early
        first = wp.clone(state)
        cost = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            s = first
            for t in range(a, b):
                nxt = wp.zeros_like(s)
                self.step(s, t, nxt)
                self.running(nxt, cost)
                s = nxt
        tape.backward(grads={s: seed, cost: wp.ones(1, dtype=float)})
        return wp.clone(first.grad), float(cost.numpy()[0])
