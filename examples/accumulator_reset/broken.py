"""Find how stiff the segments of a hanging cable are, from the depth to which its knots bounce."""
import numpy as np
import warp as wp

KNOTS = 4
STEPS = 12
DT = 0.06
ITERATIONS = 4
LEARNING_RATE = 40.0


@wp.kernel
def tension(depth: wp.array(dtype=float), stiffness: wp.array(dtype=float), force: wp.array(dtype=float)):
    s = wp.tid()  # segment s hangs from knot s - 1 (the ceiling for s = 0) and carries knot s
    above = float(0.0)
    if s > 0:
        above = depth[s - 1]
    stretch = depth[s] - above - 0.5
    pull = stiffness[s] * stretch
    wp.atomic_add(force, s, -pull)
    if s > 0:
        wp.atomic_add(force, s - 1, pull)


@wp.kernel
def fall(
    depth: wp.array(dtype=float),
    speed: wp.array(dtype=float),
    force: wp.array(dtype=float),
    depth_out: wp.array(dtype=float),
    speed_out: wp.array(dtype=float),
):
    k = wp.tid()
    v = speed[k] + DT * (9.81 + force[k])
    speed_out[k] = v
    depth_out[k] = depth[k] + DT * v


@wp.kernel
def misfit(depth: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    k = wp.tid()
    d = depth[k] - seen[k]
    wp.atomic_add(loss, 0, d * d)


def knots(values=(0.0, 0.0, 0.0, 0.0)):
    return wp.array(values, dtype=float, requires_grad=True)


def bounce(stiffness):
    depth, speed = knots([0.5, 1.0, 1.5, 2.0]), knots()
    force = knots()
    for _ in range(STEPS):
        force.zero_()
        wp.launch(tension, KNOTS, inputs=[depth, stiffness], outputs=[force])
        depth_next, speed_next = knots(), knots()
        wp.launch(fall, KNOTS, inputs=[depth, speed, force], outputs=[depth_next, speed_next])
        depth, speed = depth_next, speed_next
    return depth


seen = wp.array(bounce(knots([60.0, 45.0, 50.0, 40.0])).numpy(), dtype=float)
stiffness = knots([50.0, 50.0, 45.0, 45.0])

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        depth = bounce(stiffness)
        wp.launch(misfit, KNOTS, inputs=[depth, seen], outputs=[loss])
    tape.backward(loss)

    slope = stiffness.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.6f}  stiffness {np.round(stiffness.numpy(), 2)}  gradient {slope}")
    tape.zero()
    stiffness.assign(stiffness.numpy() - LEARNING_RATE * slope)
