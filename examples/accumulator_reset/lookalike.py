"""Find how stiff the springs under a row of machine feet are, from the depth to which the feet bounce."""
import numpy as np
import warp as wp

FEET = 4
STEPS = 12
DT = 0.06
ITERATIONS = 4
LEARNING_RATE = 40.0


@wp.kernel
def spring(depth: wp.array(dtype=float), stiffness: wp.array(dtype=float), force: wp.array(dtype=float)):
    s = wp.tid()
    force[s] = -stiffness[s] * (depth[s] - 0.1 * float(s))


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


def feet(values=(0.0, 0.0, 0.0, 0.0)):
    return wp.array(values, dtype=float, requires_grad=True)


def bounce(stiffness):
    depth, speed = feet([0.0, 0.1, 0.2, 0.3]), feet()
    force = feet()
    for _ in range(STEPS):
        force.zero_()
        wp.launch(spring, FEET, inputs=[depth, stiffness], outputs=[force])
        depth_next, speed_next = feet(), feet()
        wp.launch(fall, FEET, inputs=[depth, speed, force], outputs=[depth_next, speed_next])
        depth, speed = depth_next, speed_next
    return depth


seen = wp.array(bounce(feet([60.0, 45.0, 50.0, 40.0])).numpy(), dtype=float)
stiffness = feet([50.0, 50.0, 45.0, 45.0])

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        depth = bounce(stiffness)
        wp.launch(misfit, FEET, inputs=[depth, seen], outputs=[loss])
    tape.backward(loss)

    slope = stiffness.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.6f}  stiffness {np.round(stiffness.numpy(), 2)}  gradient {slope}")
    tape.zero()
    stiffness.assign(stiffness.numpy() - LEARNING_RATE * slope)
