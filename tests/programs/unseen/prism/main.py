"""Bend a beam through a row of prisms so that all colours leave in the same direction."""
import numpy as np
import warp as wp

PRISMS = 4
COLOURS = 5


@wp.kernel
def pass_prism(beam: wp.array(dtype=wp.vec3), apex: wp.array(dtype=float), k: int, out: wp.array(dtype=wp.vec3)):
    c = wp.tid()
    index = 1.5 + 0.03 * float(c)
    b = beam[c]
    b[0] = b[0] + 0.3 * b[1]
    b[1] = b[1] + (index - 1.0) * wp.sin(apex[k]) * (1.0 + 0.5 * b[0] * b[0])
    b[2] = b[2] + b[1] * b[1]
    b[1] = b[1] / (1.0 + b[2])
    out[c] = b


@wp.kernel
def spread(beam: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    c = wp.tid()
    d = beam[c][1] - 0.2
    wp.atomic_add(loss, 0, d * d + 0.05 * beam[c][0] * beam[c][0])


apex = wp.array([0.3, -0.2, 0.4, -0.1], dtype=float, requires_grad=True)
beams = [wp.zeros(COLOURS, dtype=wp.vec3, requires_grad=True) for _ in range(PRISMS + 1)]
beams[0].fill_(wp.vec3(0.2, 0.1, 0.0))
loss = wp.zeros(1, dtype=float, requires_grad=True)

for adjust in range(10):
    loss.zero_()
    tape = wp.Tape()
    with tape:
        for k in range(PRISMS):
            wp.launch(pass_prism, COLOURS, inputs=[beams[k], apex, k], outputs=[beams[k + 1]])
        wp.launch(spread, COLOURS, inputs=[beams[-1]], outputs=[loss])
    tape.backward(loss)
    nudge = apex.grad.numpy().copy()
    tape.zero()
    print(f"adjust {adjust}: spread {loss.numpy()[0]:.6f} nudge {nudge}")
    apex.assign(apex.numpy() - 0.4 * nudge)
