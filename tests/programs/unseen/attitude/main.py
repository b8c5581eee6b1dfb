"""Star tracker: find the attitude (a quaternion) and the lens scale (a matrix) that explain the star image."""
import numpy as np
import warp as wp

STARS = 6


@wp.kernel
def project(q: wp.array(dtype=wp.quat), lens: wp.array(dtype=wp.mat22), star: wp.array(dtype=wp.vec3), dot_on_chip: wp.array(dtype=wp.vec2)):
    s = wp.tid()
    d = wp.quat_rotate(wp.normalize(q[0]), star[s])
    p = wp.vec2(d[0] / (2.0 + d[2]), d[1] / (2.0 + d[2]))
    dot_on_chip[s] = lens[0] @ p


@wp.kernel
def mismatch(dot_on_chip: wp.array(dtype=wp.vec2), seen: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    s = wp.tid()
    d = dot_on_chip[s] - seen[s]
    wp.atomic_add(loss, 0, wp.dot(d, d))


rng = np.random.default_rng(2)
directions = rng.normal(size=(STARS, 3))
directions /= np.linalg.norm(directions, axis=1, keepdims=True)
star = wp.array(directions, dtype=wp.vec3)


def render(q, lens):
    chip = wp.zeros(STARS, dtype=wp.vec2, requires_grad=True)
    wp.launch(project, STARS, inputs=[q, lens, star], outputs=[chip])
    return chip


true_q = wp.array([[0.2, -0.1, 0.3, 0.9]], dtype=wp.quat)
true_lens = wp.array([[[1.1, 0.05], [-0.03, 0.95]]], dtype=wp.mat22)
seen = render(true_q, true_lens)
seen.requires_grad = False

q = wp.array([[0.0, 0.1, 0.1, 1.0]], dtype=wp.quat, requires_grad=True)
lens = wp.array([np.eye(2)], dtype=wp.mat22, requires_grad=True)
for frame in range(15):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        chip = render(q, lens)
        wp.launch(mismatch, STARS, inputs=[chip, seen], outputs=[loss])
    tape.backward(loss)
    q_new = q.numpy() - 0.3 * q.grad.numpy()
    lens_new = lens.numpy() - 0.3 * lens.grad.numpy()
    tape.zero()
    q.assign(q_new / np.linalg.norm(q_new))
    lens.assign(lens_new)
    print(f"frame {frame:2d} residual {loss.numpy()[0]:.6f}")
