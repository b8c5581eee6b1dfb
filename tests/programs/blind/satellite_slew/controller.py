"""Receding-horizon controller: the plan over the next ticks is improved by a few gradient steps, its head is flown."""
import numpy as np
import warp as wp

import dynamics as dyn


class Horizon:
    """Arrays and tape of one planning window; reused for all windows."""

    def __init__(self, body, ticks):
        self.body = body
        self.ticks = ticks
        self.q = wp.zeros(ticks + 1, dtype=wp.quat, requires_grad=True)
        self.w = wp.zeros(ticks + 1, dtype=wp.vec3, requires_grad=True)
        self.command = wp.zeros(ticks, dtype=wp.vec3, requires_grad=True)
        self.cost = wp.zeros(1, dtype=float, requires_grad=True)
        self.tape = wp.Tape()

    def begin(self, q0, w0):
        q = np.zeros((self.ticks + 1, 4), np.float32)
        w = np.zeros((self.ticks + 1, 3), np.float32)
        q[0], w[0] = q0, w0
        self.q.assign(q)
        self.w.assign(w)

    def predict(self, target):
        self.cost.zero_()
        for k in range(self.ticks):
            wp.launch(dyn.turn, 1, inputs=[self.body, self.q, self.w, self.command, k, wp.vec3(0.0)])
        wp.launch(
            dyn.running_cost,
            self.ticks,
            inputs=[self.q, self.w, self.command, target, self.ticks - 1],
            outputs=[self.cost],
        )

    def value(self, plan, target):
        self.command.assign(plan.astype(np.float32))
        self.predict(target)
        return float(self.cost.numpy()[0])

    def value_and_gradient(self, plan, target):
        self.command.assign(plan.astype(np.float32))
        self.tape.reset()
        with self.tape:
            self.predict(target)
        self.tape.backward(self.cost)
        value = float(self.cost.numpy()[0])
        g = self.command.grad.numpy().astype(float)
        self.tape.zero()
        return value, g


class Controller:
    def __init__(self, body, target, ticks=24, refinements=4, rate=0.03, clip=4.0):
        self.horizon = Horizon(body, ticks)
        self.target = target
        self.refinements = refinements
        self.rate = rate
        self.clip = clip
        self.plan = np.zeros((ticks, 3))

    def decide(self, q, w):
        self.horizon.begin(q, w)
        for _ in range(self.refinements):
            value, g = self.horizon.value_and_gradient(self.plan, self.target)
            norm = np.linalg.norm(g)
            if norm > self.clip:
                g = g * (self.clip / norm)
            self.plan = self.plan - self.rate * g
        head = self.plan[0].copy()
        self.plan = np.vstack([self.plan[1:], self.plan[-1:]])
        return head, value
