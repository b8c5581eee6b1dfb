"""Set the coolant flow in six parallel channels: cool chips, but little pumping power."""
import numpy as np
import warp as wp

CHANNELS = 6
ITERATIONS = 4
LEARNING_RATE = 0.01
PUMP_WEIGHT = 0.15


@wp.kernel
def heat_per_channel(power: wp.array(dtype=float), heat: wp.array(dtype=float)):
    c = wp.tid()
    heat[c] = 0.7 * power[c] + 0.3 * power[(c + 1) % CHANNELS]


@wp.kernel
def chip_temperature(
    heat: wp.array(dtype=float),
    flow: wp.array(dtype=float),
    temperature: wp.array(dtype=float),
):
    c = wp.tid()
    temperature[c] = heat[c] / (0.8 * wp.pow(flow[c], 0.8)) + 0.5 * heat[c] / flow[c]


@wp.kernel
def penalty(flow: wp.array(dtype=float), temperature: wp.array(dtype=float), cost: wp.array(dtype=float)):
    c = wp.tid()
    too_hot = temperature[c] - 1.0
    pump = flow[c] * flow[c] * flow[c]
    wp.atomic_add(cost, 0, 0.5 * too_hot * too_hot + PUMP_WEIGHT * pump)


power = wp.array([1.0, 1.6, 0.7, 2.0, 1.2, 0.9], dtype=float)
heat = wp.empty(CHANNELS, dtype=float)
flow = wp.full(CHANNELS, 0.9, dtype=float, requires_grad=True)
temperature = wp.empty(CHANNELS, dtype=float, requires_grad=True)
cost = wp.zeros(1, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    cost.zero_()
    tape = wp.Tape()
    with tape:
        wp.launch(heat_per_channel, CHANNELS, inputs=[power], outputs=[heat])
        wp.launch(chip_temperature, CHANNELS, inputs=[heat, flow], outputs=[temperature])
        wp.launch(penalty, CHANNELS, inputs=[flow, temperature], outputs=[cost])
    tape.backward(cost)

    slope = flow.grad.numpy().copy()
    tape.zero()
    print(
        f"iteration {it:2d}  loss {cost.numpy()[0]:.5f}  "
        f"hottest {temperature.numpy().max():.3f}  flow {np.round(flow.numpy(), 3)}"
    )
    flow.assign(flow.numpy() - LEARNING_RATE * slope)
