"""Set a glider's lift and drag coefficients so that it lands where the real one did."""
import numpy as np
import warp as wp

STEPS = 10
DT = 0.1
ITERATIONS = 4
RATE = 3e-6


@wp.kernel
def glide(
    place: wp.array(dtype=wp.vec3),
    speed: wp.array(dtype=wp.vec3),
    shape: wp.array(dtype=float),
    place_out: wp.array(dtype=wp.vec3),
    speed_out: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    v = speed[i]
    fast = wp.length(v)
    lift = shape[0] * v[0] * v[0]
    drag = shape[1] * fast
    push = wp.vec3(-drag * v[0], 0.0, lift - drag * v[2] - 9.81)
    w = v + DT * push
    speed_out[i] = w
    place_out[i] = place[i] + DT * w


@wp.kernel
def miss(place: wp.array(dtype=wp.vec3), landed: wp.vec3, loss: wp.array(dtype=float)):
    d = place[0] - landed
    wp.atomic_add(loss, 0, wp.dot(d, d))


def vector(x, y, z):
    return wp.array([[x, y, z]], dtype=wp.vec3, requires_grad=True)


def fly(shape):
    place, speed = vector(0.0, 0.0, 20.0), vector(12.0, 0.0, 0.0)
    for _ in range(STEPS):
        after = vector(0.0, 0.0, 0.0), vector(0.0, 0.0, 0.0)
        wp.launch(glide, 1, inputs=[place, speed, shape], outputs=[*after])
        place, speed = after
    return place


landed = wp.vec3(*fly(wp.array([0.06, 0.02], dtype=float)).numpy()[0].tolist())
shape = wp.array([0.05, 0.03], dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        place = fly(shape)
        wp.launch(miss, 1, inputs=[place, landed], outputs=[loss])
    tape.backward(loss)

    slope = shape.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  lift, drag {shape.numpy()}  gradient {slope}")
    tape.zero()
    shape.assign(shape.numpy() - RATE * slope)
