"""Phase mask of a diffractive element: light from a line of pixels has to hit a given pattern."""
import numpy as np
import warp as wp
from warp.optim import SGD

PIXELS = 32
SCREEN = 20


@wp.kernel
def interfere(phase: wp.array(dtype=float), px: wp.array(dtype=float), sx: wp.array(dtype=float),
              re: wp.array(dtype=float), im: wp.array(dtype=float)):
    s, p = wp.tid()
    a = 25.0 * px[p] * sx[s] + phase[p]
    wp.atomic_add(re, s, wp.cos(a) / float(PIXELS))
    wp.atomic_add(im, s, wp.sin(a) / float(PIXELS))


@wp.kernel
def brightness_error(re: wp.array(dtype=float), im: wp.array(dtype=float), want: wp.array(dtype=float),
                     loss: wp.array(dtype=float)):
    s = wp.tid()
    e = re[s] * re[s] + im[s] * im[s] - want[s]
    wp.atomic_add(loss, 0, e * e)


class Mask:
    """Phases in [-pi, pi), so that the file for the writer never needs unwrapping."""

    def __init__(self, start, rate):
        self.phase = wp.array(start, dtype=float, requires_grad=True)
        self.sgd = SGD([self.phase], lr=rate)
        self.grads = [self.phase.grad]

    def wrap(self):
        turned = (self.sgd.params[0].numpy() + np.pi) % (2.0 * np.pi) - np.pi
        self.phase = wp.array(turned, dtype=float, requires_grad=True)

    def update(self):
        self.sgd.step(self.grads)
        self.wrap()


def main():
    px = wp.array(np.linspace(-1.0, 1.0, PIXELS), dtype=float)
    screen = np.linspace(-1.0, 1.0, SCREEN)
    sx = wp.array(screen, dtype=float)
    want = wp.array(0.25 * np.exp(-(((screen - 0.3) / 0.2) ** 2)), dtype=float)
    mask = Mask(np.random.default_rng(4).uniform(-1.0, 1.0, PIXELS), rate=4.0)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    for shot in range(8):
        re = wp.zeros(SCREEN, dtype=float, requires_grad=True)
        im = wp.zeros(SCREEN, dtype=float, requires_grad=True)
        loss.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(interfere, (SCREEN, PIXELS), inputs=[mask.phase, px, sx], outputs=[re, im])
            wp.launch(brightness_error, SCREEN, inputs=[re, im, want], outputs=[loss])
        tape.backward(loss)
        mask.update()
        print(f"shot {shot:2d} error {loss.numpy()[0]:.5f}")


if __name__ == "__main__":
    main()
