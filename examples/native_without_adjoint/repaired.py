"""Find a loudspeaker's resonance and damping from its loudness at eight tones."""
import numpy as np
import warp as wp

TONES = 8
ITERATIONS = 4
LEARNING_RATE = 0.05


@wp.func_native(
    snippet="return 1.0f / (1.0f + x * x);",
    adj_snippet="float y = 1.0f / (1.0f + x * x); adj_x += adj_ret * -2.0f * x * y * y;",
)
def lorentz(x: float) -> float: ...


@wp.kernel
def loudness(speaker: wp.array(dtype=float), tone: wp.array(dtype=float), loud: wp.array(dtype=float)):
    t = wp.tid()
    off = (tone[t] - speaker[0]) / speaker[1]
    loud[t] = lorentz(off) + 0.1 * speaker[0] * tone[t]


@wp.kernel
def misfit(loud: wp.array(dtype=float), measured: wp.array(dtype=float), loss: wp.array(dtype=float)):
    t = wp.tid()
    d = loud[t] - measured[t]
    wp.atomic_add(loss, 0, d * d)


tone = wp.array(np.linspace(0.4, 1.8, TONES), dtype=float)
loud = wp.zeros(TONES, dtype=float, requires_grad=True)
measured = wp.zeros(TONES, dtype=float)
wp.launch(loudness, TONES, inputs=[wp.array([0.9, 0.3], dtype=float), tone], outputs=[measured])
speaker = wp.array([1.1, 0.5], dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(loudness, TONES, inputs=[speaker, tone], outputs=[loud])
        wp.launch(misfit, TONES, inputs=[loud, measured], outputs=[loss])
    tape.backward(loss)

    slope = speaker.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  speaker {np.round(speaker.numpy(), 4)}  gradient {slope}")
    tape.zero()
    speaker.assign(speaker.numpy() - LEARNING_RATE * slope)
