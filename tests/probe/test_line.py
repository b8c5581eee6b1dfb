"""The objective along its gradient, and what the update did, on quadratics with known answers."""

import numpy as np
import pytest

from warp_debug_gradients.probe.line import measure_line, stable_limit, update_between

CURVATURES = np.array([1.0, 4.0, 9.0])
X0 = np.array([1.0, 0.5, -0.7])


def quadratic(x):
    return 0.5 * float(CURVATURES @ x**2)


class Plain:
    """An evaluator whose requests are the perturbations themselves."""

    x0 = X0

    def effective(self, delta):
        return delta

    def request(self, delta):
        return delta

    def value(self, reply):
        return reply


def run(gradient, base, noise=1e-12):
    steps = measure_line(Plain(), gradient, base, noise)
    try:
        requests = next(steps)
        steps.send([quadratic(X0 + d) for d in requests])
    except StopIteration as finished:
        return finished.value
    raise AssertionError("one round of evaluations is enough")


def test_the_limit_of_a_quadratic():
    gradient = CURVATURES * X0
    found = run(gradient, quadratic(X0))
    exact = 2.0 * (gradient @ gradient) / (gradient @ (CURVATURES * gradient))
    assert found["limit"] == pytest.approx(exact, rel=1e-6)
    assert found["falls"]
    assert exact / 8 < found["best"] < exact  # the ladder's steps are factors of 4


def test_uphill_nothing_falls():
    assert not run(-CURVATURES * X0, quadratic(X0))["falls"]


@pytest.mark.parametrize("gradient", [np.zeros(3), np.array([1.0, np.nan, 0.0])])
def test_no_line_without_a_direction(gradient):
    assert run(gradient, 1.0) is None


def test_no_limit_below_the_noise_or_without_curvature():
    assert stable_limit([(0.1, 1.0 - 0.1 * 4.0)], 1.0, 4.0, 1e-9) is None  # a straight line
    assert stable_limit([(0.1, 1.0 - 0.1 * 4.0 + 0.05)], 1.0, 4.0, 0.1) is None  # curved less than its noise
    assert stable_limit([(0.1, 1.0 - 0.1 * 4.0 - 0.05)], 1.0, 4.0, 1e-9) is None  # curved downwards


def test_the_effective_rate_of_an_update():
    gradient = np.array([1.0, -2.0, 0.5])
    plain = update_between(X0, gradient, X0 - 0.04 * gradient)
    assert plain["rate"] == pytest.approx(0.04)
    assert plain["cosine"] == pytest.approx(1.0)
    signs = update_between(X0, gradient, X0 - 0.04 * np.sign(gradient))
    assert signs["cosine"] == pytest.approx(3.5 / np.sqrt(3 * 5.25))
    assert update_between(X0, gradient, X0) == {"rate": 0.0, "cosine": None, "length": 0.0}, "none, or rounded away"
    assert update_between(X0, 0.0 * gradient, X0) is None
