"""Conductivity of a plate from its power loss: a field of finite elements, integrated on the tape."""
import numpy as np
import warp as wp
import warp.fem as fem


@fem.integrand
def power(s: fem.Sample, domain: fem.Domain, k: fem.Field, u: fem.Field):
    g = fem.grad(u, s)
    return wp.exp(k(s)) * wp.dot(g, g)


@wp.kernel
def misfit(p: wp.array(dtype=float), wanted: float, loss: wp.array(dtype=float)):
    loss[0] = (p[0] - wanted) * (p[0] - wanted)


@wp.kernel
def descend(x: wp.array(dtype=float), g: wp.array(dtype=float), rate: float):
    i = wp.tid()
    x[i] = x[i] - rate * g[i]


wp.init()
geo = fem.Grid2D(res=wp.vec2i(4))
domain = fem.Cells(geo)
space = fem.make_polynomial_space(geo, degree=1)
k, u = space.make_field(), space.make_field()
n = space.node_count()
k.dof_values = wp.array(0.1 * np.sin(np.arange(n)), dtype=float, requires_grad=True)
u.dof_values = wp.array(np.cos(0.3 * np.arange(n)), dtype=float)
total = wp.zeros(1, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
for it in range(3):
    total.zero_()
    tape = wp.Tape()
    with tape:
        fem.integrate(power, domain=domain, fields={"k": k, "u": u}, output=total)
        wp.launch(misfit, 1, inputs=[total, 20.0], outputs=[loss])
    tape.backward(loss)
    wp.launch(descend, n, inputs=[k.dof_values, k.dof_values.grad, 1e-5])
    tape.zero()
    print(it, loss.numpy()[0])
