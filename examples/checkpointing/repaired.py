"""Find the stiffness of a string from where it is after many steps. The tape holds one segment at a time.

    python repaired.py                     train, with gradient checkpointing
    python repaired.py --full              the same with one tape over all steps
    python repaired.py --steps 1600        a longer run; --iterations 1 for the memory alone
"""
import argparse
import ctypes
import math
import os

import numpy as np
import warp as wp

POINTS = 20000
ZONES = 4
DT = 0.4
RATE = 1.0

options = argparse.ArgumentParser()
options.add_argument("--steps", type=int, default=50)
options.add_argument("--iterations", type=int, default=8)
options.add_argument("--full", action="store_true")


@wp.kernel
def move(
    place: wp.array(dtype=float),
    speed: wp.array(dtype=float),
    stiffness: wp.array(dtype=float),
    place_out: wp.array(dtype=float),
    speed_out: wp.array(dtype=float),
):
    i = wp.tid()
    here = place[i]
    left = wp.where(i > 0, place[wp.max(i - 1, 0)], 0.0)
    right = wp.where(i < POINTS - 1, place[wp.min(i + 1, POINTS - 1)], 0.0)
    pull = stiffness[i * ZONES // POINTS] * (left - 2.0 * here + right) - 0.3 * here * here * here
    v = speed[i] + DT * pull
    speed_out[i] = v
    place_out[i] = here + DT * v


@wp.kernel
def compare(place: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = place[i] - seen[i]
    wp.atomic_add(loss, 0, d * d / float(POINTS))


class State:
    def __init__(self, requires_grad):
        self.place = wp.zeros(POINTS, dtype=float, requires_grad=requires_grad)
        self.speed = wp.zeros(POINTS, dtype=float, requires_grad=requires_grad)

    def take(self, other):
        wp.copy(self.place, other.place)
        wp.copy(self.speed, other.speed)


class String:
    def __init__(self, stiffness, steps, segment):
        self.stiffness = wp.array(stiffness, dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.segments = math.ceil(steps / segment)
        self.lengths = [min(segment, steps - s * segment) for s in range(self.segments)]
        self.states = [State(True) for _ in range(segment + 1)]
        self.saved = [State(False) for _ in range(self.segments)]
        x = np.arange(POINTS, dtype=np.float32)
        self.saved[0].place.assign(np.sin(0.1 * x) + 0.5 * np.sin(0.23 * x))

    def play(self, segment):
        """The steps of one segment, from its saved state. Returns the state at its end."""
        self.states[0].take(self.saved[segment])
        for s in range(self.lengths[segment]):
            now, then = self.states[s], self.states[s + 1]
            wp.launch(
                move, POINTS, inputs=[now.place, now.speed, self.stiffness], outputs=[then.place, then.speed]
            )
        return then

    def forward(self):
        """All steps, nothing recorded; the state at the beginning of every segment is saved."""
        for segment in range(self.segments):
            end = self.play(segment)
            if segment + 1 < self.segments:
                self.saved[segment + 1].take(end)
        return end

    def backward(self, seen):
        """Segment by segment from the last: record it again, seed it with the adjoint of its end."""
        for segment in reversed(range(self.segments)):
            with wp.Tape() as tape:
                end = self.play(segment)
                if segment + 1 == self.segments:
                    self.loss.zero_()
                    wp.launch(compare, POINTS, inputs=[end.place, seen], outputs=[self.loss])
            if segment + 1 == self.segments:
                tape.backward(self.loss)
            else:
                tape.backward(grads={end.place: place_adjoint, end.speed: speed_adjoint})
            place_adjoint = wp.clone(self.states[0].place.grad, requires_grad=False)
            speed_adjoint = wp.clone(self.states[0].speed.grad, requires_grad=False)
            for state in self.states:
                state.place.grad.zero_()
                state.speed.grad.zero_()


def resident_megabytes():
    """Memory that this process holds now (Linux); what was freed is given back first."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main():
    given = options.parse_args()
    segment = given.steps if given.full else math.ceil(math.sqrt(given.steps))
    truth = String([0.8, 0.5, 0.9, 0.6], given.steps, math.ceil(math.sqrt(given.steps)))
    seen = wp.clone(truth.forward().place)
    before = resident_megabytes()
    string = String([0.7, 0.6, 0.8, 0.7], given.steps, segment)

    for it in range(given.iterations):
        string.forward()
        string.backward(seen)
        gradient = string.stiffness.grad.numpy().copy()
        string.stiffness.grad.zero_()
        values = string.stiffness.numpy()
        print(f"iteration {it}  loss {string.loss.numpy()[0]:.6f}  stiffness {values}  gradient {gradient}")
        string.stiffness.assign(values - RATE * gradient)

    states = len(string.states) + len(string.saved)
    print(f"steps {given.steps}  states kept {states}  memory of the training {resident_megabytes() - before:.0f} MB")


if __name__ == "__main__":
    main()
