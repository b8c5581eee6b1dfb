"""Wave plates in a row: rotate each so that the light leaves circularly polarised at all wavelengths."""
import numpy as np
import warp as wp

PLATES = 4
WAVES = 5


@wp.kernel
def plate(stokes: wp.array(dtype=wp.vec3), angle: wp.array(dtype=float), k: int, out: wp.array(dtype=wp.vec3)):
    w = wp.tid()
    delay = 1.2 + 0.15 * float(w)
    s = stokes[w]
    c2 = wp.cos(2.0 * angle[k])
    s2 = wp.sin(2.0 * angle[k])
    q = c2 * s[0] + s2 * s[1]
    u = -s2 * s[0] + c2 * s[1]
    u2 = wp.cos(delay) * u + wp.sin(delay) * s[2]
    v2 = -wp.sin(delay) * u + wp.cos(delay) * s[2]
    out[w] = wp.vec3(c2 * q - s2 * u2, s2 * q + c2 * u2, v2)


@wp.kernel
def residual(stokes: wp.array(dtype=wp.vec3), linear: wp.array(dtype=float)):
    w = wp.tid()
    linear[w] = stokes[w][0] * stokes[w][0] + stokes[w][1] * stokes[w][1]


@wp.kernel
def mean(linear: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, linear[wp.tid()] / float(WAVES))


light = wp.array([[1.0, 0.0, 0.0]] * WAVES, dtype=wp.vec3)
angle = wp.array(np.array([0.1, 0.5, -0.3, 0.9]), dtype=float, requires_grad=True)

for turn in range(15):
    beam = [light] + [wp.zeros(WAVES, dtype=wp.vec3, requires_grad=True) for _ in range(PLATES)]
    linear = wp.zeros(WAVES, dtype=float, requires_grad=True)
    figure = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for k in range(PLATES):
            wp.launch(plate, WAVES, inputs=[beam[k], angle, k], outputs=[beam[k + 1]])
        wp.launch(residual, WAVES, inputs=[beam[PLATES]], outputs=[linear])
        wp.launch(mean, WAVES, inputs=[linear], outputs=[figure])
    tape.backward(figure, grads={linear: wp.ones(WAVES, dtype=float)})
    turn_by = angle.grad.numpy().copy()
    tape.zero()
    print(f"turn {turn:2d}  figure of merit {figure.numpy()[0]:.6f}")
    angle.assign(angle.numpy() - 0.05 * turn_by)
