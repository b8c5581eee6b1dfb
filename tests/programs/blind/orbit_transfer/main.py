"""Low-thrust transfer between circular orbits; memory stays bounded by re-running legs of the
trajectory from stored states during the reverse sweep."""

import argparse

import numpy as np
import warp as wp

from dynamics import State, arrival, kick_drift, take_step


class Transfer:
    def __init__(self, legs, steps_per_leg, dt):
        self.legs, self.spl, self.dt = legs, steps_per_leg, dt
        self.burn = 10
        count = legs * steps_per_leg // self.burn
        self.thrust = wp.array(np.full((count, 2), 0.01), dtype=wp.vec2d, requires_grad=True)
        self.loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        r = 1.25
        self.target = (wp.vec2d(-r, 0.0), wp.vec2d(0.0, -1.0 / np.sqrt(r)))

    def fly(self, state, leg):
        for s in range(self.spl):
            nxt = State()
            wp.launch(
                kick_drift,
                dim=1,
                inputs=[state.pos, state.vel, self.thrust, leg * self.spl + s, self.burn, self.dt],
                outputs=[nxt.pos, nxt.vel],
            )
            state = nxt
        return state

    def forward(self):
        checkpoints = [((1.0, 0.0), (0.0, 1.0))]
        state = State().load(*checkpoints[0])
        for leg in range(self.legs):
            state = self.fly(state, leg)
            checkpoints.append(state.snapshot())
        return checkpoints

    def reverse(self, checkpoints):
        self.thrust.grad.zero_()
        seed_pos = seed_vel = None
        for leg in reversed(range(self.legs)):
            start = State().load(*checkpoints[leg])
            tape = wp.Tape()
            with tape:
                end = self.fly(start, leg)
                if seed_pos is None:
                    wp.launch(arrival, dim=1, inputs=[end.pos, end.vel, *self.target], outputs=[self.loss])
            if seed_pos is None:
                tape.backward(self.loss)
            else:
                tape.backward(grads={end.pos: seed_pos})
            seed_pos, seed_vel = start.pos.grad, start.vel.grad
        return float(self.loss.numpy()[0])

    def iterate(self, rate):
        value = self.reverse(self.forward())
        self.update(rate)
        return value

    def update(self, rate):
        wp.launch(take_step, dim=self.thrust.shape, inputs=[self.thrust, self.thrust.grad, rate])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=10)
    ap.add_argument("--legs", type=int, default=4)
    ap.add_argument("--rate", type=float, default=2.0e-4)
    cfg = ap.parse_args()
    job = Transfer(cfg.legs, 40, 0.02)
    for it in range(cfg.iterations):
        miss = job.iterate(cfg.rate)
        print(f"{it:3d}  miss {miss:.8f}  |u| {np.linalg.norm(job.thrust.numpy()):.5f}")


if __name__ == "__main__":
    main()
