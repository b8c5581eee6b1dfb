"""Shape the tension of a drum skin; heavy-ball steps; the energy is watched on the side."""
import numpy as np
import warp as wp

N = 6
STEPS = 14


@wp.kernel
def wave(z: wp.array3d(dtype=float), tension: wp.array2d(dtype=float), t: int):
    i, j = wp.tid()
    here = z[t, i, j]
    if i == 0 or j == 0 or i == N - 1 or j == N - 1:
        z[t + 1, i, j] = 0.0
    else:
        bend = z[t, i - 1, j] + z[t, i + 1, j] + z[t, i, j - 1] + z[t, i, j + 1] - 4.0 * here
        z[t + 1, i, j] = 1.98 * here - 0.98 * z[t - 1, i, j] + 0.2 * tension[i, j] * (bend - here * here * here)


@wp.kernel(enable_backward=False)
def energy(z: wp.array3d(dtype=float), t: int, meter: wp.array(dtype=float)):
    i, j = wp.tid()
    v = z[t + 1, i, j] - z[t, i, j]
    wp.atomic_add(meter, t, v * v)


@wp.kernel
def timbre(z: wp.array3d(dtype=float), tension: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    d = z[STEPS, i, j] - z[STEPS, j, i]
    p = tension[i, j] - 1.0
    wp.atomic_add(loss, 0, z[STEPS, i, j] * z[STEPS, i, j] + d * d + 0.01 * p * p)


tension = wp.ones((N, N), dtype=float, requires_grad=True)
velocity = np.zeros((N, N))
strike = np.zeros((STEPS + 1, N, N), dtype=np.float32)
strike[:2, 2, 3] = 0.9
strike[:2, 1, 2] = 0.4

for beat in range(8):
    z = wp.array(strike, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    meter = wp.zeros(STEPS, dtype=float)
    with wp.Tape() as tape:
        for t in range(1, STEPS):
            wp.launch(wave, (N, N), inputs=[z, tension, t])
            wp.launch(energy, (N, N), inputs=[z, t], outputs=[meter])
        wp.launch(timbre, (N, N), inputs=[z, tension], outputs=[loss])
    tape.backward(loss)
    velocity = 0.8 * velocity - 0.05 * tension.grad.numpy()
    tape.zero()
    tension.assign(tension.numpy() + velocity)
    print(f"beat {beat}: loss {loss.numpy()[0]:.5f}  energy {meter.numpy()[1]:.4f} -> {meter.numpy()[-1]:.4f}")
