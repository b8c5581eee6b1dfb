"""Small model files of the kind that a user hands over with --forward and --inputs."""

HEAD = """
import numpy as np
import warp as wp

"""

RIGHT = (
    HEAD
    + """
@wp.kernel
def swing(theta: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.sin(theta[i]) * theta[i])


def rollout(theta):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    wp.launch(swing, theta.shape[0], inputs=[theta], outputs=[loss])
    return loss


def make_inputs():
    return [wp.array(np.array([0.3, -0.8, 1.1]), dtype=float, requires_grad=True)]


def without_gradient():
    return [wp.array(np.array([0.3, -0.8, 1.1]), dtype=float)]
"""
)

WRONG = (
    HEAD
    + """
@wp.func
def drag(v: float):
    return v * v * v


@wp.func_grad(drag)
def adj_drag(v: float, adj_ret: float):
    wp.adjoint[v] += 2.0 * v * v * adj_ret


@wp.kernel
def fly(v: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, drag(v[i]))


def rollout(v):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    wp.launch(fly, v.shape[0], inputs=[v], outputs=[loss])
    return loss


def make_inputs():
    return [wp.array(np.array([0.7, 1.2, -0.9]), dtype=float, requires_grad=True)]
"""
)

# The gradient is right, but differences at a fixed step of 1e-4 drown: one ulp of the output is 0.0625.
LARGE = (
    HEAD
    + """
@wp.kernel
def heat(t: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = 1.0e6 + t[i] * t[i]


def rollout(t):
    out = wp.zeros(t.shape[0], dtype=float, requires_grad=True)
    wp.launch(heat, t.shape[0], inputs=[t], outputs=[out])
    return out


def make_inputs():
    return [wp.array(np.array([320.0, 410.0]), dtype=float, requires_grad=True)]
"""
)

# The same kernel, with arrays in a list, in a dictionary and in neither.
CONTAINERS = (
    RIGHT.split("def rollout")[0]
    + """
def rollout(angles, tuned, bias):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    for theta in (angles[1], tuned["bend"], bias):
        wp.launch(swing, theta.shape[0], inputs=[theta], outputs=[loss])
    return loss


def make_inputs():
    first, second, third, fourth = (
        wp.array(np.array(values), dtype=float, requires_grad=True) for values in ([9.0], [0.3, -0.8], [1.1], [0.5])
    )
    return [first, second], {"bend": third}, fourth
"""
)
