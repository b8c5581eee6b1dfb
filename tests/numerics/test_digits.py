"""What one floating-point step means: of a parameter, of an objective, of what a launch reads."""

import math

import numpy as np
import pytest

from warp_debug_gradients.probe import digits


@pytest.mark.parametrize(("dtype", "step"), [(np.float32, 0.5), (np.float64, 9.3e-10), (np.float16, None)])
def test_a_step_of_the_parameter_beside_the_objective(dtype, step):
    x0 = np.array([1.0, 5.0e6 if step else 1000.0, 2.0], dtype)
    found = digits.of_parameter(x0, np.array([3.0, 4.0, 1e-3]), 16.0)
    assert found["index"] == 1
    assert found["step"] == pytest.approx(step or 0.5, rel=0.01)
    assert found["share"] == pytest.approx(4.0 * found["step"] / 16.0)


def test_ordinary_numbers_have_digits_to_spare():
    rng = np.random.default_rng(1)
    x0 = rng.standard_normal(200).astype(np.float32)
    assert digits.of_parameter(x0, rng.standard_normal(200), 1.0)["share"] < 1e-5
    assert digits.of_objective(1.0, "float32", 3.0)["share"] < 1e-6
    assert digits.far_larger(x0, 0.5) is None


def test_what_is_not_finite_says_nothing():
    x0 = np.array([1.0, 2.0], np.float32)
    assert digits.of_parameter(x0, np.array([math.nan, math.inf]), 1.0) is None
    assert digits.of_parameter(x0, np.zeros(2), 1.0) is None
    assert digits.of_parameter(x0, np.ones(2), math.nan) is None
    assert digits.of_parameter(x0, np.ones(2), 0.0)["share"] == math.inf
    assert digits.of_objective(math.inf, "float32", 1.0) is None
    assert digits.far_larger(np.array([math.nan, math.inf], np.float32), 1.0) is None
    assert digits.rms(np.array([math.nan])) == 0.0


def test_one_step_of_the_objective_beside_its_change():
    assert digits.of_objective(3060350.0, "float32", 250.0)["share"] == pytest.approx(1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_value_goes_to_a_neighbour(dtype):
    values = np.array([2.4e7, -1.0, 3.5e-4], dtype)
    moved = digits.one_step_away(values, np.random.default_rng(0))
    assert moved.dtype == dtype
    assert np.all(moved != values)
    assert np.all(np.abs(moved - values) <= np.abs(np.spacing(values)))


def test_a_difference_is_far_smaller_than_what_it_is_made_of():
    assert digits.far_larger(np.array([3.0, -2.4e7], np.float32), 4.0) == (2.4e7, 2.0)
    assert digits.far_larger(np.array([3.0, -2.4e7], np.float32), 0.0) is None
