"""Find how hard to brake a crane's trolley in each second so that the load hangs still over the ship."""
import numpy as np
import warp as wp

SECONDS = 6
DT = 0.5
ITERATIONS = 4
LEARNING_RATE = 0.1


@wp.kernel
def roll(second: int, brake: wp.array(dtype=float), before: wp.array(dtype=float), after: wp.array(dtype=float)):
    # state: trolley position, trolley speed, angle of the rope, its speed
    speed = before[1] - DT * brake[second]
    turn = before[3] + DT * (brake[second] * wp.cos(before[2]) - 4.0 * wp.sin(before[2])) / 4.0
    after[0] = before[0] + DT * speed
    after[1] = speed
    after[2] = before[2] + DT * turn
    after[3] = turn


@wp.kernel
def unrest(state: wp.array(dtype=float), loss: wp.array(dtype=float)):
    off = state[0] - 5.0
    swing = wp.sin(state[2])
    loss[0] = off * off + state[1] * state[1] + 10.0 * swing * swing + 10.0 * state[3] * state[3]


@wp.kernel
def rewind(states: wp.array(dtype=float)):
    i = wp.tid()
    if i == 1:
        states[i] = 3.0
    else:
        states[i] = 0.0


brake = wp.full(SECONDS, 0.3, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
states = [wp.array([0.0, 3.0, 0.0, 0.0], dtype=float, requires_grad=True) for _ in range(SECONDS + 1)]

for it in range(ITERATIONS):
    tape = wp.Tape()
    with tape:
        for second in range(SECONDS):
            wp.launch(roll, 1, inputs=[second, brake, states[second]], outputs=[states[second + 1]])
        wp.launch(unrest, 1, inputs=[states[-1]], outputs=[loss])
    tape.backward(loss)
    for state in states:  # everything back to the start for the next run
        wp.launch(rewind, 4, inputs=[], outputs=[state])

    slope = brake.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.4f}  brake {np.round(brake.numpy(), 3)}  gradient {slope}")
    tape.zero()
    brake.assign(brake.numpy() - LEARNING_RATE * slope)
