"""Segment by segment backwards over one list of all states: the end of a segment is the array in which the next one begins, and
its gradient buffer hands the adjoint on. `wiped`: it is cleared; `nograd`: each segment begins in a copy without gradient;
`shooting`, `shooting_back`: the segments' initial states are trained, from a rollout on, one after the other or backwards."""
import sys

import numpy as np
import warp as wp
mode = sys.argv[1] if len(sys.argv) > 1 else "right"
N, K, L = 9, 3, 4

@wp.kernel
def flow(x: wp.array(dtype=wp.vec2), p: wp.array(dtype=float), t: int, y: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    v = x[i]
    a = x[(i + 1) % x.shape[0]]
    y[i] = v + 0.1 * wp.vec2(v[1] - 0.2 * v[0] * v[0] + p[t], 0.5 * (a[0] - v[0]) - 0.1 * v[1])

@wp.kernel
def cost(x: wp.array(dtype=wp.vec2), c: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(c, 0, wp.dot(x[i], x[i]) - x[i][0])

@wp.kernel
def defect(x: wp.array(dtype=wp.vec2), y: wp.array(dtype=wp.vec2), c: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - y[i]
    wp.atomic_add(c, 0, 3.0 * wp.dot(d, d))

p = wp.full(K * L, 0.2, dtype=float, requires_grad=True)
new = lambda: wp.zeros(N, dtype=wp.vec2, requires_grad=True)
x0 = wp.array(np.random.default_rng(1).normal(size=(N, 2)).astype(np.float32), dtype=wp.vec2, requires_grad=True)
states = [x0] + [new() for _ in range(K * L)]
def forward(first, xs):
    for t in range(first, first + L):
        wp.launch(flow, N, [xs[t], p, t], [xs[t + 1]])
if mode.startswith("shooting"):
    for k in range(K): forward(k * L, states)
    nodes = [wp.clone(states[k * L], requires_grad=True) for k in range(K)]
    for it in range(4):
        total = 0.0
        for k in (reversed(range(K)) if mode == "shooting_back" else range(K)):
            c = wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                xs = {k * L: nodes[k], **{k * L + j + 1: new() for j in range(L)}}
                forward(k * L, xs)
                for j in range(L): wp.launch(cost, N, [xs[k * L + j + 1]], [c])
                if k < K - 1: wp.launch(defect, N, [xs[k * L + L], nodes[k + 1]], [c])
            tape.backward(c)
            total += c.numpy()[0]
        for a in [p, *nodes[1:]]:
            a.assign(a.numpy() - 0.01 * a.grad.numpy())
            a.grad.zero_()
        nodes[0].grad.zero_()
        print(it, total)
    sys.exit()
for it in range(4):
    for k in range(K): forward(k * L, states)
    kept = [wp.clone(states[k * L]) for k in range(K)]
    total = 0.0
    for s in states: s.grad.zero_()
    for k in reversed(range(K)):
        c = wp.zeros(1, dtype=float, requires_grad=True)
        xs = states
        if mode == "nograd":
            xs = {k * L: wp.clone(kept[k], requires_grad=False), **{k * L + j + 1: new() for j in range(L)}}
        with wp.Tape() as tape:
            forward(k * L, xs)
            for j in range(L): wp.launch(cost, N, [xs[k * L + j + 1]], [c])
        tape.backward(c)
        if mode == "wiped":
            states[k * L].grad.zero_()
        total += c.numpy()[0]
    p.assign(p.numpy() - 0.01 * p.grad.numpy())
    p.grad.zero_()
    print(it, total)
