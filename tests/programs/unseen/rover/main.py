"""Tune the dampers of a four-wheeled rover on a wavy road."""
import warp as wp

from config import EPOCHS, RATE
from model import Rover

rover = Rover()
for epoch in range(EPOCHS):
    with wp.Tape() as tape:
        cost = rover.drive()
    tape.backward(cost)
    grad = rover.damping.grad.numpy().copy()
    tape.zero()
    c = rover.damping.numpy()
    print(f"{epoch}: shaking {cost.numpy()[0]:.5f} dampers {c}")
    rover.damping.assign(c - RATE * grad)
