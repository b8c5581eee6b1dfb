"""A dye front on a strip: the concentration's square is read, then its memory gets other values, by a route of choice."""

import argparse

import numpy as np
import warp as wp

CELLS = 24

parser = argparse.ArgumentParser()
parser.add_argument("--route", default="kernel")
parser.add_argument("--nested", action="store_true")
arguments = parser.parse_args()


@wp.struct
class Layer:
    dye: wp.array(dtype=float)


@wp.struct
class Strip:
    layer: Layer
    width: float


@wp.kernel
def soak(rate: wp.array(dtype=float), dye: wp.array(dtype=float)):
    i = wp.tid()
    dye[i] = rate[i % 3] * (1.0 + 0.1 * float(i))


@wp.kernel
def stain(dye: wp.array(dtype=float), tint: wp.array(dtype=float)):
    i = wp.tid()
    tint[i] = dye[i] * dye[i]


@wp.kernel
def stain_strip(strip: Strip, tint: wp.array(dtype=float)):
    i = wp.tid()
    tint[i] = strip.layer.dye[i] * strip.layer.dye[i]


@wp.kernel
def rinse(dye: wp.array(dtype=float)):
    i = wp.tid()
    dye[i] = 0.5


@wp.kernel
def rinse_strip(strip: Strip):
    i = wp.tid()
    strip.layer.dye[i] = 0.5


@wp.kernel
def keep(dye: wp.array(dtype=float), same: wp.array(dtype=float)):
    i = wp.tid()
    same[i] = dye[i]


@wp.kernel
def add(rest: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    total[i] += rest[i]


@wp.kernel
def drift(track: wp.array(dtype=float), row: int):
    i = wp.tid()
    track[(row + 1) * CELLS + i] = track[row * CELLS + i] * track[row * CELLS + i]


@wp.kernel
def judge(tint: wp.array(dtype=float), wanted: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    d = tint[i] - wanted
    wp.atomic_add(loss, 0, d * d / float(CELLS))


class Bath:
    def __init__(self):
        self.dye = wp.zeros(CELLS, dtype=float, requires_grad=True)
        self.strip = Strip()
        self.strip.layer = Layer()
        self.strip.layer.dye = self.dye
        self.strip.width = 1.0


def read(bath, tint):
    if arguments.route == "itself":
        wp.launch(stain, CELLS, inputs=[bath.dye], outputs=[bath.dye])  # reader and writer
    elif arguments.nested:
        wp.launch(stain_strip, CELLS, inputs=[bath.strip], outputs=[tint])  # reader, nested
    else:
        wp.launch(stain, CELLS, inputs=[bath.dye], outputs=[tint])  # reader, flat


def change(bath):
    route = arguments.route
    if route == "kernel":
        wp.launch(rinse, CELLS, outputs=[bath.dye])  # writer kernel
    elif route == "slice":
        wp.launch(rinse, CELLS - 4, outputs=[bath.dye[4:]])  # writer slice
    elif route == "pointer":
        alias = wp.array(ptr=bath.dye.ptr, dtype=float, shape=(CELLS,), capacity=bath.dye.capacity, requires_grad=True)
        wp.launch(rinse, CELLS, outputs=[alias])  # writer pointer
    elif route == "struct":
        wp.launch(rinse_strip, CELLS, inputs=[bath.strip])  # writer struct
    elif route == "numpy":
        bath.dye.numpy()[:] = 0.5  # writer numpy
    elif route == "fill":
        bath.dye.fill_(0.5)  # writer fill


rate = wp.array([0.6, 0.8, 1.1], dtype=float, requires_grad=True)
for round_ in range(3):
    bath = Bath()
    tint = wp.zeros(CELLS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    track = wp.zeros(2 * CELLS, dtype=float, requires_grad=True)
    total = wp.zeros(CELLS, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(soak, CELLS, inputs=[rate], outputs=[bath.dye])
        read(bath, tint)
        if arguments.route == "writeback":
            same = wp.zeros(CELLS, dtype=float, requires_grad=True)
            wp.launch(keep, CELLS, inputs=[bath.dye], outputs=[same])
            wp.copy(bath.dye, same)
        elif arguments.route == "slices":
            wp.launch(soak, CELLS, inputs=[rate], outputs=[track[:CELLS]])
            wp.launch(drift, CELLS, inputs=[track, 0])
            wp.launch(add, CELLS, inputs=[track[CELLS:], total])
        elif arguments.route == "accumulate":
            wp.launch(add, CELLS, inputs=[tint, total])
            wp.launch(add, CELLS, inputs=[tint, total])
        elif arguments.route != "after":
            change(bath)
        judged = {"slices": total, "accumulate": total, "itself": bath.dye}
        wp.launch(judge, CELLS, inputs=[judged.get(arguments.route, tint), 0.7, loss])
    if arguments.route == "after":
        wp.launch(rinse, CELLS, outputs=[bath.dye])  # writer after
    tape.backward(loss)
    gradient = rate.grad.numpy().copy()
    print(f"round {round_} loss={loss.numpy()[0]:.6f} gradient={gradient}")
    tape.zero()
    rate.assign(rate.numpy() - 0.05 * gradient)
