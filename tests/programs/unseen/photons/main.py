"""Monte Carlo absorption: optimise the layer densities of a dosimeter, new photons in every step."""
import warp as wp

PHOTONS = 128
LAYERS = 4


@wp.kernel
def transport(density: wp.array(dtype=float), seed: int, dose: wp.array(dtype=float)):
    p = wp.tid()
    rng = wp.rand_init(seed, p)
    energy = float(1.0) + 0.3 * wp.randf(rng)
    slant = 1.0 + 0.5 * wp.randf(rng)
    w = wp.exp(-density[0] * slant * energy)
    wp.atomic_add(dose, 0, (1.0 - w) / float(PHOTONS))
    w1 = w * wp.exp(-density[1] * slant)
    wp.atomic_add(dose, 1, (w - w1) / float(PHOTONS))
    w2 = w1 * wp.exp(-density[2] * slant / energy)
    wp.atomic_add(dose, 2, (w1 - w2) / float(PHOTONS))
    w3 = w2 * wp.exp(-density[3] * slant)
    wp.atomic_add(dose, 3, (w2 - w3) / float(PHOTONS))


@wp.kernel
def uneven(dose: wp.array(dtype=float), loss: wp.array(dtype=float)):
    k = wp.tid()
    d = dose[k] - 0.2
    wp.atomic_add(loss, 0, d * d)


class Dosimeter:
    def __init__(self, seed=1):
        self.density = wp.full(LAYERS, 0.5, dtype=float, requires_grad=True)
        self.shots = seed

    def step(self, lr):
        self.shots += 1
        dose = wp.zeros(LAYERS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(transport, PHOTONS, inputs=[self.density, self.shots], outputs=[dose])
            wp.launch(uneven, LAYERS, inputs=[dose], outputs=[loss])
        tape.backward(loss)
        new = self.density.numpy() - lr * self.density.grad.numpy()
        self.density = wp.array(new, dtype=float, requires_grad=True)
        return loss.numpy()[0]


if __name__ == "__main__":
    d = Dosimeter()
    for i in range(20):
        print("shot", i, "unevenness", d.step(0.8))
