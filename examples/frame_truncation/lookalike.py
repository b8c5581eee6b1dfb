"""Find the stiffness of the springs that couple a row of pendulums, from eight short films of their motion."""
import numpy as np
import warp as wp

BOBS = 4
FILMS = 8
SUBSTEPS = 12
DT = 0.04
ITERATIONS = 4
LEARNING_RATE = 20.0


@wp.kernel
def swing(
    angle: wp.array(dtype=float),
    speed: wp.array(dtype=float),
    stiffness: wp.array(dtype=float),
    angle_out: wp.array(dtype=float),
    speed_out: wp.array(dtype=float),
):
    b = wp.tid()
    pull = -9.81 * wp.sin(angle[b])
    if b > 0:
        pull += stiffness[b - 1] * wp.sin(angle[b - 1] - angle[b])
    if b < BOBS - 1:
        pull += stiffness[b] * wp.sin(angle[b + 1] - angle[b])
    w = speed[b] + DT * pull
    speed_out[b] = w
    angle_out[b] = angle[b] + DT * w


@wp.kernel
def frame_error(angle: wp.array(dtype=float), filmed: wp.array2d(dtype=float), take: int, error: wp.array(dtype=float)):
    b = wp.tid()
    d = angle[b] - filmed[take, b]
    wp.atomic_add(error, 0, d * d / float(BOBS * FILMS))


def vector():
    return wp.zeros(BOBS, dtype=float, requires_grad=True)


def let_go(take):
    angle = wp.array(np.roll([0.9, -0.2, 0.1, -0.6], take) - 0.05 * take, dtype=float, requires_grad=True)
    return angle, vector()


def play(state, stiffness):
    for _ in range(SUBSTEPS):
        after = (vector(), vector())
        wp.launch(swing, BOBS, inputs=[*state, stiffness], outputs=[*after])
        state = after
    return state


def film(stiffness):
    pictures = [play(let_go(take), stiffness)[0].numpy() for take in range(FILMS)]
    return wp.array(np.array(pictures), dtype=float)


filmed = film(wp.array([3.0, 2.0, 4.0], dtype=float))
stiffness = wp.array([2.5, 2.5, 3.5], dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    stiffness.grad.zero_()
    total = 0.0
    for take in range(FILMS):  # each film starts anew
        state = let_go(take)
        error = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            state = play(state, stiffness)
            wp.launch(frame_error, BOBS, inputs=[state[0], filmed, take], outputs=[error])
        tape.backward(error)
        total += float(error.numpy()[0])

    gradient = stiffness.grad.numpy()
    k = stiffness.numpy()
    print(f"iteration {it:2d}  loss {total:.6f}  stiffness {k}  gradient {gradient}")
    stiffness.assign(k - LEARNING_RATE * gradient)
