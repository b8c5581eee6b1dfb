"""Shape of a bracket by gradient descent with a backtracking line search."""
import numpy as np
import warp as wp

BARS = 5


@wp.kernel
def deflect(area: wp.array(dtype=float), u: wp.array(dtype=float)):
    b = wp.tid()
    load = 1.0 + 0.3 * float(b)
    soft = load / (0.1 + area[b] * area[b])
    if b > 0:
        soft += 0.2 * load / (0.1 + area[b - 1])
    u[b] = soft


@wp.kernel
def compliance(area: wp.array(dtype=float), u: wp.array(dtype=float), cost: wp.array(dtype=float)):
    b = wp.tid()
    wp.atomic_add(cost, 0, 0.1 * u[b] * u[b] + area[b])


class Bracket:
    def __init__(self):
        self.area = wp.array(np.linspace(0.7, 1.3, BARS), dtype=float, requires_grad=True)

    def cost_of(self):
        u = wp.zeros(BARS, dtype=float, requires_grad=True)
        cost = wp.zeros(1, dtype=float, requires_grad=True)
        wp.launch(deflect, BARS, inputs=[self.area], outputs=[u])
        wp.launch(compliance, BARS, inputs=[self.area, u], outputs=[cost])
        return cost

    def improve(self):
        tape = wp.Tape()
        with tape:
            cost = self.cost_of()
        tape.backward(cost)
        g = self.area.grad.numpy().copy()
        tape.zero()
        here, t = self.area.numpy().copy(), 1.0
        f0 = float(cost.numpy()[0])
        while t > 1e-4:
            self.area.assign(np.maximum(here - t * g, 0.05))
            if float(self.cost_of().numpy()[0]) < f0 - 0.3 * t * float(g @ g):
                break
            t *= 0.5
        return f0, t


bracket = Bracket()
for design in range(10):
    f, t = bracket.improve()
    print(f"design {design}: cost {f:.5f} step {t}")
