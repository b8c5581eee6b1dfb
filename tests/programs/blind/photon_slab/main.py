"""Recover layer absorption from the measured reflectance and transmittance of a slab."""
import numpy as np
import warp as wp

from transport import Slab


@wp.kernel
def misfit(up: wp.array(dtype=float), down: wp.array(dtype=float), seen: wp.vec2, loss: wp.array(dtype=float)):
    a = wp.log(up[0]) - wp.log(seen[0])
    b = wp.log(down[0]) - wp.log(seen[1])
    loss[0] = a * a + b * b


def line_search(slab, absorb, seen, value, g):
    """Shortest of a few steps that lowers the misfit."""
    start = absorb.numpy()
    step = 0.4
    for _ in range(4):
        absorb.assign(start - step * g)
        trial = wp.zeros(1, dtype=float)
        wp.launch(misfit, dim=1, inputs=[*slab.shine(absorb), seen, trial])
        if trial.numpy()[0] < value:
            return step
        step *= 0.4
    absorb.assign(start)
    return 0.0


def main():
    slab = Slab()
    seen = wp.vec2(0.18, 0.22)
    absorb = wp.array(np.log([0.4, 0.8, 0.3]).astype(np.float32), dtype=float, requires_grad=True)
    for it in range(10):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            up, down = slab.shine(absorb)
            wp.launch(misfit, dim=1, inputs=[up, down, seen, loss])
        tape.backward(loss)
        g = absorb.grad.numpy().copy()
        tape.zero()
        value = float(loss.numpy()[0])
        step = line_search(slab, absorb, seen, value, g)
        print(f"{it} misfit {value:.5f} step {step:.3f} absorption {np.exp(absorb.numpy()).round(4)}")


if __name__ == "__main__":
    main()
