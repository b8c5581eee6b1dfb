"""Align the planes of a muon telescope: hits inside the acceptance are compacted into a list, then compared with the log."""
import numpy as np
import warp as wp

MUONS = 64
PLANES = 3


@wp.func
def claim_slot(counter: wp.array(dtype=int), ticket: wp.array(dtype=int), thread: int):
    slot = wp.atomic_add(counter, 0, 1)
    ticket[thread] = slot
    return slot


@wp.func_replay(claim_slot)
def claim_slot_again(counter: wp.array(dtype=int), ticket: wp.array(dtype=int), thread: int):
    return ticket[thread]


@wp.kernel
def collect_hits(
    origin: wp.array(dtype=wp.vec2),
    slope: wp.array(dtype=wp.vec2),
    height: wp.array(dtype=float),
    plane_shift: wp.array(dtype=wp.vec2),
    plane_tilt: wp.array(dtype=float),
    accept: wp.array2d(dtype=int),
    counter: wp.array(dtype=int),
    ticket: wp.array(dtype=int),
    hit: wp.array(dtype=wp.vec2),
    owner: wp.array(dtype=int),
):
    m, p = wp.tid()
    if accept[m, p] == 0:
        return
    at = origin[m] + slope[m] * height[p]
    c = wp.cos(plane_tilt[p])
    s = wp.sin(plane_tilt[p])
    d = at - plane_shift[p]
    slot = claim_slot(counter, ticket, m * PLANES + p)
    hit[slot] = wp.vec2(c * d[0] + s * d[1], -s * d[0] + c * d[1])
    owner[slot] = m * PLANES + p


@wp.kernel
def misalignment(
    hit: wp.array(dtype=wp.vec2),
    owner: wp.array(dtype=int),
    log: wp.array(dtype=wp.vec2),
    counter: wp.array(dtype=int),
    out: wp.array(dtype=float),
):
    i = wp.tid()
    if i < counter[0]:
        d = hit[i] - log[owner[i]]
        wp.atomic_add(out, 0, 10.0 * (wp.sqrt(1.0 + wp.dot(d, d) * 4.0) - 1.0))


rng = np.random.default_rng(21)
ORIGIN = rng.uniform(-1.0, 1.0, (MUONS, 2))
SLOPE = rng.normal(0.0, 0.4, (MUONS, 2))
HEIGHT = np.array([0.0, 1.0, 2.2])
SHIFT = np.array([[0.05, -0.10], [-0.15, 0.08], [0.2, 0.12]])
TILT = np.array([0.04, -0.1, 0.15])


def readout():
    at = ORIGIN[:, None] + SLOPE[:, None] * HEIGHT[None, :, None] - SHIFT
    c, s = np.cos(TILT), np.sin(TILT)
    log = np.stack([c * at[..., 0] + s * at[..., 1], -s * at[..., 0] + c * at[..., 1]], -1)
    accept = (np.abs(log) < 1.2).all(-1).astype(np.int32)
    return log.reshape(-1, 2) + rng.normal(0.0, 0.01, (MUONS * PLANES, 2)), accept


class Telescope:
    def __init__(self):
        log, accept = readout()
        cells = MUONS * PLANES
        self.track = [wp.array(ORIGIN, dtype=wp.vec2), wp.array(SLOPE, dtype=wp.vec2), wp.array(HEIGHT, dtype=float)]
        self.accept = wp.array(accept, dtype=int)
        self.log = wp.array(log, dtype=wp.vec2)
        self.counter = wp.zeros(1, dtype=int)
        self.ticket = wp.zeros(cells, dtype=int)
        self.hit = wp.zeros(cells, dtype=wp.vec2, requires_grad=True)
        self.owner = wp.zeros(cells, dtype=int)
        self.out = wp.zeros(1, dtype=float, requires_grad=True)
        self.shift = wp.zeros(PLANES, dtype=wp.vec2, requires_grad=True)
        self.tilt = wp.zeros(PLANES, dtype=float, requires_grad=True)
        self.quick = None

    def set(self, p):
        self.shift.assign(p[: 2 * PLANES].reshape(PLANES, 2).astype(np.float32))
        self.tilt.assign(p[2 * PLANES :].astype(np.float32))
        self.counter.zero_()
        self.out.zero_()

    def collect(self, **kw):
        ins = [*self.track, self.shift, self.tilt, self.accept, self.counter, self.ticket]
        return wp.launch(collect_hits, (MUONS, PLANES), inputs=ins, outputs=[self.hit, self.owner], **kw)

    def compare(self, **kw):
        ins = [self.hit, self.owner, self.log, self.counter]
        return wp.launch(misalignment, MUONS * PLANES, inputs=ins, outputs=[self.out], **kw)

    def loss_at(self, p):
        """Value only: the two launches are prepared once and played back."""
        if self.quick is None:
            self.quick = [self.collect(record_cmd=True), self.compare(record_cmd=True)]
        self.set(p)
        for cmd in self.quick:
            cmd.launch()
        return float(self.out.numpy()[0])

    def grad_at(self, p):
        self.set(p)
        with wp.Tape() as tape:
            self.collect()
            self.compare()
        tape.backward(self.out)
        g = np.concatenate([self.shift.grad.numpy().ravel(), self.tilt.grad.numpy()]).astype(float)
        tape.zero()
        return g


if __name__ == "__main__":
    scope = Telescope()
    p = np.zeros(3 * PLANES)
    for it in range(40):
        g = scope.grad_at(p)
        if it % 8 == 0:
            print(f"{it:3d} loss={scope.loss_at(p):.5f} |g|={np.linalg.norm(g):.4f} hits={scope.counter.numpy()[0]}")
        p = p - 3.0e-4 * g
    print("shift", np.round(p[:6].reshape(3, 2), 3).tolist(), "tilt", np.round(p[6:], 3))
