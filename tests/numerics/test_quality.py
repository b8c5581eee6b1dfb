"""The numbers the checker stands for, on fixed seeds; fewer problems than `make quality` prints."""

import numeric_losses as losses
import numpy as np
import pytest
import quality

OURS = "guarded ladder, 3 directions"
TRIALS = 60


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def tally(request):
    return quality.run(request.param, TRIALS, rules=[OURS])[OURS]


def test_right_gradients_are_not_called_wrong(tally):
    assert tally.rate("disagree", ["smooth"]) == 0.0, tally.alarms
    assert tally.rate("disagree", list(losses.MAKERS)) <= 0.01, tally.alarms


def test_right_gradients_of_smooth_objectives_are_confirmed(tally):
    assert tally.rate("agree", ["smooth"]) >= 0.95


def test_faults_are_found(tally):
    assert tally.detection("10 %") >= 0.95
    assert tally.detection("1 %") >= 0.80
    for fault in ("2x", "sign", "zero"):
        assert tally.detection(fault) >= 0.97


def test_a_sparing_check_accuses_nobody_and_finds_what_is_large():
    """Four to eight evaluations and one more: what it does not find it calls inconclusive or too small to tell."""
    rule = quality.run(np.float32, TRIALS, rules=["sparing"])["sparing"]
    assert rule.rate("disagree", list(losses.MAKERS)) <= 0.01, rule.alarms
    assert rule.rate("agree", ["smooth"]) >= 0.80
    assert rule.detection("10 %") >= 0.70
    assert rule.detection("2x") >= 0.85


def test_no_direction_costs_more_than_fifteen_evaluations(tally):
    assert max(tally.evaluations) <= 15


def test_the_comparison_can_tell_rules_apart():
    """A rule known to raise false alarms raises them here; else the table above would prove nothing."""
    naive = quality.run(np.float32, 24, rules=["central at 1e-3, rtol 1e-2"])["central at 1e-3, rtol 1e-2"]
    assert naive.rate("disagree", list(losses.MAKERS)) > 0.2


@pytest.mark.parametrize("decades", [(-6.0, -5.0), (3.0, 4.0)], ids=["1e-6", "1e4"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_scale_of_the_parameter_does_not_matter(dtype, decades):
    """Right gradients of smooth losses agree, doubled ones do not, from scale 1e-6 to 1e4."""
    for trial in range(18):
        problem = losses.draw("smooth", trial, dtype, decades)
        rng = np.random.default_rng(trial)
        measured = quality.measure(problem, rng, floor=1e-30)
        right = losses.rounded_gradient(problem, rng)
        assert quality.ladder(measured, right, 3) != "disagree", problem.name
        assert quality.ladder(measured, 2.0 * right, 3) == "disagree", problem.name


@pytest.mark.parametrize("family", list(losses.MAKERS))
def test_the_gradients_of_the_losses_are_right(family):
    """In float64 a plain difference at a tiny step confirms what every number above rests on."""
    for trial in range(20):
        problem = losses.draw(family, trial, np.float64)
        if problem.at_kink or family == "noisy":
            continue
        along = np.random.default_rng(trial).standard_normal(problem.x.size)
        step = 1e-7 * problem.scale
        found = (problem.loss(problem.x + step * along) - problem.loss(problem.x - step * along)) / (2.0 * step)
        size = float(np.linalg.norm(problem.gradient)) + 1e-12
        assert abs(found - problem.gradient @ along) <= 2e-3 * size, problem.name


# Right gradients that earlier ladders called wrong, and the rule that stopped it.
REGRESSIONS = [
    ("kinked", 94, np.float32),  # a kink at the point, hidden by noise on the smallest rungs, plain on larger ones
    ("kinked", 99, np.float32),
    ("smooth", 9212, np.float32),  # a loss of 6e-42, of which float32 keeps two digits
    ("noisy", 19, np.float64),  # two large steps agree on the slope of a bounded objective that neither resolves
    ("noisy", 38, np.float64),
    ("noisy", 48, np.float64),
    ("noisy", 279, np.float64),  # steps of 100 times the scale, where a bounded objective is flat
]


@pytest.mark.parametrize(("family", "trial", "dtype"), REGRESSIONS)
def test_false_alarms_that_were(family, trial, dtype):
    problem, rng = losses.draw(family, trial, dtype), np.random.default_rng([trial, 7])
    measured = quality.measure(problem, rng)
    right = losses.rounded_gradient(problem, rng)
    judged = [quality.ladder(measured, right, count) for count in (1, 3)]
    assert "disagree" not in judged
