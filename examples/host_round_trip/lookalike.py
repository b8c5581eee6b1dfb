"""Find the heat that a kiln's burners gave, zone by zone, while a draught of known shape blows through it."""
import numpy as np
import warp as wp

ZONES = 8
ITERATIONS = 4
LEARNING_RATE = 0.8
SPREAD = np.array([0.25, 0.5, 0.25])
GUSTS = np.array([0.1, 0.4, 0.2, 0.0, 0.3, 0.3, 0.1, 0.0])


@wp.kernel
def heat_up(burner: wp.array(dtype=float), draught: wp.array(dtype=float), wall: wp.array(dtype=float)):
    z = wp.tid()
    heat = (1.0 - draught[z]) * burner[z]
    wall[z] = 0.3 * heat + 0.1 * heat * heat


@wp.kernel
def glaze(burner: wp.array(dtype=float), wall: wp.array(dtype=float), gloss: wp.array(dtype=float)):
    z = wp.tid()
    gloss[z] = wp.tanh(wall[z] + 0.2 * burner[z])


@wp.kernel
def misfit(gloss: wp.array(dtype=float), tiles: wp.array(dtype=float), loss: wp.array(dtype=float)):
    z = wp.tid()
    d = gloss[z] - tiles[z]
    wp.atomic_add(loss, 0, d * d)


def fire(burner):
    wall = wp.zeros(ZONES, dtype=float, requires_grad=True)
    draught = wp.zeros(ZONES, dtype=float)
    gloss = wp.zeros(ZONES, dtype=float, requires_grad=True)
    gusts = np.convolve(np.pad(GUSTS, 1, mode="edge"), SPREAD, mode="valid")
    draught.assign(gusts)
    wp.launch(heat_up, ZONES, inputs=[burner, draught], outputs=[wall])
    wp.launch(glaze, ZONES, inputs=[burner, wall], outputs=[gloss])
    return gloss


true_burner = 1.0 + 0.4 * np.sin(np.arange(ZONES))
tiles = wp.array(fire(wp.array(true_burner, dtype=float)).numpy(), dtype=float)
burner = wp.full(ZONES, 0.7, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        gloss = fire(burner)
        wp.launch(misfit, ZONES, inputs=[gloss, tiles], outputs=[loss])
    tape.backward(loss)

    slope = burner.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.6f}  gradient {np.round(slope, 4)}")
    tape.zero()
    burner.assign(burner.numpy() - LEARNING_RATE * slope)
