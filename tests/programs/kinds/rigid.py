"""Pose of a camera: matrices, quaternions and transforms as fitted arrays."""
import numpy as np
import warp as wp


@wp.kernel
def project(t: wp.array(dtype=wp.transform), q: wp.array(dtype=wp.quat), m: wp.array(dtype=wp.mat33), x: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    y = wp.transform_point(t[0], x[i])
    y = wp.quat_rotate(wp.normalize(q[0]), y)
    y = m[0] * y
    wp.atomic_add(loss, 0, wp.length_sq(y - wp.vec3(0.1, 0.2, 0.3)))


t = wp.array([[0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0]], dtype=wp.transform, requires_grad=True)
q = wp.array([[0.1, 0.2, 0.0, 0.9]], dtype=wp.quat, requires_grad=True)
m = wp.array([np.eye(3) + 0.1], dtype=wp.mat33, requires_grad=True)
x = wp.array(np.random.default_rng(2).normal(size=(6, 3)), dtype=wp.vec3)
for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(project, 6, inputs=[t, q, m, x], outputs=[loss])
    tape.backward(loss)
    for a in (t, q, m):
        a.assign(a.numpy() - 0.01 * a.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])
