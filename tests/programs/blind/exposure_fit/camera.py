"""Very small forward model of a camera with automatic exposure."""

import numpy as np
import warp as wp


@wp.kernel
def shade(
    normals: wp.array2d(dtype=wp.vec3), lamp: wp.array(dtype=wp.vec3), ambient: wp.array(dtype=float), image: wp.array2d(dtype=float)
):
    i, j = wp.tid()
    n = normals[i, j]
    s = ambient[0]
    for k in range(2):
        c = wp.dot(n, lamp[k])
        s += 0.1 * wp.log(1.0 + wp.exp(10.0 * c))
    image[i, j] = s


@wp.kernel
def expose(image: wp.array2d(dtype=float), gain: wp.array(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    v = image[i, j] * gain[0]
    out[i, j] = v / (1.0 + v)


@wp.kernel
def photo_error(out: wp.array2d(dtype=float), photo: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    d = out[i, j] - photo[i, j]
    wp.atomic_add(loss, 0, 1000.0 * d * d / float(out.shape[0] * out.shape[1]))


class Camera:
    def __init__(self, size, key=0.6):
        self.size, self.key = size, key
        c = (np.arange(size) + 0.5) / size * 1.6 - 0.8
        xx, yy = np.meshgrid(c, c, indexing="ij")
        zz = np.sqrt(np.maximum(1.0 - 0.5 * xx * xx - 0.5 * yy * yy, 0.01))
        n = np.stack([xx, yy, zz], axis=-1)
        n /= np.linalg.norm(n, axis=-1, keepdims=True)
        self.normals = wp.array(n.astype(np.float32), dtype=wp.vec3)

    def meter(self, image):
        return wp.array([self.key / float(image.numpy().mean())], dtype=float, requires_grad=True)

    def take(self, lamp, ambient):
        shape = (self.size, self.size)
        image = wp.zeros(shape, dtype=float, requires_grad=True)
        out = wp.zeros(shape, dtype=float, requires_grad=True)
        wp.launch(shade, dim=shape, inputs=[self.normals, lamp, ambient], outputs=[image])
        gain = self.meter(image)
        wp.launch(expose, dim=shape, inputs=[image, gain], outputs=[out])
        return out
