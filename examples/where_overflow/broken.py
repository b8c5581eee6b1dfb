"""Find the diode's saturation current and ideality from measured currents, forward and reverse."""
import numpy as np
import warp as wp

POINTS = 8
ITERATIONS = 5
RATE = np.array([0.02, 0.02])


@wp.kernel
def diode(law: wp.array(dtype=float), volts: wp.array(dtype=float), amps: wp.array(dtype=float)):
    p = wp.tid()
    x = volts[p] / (0.0259 * law[1])
    exponential = law[0] * (wp.exp(x) - 1.0)
    straight = law[0] * (1.0e4 + 1.0e4 * (x - 9.2))  # beyond 9.2 the series resistance takes over
    amps[p] = wp.where(x < 9.2, exponential, straight)


@wp.kernel
def misfit(amps: wp.array(dtype=float), measured: wp.array(dtype=float), loss: wp.array(dtype=float)):
    p = wp.tid()
    d = wp.log((amps[p] + 4.0) / (measured[p] + 4.0))
    wp.atomic_add(loss, 0, d * d)


volts = wp.array([-0.5, -0.1, 0.1, 0.2, 0.3, 0.4, 1.5, 2.5], dtype=float)
amps = wp.zeros(POINTS, dtype=float, requires_grad=True)
measured = wp.zeros(POINTS, dtype=float)
wp.launch(diode, POINTS, inputs=[wp.array([1.5, 1.2], dtype=float), volts], outputs=[measured])
law = wp.array([1.0, 1.0], dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(diode, POINTS, inputs=[law, volts], outputs=[amps])
        wp.launch(misfit, POINTS, inputs=[amps, measured], outputs=[loss])
    tape.backward(loss)

    slope = law.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  law {law.numpy()}  gradient {slope}")
    tape.zero()
    law.assign(law.numpy() - RATE * slope)
