"""Calibrate gains and position offsets of a microphone array from chirps of known level and position."""
import numpy as np
import warp as wp

MICS = 6
SHOTS = 30


@wp.struct
class Mics:
    where: wp.array(dtype=wp.vec3)
    offset: wp.array(dtype=wp.vec3)
    gain_db: wp.array(dtype=float)


@wp.kernel
def level_residual(
    mics: Mics,
    source: wp.array(dtype=wp.vec3),
    level: wp.array2d(dtype=float),
    sigma: wp.array(dtype=float),
    res: wp.array2d(dtype=float),
):
    s, m = wp.tid()
    d = wp.length(source[s] - mics.where[m] - mics.offset[m])
    model = mics.gain_db[m] - 20.0 * wp.log(d) / wp.log(10.0) - 0.02 * d
    res[s, m] = (model - level[s, m]) / sigma[s]


rng = np.random.default_rng(11)
WHERE = np.stack([np.cos(np.arange(MICS)), np.sin(np.arange(MICS)), 0.1 * np.arange(MICS)], axis=1)
SOURCE = rng.uniform(-3.0, 3.0, (SHOTS, 3)) + np.array([0.0, 0.0, 4.0])
SIGMA = np.where(np.arange(SHOTS) % 3 == 0, 0.25, 1.5)
TRUE_GAIN = rng.normal(0.0, 1.5, MICS)
TRUE_OFFSET = rng.normal(0.0, 0.05, (MICS, 3))


def synth_levels():
    d = np.linalg.norm(SOURCE[:, None] - WHERE[None] - TRUE_OFFSET[None], axis=2)
    clean = TRUE_GAIN - 20.0 * np.log10(d) - 0.02 * d
    return clean + SIGMA[:, None] * np.random.default_rng(12).normal(0.0, 1.0, clean.shape)


class Calibration:
    def __init__(self):
        self.source = wp.array(SOURCE, dtype=wp.vec3)
        self.level = wp.array(synth_levels(), dtype=float)
        self.sigma = wp.array(SIGMA, dtype=float)
        self.res = wp.zeros((SHOTS, MICS), dtype=float, requires_grad=True)
        self.mics = Mics()
        self.mics.where = wp.array(WHERE, dtype=wp.vec3)
        self.mics.offset = wp.zeros(MICS, dtype=wp.vec3, requires_grad=True)
        self.mics.gain_db = wp.zeros(MICS, dtype=float, requires_grad=True)

    def set(self, theta):
        self.mics.gain_db.assign(theta[:MICS].astype(np.float32))
        self.mics.offset.assign(theta[MICS:].reshape(MICS, 3).astype(np.float32))

    def residual(self, theta):
        self.set(theta)
        wp.launch(
            level_residual,
            (SHOTS, MICS),
            inputs=[self.mics, self.source, self.level, self.sigma],
            outputs=[self.res],
        )
        return self.res.numpy()

    def objective(self, theta):
        """Chi-square per datum plus a prior of 10 cm on the offsets."""
        r = self.residual(theta).astype(float)
        return np.mean(r**2) + np.mean((theta[MICS:] / 0.1) ** 2)

    def gradient(self, theta):
        tape = wp.Tape()
        with tape:
            r = self.residual(theta)
        adjoint = 2.0 * r / SIGMA[:, None] / r.size
        tape.backward(grads={self.res: wp.array(adjoint, dtype=float)})
        g = np.concatenate([self.mics.gain_db.grad.numpy(), self.mics.offset.grad.numpy().ravel()]).astype(float)
        tape.zero()
        g[MICS:] += 2.0 * theta[MICS:] / 0.1**2 / theta[MICS:].size
        return g


if __name__ == "__main__":
    cal = Calibration()
    theta = np.zeros(4 * MICS)
    step = np.concatenate([np.full(MICS, 0.04), np.full(3 * MICS, 4.0e-4)])
    for it in range(100):
        g = cal.gradient(theta)
        if it % 20 == 0:
            print(f"{it:3d} objective={cal.objective(theta):9.4f} gains={np.round(theta[:MICS], 2)}")
        theta = theta - step * g
    print("gain error (dB):", np.round(theta[:MICS] - TRUE_GAIN, 3))
