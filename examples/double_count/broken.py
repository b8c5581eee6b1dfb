"""Place insulation along a heating pipe: little heat lost, little material used."""
import numpy as np
import warp as wp

METRES = 8
ITERATIONS = 6
LEARNING_RATE = 0.6


@wp.kernel
def cool_down(metre: int, wool: wp.array(dtype=float), water: wp.array(dtype=float)):
    leak = 0.3 / (1.0 + 4.0 * wool[metre])
    water[metre + 1] = water[metre] - leak * (water[metre] - 10.0) * 0.2


@wp.kernel
def bill(wool: wp.array(dtype=float), water: wp.array(dtype=float), loss: wp.array(dtype=float)):
    m = wp.tid()
    lost = 0.15 * (water[m] - water[m + 1])
    wp.atomic_add(loss, 0, lost + 0.4 * wool[m] * wool[m])


wool = wp.full(METRES, 0.1, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
water = wp.full(METRES + 1, 70.0, dtype=float, requires_grad=True)
tape = wp.Tape()

for it in range(ITERATIONS):
    loss.zero_()
    with tape:
        for metre in range(METRES):
            wp.launch(cool_down, 1, inputs=[metre, wool], outputs=[water])
        wp.launch(bill, METRES, inputs=[wool, water], outputs=[loss])
    tape.backward(loss)

    slope = wool.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  wool {np.round(wool.numpy(), 3)}  gradient {np.round(slope, 3)}")
    tape.zero()
    wool.assign(wool.numpy() - LEARNING_RATE * slope)
