"""Retrieve an aerosol extinction profile from elastic-lidar returns (single scattering, several zenith angles)."""
import numpy as np
import warp as wp

GATES = 12
BEAMS = 5
DR = 0.25
RATIO = 0.05


@wp.func
def return_energy(sigma: wp.array(dtype=float), first: int, last: int, path: float):
    """Energy scattered back from the gates first..last-1; the light is attenuated on the way up and down."""
    t = float(1.0)
    energy = float(0.0)
    for g in range(last):
        tau = sigma[g] * path
        t_mid = t * wp.exp(-tau)
        if g >= first:
            energy += RATIO * sigma[g] * t_mid * path
        t = t_mid * wp.exp(-tau)
    return energy


@wp.kernel
def synthesise(
    sigma: wp.array(dtype=float),
    slant: wp.array(dtype=float),
    signal: wp.array2d(dtype=float),
):
    b, k = wp.tid()
    path = DR * slant[b]
    signal[b, k] = return_energy(sigma, 2 * k, 2 * k + 2, path)


@wp.kernel
def compare(
    signal: wp.array2d(dtype=float),
    record: wp.array2d(dtype=float),
    chi2: wp.array(dtype=float),
):
    b, k = wp.tid()
    r = wp.log(signal[b, k]) - wp.log(record[b, k])
    wp.atomic_add(chi2, 0, r * r)


@wp.kernel
def roughness(sigma: wp.array(dtype=float), weight: float, chi2: wp.array(dtype=float)):
    i = wp.tid()
    d = sigma[i + 1] - sigma[i]
    wp.atomic_add(chi2, 0, weight * d * d)


ZENITH = np.deg2rad(np.linspace(0.0, 60.0, BEAMS))
SLANT = wp.array(1.0 / np.cos(ZENITH), dtype=float)
BINS = GATES // 2
TRUE = 0.35 + 0.55 * np.exp(-0.5 * ((np.arange(GATES) - 6.0) / 1.5) ** 2)


def forward(sigma, record, chi2):
    signal = wp.zeros((BEAMS, BINS), dtype=float, requires_grad=sigma.requires_grad)
    wp.launch(synthesise, (BEAMS, BINS), inputs=[sigma, SLANT], outputs=[signal])
    if record is not None:
        wp.launch(compare, (BEAMS, BINS), inputs=[signal, record], outputs=[chi2])
        wp.launch(roughness, GATES - 1, inputs=[sigma, 0.05], outputs=[chi2])
    return signal


def measure():
    clean = forward(wp.array(TRUE, dtype=float), None, None).numpy()
    noise = np.random.default_rng(7).normal(0.0, 0.01, clean.shape)
    return wp.array(clean * np.exp(noise), dtype=float)


def loss_at(x, record):
    chi2 = wp.zeros(1, dtype=float)
    forward(wp.array(x, dtype=float), record, chi2)
    return float(chi2.numpy()[0])


def grad_at(x, record):
    sigma = wp.array(x, dtype=float, requires_grad=True)
    chi2 = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        forward(sigma, record, chi2)
    tape.backward(loss=chi2)
    return sigma.grad.numpy().copy()


if __name__ == "__main__":
    record = measure()
    x = np.full(GATES, 0.5)
    for it in range(120):
        g = grad_at(x, record)
        if it % 20 == 0:
            print(f"{it:4d} chi2={loss_at(x, record):.5f} |g|={np.linalg.norm(g):.4f} peak={x.max():.3f}")
        x = np.clip(x - 0.004 * g, 0.02, 3.0)
    print("retrieved", np.round(x, 2))
    print("true     ", np.round(TRUE, 2))
