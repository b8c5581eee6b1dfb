"""Fit uptake and shading of a kelp forest to frond-biomass surveys (vertical column, self-shading canopy)."""
import numpy as np
import warp as wp

LAYERS = 12
DAYS = 60
DT = 1.0
DZ = 0.75
SURFACE = 1.0


@wp.kernel
def canopy_light(
    biomass: wp.array2d(dtype=float),
    shading: wp.array(dtype=float),
    light: wp.array2d(dtype=float),
):
    """Beer-Lambert: every layer sees the light left over by the layers above it."""
    site, z = wp.tid()
    above = float(0.0)
    for k in range(LAYERS):
        if k < z:
            above += biomass[site, k]
    light[site, z] = SURFACE * wp.exp(-shading[0] * DZ * (above + 0.5 * biomass[site, z]))


@wp.kernel
def grow(
    biomass: wp.array2d(dtype=float),
    light: wp.array2d(dtype=float),
    vital: wp.array(dtype=float),
    biomass_next: wp.array2d(dtype=float),
):
    site, z = wp.tid()
    b = biomass[site, z]
    e = light[site, z]
    gain = vital[0] * e / (e + vital[1])
    up = biomass[site, wp.max(z - 1, 0)]
    dn = biomass[site, wp.min(z + 1, LAYERS - 1)]
    biomass_next[site, z] = b + DT * (b * (gain - 0.04 - 0.02 * b) + 0.05 * (up + dn - 2.0 * b))


@wp.kernel
def survey_misfit(
    biomass: wp.array2d(dtype=float),
    survey: wp.array2d(dtype=float),
    misfit: wp.array(dtype=float),
):
    site, z = wp.tid()
    r = wp.log(biomass[site, z] / survey[site, z])
    wp.atomic_add(misfit, 0, r * r / float(LAYERS))


PLANTED = np.array([np.linspace(0.30, 0.10, LAYERS), np.linspace(0.15, 0.35, LAYERS)], dtype=np.float32)


def season(vital, shading, planted):
    b = wp.clone(planted)
    for _ in range(DAYS):
        light = wp.empty_like(planted)
        wp.launch(canopy_light, planted.shape, inputs=[b, shading], outputs=[light])
        b_next = wp.empty(planted.shape, dtype=float, requires_grad=vital.requires_grad)
        wp.launch(grow, planted.shape, inputs=[b, light, vital], outputs=[b_next])
        b = b_next
    return b


def make_survey():
    b = season(
        wp.array([0.16, 0.35], dtype=float),
        wp.array([0.30], dtype=float),
        wp.array(PLANTED, dtype=float),
    )
    return wp.array(b.numpy(), dtype=float)


def loss_at(p, survey):
    misfit = wp.zeros(1, dtype=float)
    b = season(wp.array(p[:2], dtype=float), wp.array(p[2:], dtype=float), wp.array(PLANTED, dtype=float))
    wp.launch(survey_misfit, PLANTED.shape, inputs=[b, survey], outputs=[misfit])
    return float(misfit.numpy()[0])


def grad_at(p, survey):
    vital = wp.array(p[:2], dtype=float, requires_grad=True)
    shading = wp.array(p[2:], dtype=float, requires_grad=True)
    planted = wp.array(PLANTED, dtype=float)
    misfit = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        b = season(vital, shading, planted)
        wp.launch(survey_misfit, PLANTED.shape, inputs=[b, survey], outputs=[misfit])
    tape.backward(misfit)
    return np.concatenate([vital.grad.numpy(), shading.grad.numpy()])


if __name__ == "__main__":
    survey = make_survey()
    p = np.array([0.12, 0.30, 0.30])
    for it in range(40):
        g = grad_at(p, survey)
        if it % 5 == 0:
            print(f"{it:3d} misfit={loss_at(p, survey):.5f} p={np.round(p, 4)} grad={np.round(g, 4)}")
        p = np.maximum(p - np.array([2e-5, 2e-4, 2e-4]) * g, 1e-3)
