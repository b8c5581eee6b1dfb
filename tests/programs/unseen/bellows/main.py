"""Air through three bellows, each on its own tape; the adjoint is handed from one to the next, both parts of it."""

import numpy as np
import warp as wp

CELLS = 16
STROKES = 6


@wp.kernel
def squeeze(
    p: wp.array(dtype=wp.float64), m: wp.array(dtype=wp.float64), valve: wp.array(dtype=wp.float64),
    p_out: wp.array(dtype=wp.float64), m_out: wp.array(dtype=wp.float64),
):  # fmt: skip
    i = wp.tid()
    n = p.shape[0]
    flow = valve[i % 4] * (p[(i + 1) % n] - p[i]) * m[i]
    p_out[i] = p[i] + wp.float64(0.2) * flow
    m_out[i] = m[i] + wp.float64(0.1) * wp.sin(flow + p[i])


@wp.kernel
def loudness(p: wp.array(dtype=wp.float64), m: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    d = p[i] * m[i] - wp.float64(0.7)
    wp.atomic_add(loss, 0, d * d)


class Air:
    def __init__(self, p=None, m=None):
        self.p = wp.zeros(CELLS, dtype=wp.float64, requires_grad=True) if p is None else wp.array(p, dtype=wp.float64, requires_grad=True)
        self.m = wp.zeros(CELLS, dtype=wp.float64, requires_grad=True) if m is None else wp.array(m, dtype=wp.float64, requires_grad=True)


def pump(air, valve):
    chain = [air]
    for _ in range(STROKES):
        chain.append(Air())
        a, b = chain[-2:]
        wp.launch(squeeze, CELLS, inputs=[a.p, a.m, valve], outputs=[b.p, b.m])
    return chain


def main():
    valve = wp.array([0.4, 0.9, 0.6, 0.3], dtype=wp.float64, requires_grad=True)
    x = np.linspace(0.0, 3.0, CELLS)
    for it in range(5):
        air = Air(1.0 + 0.3 * np.sin(x), 0.8 + 0.2 * np.cos(x))
        loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        tapes, chains = [], []
        for k in range(3):
            tape = wp.Tape()
            with tape:
                chains.append(pump(air, valve))
                if k == 2:
                    wp.launch(loudness, CELLS, inputs=[chains[-1][-1].p, chains[-1][-1].m], outputs=[loss])
            tapes.append(tape)
            air = chains[-1][-1]
        wp.copy(chains[0][2].p, wp.clone(chains[0][2].p))
        tapes[2].backward(loss)
        for k in (1, 0):
            end = chains[k][-1]
            tapes[k].backward(grads={end.p: wp.clone(end.p.grad), end.m: wp.clone(end.m.grad)})
        g = valve.grad.numpy().copy()
        for tape in tapes:
            tape.zero()
        valve.assign(valve.numpy() - 0.05 * g)
        print(f"stroke {it}: {loss.numpy()[0]:.8f}")


if __name__ == "__main__":
    main()
