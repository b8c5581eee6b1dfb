"""Two moons around a planet: launch speeds so that both return after one turn. Leapfrog in place of Euler."""
import numpy as np
import warp as wp

STEPS = 40
DT = 0.1


@wp.struct
class Moons:
    pos: wp.array(dtype=wp.vec2)
    vel: wp.array(dtype=wp.vec2)


@wp.func
def gravity(p: wp.vec2):
    r2 = wp.dot(p, p) + 0.01
    return p * (-1.0 / (r2 * wp.sqrt(r2)))


@wp.kernel
def leapfrog(a: Moons, b: Moons):
    m = wp.tid()
    vh = a.vel[m] + 0.5 * DT * gravity(a.pos[m])
    x = a.pos[m] + DT * vh
    b.pos[m] = x
    b.vel[m] = vh + 0.5 * DT * gravity(x)


@wp.kernel
def away(a: Moons, home: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    m = wp.tid()
    d = a.pos[m] - home[m]
    wp.atomic_add(loss, 0, wp.dot(d, d))


@wp.kernel
def sgd(speed: wp.array(dtype=wp.vec2), slope: wp.array(dtype=wp.vec2), rate: float):
    m = wp.tid()
    speed[m] = speed[m] - rate * slope[m]


def moons(pos, vel=None):
    s = Moons()
    s.pos = pos
    s.vel = wp.zeros(2, dtype=wp.vec2, requires_grad=True) if vel is None else vel
    return s


home = wp.array([[0.8, 0.0], [0.0, 1.0]], dtype=wp.vec2, requires_grad=True)
speed = wp.array([[0.0, 1.15], [-1.05, 0.1]], dtype=wp.vec2, requires_grad=True)

for year in range(10):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        sky = [moons(home, speed)]
        for t in range(STEPS):
            sky.append(moons(wp.zeros(2, dtype=wp.vec2, requires_grad=True)))
            wp.launch(leapfrog, 2, inputs=[sky[t], sky[t + 1]])
        wp.launch(away, 2, inputs=[sky[-1], home, loss])
        tape.backward(loss)
        wp.launch(sgd, 2, inputs=[speed, speed.grad, 0.002])
    tape.zero()
    print("year", year, "away", loss.numpy()[0], "speeds", speed.numpy().ravel())
