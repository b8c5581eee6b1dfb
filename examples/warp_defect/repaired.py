"""Find the period and the swing of a variable star from twelve nights' brightness."""
import numpy as np
import warp as wp

NIGHTS = 12
ITERATIONS = 5
RATE = np.array([0.002, 0.02])


@wp.kernel
def light_curve(star: wp.array(dtype=float), night: wp.array(dtype=float), bright: wp.array(dtype=float)):
    n = wp.tid()
    turns = night[n] / star[0]
    phase = turns - wp.floor(turns)
    bright[n] = 1.0 + star[1] * wp.sin(6.2831853 * phase) + 0.3 * star[1] * wp.sin(12.566371 * phase)


@wp.kernel
def misfit(bright: wp.array(dtype=float), measured: wp.array(dtype=float), loss: wp.array(dtype=float)):
    n = wp.tid()
    d = bright[n] - measured[n]
    wp.atomic_add(loss, 0, d * d / float(NIGHTS))


night = wp.array(np.random.default_rng(6).uniform(0.0, 20.0, NIGHTS), dtype=float)
bright = wp.zeros(NIGHTS, dtype=float, requires_grad=True)
measured = wp.zeros(NIGHTS, dtype=float)
wp.launch(light_curve, NIGHTS, inputs=[wp.array([3.1, 0.5], dtype=float), night], outputs=[measured])
star = wp.array([3.05, 0.4], dtype=float, requires_grad=True)  # period in days, swing

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(light_curve, NIGHTS, inputs=[star, night], outputs=[bright])
        wp.launch(misfit, NIGHTS, inputs=[bright, measured], outputs=[loss])
    tape.backward(loss)

    slope = star.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  period, swing {star.numpy()}  gradient {slope}")
    tape.zero()
    star.assign(star.numpy() - RATE * slope)
