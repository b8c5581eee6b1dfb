"""Bundle-adjust the pose and focal length of one camera from marked points; the lens distortion comes from the lab sheet."""
import numpy as np
import warp as wp
from warp.optim import Adam

POINTS = 40
CLIP = 0.5


@wp.kernel
def reproject(
    marks: wp.array(dtype=wp.vec3),
    pose: wp.array(dtype=float),
    focal: wp.array(dtype=float),
    distortion: wp.array(dtype=float),
    pixel: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    w = wp.vec3(pose[0], pose[1], pose[2])
    angle = wp.sqrt(wp.dot(w, w) + 1.0e-12)
    q = wp.quat_from_axis_angle(w / angle, angle)
    c = wp.quat_rotate(q, marks[i]) + wp.vec3(pose[3], pose[4], pose[5])
    u = wp.vec2(c[0] / c[2], c[1] / c[2])
    r2 = wp.dot(u, u)
    pixel[i] = focal[0] * (1.0 + distortion[0] * r2 + distortion[1] * r2 * r2) * u


@wp.kernel
def standardised_error(
    pixel: wp.array(dtype=wp.vec2),
    seen: wp.array(dtype=wp.vec2),
    shift: wp.vec2,
    scale: float,
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    e = (pixel[i] - shift) / scale - (seen[i] - shift) / scale
    wp.atomic_add(loss, 0, wp.dot(e, e) / float(POINTS))


@wp.kernel
def sum_squares(g: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, g[wp.tid()] * g[wp.tid()])


@wp.kernel
def shrink(total: wp.array(dtype=float), limit: float, g: wp.array(dtype=float)):
    i = wp.tid()
    n = wp.sqrt(total[0])
    if n > limit:
        g[i] = g[i] * limit / n


class PoseFit:
    def __init__(self, seed=2):
        rng = np.random.default_rng(seed)
        self.true_pose = np.array([0.15, -0.25, 0.08, 0.3, -0.2, 4.0])
        self.marks = wp.array(rng.uniform(-1.0, 1.0, (POINTS, 3)), dtype=wp.vec3)
        self.distortion = wp.array([-0.12, 0.02], dtype=float)
        self.pixel = wp.zeros(POINTS, dtype=wp.vec2, requires_grad=True)
        self.project(wp.array(self.true_pose, dtype=float), wp.array([1.35], dtype=float))
        seen = self.pixel.numpy() + rng.normal(0.0, 0.002, (POINTS, 2))
        self.seen = wp.array(seen, dtype=wp.vec2)
        self.shift = wp.vec2(*seen.mean(axis=0))
        self.scale = float(seen.std())
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def project(self, pose, focal):
        wp.launch(reproject, POINTS, inputs=[self.marks, pose, focal, self.distortion], outputs=[self.pixel])

    def forward(self, pose, focal):
        self.loss.zero_()
        self.project(pose, focal)
        wp.launch(
            standardised_error, POINTS, inputs=[self.pixel, self.seen, self.shift, self.scale], outputs=[self.loss]
        )

    def clip(self, arrays):
        total = wp.zeros(1, dtype=float)
        for a in arrays:
            wp.launch(sum_squares, a.size, inputs=[a.grad], outputs=[total])
        for a in arrays:
            wp.launch(shrink, a.size, inputs=[total, CLIP], outputs=[a.grad])
        return float(np.sqrt(total.numpy()[0]))


def main(iterations=120):
    fit = PoseFit()
    pose = wp.array([0.0, 0.0, 0.0, 0.0, 0.0, 3.0], dtype=float, requires_grad=True)
    focal = wp.array([1.0], dtype=float, requires_grad=True)
    opt = Adam([pose, focal], lr=0.03)
    for it in range(iterations):
        tape = wp.Tape()
        with tape:
            fit.forward(pose, focal)
        tape.backward(fit.loss)
        norm = fit.clip([pose, focal])
        opt.step([pose.grad, focal.grad])
        tape.zero()
        if it % 20 == 0:
            print(f"{it:4d} loss={fit.loss.numpy()[0]:.6f} |g|={norm:.4f} focal={focal.numpy()[0]:.4f}")
    print("pose ", np.round(pose.numpy(), 3), "true", fit.true_pose)
    return pose, focal


if __name__ == "__main__":
    main()
