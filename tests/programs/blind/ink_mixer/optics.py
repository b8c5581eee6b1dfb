"""Mixing of inks: pigment fractions are normalised and a Kubelka-Munk ratio gives the reflectance."""

import warp as wp


@wp.kernel
def raw_amounts(logits: wp.array2d(dtype=float), amount: wp.array2d(dtype=float)):
    p, k = wp.tid()
    amount[p, k] = wp.exp(logits[p, k])


@wp.kernel
def patch_total(amount: wp.array2d(dtype=float), total: wp.array(dtype=float)):
    p, k = wp.tid()
    wp.atomic_add(total, p, amount[p, k])


@wp.kernel
def normalise(amount: wp.array2d(dtype=float), total: wp.array(dtype=float)):
    p, k = wp.tid()
    amount[p, k] /= total[p]


@wp.kernel
def reflectance(
    frac: wp.array2d(dtype=float),
    absorb: wp.array2d(dtype=float),
    scatter: wp.array(dtype=float),
    refl: wp.array2d(dtype=float),
):
    p, w = wp.tid()
    kk = float(0.0)
    ss = float(0.3)
    for k in range(4):
        kk += frac[p, k] * absorb[k, w]
        ss += frac[p, k] * scatter[k]
    q = kk / ss
    refl[p, w] = 1.0 + q - wp.sqrt(q * q + 2.0 * q)


@wp.kernel
def colour_error(refl: wp.array2d(dtype=float), target: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    p, w = wp.tid()
    d = refl[p, w] - target[p, w]
    wp.atomic_add(loss, 0, d * d)
