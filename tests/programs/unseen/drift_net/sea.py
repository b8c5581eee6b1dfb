"""What acts on the floats of a net."""

import warp as wp


@wp.kernel
def current_kernel(x: wp.array(dtype=wp.vec2), strength: wp.array(dtype=float), u: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    p = x[i]
    u[i] = wp.vec2(strength[0] * wp.sin(p[1]), strength[1] * wp.cos(p[0]))


@wp.kernel
def limit_kernel(u: wp.array(dtype=wp.vec2), most: float, out: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    speed = wp.length(u[i]) + 1.0e-6
    out[i] = u[i] * (most * wp.tanh(speed / most) / speed)


@wp.kernel
def drift_kernel(x: wp.array(dtype=wp.vec2), u: wp.array(dtype=wp.vec2), dt: float, out: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    out[i] = x[i] + dt * u[i]


def current(x, strength):
    u = wp.zeros(x.size, dtype=wp.vec2, requires_grad=True)
    wp.launch(current_kernel, x.size, inputs=[x, strength], outputs=[u])
    return u


def limited(u, most, cheap=True):
    """The speed limited; the cheap form keeps the launch overhead low."""
    out = wp.zeros(u.size, dtype=wp.vec2, requires_grad=True)
    wp.launch(limit_kernel, u.size, inputs=[u, most], outputs=[out], record_tape=not cheap)
    return out


def drift(x, u, dt):
    out = wp.zeros(x.size, dtype=wp.vec2, requires_grad=True)
    wp.launch(drift_kernel, x.size, inputs=[x, u, dt], outputs=[out])
    return out
