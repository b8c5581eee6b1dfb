"""Place the bob weights of a metronome; the fast period formula comes from an old C library."""
import numpy as np
import warp as wp

snippet = """
    float s = 1.0f + 0.0625f * a * a + 0.0114f * a * a * a * a;
    return 6.2831853f * sqrtf(l / 9.81f) * s;
"""


@wp.func_native(snippet)
def period(l: float, a: float) -> float: ...


@wp.kernel
def swing_time(bob: wp.array(dtype=float), swing: wp.array(dtype=float), beat: wp.array(dtype=float)):
    k = wp.tid()
    length = 0.2 + 0.1 * bob[k] * bob[k]
    beat[k] = period(length, swing[k])


@wp.kernel
def off_beat(beat: wp.array(dtype=float), bob: wp.array(dtype=float), wanted: wp.array(dtype=float), loss: wp.array(dtype=float)):
    k = wp.tid()
    d = beat[k] - wanted[k]
    wp.atomic_add(loss, 0, d * d + 0.002 * bob[k] * bob[k])


wanted = wp.array([1.0, 1.2, 1.5], dtype=float)
swing = wp.array([0.3, 0.5, 0.8], dtype=float)
bob = wp.array([0.8, 1.0, 1.1], dtype=float, requires_grad=True)

for tick in range(12):
    beat = wp.zeros(3, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(swing_time, 3, inputs=[bob, swing], outputs=[beat])
        wp.launch(off_beat, 3, inputs=[beat, bob, wanted], outputs=[loss])
    tape.backward(loss)
    bob.assign(bob.numpy() - 0.5 * bob.grad.numpy())
    tape.zero()
    print("tick", tick, "off beat", loss.numpy()[0], "bobs", bob.numpy())
