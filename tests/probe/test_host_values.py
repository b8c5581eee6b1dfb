"""Numbers on the host beside a seed made by hand: do their derivatives fit the gradient?"""

import sys

import numpy as np
import pytest

from warp_debug_gradients.probe.differences import directional_derivative
from warp_debug_gradients.probe.host_values import changing, compared, host_scalars

WEIGHTS = np.array([1.0, 6.25, 1.0, 4.0, 0.25])
X = np.array([0.3, -0.4, 0.2, 0.5, -0.1])
DIRECTIONS = [np.array([1.0, -0.5, 0.3, 0.7, 0.2]), np.array([-0.4, 0.9, 0.1, -0.6, 1.1])]


def estimates(function):
    """Differences of `function` along the directions at X, as the check makes them."""
    found = []
    for v in DIRECTIONS:
        steps = directional_derivative(function(X), [], 1.0, 1.2e-7, 1.2e-7, 15)
        try:
            asked = next(steps)
            while True:
                asked = steps.send([(t, function(X + t * v)) for t in asked])
        except StopIteration as stop:
            found.append(stop.value)
    return found


@pytest.mark.parametrize(
    ("objective", "seed", "factor"),
    [
        (lambda x: float(np.mean(WEIGHTS * x * x)), 2.0 * WEIGHTS * X / 5, 1.0),
        (lambda x: float(np.mean(WEIGHTS * x * x)), 2.0 * WEIGHTS * X, 5.0),  # of the sum
        (lambda x: float(np.sqrt(np.sum(x * x))), X, np.sqrt(np.sum(X * X))),  # another measure of the same
        (lambda x: float(np.mean(WEIGHTS * x * x)), 2.0 * X / 5, None),
        (lambda x: float(np.sum(np.abs(x))), 2.0 * X, None),
    ],
)
def test_proportional_or_not(objective, seed, factor):
    row = compared([float(seed @ v) for v in DIRECTIONS], estimates(objective))
    assert row["proportional"] is (factor is not None)
    assert factor is None or row["factor"] == pytest.approx(factor, rel=1e-3)
    assert factor is not None or abs(row["autodiff"] - row["finite_difference"]) > 20 * row["error"]


def test_a_number_that_does_not_move_says_nothing():
    assert compared([1.0, 2.0], estimates(lambda x: 3.0)) is None
    assert compared([0.0, 0.0], estimates(lambda x: float(x @ x))) is None


def test_only_floats_of_the_frame_and_of_self_are_noted():
    class Fit:
        def __init__(self):
            self.value, self.count, self._hidden, self.rate = 0.25, 3, 1.0, np.float64(0.1)

        def seen(self):
            total, broken, name = np.float32(2.0), float("nan"), "x"
            return host_scalars(sys._getframe()), (total, broken, name)

    assert Fit().seen()[0] == {"total": 2.0, "self.value": 0.25, "self.rate": pytest.approx(0.1)}
    assert host_scalars(None) == {}


def test_what_never_changes_is_no_objective():
    assert changing([{"a": 1.0, "rate": 0.1}, {"a": 2.0, "rate": 0.1, "late": 1.0}]) == ["a"]
