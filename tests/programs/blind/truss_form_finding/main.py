"""Choose rest lengths of a hanging bar net so that it settles into a wanted shape (damped dynamic relaxation)."""
import numpy as np
import warp as wp

NX, NY = 5, 4
N = NX * NY
STEPS = 90
DT = 0.02
STIFF = 60.0
DAMP = 0.97


@wp.kernel
def clear(f: wp.array(dtype=wp.vec3)):
    f[wp.tid()] = wp.vec3(0.0, 0.0, -0.6)


@wp.kernel
def bar_forces(
    x: wp.array(dtype=wp.vec3),
    bars: wp.array(dtype=wp.vec2i),
    rest: wp.array(dtype=float),
    f: wp.array(dtype=wp.vec3),
):
    e = wp.tid()
    a = bars[e][0]
    b = bars[e][1]
    d = x[b] - x[a]
    l = wp.length(d)
    pull = STIFF * (l - rest[e]) / l * d
    wp.atomic_add(f, a, pull)
    wp.atomic_sub(f, b, pull)


@wp.kernel
def add_wind(x: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    f[i] += wp.vec3(0.25 * wp.sin(2.0 * x[i][1]), 0.0, 0.0)


@wp.kernel
def move(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    f: wp.array(dtype=wp.vec3),
    x_new: wp.array(dtype=wp.vec3),
    v_new: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    u = DAMP * v[i] + DT * f[i]
    v_new[i] = u
    x_new[i] = x[i] + DT * u


@wp.kernel
def hold_supports(
    support: wp.array(dtype=int),
    anchor: wp.array(dtype=wp.vec3),
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
):
    s = wp.tid()
    x[support[s]] = anchor[s]
    v[support[s]] = wp.vec3(0.0)


@wp.kernel
def shape_error(x: wp.array(dtype=wp.vec3), want: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - want[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


def mesh():
    g = np.stack(np.meshgrid(np.linspace(0, 2, NX), np.linspace(0, 1.5, NY), indexing="ij"), -1).reshape(-1, 2)
    x = np.concatenate([g, np.zeros((N, 1))], axis=1)
    idx = np.arange(N).reshape(NX, NY)
    bars = np.concatenate(
        [
            np.stack([idx[:-1].ravel(), idx[1:].ravel()], 1),
            np.stack([idx[:, :-1].ravel(), idx[:, 1:].ravel()], 1),
            np.stack([idx[:-1, :-1].ravel(), idx[1:, 1:].ravel()], 1),
        ]
    )
    return x, bars, np.array([idx[0, 0], idx[0, -1], idx[-1, 0], idx[-1, -1]])


X0, BARS, CORNERS = mesh()
L0 = np.linalg.norm(X0[BARS[:, 1]] - X0[BARS[:, 0]], axis=1)
WANT = X0.copy()
WANT[:, 2] = -0.5 * np.sin(np.pi * X0[:, 0] / 2.0) * np.sin(np.pi * X0[:, 1] / 1.5)

bars = wp.array(BARS, dtype=wp.vec2i)
support = wp.array(CORNERS, dtype=int)
anchor = wp.array(X0[CORNERS], dtype=wp.vec3)
want = wp.array(WANT, dtype=wp.vec3)


class Net:
    def __init__(self):
        self.x = [wp.zeros(N, dtype=wp.vec3, requires_grad=True) for _ in range(STEPS + 1)]
        self.v = [wp.zeros(N, dtype=wp.vec3, requires_grad=True) for _ in range(STEPS + 1)]
        self.f = wp.zeros(N, dtype=wp.vec3, requires_grad=True)
        self.x[0].assign(X0.astype(np.float32))

    def relax(self, rest):
        for k in range(STEPS):
            x, v, xn, vn = self.x[k], self.v[k], self.x[k + 1], self.v[k + 1]
            wp.launch(clear, N, outputs=[self.f])
            wp.launch(bar_forces, len(BARS), inputs=[x, bars, rest], outputs=[self.f])
            wp.launch(add_wind, N, inputs=[x], outputs=[self.f])
            wp.launch(move, N, inputs=[x, v, self.f], outputs=[xn, vn])
            wp.launch(hold_supports, len(CORNERS), inputs=[support, anchor], outputs=[xn, vn])
        return self.x[STEPS]


net = Net()


def loss_at(scale):
    loss = wp.zeros(1, dtype=float)
    end = net.relax(wp.array(L0 * scale, dtype=float))
    wp.launch(shape_error, N, inputs=[end, want], outputs=[loss])
    return float(loss.numpy()[0])


def grad_at(scale):
    rest = wp.array(L0 * scale, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        end = net.relax(rest)
        wp.launch(shape_error, N, inputs=[end, want], outputs=[loss])
    tape.backward(loss)
    g = rest.grad.numpy() * L0
    tape.zero()
    return g


if __name__ == "__main__":
    scale = np.full(len(BARS), 1.02)
    for it in range(25):
        g = grad_at(scale)
        if it % 4 == 0:
            print(f"{it:3d} shape error={loss_at(scale):.5f} |g|={np.linalg.norm(g):.5f}")
        scale -= 0.004 * g
