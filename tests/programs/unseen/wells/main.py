"""Pumping tests: transmissivity field from drawdown in two campaigns, one fitted, one held back."""
import numpy as np
import warp as wp

CELLS = 8
SWEEPS = 10
np.set_printoptions(precision=4)


@wp.kernel
def relax(h: wp.array2d(dtype=float), logT: wp.array(dtype=float), pump: wp.array(dtype=float), k: int):
    i = wp.tid()
    here = wp.exp(logT[i])
    a = float(0.0)
    b = float(0.0)
    if i > 0:
        a = 0.5 * (here + wp.exp(logT[i - 1]))
        b = b + a * h[k, i - 1]
    if i < CELLS - 1:
        c = 0.5 * (here + wp.exp(logT[i + 1]))
        a = a + c
        b = b + c * h[k, i + 1]
    h[k + 1, i] = (b - pump[i]) / (a + 0.5 + 0.3 * h[k, i] * h[k, i])


@wp.kernel
def compare(h: wp.array2d(dtype=float), seen: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    d = h[SWEEPS, i] - seen[i]
    wp.atomic_add(out, 0, d * d)


class Aquifer:
    def __init__(self):
        self.h = wp.zeros((SWEEPS + 1, CELLS), dtype=float, requires_grad=True)
        self.misfit = wp.zeros(1, dtype=float, requires_grad=True)

    def run(self, logT, pump, seen):
        self.misfit.zero_()
        for k in range(SWEEPS):
            wp.launch(relax, CELLS, inputs=[self.h, logT, pump, k])
        wp.launch(compare, CELLS, inputs=[self.h, seen, self.misfit])
        return self.misfit


def campaign(where, rate, scale):
    pump = np.zeros(CELLS, dtype=np.float32)
    pump[where] = rate
    seen = -scale * np.exp(-0.4 * np.abs(np.arange(CELLS) - where))
    return wp.array(pump, dtype=float), wp.array(seen, dtype=float)


fitted = campaign(2, 1.0, 0.8)
held_back = campaign(5, 2.5, 1.5)
logT = wp.zeros(CELLS, dtype=float, requires_grad=True)
aquifer = Aquifer()

for it in range(12):
    tape = wp.Tape()
    with tape:
        misfit = aquifer.run(logT, *fitted)
    train = float(misfit.numpy()[0])
    check = float(aquifer.run(logT, *held_back).numpy()[0])
    tape.backward(misfit)
    g = logT.grad.numpy().copy()
    tape.zero()
    print(f"it {it}: fitted {train:.5f}  held back {check:.5f}  grad {g}")
    logT.assign(logT.numpy() - 0.3 * g)
