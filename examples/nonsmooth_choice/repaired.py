"""Set the heights of four lamps over a desk so that its brightest spot is as dim as possible, at a given total light."""
import numpy as np
import warp as wp

LAMPS = 4
SPOTS = 4
ITERATIONS = 5
LEARNING_RATE = 0.05


@wp.kernel
def shine(height: wp.array(dtype=float), light: wp.array(dtype=float)):
    s = wp.tid()
    total = float(0.0)
    for k in range(LAMPS):
        aside = 0.5 * float(k - s)
        total += height[k] / wp.pow(height[k] * height[k] + aside * aside, 1.5)
    light[s] = total


@wp.kernel
def brightest(light: wp.array(dtype=float), loss: wp.array(dtype=float)):
    total = float(0.0)
    for s in range(SPOTS):  # a smooth maximum: all spots count, the brightest most
        total += wp.exp(10.0 * (light[s] - 3.0))
    loss[0] = 3.0 + 0.1 * wp.log(total / float(SPOTS))


@wp.kernel
def reach(height: wp.array(dtype=float), loss: wp.array(dtype=float)):
    k = wp.tid()
    wp.atomic_add(loss, 0, 0.8 * height[k] * height[k])


height = wp.full(LAMPS, 1.0, dtype=float, requires_grad=True)
light = wp.zeros(SPOTS, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(shine, SPOTS, inputs=[height], outputs=[light])
        wp.launch(brightest, 1, inputs=[light], outputs=[loss])
        wp.launch(reach, LAMPS, inputs=[height], outputs=[loss])
    tape.backward(loss)

    slope = height.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  height {np.round(height.numpy(), 3)}  gradient {np.round(slope, 4)}")
    tape.zero()
    height.assign(height.numpy() - LEARNING_RATE * slope)
