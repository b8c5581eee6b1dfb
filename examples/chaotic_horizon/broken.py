"""Find the weather three weeks ago (Lorenz's three numbers) from the weather now."""
import numpy as np
import warp as wp

DAYS = 40
DT = wp.constant(wp.float64(0.03))
ITERATIONS = 3
LEARNING_RATE = 1e-3


@wp.func
def wind(x: wp.vec3d):
    turn = wp.float64(10.0) * (x[1] - x[0])
    rise = x[0] * (wp.float64(28.0) - x[2]) - x[1]
    heat = x[0] * x[1] - wp.float64(8.0) / wp.float64(3.0) * x[2]
    return wp.vec3d(turn, rise, heat)


@wp.kernel
def a_day(x: wp.array(dtype=wp.vec3d), y: wp.array(dtype=wp.vec3d)):
    i = wp.tid()
    now = x[i]
    for _ in range(12):
        half = now + wp.float64(0.5) * DT * wind(now)
        now = now + DT * wind(half)
    y[i] = now


@wp.kernel
def misfit(x: wp.array(dtype=wp.vec3d), seen: wp.vec3d, loss: wp.array(dtype=wp.float64)):
    d = x[0] - seen
    loss[0] = wp.dot(d, d)


def forecast(start):
    days = [start] + [wp.zeros(1, dtype=wp.vec3d, requires_grad=True) for _ in range(DAYS)]
    for before, after in zip(days, days[1:]):
        wp.launch(a_day, 1, inputs=[before], outputs=[after])
    return days[-1]


seen = wp.vec3d(*forecast(wp.array([[1.0, 1.0, 20.0]], dtype=wp.vec3d)).numpy()[0].tolist())
start = wp.array([[1.1, 0.9, 20.2]], dtype=wp.vec3d, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        state = forecast(start)
        wp.launch(misfit, 1, inputs=[state, seen], outputs=[loss])
    tape.backward(loss)

    slope = start.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  start {start.numpy()[0]}  gradient {slope[0]}")
    tape.zero()
    start.assign(start.numpy() - LEARNING_RATE * slope / np.linalg.norm(slope))
