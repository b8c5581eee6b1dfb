"""Find the heat that a kiln's burners gave, zone by zone, from the glaze on the tiles."""
import numpy as np
import warp as wp

ZONES = 8
ITERATIONS = 4
LEARNING_RATE = 0.8


@wp.kernel
def heat_up(burner: wp.array(dtype=float), wall: wp.array(dtype=float)):
    z = wp.tid()
    wall[z] = 0.3 * burner[z] + 0.1 * burner[z] * burner[z]


@wp.kernel
def mix(wall: wp.array(dtype=float), air: wp.array(dtype=float)):
    z = wp.tid()
    before, after = wp.max(z - 1, 0), wp.min(z + 1, ZONES - 1)
    air[z] = 0.25 * wall[before] + 0.5 * wall[z] + 0.25 * wall[after]


@wp.kernel
def glaze(burner: wp.array(dtype=float), air: wp.array(dtype=float), gloss: wp.array(dtype=float)):
    z = wp.tid()
    gloss[z] = wp.tanh(air[z] + 0.2 * burner[z])


@wp.kernel
def misfit(gloss: wp.array(dtype=float), tiles: wp.array(dtype=float), loss: wp.array(dtype=float)):
    z = wp.tid()
    d = gloss[z] - tiles[z]
    wp.atomic_add(loss, 0, d * d)


def fire(burner):
    wall = wp.zeros(ZONES, dtype=float, requires_grad=True)
    air = wp.zeros(ZONES, dtype=float, requires_grad=True)
    gloss = wp.zeros(ZONES, dtype=float, requires_grad=True)
    wp.launch(heat_up, ZONES, inputs=[burner], outputs=[wall])
    wp.launch(mix, ZONES, inputs=[wall], outputs=[air])
    wp.launch(glaze, ZONES, inputs=[burner, air], outputs=[gloss])
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
