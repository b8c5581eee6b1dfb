"""A cable ferry: choose rudder angles along the crossing so that it lands at the pier."""
import numpy as np
import warp as wp

LEGS = 10
START = (0.0, 0.0)


@wp.kernel
def leg(boat: wp.array(dtype=wp.vec2), rudder: wp.array(dtype=float), k: int):
    p = boat[k]
    current = 0.3 * p[1] * (1.0 - p[1])
    boat[k + 1] = p + 0.1 * wp.vec2(wp.sin(rudder[k]) + current, wp.cos(rudder[k]))


@wp.kernel
def landing(boat: wp.array(dtype=wp.vec2), pier: wp.vec2, loss: wp.array(dtype=float)):
    d = boat[LEGS] - pier
    loss[0] = wp.dot(d, d)


def crossing(rudder):
    boat = wp.array([START] * (LEGS + 1), dtype=wp.vec2, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    for k in range(LEGS):
        wp.launch(leg, 1, inputs=[boat, rudder, k])
    wp.launch(landing, 1, inputs=[boat, wp.vec2(0.4, 0.8), loss])
    return loss


def main(trips=10, rate=0.8):
    rudder = wp.zeros(LEGS, dtype=float, requires_grad=True)
    for trip in range(trips):
        tape = wp.Tape()
        with tape:
            loss = crossing(rudder)
        tape.backward(loss)
        g = rudder.grad.numpy()
        tape.zero()
        print(f"trip {trip}: missed by {loss.numpy()[0] ** 0.5:.4f}")
        rudder.assign(rudder.numpy() - rate * g)


if __name__ == "__main__":
    main()
