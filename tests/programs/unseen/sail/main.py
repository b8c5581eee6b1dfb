"""Trim the sails of three boats: the lift curve stalls smoothly, its derivative is given by hand."""
import numpy as np
import warp as wp


@wp.func
def lift(a: float):
    return 5.0 * a / (1.0 + 8.0 * a * a)


@wp.func_grad(lift)
def adj_lift(a: float, adj_ret: float):
    q = 1.0 + 8.0 * a * a
    wp.adjoint[a] += adj_ret * (5.0 / q - 40.0 * a * a / (q * q))


@wp.kernel
def sail_step(trim: wp.array(dtype=float), v: wp.array2d(dtype=float), leg: int):
    b = wp.tid()
    speed = v[leg, b]
    drive = lift(trim[b] - 0.1 * speed)
    v[leg + 1, b] = speed + 0.2 * (drive - 0.6 * speed - 0.3 * speed * speed)


@wp.kernel
def lag(v: wp.array2d(dtype=float), legs: int, loss: wp.array(dtype=float)):
    b = wp.tid()
    wp.atomic_add(loss, 0, 1.0 / (0.2 + v[legs, b]))


class Regatta:
    LEGS = 12

    def __init__(self, trims):
        self.trim = wp.array(np.asarray(trims), dtype=float, requires_grad=True)

    def race(self):
        n = self.trim.size
        v = wp.zeros((self.LEGS + 1, n), dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        for leg in range(self.LEGS):
            wp.launch(sail_step, n, inputs=[self.trim, v, leg])
        wp.launch(lag, n, inputs=[v, self.LEGS, loss])
        return loss


regatta = Regatta([0.2, 0.35, 0.5])
for heat in range(10):
    tape = wp.Tape()
    with tape:
        loss = regatta.race()
    tape.backward(loss)
    change = regatta.trim.grad.numpy().copy()
    tape.zero()
    print(f"heat {heat}: {loss.numpy()[0]:.5f} trims {regatta.trim.numpy()}")
    regatta.trim.assign(regatta.trim.numpy() - 0.05 * change)
