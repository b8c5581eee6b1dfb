"""Water surface above a pool floor: heights for a wanted caustic. The film buffer is tone-mapped for display."""
import numpy as np
import warp as wp

N = 12
FLOOR = 16


@wp.kernel
def refract(height: wp.array(dtype=float), film: wp.array(dtype=float)):
    f, i = wp.tid()
    lo = wp.max(i - 1, 0)
    hi = wp.min(i + 1, N - 1)
    slope = height[hi] - height[lo]
    x = float(i) / float(N) - 0.3 * slope
    d = 6.0 * (float(f) / float(FLOOR) - x)
    wp.atomic_add(film, f, wp.exp(-d * d))


@wp.kernel
def expose(film: wp.array(dtype=float), wanted: wp.array(dtype=float), loss: wp.array(dtype=float)):
    f = wp.tid()
    d = film[f] - wanted[f]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def tone_map(pixels: wp.array(dtype=float)):
    p = wp.tid()
    pixels[p] = wp.min(pixels[p] / (1.0 + pixels[p]), 1.0)


class Pool:
    def __init__(self):
        self.height = wp.array(0.1 * np.cos(np.arange(N)), dtype=float, requires_grad=True)
        self.film = wp.zeros(FLOOR, dtype=float, requires_grad=True)
        self.screen = wp.array(ptr=self.film.ptr, shape=(FLOOR,), dtype=float, device=self.film.device)
        self.wanted = wp.array(4.0 * np.exp(-((np.arange(FLOOR) - 8.0) ** 2) / 8.0), dtype=float)

    def render(self):
        self.film.zero_()
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(refract, (FLOOR, N), inputs=[self.height], outputs=[self.film])
            wp.launch(expose, FLOOR, inputs=[self.film, self.wanted], outputs=[loss])
        return tape, loss

    def display(self):
        wp.launch(tone_map, FLOOR, inputs=[self.screen])
        return "".join(" .:-=+*#%@"[int(9 * v)] for v in self.screen.numpy())


pool = Pool()
for frame in range(8):
    tape, loss = pool.render()
    picture = pool.display()
    tape.backward(loss)
    pool.height.assign(pool.height.numpy() - 0.002 * pool.height.grad.numpy())
    tape.zero()
    print(f"{frame} |{picture}| {loss.numpy()[0]:.4f}")
