"""A chain of coupled pendulums driven by motors, backwards segment by segment, priced as it moves; options as name=value.

states=list|buffer|clone    where a segment's states live: a list made once, rows of one array, fresh ones from a clone
price=step|segment|end      what is paid for: every step, the end of every segment, the last state only
seed=grads|assign|inner     how an adjoint is handed on: with backward, in the buffer, or as a product on the tape
drop=none|all|K             at which boundary it is not handed on, by how=zeros|leave
"""
import sys

import numpy as np
import warp as wp

options = dict(text.split("=") for text in sys.argv[1:])
STATES, PRICE = options.get("states", "list"), options.get("price", "step")
SEED, DROP, HOW = options.get("seed", "grads"), options.get("drop", "none"), options.get("how", "zeros")
LINKS, SEGMENTS, LENGTH = int(options.get("n", 12)), int(options.get("segments", 3)), int(options.get("length", 5))
real = wp.float64 if options.get("dtype") == "float64" else wp.float32
STEPS = SEGMENTS * LENGTH


@wp.kernel
def swing(a: wp.array(dtype=real), w: wp.array(dtype=real), u: wp.array(dtype=real), t: int,
          a1: wp.array(dtype=real), w1: wp.array(dtype=real)):
    i = wp.tid()
    n = a.shape[0]
    pull = a[(i + 1) % n] + a[(i + n - 1) % n] - real(2.0) * a[i]
    speed = real(0.98) * w[i] + real(0.1) * (pull - wp.sin(a[i]) + u[t] * wp.cos(real(0.7) * real(i)))
    w1[i] = speed
    a1[i] = a[i] + real(0.1) * speed


@wp.kernel
def pay(a: wp.array(dtype=real), w: wp.array(dtype=real), total: wp.array(dtype=real)):
    i = wp.tid()
    off = a[i] - real(0.4)
    wp.atomic_add(total, 0, (off * off + real(0.1) * w[i] * w[i]) / real(a.shape[0]))


@wp.kernel
def inner(a: wp.array(dtype=real), b: wp.array(dtype=real), total: wp.array(dtype=real)):
    i = wp.tid()
    wp.atomic_add(total, 0, a[i] * b[i])


@wp.kernel
def descend(u: wp.array(dtype=real), g: wp.array(dtype=real)):
    i = wp.tid()
    u[i] = u[i] - real(0.05) * g[i]


def made(values=None):
    return wp.array(np.zeros(LINKS) if values is None else values, dtype=real, requires_grad=True)


if STATES == "buffer":
    angles, speeds = (wp.zeros((LENGTH + 1, LINKS), dtype=real, requires_grad=True) for _ in range(2))
    rows = [(angles[t], speeds[t]) for t in range(LENGTH + 1)]
else:
    rows = [(made(), made()) for _ in range(LENGTH + 1)]


def segment(first, begin=None):
    own = rows if begin is None else [begin, *((made(), made()) for _ in range(LENGTH))]
    for k in range(LENGTH):
        wp.launch(swing, LINKS, inputs=[*own[k], motors, first + k], outputs=[*own[k + 1]])
    return own


motors = wp.array(0.3 + 0.2 * np.sin(np.arange(STEPS)), dtype=real, requires_grad=True)
start = made(np.linspace(-0.3, 0.5, LINKS)), made(np.linspace(0.2, 0.0, LINKS))
for epoch in range(4):
    kept = [start]
    for k in range(SEGMENTS):
        begin = tuple(wp.clone(x, requires_grad=False) for x in kept[-1])
        own = segment(k * LENGTH, begin)
        kept.append(tuple(wp.clone(x) for x in own[-1]))
    total, adjoint = 0.0, [np.zeros(LINKS), np.zeros(LINKS)]
    for k in reversed(range(SEGMENTS)):
        cost = wp.zeros(1, dtype=real, requires_grad=True)
        begin = None
        if STATES == "clone":
            begin = tuple(wp.clone(x, requires_grad=True) for x in kept[k])
        else:
            for x, y in zip(rows[0], kept[k]):
                wp.copy(x, y)
        dropped = k < SEGMENTS - 1 and (DROP == "all" or DROP == str(k))
        if dropped and HOW == "zeros":
            adjoint = [np.zeros(LINKS), np.zeros(LINKS)]
        seeds = [wp.array(g, dtype=real) for g in adjoint]
        with wp.Tape() as tape:
            own = segment(k * LENGTH, begin)
            if PRICE == "step":
                for x in own[1:]:
                    wp.launch(pay, LINKS, inputs=[*x], outputs=[cost])
            elif PRICE == "segment" or k == SEGMENTS - 1:
                wp.launch(pay, LINKS, inputs=[*own[-1]], outputs=[cost])
            if SEED == "inner" and not (dropped and HOW == "leave"):
                for x, g in zip(own[-1], seeds):
                    wp.launch(inner, LINKS, inputs=[x, g], outputs=[cost])
        handed = dict(zip(own[-1], seeds))
        if SEED == "inner" or (dropped and HOW == "leave"):
            tape.backward(cost)
        elif SEED == "assign":
            for x, g in handed.items():
                wp.copy(x.grad, g)
            tape.backward(cost)
        elif PRICE == "end" and k < SEGMENTS - 1:
            tape.backward(grads=handed)
        else:
            tape.backward(cost, grads=handed)
        if not (HOW == "leave" and DROP == "all"):
            adjoint = [x.grad.numpy().copy() for x in own[0]]
        total += float(cost.numpy()[0])
        mine = motors.grad.numpy().copy()
        tape.zero()
        motors.grad.assign(mine)
    wp.launch(descend, STEPS, inputs=[motors, motors.grad])
    motors.grad.zero_()
    print(epoch, total)
