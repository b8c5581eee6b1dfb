"""Implicit advection-dispersion of a tracer along a river reach of varying width."""
import numpy as np
import warp as wp

from banded import thomas

F = wp.float64


@wp.kernel
def assemble(
    log_disp: wp.array(dtype=F),
    log_speed: wp.array(dtype=F),
    area: wp.array(dtype=F),
    dx: F,
    dt: F,
    low: wp.array(dtype=F),
    diag: wp.array(dtype=F),
    up: wp.array(dtype=F),
):
    """Upwind advection, central dispersion; each third of the reach has its own coefficients."""
    i = wp.tid()
    n = area.shape[0]
    zone = (i * 3) / n
    speed = wp.exp(log_speed[zone]) / area[i]
    disp = wp.exp(log_disp[zone])
    west = dt * (speed / dx + disp / (dx * dx))
    east = dt * disp / (dx * dx)
    low[i] = -west
    up[i] = -east
    if i == 0:
        diag[i] = F(1.0) + west + east - dt * disp / (dx * dx)
    elif i == n - 1:
        diag[i] = F(1.0) + west
    else:
        diag[i] = F(1.0) + west + east


@wp.kernel
def inject(c: wp.array(dtype=F), source: wp.array(dtype=F), amount: F, rhs: wp.array(dtype=F)):
    i = wp.tid()
    rhs[i] = c[i] + amount * source[i]


@wp.kernel
def station_misfit(
    c: wp.array(dtype=F), station: wp.array(dtype=int), seen: wp.array2d(dtype=F), step: int, out: wp.array(dtype=F)
):
    s = wp.tid()
    r = c[station[s]] - seen[step, s]
    wp.atomic_add(out, 0, r * r)


def implicit_step(low, diag, up, rhs, x, tape=None):
    """x = M^-1 rhs on the host, with its adjoint put on the tape."""
    lo, di, hi = low.numpy().copy(), diag.numpy().copy(), up.numpy().copy()
    sol = thomas(lo, di, hi, rhs.numpy())
    x.assign(sol)
    if tape is None:
        return

    def backward():
        lam = thomas(hi, di, lo, x.grad.numpy())
        rhs.grad.assign(rhs.grad.numpy() + lam)
        diag.grad.assign(diag.grad.numpy() - lam * sol)
        low.grad.assign(low.grad.numpy() - lam * np.concatenate([[0.0], sol[:-1]]))
        up.grad.assign(up.grad.numpy() - lam * np.concatenate([sol[1:], [0.0]]))
        x.grad.zero_()

    tape.record_func(backward, [low, diag, up, rhs, x])


class Reach:
    def __init__(self, cfg):
        self.cfg = cfg
        n = cfg.cells
        s = np.linspace(0.0, 1.0, n)
        self.area = wp.array(1.0 + 0.5 * np.sin(9.0 * s) + 0.3 * s, dtype=F)
        self.source = wp.array(np.exp(-0.5 * ((s - 0.08) / 0.03) ** 2), dtype=F)
        self.station = wp.array([n // 4, n // 2, (4 * n) // 5], dtype=int)
        self.seen = wp.zeros((cfg.steps, 3), dtype=F)
        self.dx = 1.0 / n

    def amount(self, k):
        return 1.0 if k < self.cfg.release else 0.0

    def _new(self, n, grad):
        return wp.zeros(n, dtype=F, requires_grad=grad)

    def simulate(self, log_disp, log_speed, out, tape=None, record=None):
        cfg, n = self.cfg, self.cfg.cells
        grad = tape is not None
        low, diag, up = (self._new(n, grad) for _ in range(3))
        wp.launch(
            assemble,
            n,
            inputs=[log_disp, log_speed, self.area, F(self.dx), F(cfg.dt)],
            outputs=[low, diag, up],
        )
        c = self._new(n, grad)
        for k in range(cfg.steps):
            rhs = self._new(n, grad)
            c_new = self._new(n, grad)
            wp.launch(inject, n, inputs=[c, self.source, F(self.amount(k))], outputs=[rhs])
            implicit_step(low, diag, up, rhs, c_new, tape)
            c = c_new
            if record is not None:
                record.append(c.numpy()[self.station.numpy()])
            else:
                wp.launch(station_misfit, 3, inputs=[c, self.station, self.seen, k], outputs=[out])

    def survey(self, truth, noise, seed):
        record = []
        self.simulate(wp.array(truth[:3], dtype=F), wp.array(truth[3:], dtype=F), None, record=record)
        clean = np.array(record)
        self.seen.assign(clean + np.random.default_rng(seed).normal(0.0, noise, clean.shape))

    def objective(self, theta):
        out = wp.zeros(1, dtype=F)
        self.simulate(wp.array(theta[:3], dtype=F), wp.array(theta[3:], dtype=F), out)
        return float(out.numpy()[0])

    def gradient(self, theta):
        d = wp.array(theta[:3], dtype=F, requires_grad=True)
        s = wp.array(theta[3:], dtype=F, requires_grad=True)
        out = wp.zeros(1, dtype=F, requires_grad=True)
        with wp.Tape() as tape:
            self.simulate(d, s, out, tape)
        tape.backward(out)
        return float(out.numpy()[0]), np.concatenate([d.grad.numpy(), s.grad.numpy()])
