"""Power of the burners and opening of the louvres, fitted together."""

import numpy as np
import warp as wp

import flow

TICKS = 14


class Stack:
    def __init__(self):
        self.power = wp.array([0.9, 0.6, 0.7, 0.5], dtype=float, requires_grad=True)
        self.opening = wp.array([0.4, 0.6, 0.5, 0.7], dtype=float, requires_grad=True)
        self.pair = [flow.fresh(), flow.fresh()]
        self.draught = wp.zeros(flow.LAYERS, dtype=float)

    def run(self, loss):
        here, there = self.pair
        here.lift.zero_()
        wp.launch(flow.warm, flow.LAYERS, inputs=[self.power], outputs=[here.heat])
        for _ in range(TICKS):
            wp.launch(flow.rise, flow.LAYERS, inputs=[here], outputs=[there])
            here, there = there, here
        wp.launch(flow.through_louvres, flow.LAYERS, inputs=[here, self.opening], outputs=[self.draught])
        wp.launch(flow.against, flow.LAYERS, inputs=[self.draught, 0.3, self.opening], outputs=[loss])


def main():
    stack = Stack()
    for it in range(5):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            stack.run(loss)
        tape.backward(loss)
        steps = [(p, p.grad.numpy().copy()) for p in (stack.power, stack.opening)]
        tape.zero()
        for p, g in steps:
            p.assign(p.numpy() - 0.2 * g)
        print(f"{it} loss {loss.numpy()[0]:.6f} opening {np.round(stack.opening.numpy(), 4)}")


if __name__ == "__main__":
    main()
