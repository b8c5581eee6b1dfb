"""Open-loop control of a crane trolley with a swinging load. States are stored every few steps and
each piece is replayed while going backwards, so only one piece of the tape exists at a time."""

import numpy as np
import warp as wp

from crane import final_cost, move_crane, control_cost

PIECES, LENGTH, DT = 5, 16, 0.04


class Trajectory:
    def __init__(self):
        self.u = wp.array(np.zeros(PIECES * LENGTH), dtype=float, requires_grad=True)
        self.cost = wp.zeros(1, dtype=float, requires_grad=True)
        self.saved = [wp.zeros(1, dtype=wp.vec4, requires_grad=True) for _ in range(PIECES + 1)]
        self.saved[0].assign([[0.0, 0.0, 0.35, 0.0]])
        self.velocity = np.zeros(PIECES * LENGTH, dtype=np.float32)

    def piece(self, state, p):
        for s in range(LENGTH):
            nxt = wp.empty_like(state)
            wp.launch(move_crane, dim=1, inputs=[state, self.u, p * LENGTH + s, DT], outputs=[nxt])
            state = nxt
        return state

    def sweep_forward(self):
        for p in range(PIECES):
            self.saved[p + 1].assign(self.piece(self.saved[p], p).numpy())

    def sweep_backward(self):
        self.cost.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(final_cost, dim=1, inputs=[self.saved[-1], 1.5], outputs=[self.cost])
            wp.launch(control_cost, dim=self.u.shape, inputs=[self.u, 0.002], outputs=[self.cost])
        tape.backward(self.cost)
        for p in reversed(range(PIECES)):
            piece_tape = wp.Tape()
            with piece_tape:
                end = self.piece(self.saved[p], p)
            piece_tape.backward(grads={end: self.saved[p + 1].grad})

    def iterate(self):
        self.sweep_forward()
        self.sweep_backward()
        self.descend(self.u.grad.numpy().copy())
        self.u.grad.zero_()
        for s in self.saved:
            s.grad.zero_()
        return float(self.cost.numpy()[0])

    def descend(self, g):
        self.velocity = 0.7 * self.velocity - 0.6 * g
        self.u.assign(self.u.numpy() + self.velocity)


def main():
    traj = Trajectory()
    for it in range(10):
        cost = traj.iterate()
        print(f"{it} cost {cost:.5f} end state {np.round(traj.saved[-1].numpy()[0], 3)}")


if __name__ == "__main__":
    main()
