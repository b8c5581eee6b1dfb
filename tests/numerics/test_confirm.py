"""A disagreement is kept where finer and neighbouring steps repeat it, and dropped where they don't."""

from __future__ import annotations

import numpy as np
import pytest

from warp_debug_gradients.probe.confirm import confirm
from warp_debug_gradients.probe.differences import Estimate
from warp_debug_gradients.probe.verdict import Judgement

EPS = 1.2e-7


def asked(ad, fd, error, band, step, noise, objective, base=1.0, brief=False, rungs=()):
    """What `confirm` makes of a disagreement whose objective is the function given; and the evaluations it took."""
    judged = Judgement("disagree", None, "", ad, fd, error, band)
    estimate = Estimate(fd, error, noise, step, "settled", 11, list(rungs))
    generator, replies = confirm(judged, estimate, base, [base], EPS, EPS, brief=brief), None
    while True:
        try:
            replies = [objective(t) for t in generator.send(replies)]
        except StopIteration as stop:
            return stop.value


def line(t):
    return 1.0 + 2.0 * t


@pytest.mark.parametrize("ad", [2.02, 2.2, 4.0, -2.0, 0.0])
def test_a_fault_in_the_gradient_of_a_smooth_objective_stays_a_fault(ad):
    judged, used = asked(ad, 2.0, 1e-3, 3e-3, 0.01, EPS, line)
    assert judged.verdict == "disagree"
    assert used > 0


def test_a_marginal_one_that_neighbouring_steps_do_not_repeat_is_dropped():
    """The slope wanders with the step by as much as AD is off: many small kinks."""
    wander = {0.37: 0.03, 0.61: -0.02, 1.3: 0.04}

    def objective(t):
        factor = min(wander, key=lambda each: abs(each - abs(t) / 0.01))
        return 1.0 + (2.0 + wander[factor]) * t

    judged, _ = asked(2.02, 2.0, 1e-3, 8e-3, 0.01, EPS, objective)
    assert (judged.verdict, judged.reason) == ("inconclusive", "imprecise")
    assert "steps beside it" in judged.message


def test_where_time_is_short_a_marginal_one_accuses_nobody_and_a_large_one_is_looked_at_once():
    judged, _ = asked(2.02, 2.0, 1e-3, 8e-3, 0.01, EPS, line, brief=True)
    assert (judged.verdict, judged.reason) == ("inconclusive", "imprecise")
    assert "the time did not allow" in judged.message
    judged, used = asked(2.2, 2.0, 1e-3, 8e-3, 0.01, EPS, line, brief=True)
    assert (judged.verdict, used) == ("disagree", 2)


def test_a_clear_one_is_looked_at_on_one_side_where_the_sides_are_alike():
    """One evaluation; and it still tells a difference of larger steps only."""
    rungs = [{"step": 0.01, "central": 2.0, "forward": 2.01, "backward": 1.99}]
    judged, used = asked(4.0, 2.0, 1e-3, 8e-3, 0.01, EPS, line, brief=True, rungs=rungs)
    assert (judged.verdict, used) == ("disagree", 1)
    judged, used = asked(0.0, 2.0, 1e-3, 8e-3, 0.01, EPS, lambda t: 1.0, brief=True, rungs=rungs)
    assert (judged.verdict, used) == ("inconclusive", 1)
    rungs[0].update(forward=2.5, backward=1.5)  # a side's slope is no derivative here
    assert asked(4.0, 2.0, 1e-3, 8e-3, 0.01, EPS, line, brief=True, rungs=rungs)[1] == 2


def test_a_large_one_is_not_asked_to_be_repeated():
    judged, used = asked(4.0, 2.0, 1e-3, 8e-3, 1e-4, EPS, line)
    assert judged.verdict == "disagree"
    assert used <= 6


def test_one_that_is_gone_at_finer_steps_is_of_the_larger_steps_only():
    """|t| beyond 1e-3 has another slope, as a contact has; AD is the one at 0."""

    def objective(t):
        return 1.0 + 2.0 * t + 3.0 * np.sign(t) * max(0.0, abs(t) - 1e-3)

    judged, _ = asked(2.0, 4.9, 0.01, 0.05, 0.1, EPS, objective)
    assert (judged.verdict, judged.reason) == ("inconclusive", "scale_dependent")


def test_zero_on_a_flat_stretch_is_a_staircase():
    judged, _ = asked(0.0, 4.9, 0.01, 0.05, 0.1, EPS, lambda t: 1.0 + np.round(t, 2))
    assert (judged.verdict, judged.reason) == ("inconclusive", "staircase")


@pytest.mark.parametrize("gap", [float("nan"), 0.0])
def test_nothing_is_asked_where_there_is_no_gap(gap):
    assert asked(2.0 + gap, 2.0, 1e-3, 3e-3, 0.01, EPS, line)[1] == 0


def test_an_objective_as_rough_at_the_finest_steps_as_anywhere_accuses_nobody():
    """Chaos: the parameter's last digits move the objective by all that it can move, AD predicts far more."""
    judged, _ = asked(1e15, 17.0, 33.0, 1e3, 0.25, 9.0, lambda t: 40.0 + 20.0 * np.sin(1e15 * t), base=40.0)
    assert (judged.verdict, judged.reason) == ("inconclusive", "unresolved")


@pytest.mark.parametrize("objective", [lambda t: 40.0 + 17.0 * t, lambda t: 40.0 + 17.0 * t + 1e-4 * np.sin(1e12 * t)])
def test_a_gradient_that_is_far_too_large_for_a_calm_objective_stays_wrong(objective):
    judged, _ = asked(1e15, 17.0, 0.1, 1e3, 0.25, 1e-4, objective, base=40.0)
    assert judged.verdict == "disagree"
