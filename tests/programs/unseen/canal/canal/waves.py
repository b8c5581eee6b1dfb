"""Depth and discharge along a canal, float64."""

import warp as wp

CELLS = 40
f64 = wp.float64


@wp.kernel
def advance(
    depth: wp.array(dtype=f64),
    flow: wp.array(dtype=f64),
    rough: wp.array(dtype=f64),
    depth_out: wp.array(dtype=f64),
    flow_out: wp.array(dtype=f64),
):
    i = wp.tid()
    n = depth.shape[0]
    left = (i + n - 1) % n
    right = (i + 1) % n
    dt = f64(0.05)
    push = depth[left] * depth[left] - depth[right] * depth[right]
    drag = rough[i % 5] * flow[i] * wp.abs(flow[i]) / depth[i]
    flow_out[i] = flow[i] + dt * (push - drag)
    depth_out[i] = depth[i] + dt * f64(0.5) * (flow[left] - flow[right])


@wp.kernel
def gauge(depth: wp.array(dtype=f64), seen: wp.array(dtype=f64), loss: wp.array(dtype=f64)):
    i = wp.tid()
    d = depth[i] - seen[i]
    wp.atomic_add(loss, 0, d * d)


class State:
    def __init__(self, grad=True):
        self.depth = wp.zeros(CELLS, dtype=f64, requires_grad=grad)
        self.flow = wp.zeros(CELLS, dtype=f64, requires_grad=grad)


def run(state, rough, steps):
    states = [state]
    for _ in range(steps):
        after = State()
        before = states[-1]
        wp.launch(advance, CELLS, inputs=[before.depth, before.flow, rough], outputs=[after.depth, after.flow])
        states.append(after)
    return states[-1]
