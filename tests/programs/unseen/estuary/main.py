"""Salt in an estuary: where along the shore was it released? Linear transport, two work arrays."""
import numpy as np
import warp as wp

REACHES = 20
TIDES = 24


@wp.kernel
def tide(c: wp.array(dtype=float), depth: wp.array(dtype=float), c_new: wp.array(dtype=float)):
    i = wp.tid()
    up = wp.max(i - 1, 0)
    dn = wp.min(i + 1, REACHES - 1)
    c_new[i] = c[i] + 0.25 * (c[up] - c[i]) / depth[i] + 0.1 * (c[dn] - 2.0 * c[i] + c[up])


@wp.kernel
def gauge(c: wp.array(dtype=float), seen: wp.array(dtype=float), sse: wp.array(dtype=float)):
    i = wp.tid()
    d = c[i] - seen[i]
    wp.atomic_add(sse, 0, d * d)


depth = wp.array(1.0 + 0.5 * np.sin(np.arange(REACHES)), dtype=float)
a = wp.zeros(REACHES, dtype=float, requires_grad=True)
b = wp.zeros(REACHES, dtype=float, requires_grad=True)
release = wp.full(REACHES, 0.1, dtype=float, requires_grad=True)
sse = wp.zeros(1, dtype=float, requires_grad=True)
seen = wp.array(np.exp(-0.1 * (np.arange(REACHES) - 12.0) ** 2), dtype=float)

for survey in range(10):
    sse.zero_()
    with wp.Tape() as tape:
        wp.copy(a, release)
        src, dst = a, b
        for _ in range(TIDES):
            wp.launch(tide, REACHES, inputs=[src, depth], outputs=[dst])
            src, dst = dst, src
        wp.launch(gauge, REACHES, inputs=[src, seen], outputs=[sse])
    tape.backward(sse)
    salt = release.numpy() - 0.3 * release.grad.numpy()
    tape.zero()
    release.assign(salt)
    print("survey", survey, "sse", sse.numpy()[0])
