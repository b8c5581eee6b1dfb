"""A linear oscillator chain driven at one end; positions and speeds are advanced in place."""
import numpy as np
import warp as wp

BEADS = 5
STEPS = 30


@wp.kernel
def kick(x: wp.array(dtype=float), v: wp.array(dtype=float), drive: wp.array(dtype=float), t: int):
    i = wp.tid()
    left = float(0.0)
    if i > 0:
        left = x[i - 1]
    else:
        left = drive[t]
    right = float(0.0)
    if i < BEADS - 1:
        right = x[i + 1]
    v[i] += 0.2 * (left - 2.0 * x[i] + right)


@wp.kernel
def drift(x: wp.array(dtype=float), v: wp.array(dtype=float)):
    i = wp.tid()
    x[i] += 0.2 * v[i]


@wp.kernel
def reach(x: wp.array(dtype=float), want: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - want[i]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def effort(drive: wp.array(dtype=float), loss: wp.array(dtype=float)):
    t = wp.tid()
    wp.atomic_add(loss, 0, 0.01 * drive[t] * drive[t])


want = wp.array([0.0, 0.2, 0.5, 0.2, 0.0], dtype=float)
drive = wp.array(0.3 * np.sin(0.4 * np.arange(STEPS)), dtype=float, requires_grad=True)

for trial in range(10):
    x = wp.zeros(BEADS, dtype=float, requires_grad=True)
    v = wp.zeros(BEADS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for t in range(STEPS):
            wp.launch(kick, BEADS, inputs=[x, v, drive, t])
            wp.launch(drift, BEADS, inputs=[x, v])
        wp.launch(reach, BEADS, inputs=[x, want, loss])
        wp.launch(effort, STEPS, inputs=[drive, loss])
    tape.backward(loss)
    drive.assign(drive.numpy() - 0.5 * drive.grad.numpy())
    drive.grad.zero_()
    print("trial", trial, loss.numpy()[0])
