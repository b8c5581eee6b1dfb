"""Batch still: choose the heater profile so that the distillate reaches the wanted strength."""
import numpy as np
import warp as wp

TRAYS = 6
TICKS = 20
DT = wp.constant(0.2)


@wp.struct
class Fluid:
    temp: wp.array(dtype=float)
    ethanol: wp.array(dtype=float)


@wp.struct
class Column:
    fluid: Fluid
    boil: wp.array(dtype=float)
    heater: wp.array(dtype=float)


@wp.kernel
def boil_off(col: Column):
    k = wp.tid()
    t = col.fluid.temp[k]
    e = col.fluid.ethanol[k]
    col.boil[k] = e * t * t * (1.0 + 0.5 * e)


@wp.kernel
def exchange(col: Column):
    k = wp.tid()
    below = float(0.0)
    if k > 0:
        below = col.boil[k - 1]
    col.fluid.ethanol[k] = col.fluid.ethanol[k] + DT * (below - col.boil[k])
    col.fluid.temp[k] = col.fluid.temp[k] + DT * (col.heater[k] - 0.6 * col.boil[k])


@wp.kernel
def off_spec(col: Column, want: float, J: wp.array(dtype=float)):
    k = wp.tid()
    if k == TRAYS - 1:
        d = col.fluid.ethanol[k] - want
        wp.atomic_add(J, 0, 10.0 * d * d)
    wp.atomic_add(J, 0, 0.05 * col.heater[k] * col.heater[k])


class Still:
    def __init__(self):
        self.col = Column()
        self.col.fluid = Fluid()
        self.col.fluid.temp = wp.full(TRAYS, 0.8, dtype=float, requires_grad=True)
        self.col.fluid.ethanol = wp.full(TRAYS, 0.5, dtype=float, requires_grad=True)
        self.col.boil = wp.zeros(TRAYS, dtype=float, requires_grad=True)
        self.col.heater = wp.full(TRAYS, 0.3, dtype=float, requires_grad=True)
        self.J = wp.zeros(1, dtype=float, requires_grad=True)

    def fill(self):
        self.col.fluid.temp.fill_(0.8)
        self.col.fluid.ethanol.fill_(0.5)
        self.J.zero_()

    def run(self):
        for _ in range(TICKS):
            wp.launch(boil_off, TRAYS, inputs=[self.col])
            wp.launch(exchange, TRAYS, inputs=[self.col])
        wp.launch(off_spec, TRAYS, inputs=[self.col, 0.4], outputs=[self.J])

    def train(self, epochs, rate):
        for epoch in range(epochs):
            self.fill()
            with wp.Tape() as tape:
                self.run()
            tape.backward(self.J)
            slope = self.col.heater.grad.numpy().copy()
            tape.zero()
            print(f"epoch {epoch}: J = {self.J.numpy()[0]:.5f}")
            self.col.heater.assign(self.col.heater.numpy() - rate * slope)


if __name__ == "__main__":
    Still().train(6, 0.02)
