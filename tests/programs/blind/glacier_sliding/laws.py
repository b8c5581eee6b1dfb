"""Friction and deformation laws. The sliding law is a native function because it is evaluated very
often and the compact form vectorises well."""

import warp as wp

_SLIDE = """
    float s = slope > 0.0f ? slope : 0.0f;
    float h3 = thick * thick * thick;
    return coeff * h3 * s / (1.0f + 4.0f * coeff * thick);
"""


@wp.func_native(_SLIDE)
def sliding(thick: float, slope: float, coeff: float) -> float: ...


@wp.func
def deformation(thick: float, slope: float, soft: float):
    h2 = thick * thick
    return soft * h2 * h2 * thick * slope * slope * slope
