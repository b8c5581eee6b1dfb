"""A ship that is steered along a wanted course: rudder angles, a lag, and drift by the wind."""

import numpy as np
import warp as wp

from helm import Momentum

LEGS = 20


@wp.kernel
def leg(pose: wp.array(dtype=wp.vec3), rudder: wp.array(dtype=float), k: int, out: wp.array(dtype=wp.vec3)):
    p = pose[0]
    turn = p[2] + 0.3 * wp.sin(rudder[k])
    out[0] = wp.vec3(p[0] + 0.2 * wp.cos(turn), p[1] + 0.2 * wp.sin(turn) - 0.02, turn)


@wp.kernel
def off_course(pose: wp.array(dtype=wp.vec3), k: int, loss: wp.array(dtype=float)):
    want = 0.5 * wp.sin(0.25 * float(k))
    d = pose[0][1] - want
    wp.atomic_add(loss, 0, d * d)


def sail(rudder, loss):
    pose = wp.array([wp.vec3(0.0, 0.0, 0.1)], dtype=wp.vec3, requires_grad=True)
    for k in range(LEGS):
        after = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
        wp.launch(leg, 1, inputs=[pose, rudder, k], outputs=[after])
        wp.launch(off_course, 1, inputs=[after, k], outputs=[loss])
        pose = after


def main():
    rudder = wp.array(0.2 * np.cos(np.arange(LEGS)), dtype=float, requires_grad=True)
    optimizer = Momentum(rudder)
    for it in range(12):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            sail(rudder, loss)
        optimizer.stage()
        rudder.grad.zero_()
        tape.backward(loss)
        optimizer.step()
        print(f"{it:2d} {loss.numpy()[0]:.5f}")


if __name__ == "__main__":
    main()
