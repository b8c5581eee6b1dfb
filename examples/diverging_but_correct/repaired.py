"""Plan the burns of a supply ship that must arrive at a station, at rest, after half an orbit."""
import numpy as np
import warp as wp

BURNS = 25
DT = 0.125  # one orbit is 2 pi
ITERATIONS = 15
LEARNING_RATE = 0.02


@wp.struct
class Ship:
    place: wp.array(dtype=wp.vec2)
    velocity: wp.array(dtype=wp.vec2)


@wp.kernel
def coast(ship: Ship, burn: wp.array(dtype=wp.vec2), b: int, after: Ship):
    # relative motion near a circular orbit (Hill's equations)
    r = ship.place[0]
    v = ship.velocity[0]
    pull = wp.vec2(3.0 * r[0] + 2.0 * v[1], -2.0 * v[0])
    v_after = v + DT * (pull + burn[b])
    after.velocity[0] = v_after
    after.place[0] = r + DT * v_after


@wp.kernel
def arrival(ship: Ship, loss: wp.array(dtype=float)):
    r = ship.place[0]
    v = ship.velocity[0]
    wp.atomic_add(loss, 0, wp.dot(r, r) + wp.dot(v, v))


@wp.kernel
def fuel(burn: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    b = wp.tid()
    wp.atomic_add(loss, 0, 0.002 * wp.dot(burn[b], burn[b]))


def new_ship(place=(0.0, 0.0)):
    ship = Ship()
    ship.place = wp.array([place], dtype=wp.vec2, requires_grad=True)
    ship.velocity = wp.zeros(1, dtype=wp.vec2, requires_grad=True)
    return ship


class Flight:
    def __init__(self):
        self.burn = wp.zeros(BURNS, dtype=wp.vec2, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def fly(self):
        ships = [new_ship((-0.3, 1.0))]
        for b in range(BURNS):
            ships.append(new_ship())
            wp.launch(coast, 1, inputs=[ships[b], self.burn, b], outputs=[ships[b + 1]])
        wp.launch(arrival, 1, inputs=[ships[-1]], outputs=[self.loss])
        wp.launch(fuel, BURNS, inputs=[self.burn], outputs=[self.loss])

    def improve(self):
        self.loss.zero_()
        self.burn.grad.zero_()
        tape = wp.Tape()
        with tape:
            self.fly()
        tape.backward(self.loss)
        self.burn.assign(self.burn.numpy() - LEARNING_RATE * self.burn.grad.numpy())
        return float(self.loss.numpy()[0])


if __name__ == "__main__":
    flight = Flight()
    for it in range(ITERATIONS):
        print(f"iteration {it:2d}  loss {flight.improve():.6g}")
