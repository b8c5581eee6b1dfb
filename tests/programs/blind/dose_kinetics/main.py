"""Population pharmacokinetics: covariates give individual rates (stage one), rates give plasma
curves (stage two). The stages are recorded on separate tapes and linked by hand."""

import numpy as np
import warp as wp
from warp.optim import Adam

PATIENTS, TIMES = 10, 30


@wp.kernel
def individual(theta: wp.array2d(dtype=float), cov: wp.array2d(dtype=float), rate: wp.array2d(dtype=float)):
    p, k = wp.tid()
    z = theta[k, 0]
    for c in range(3):
        z += theta[k, c + 1] * cov[p, c]
    rate[p, k] = wp.exp(z)


@wp.kernel
def plasma_step(amount: wp.array2d(dtype=wp.vec2), rate: wp.array2d(dtype=float), t: int, dt: float):
    p = wp.tid()
    a = amount[t, p]
    absorbed = rate[p, 0] * a[0]
    amount[t + 1, p] = wp.vec2(a[0] - dt * absorbed, a[1] + dt * (absorbed - rate[p, 1] * a[1] / (1.0 + 0.3 * a[1])))


@wp.kernel
def curve_error(amount: wp.array2d(dtype=wp.vec2), seen: wp.array2d(dtype=float), norm: float, loss: wp.array(dtype=float)):
    t, p = wp.tid()
    d = amount[t + 1, p][1] - seen[t, p]
    wp.atomic_add(loss, 0, norm * d * d)


class Study:
    def __init__(self):
        rng = np.random.default_rng(12)
        self.cov = wp.array(rng.normal(0, 0.5, (PATIENTS, 3)).astype(np.float32), dtype=float)
        truth = wp.array([[-0.3, 0.3, -0.2, 0.1], [-1.2, 0.2, 0.4, -0.3]], dtype=float)
        self.seen = wp.array(self.curves(self.rates(truth)).numpy()[1:, :, 1].copy(), dtype=float)
        self.theta = wp.array([[0.2, 0.0, 0.0, 0.0], [-0.8, 0.0, 0.0, 0.0]], dtype=float, requires_grad=True)
        self.opt = Adam([self.theta.flatten()], lr=0.06)

    def rates(self, theta):
        rate = wp.zeros((PATIENTS, 2), dtype=float, requires_grad=True)
        wp.launch(individual, dim=rate.shape, inputs=[theta, self.cov], outputs=[rate])
        return rate

    def curves(self, rate):
        start = np.zeros((TIMES + 1, PATIENTS, 2), dtype=np.float32)
        start[0, :, 0] = 2.0
        amount = wp.array(start, dtype=wp.vec2, requires_grad=True)
        for t in range(TIMES):
            wp.launch(plasma_step, dim=PATIENTS, inputs=[amount, rate, t, 0.2])
        return amount

    def iterate(self):
        first = wp.Tape()
        with first:
            rate = self.rates(self.theta)
        local = wp.array(rate.numpy(), dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        second = wp.Tape()
        with second:
            amount = self.curves(local)
            wp.launch(curve_error, dim=self.seen.shape, inputs=[amount, self.seen, 50.0 / self.seen.size], outputs=[self.loss])
        second.backward(self.loss)
        first.backward(grads={rate: local.grad})
        self.apply()
        self.theta.grad.zero_()
        return float(self.loss.numpy()[0])

    def apply(self):
        self.opt.step([self.theta.grad.flatten()])


def main():
    study = Study()
    for it in range(10):
        print(f"{it} misfit {study.iterate():.5f}")
    print(np.round(study.theta.numpy(), 3))


if __name__ == "__main__":
    main()
