"""Raman band model: every species is a set of Lorentzian bands; the instrument broadens and shifts them."""
import numpy as np
import warp as wp


@wp.struct
class Instrument:
    shift: wp.array(dtype=float)
    log_width: wp.array(dtype=float)
    log_gain: wp.array(dtype=float)


@wp.kernel
def add_bands(
    species: wp.array(dtype=int),
    centre: wp.array(dtype=float),
    strength: wp.array(dtype=float),
    instrument: Instrument,
    axis: wp.array(dtype=float),
    library: wp.array2d(dtype=float),
):
    b, k = wp.tid()
    s = species[b]
    w = wp.exp(instrument.log_width[s])
    d = (axis[k] - centre[b] - instrument.shift[s]) / w
    wp.atomic_add(library, s, k, strength[b] / (1.0 + d * d))


@wp.kernel
def mix(
    library: wp.array2d(dtype=float),
    fraction: wp.array2d(dtype=float),
    first: int,
    instrument: Instrument,
    spectrum: wp.array2d(dtype=float),
):
    i, k = wp.tid()
    s = float(0.0)
    for j in range(wp.static(3)):
        s += fraction[first + i, j] * wp.exp(instrument.log_gain[j]) * library[j, k]
    spectrum[i, k] = s


@wp.kernel
def chi_square(
    spectrum: wp.array2d(dtype=float),
    counts: wp.array2d(dtype=float),
    first: int,
    scale: float,
    chi2: wp.array(dtype=float),
):
    i, k = wp.tid()
    r = spectrum[i, k] - counts[first + i, k]
    wp.atomic_add(chi2, 0, scale * r * r)


BANDS = [
    (0, 4.0, 1.0),
    (0, 11.0, 0.6),
    (0, 15.5, 0.3),
    (1, 5.2, 0.8),
    (1, 9.0, 0.9),
    (2, 7.0, 0.7),
    (2, 12.3, 1.1),
    (2, 17.0, 0.4),
]


def axis(points):
    return np.linspace(0.0, 20.0, points)


def reference(points, shift, log_width, log_gain):
    out = np.zeros((3, points))
    for s, c, a in BANDS:
        d = (axis(points) - c - shift[s]) / np.exp(log_width[s])
        out[s] += np.exp(log_gain[s]) * a / (1.0 + d * d)
    return out
