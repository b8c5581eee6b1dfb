import numpy as np
import warp as wp

from config import H, SPEED, STEPS, WHEELS


@wp.kernel
def springs(height: wp.array(dtype=float), speed: wp.array(dtype=float), ground: wp.array(dtype=float),
            damping: wp.array(dtype=float), force: wp.array(dtype=float)):
    w = wp.tid()
    gap = height[w] - ground[w]
    wp.atomic_add(force, w, -40.0 * gap - damping[w] * speed[w])


@wp.kernel
def chassis(height: wp.array(dtype=float), stiffness: float, force: wp.array(dtype=float)):
    w = wp.tid()
    left = (w + WHEELS - 1) % WHEELS
    wp.atomic_add(force, w, stiffness * (height[left] - height[w]))
    wp.atomic_add(force, left, stiffness * (height[w] - height[left]))


@wp.kernel
def move(height: wp.array(dtype=float), speed: wp.array(dtype=float), force: wp.array(dtype=float),
         height_new: wp.array(dtype=float), speed_new: wp.array(dtype=float)):
    w = wp.tid()
    v = speed[w] + H * force[w]
    speed_new[w] = v
    height_new[w] = height[w] + H * v


@wp.kernel
def shake(speed: wp.array(dtype=float), comfort: wp.array(dtype=float)):
    w = wp.tid()
    wp.atomic_add(comfort, 0, speed[w] * speed[w])


class State:
    def __init__(self):
        self.height = wp.zeros(WHEELS, dtype=float, requires_grad=True)
        self.speed = wp.zeros(WHEELS, dtype=float, requires_grad=True)


class Rover:
    def __init__(self):
        self.damping = wp.array([1.0, 1.5, 2.0, 1.2], dtype=float, requires_grad=True)
        self.states = [State() for _ in range(STEPS + 1)]
        self.force = wp.zeros(WHEELS, dtype=float, requires_grad=True)
        self.comfort = wp.zeros(1, dtype=float, requires_grad=True)
        phase = np.array([0.0, 0.0, 1.1, 1.1])
        self.road = [
            wp.array(0.2 * np.sin(SPEED * 2 * np.pi * H * t + phase), dtype=float) for t in range(STEPS)
        ]

    def drive(self):
        self.comfort.zero_()
        for t in range(STEPS):
            a, b = self.states[t], self.states[t + 1]
            self.force.zero_()
            wp.launch(springs, WHEELS, inputs=[a.height, a.speed, self.road[t], self.damping], outputs=[self.force])
            wp.launch(chassis, WHEELS, inputs=[a.height, 15.0], outputs=[self.force])
            wp.launch(move, WHEELS, inputs=[a.height, a.speed, self.force], outputs=[b.height, b.speed])
            wp.launch(shake, WHEELS, inputs=[b.speed], outputs=[self.comfort])
        return self.comfort
