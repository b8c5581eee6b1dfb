"""How a gradient is wrong, from elements and directions."""

import math

import numpy as np
import pytest

from warp_debug_gradients.probe.signature import growth, signature, whole_ratio

RIGHT = np.array([1.0, -2.0, 0.5, 3.0, -0.1, 0.7])
ERRORS = 1e-3 * np.abs(RIGHT)


def read(ad, fd=RIGHT, errors=ERRORS, **more):
    return signature(ad, fd, errors, **more)


def test_a_right_gradient_has_no_signature():
    assert read(RIGHT * (1 + 1e-3)).kind == "none"


def test_zero():
    assert read(0 * RIGHT).kind == "zero"


@pytest.mark.parametrize(
    ("factor", "named"), [(2.0, "2 times"), (3.0, "3 times"), (1 / 16, "1/16 times"), (-0.5, "-1/2")]
)
def test_whole_factors_are_named_exactly(factor, named):
    found = read(factor * RIGHT * (1 + 1e-3))
    assert (found.kind, found.factor) == ("factor", factor)
    assert named in found.message


def test_a_factor_that_is_no_whole_number():
    found = read(1.37 * RIGHT)
    assert (found.kind, found.factor) == ("factor", pytest.approx(1.37))


def test_sign():
    assert (read(-RIGHT).kind, read(-RIGHT).factor) == ("sign", -1.0)


def test_non_finite_elements_are_listed():
    ad = RIGHT.copy()
    ad[[1, 4]] = math.nan, math.inf
    found = read(ad)
    assert found.kind == "nonfinite"
    assert "1, 4" in found.message


def test_a_direction_that_is_not_finite_tells_of_elements_nobody_sampled():
    found = read(RIGHT, ad_directions=[math.nan], fd_directions=[1.0], fd_direction_errors=[1e-3])
    assert found.kind == "nonfinite"


def test_one_wrong_element_is_sparse():
    ad = RIGHT.copy()
    ad[2] *= 2
    found = read(ad)
    assert (found.kind, found.factor) == ("sparse", 2.0)
    assert "(2)" in found.message


def test_zero_in_part_is_sparse():
    ad = RIGHT.copy()
    ad[[0, 1, 2, 3]] = 0.0
    found = read(ad)
    assert (found.kind, found.factor) == ("sparse", 0.0)
    assert "zero in 4 of 6" in found.message


def test_right_elements_and_a_wrong_direction_are_sparse():
    found = read(RIGHT, ad_directions=[3.0], fd_directions=[2.0], fd_direction_errors=[1e-3])
    assert found.kind == "sparse"


def test_no_pattern_is_subtle():
    assert read(RIGHT * np.array([1.1, 0.8, 1.3, 0.7, 1.2, 0.5])).kind == "subtle"


def test_directions_alone_show_a_factor():
    found = signature([], [], [], [2.0, -4.0, 1.0], [1.0, -2.0, 0.5], [1e-3] * 3)
    assert (found.kind, found.factor) == ("factor", 2.0)


def test_two_ratios_are_too_few_for_a_factor():
    assert signature([], [], [], [2.0, 4.0], [1.0, 2.0], [1e-3] * 2).kind == "subtle"


def test_noise_is_no_factor():
    """Ratios that are unknown to 50 % fit every factor, so they name none."""
    found = read(2 * RIGHT, errors=0.2 * np.abs(RIGHT))
    assert found.kind in ("subtle", "none")


def test_unmeasured_elements_are_left_out():
    fd = RIGHT.copy()
    fd[0] = math.nan
    assert read(2 * RIGHT, fd=fd).factor == 2.0


def test_columns_must_fit():
    with pytest.raises(ValueError, match="belong together"):
        signature([1.0], [1.0, 2.0], [0.1])


# --- growth with the horizon: derivatives through the last ops of a tape


def parts(*errors, doubt=1e-4, ops=(5, 10, 20, 40)):
    """Rows whose AD is off by these parts of an FD that grows with the ops."""
    return [
        {"ops": n, "autodiff": (1.0 + e) * n, "finite_difference": float(n), "error": doubt * n}
        for n, e in zip(ops, errors)
    ]


def test_an_error_that_grows_with_the_horizon():
    found = growth(parts(0.01, 0.03, 0.09, 0.4))
    assert found.grows
    assert (
        "1 % over the last 5 ops, 3 % over the last 10 ops, 9 % over the last 20 ops, 40 % over all 40" in found.message
    )


def test_an_error_that_is_there_from_the_last_op_on():
    found = growth(parts(1.0, 1.0, 1.02, 1.0))
    assert not found.grows
    assert "100 % over all 40" in found.message


@pytest.mark.parametrize(
    "rows",
    [
        parts(0.4, 0.09, 0.03, 0.01),  # it shrinks
        parts(0.01, 0.3, 0.05, 0.4),  # up and down
        parts(0.1, 0.15, 0.2, 0.25),  # neither three times as much nor the same
        parts(0.001, 0.03, 0.09, 0.4, doubt=0.2),  # no difference is known well enough
        parts(0.0, 0.0, 0.02, 0.03, doubt=0.03),  # all of it is within the doubt
        parts(0.01, 0.4, ops=(5, 40)),  # too few
    ],
)
def test_what_shows_neither_is_not_named(rows):
    found = growth(rows)
    assert found is None or not found.grows


def test_parts_without_a_derivative_are_left_out():
    dead = {"ops": 2, "autodiff": 0.0, "finite_difference": 0.0, "error": 1e-6}
    assert growth([dead, *parts(0.01, 0.03, 0.09, 0.4)]).grows
    lost = {"ops": 2, "autodiff": float("nan"), "finite_difference": 1.0, "error": 1e-6}
    assert growth([lost, *parts(0.01, 0.03, 0.09, 0.4)]).grows
    assert growth([*parts(0.01, 0.03, 0.09, 0.4), {**dead, "ops": 80}]) is None  # the whole tape must be known


def test_a_whole_ratio_of_few_rows():
    row = {"autodiff": 2.0, "finite_difference": 1.0001, "error": 1e-4}
    assert whole_ratio([row]) == 2.0
    assert whole_ratio([{**row, "autodiff": 0.3333}]) == pytest.approx(1 / 3)
    assert whole_ratio([{**row, "autodiff": 1.37}]) is None
    assert whole_ratio([row, {**row, "autodiff": 3.0}]) is None
    assert whole_ratio([{**row, "error": 0.5}]) is None
