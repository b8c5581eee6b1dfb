"""Fit a patch inside a larger image: only a window of the mosaic may change."""
import numpy as np
import warp as wp

SIZE = 8
wp.init()


@wp.kernel
def blur(img: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    acc = float(0.0)
    for di in range(-1, 2):
        for dj in range(-1, 2):
            r = wp.clamp(i + di, 0, SIZE - 1)
            c = wp.clamp(j + dj, 0, SIZE - 1)
            acc += img[r, c] / 9.0
    out[i, j] = wp.tanh(2.0 * acc)


@wp.kernel
def photometric(out: wp.array2d(dtype=float), photo: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    d = out[i, j] - photo[i, j]
    wp.atomic_add(loss, 0, d * d)


def evaluate(image, photo):
    out = wp.zeros((SIZE, SIZE), dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    wp.launch(blur, (SIZE, SIZE), inputs=[image], outputs=[out])
    wp.launch(photometric, (SIZE, SIZE), inputs=[out, photo], outputs=[loss])
    return loss


y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
mosaic = wp.array(0.5 * x, dtype=float, requires_grad=True)
patch = mosaic[2:4]  # the rows that are being repainted
photo = wp.array(0.3 + 0.5 * np.sin(3 * x) * y, dtype=float)

for stroke in range(12):
    tape = wp.Tape()
    with tape:
        loss = evaluate(mosaic, photo)
    tape.backward(loss)
    patch.assign(patch.numpy() - 0.1 * patch.grad.numpy())
    tape.zero()
    after = evaluate(mosaic, photo).numpy()[0]
    print(f"stroke {stroke}: {loss.numpy()[0]:.6f} -> {after:.6f}")
