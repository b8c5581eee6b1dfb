"""Densities of six buried bodies from absolute gravity readings (milligal) along a road."""
import numpy as np
import warp as wp

wp.config.quiet = True

STATIONS = 40
BODIES = 6
NORMAL_GRAVITY = 981234.0  # at the base station
DRIFT = 12.0  # the instrument reads this much too high; it is corrected at the end of the season


@wp.kernel
def read_out(
    density: wp.array(dtype=float),
    place: wp.array(dtype=wp.vec2),
    road: wp.array(dtype=float),
    normal: float,
    gravity: wp.array(dtype=float),
):
    s = wp.tid()
    g = normal
    for b in range(BODIES):
        dx = place[b][0] - road[s]
        depth = place[b][1]
        r2 = dx * dx + depth * depth
        g += 0.02 * density[b] * depth / (r2 * wp.sqrt(r2))
    gravity[s] = g


@wp.kernel
def squares(gravity: wp.array(dtype=float), reading: wp.array(dtype=float), loss: wp.array(dtype=float)):
    s = wp.tid()
    r = gravity[s] - reading[s]
    wp.atomic_add(loss, 0, r * r)


class Survey:
    def __init__(self):
        rng = np.random.default_rng(3)
        self.road = np.linspace(-6.0, 6.0, STATIONS)
        self.place = np.stack([np.linspace(-4.0, 4.0, BODIES), rng.uniform(1.0, 2.0, BODIES)], axis=1)
        truth = rng.uniform(0.2, 1.2, BODIES)
        d = self.place[None, :, 0] - self.road[:, None]
        r2 = d * d + self.place[None, :, 1] ** 2
        self.reading = NORMAL_GRAVITY + DRIFT + (0.02 * truth * self.place[:, 1] / r2**1.5).sum(axis=1)


def main():
    survey = Survey()
    density = wp.array(np.full(BODIES, 0.5), dtype=float, requires_grad=True)
    road = wp.array(survey.road, dtype=float)
    place = wp.array(survey.place, dtype=wp.vec2)
    reading = wp.array(survey.reading, dtype=float)
    gravity = wp.zeros(STATIONS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    for epoch in range(25):
        loss.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(read_out, STATIONS, inputs=[density, place, road, NORMAL_GRAVITY], outputs=[gravity])
            wp.launch(squares, STATIONS, inputs=[gravity, reading], outputs=[loss])
        tape.backward(loss)
        step = 0.02 * density.grad.numpy()
        tape.zero()
        density.assign(density.numpy() - step)
        if epoch % 5 == 0:
            print(f"{epoch:3d} loss {loss.numpy()[0]:.6f} density {np.round(density.numpy(), 3)}")


if __name__ == "__main__":
    main()
