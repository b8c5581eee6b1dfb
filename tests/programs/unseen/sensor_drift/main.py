"""Online calibration of a drifting thermistor: a random handful of readings in every update."""
import numpy as np
import warp as wp

READINGS = 200
PICK = 16


@wp.kernel
def steinhart(par: wp.array(dtype=wp.float32), r: wp.array(dtype=wp.float32), t: wp.array(dtype=wp.float32), loss: wp.array(dtype=wp.float32)):
    i = wp.tid()
    l = wp.log(r[i])
    guess = par[0] + par[1] * l + par[2] * l * l * l
    d = guess - t[i]
    wp.atomic_add(loss, 0, d * d)


resistance = np.random.uniform(0.3, 3.0, READINGS)
truth = 0.5 - 0.8 * np.log(resistance) + 0.1 * np.log(resistance) ** 3
par = wp.zeros(3, dtype=wp.float32, requires_grad=True)

for reading in range(25):
    pick = np.random.choice(READINGS, PICK, replace=False)
    r = wp.array(resistance[pick], dtype=wp.float32)
    t = wp.array(truth[pick] + 0.02 * np.random.standard_normal(PICK), dtype=wp.float32)
    loss = wp.zeros(1, dtype=wp.float32, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(steinhart, dim=PICK, inputs=[par, r, t], outputs=[loss])
    tape.backward(loss=loss)
    wp.copy(par, wp.array(par.numpy() - 0.02 * par.grad.numpy(), dtype=wp.float32))
    par.grad.zero_()
    print(f"reading {reading:2d} loss {loss.numpy()[0] / PICK:.5f}")
