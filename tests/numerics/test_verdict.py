"""Verdicts: each inequality from both sides, and what several directions make of it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warp_debug_gradients.probe.differences import Estimate
from warp_debug_gradients.probe.verdict import ERROR_MULTIPLE, Judgement, combine, judge

SINGLE, DOUBLE = 1.19e-7, 2.22e-16


def settled(value, error, status="settled", **more):
    return Estimate(value, error, 1e-7, 1e-3, status, 14, **more)


@pytest.mark.parametrize("factor", [1.01, 1.10, 2.0, -1.0, 0.0])
def test_planted_faults_disagree(factor):
    found = judge(factor * 3.0, settled(3.0, 3e-3), SINGLE)
    assert found.verdict == "disagree"
    assert f"AD = {factor * 3.0:.6g}, FD = 3 ±" in found.message


@pytest.mark.parametrize(
    ("eps", "off", "verdict"),
    [(SINGLE, 1.5e-4, "agree"), (SINGLE, 3e-4, "disagree"), (DOUBLE, 5e-10, "agree"), (DOUBLE, 2e-9, "disagree")],
)
def test_round_off_of_the_gradient_itself_is_allowed(eps, off, verdict):
    assert judge(1.0 + off, settled(1.0, 1e-12), eps).verdict == verdict


def test_errors_of_the_difference_are_allowed():
    assert judge(1.024, settled(1.0, 0.01), SINGLE).verdict == "agree"
    assert judge(1.027, settled(1.0, 0.01), SINGLE).verdict == "disagree"


def test_a_band_wider_than_five_percent_never_agrees():
    found = judge(1.0, settled(1.0, 0.021), SINGLE)
    assert (found.verdict, found.reason) == ("inconclusive", "imprecise")


def test_a_direction_orthogonal_to_the_gradient_is_judged_by_the_gradient():
    """<g, v> = 1e-4 of |g|, measured to 1e-4 of |g|: a good measurement of a small number."""
    assert judge(0.0, settled(1e-4, 1e-4), SINGLE).verdict == "inconclusive"
    assert judge(0.0, settled(1e-4, 1e-4), SINGLE, magnitude=1.0).verdict == "agree"
    assert judge(0.1, settled(1e-4, 1e-4), SINGLE, magnitude=1.0).verdict == "disagree"


@pytest.mark.parametrize("magnitude", [math.nan, math.inf])
def test_a_broken_magnitude_changes_nothing(magnitude):
    assert judge(2.0, settled(1.0, 1e-4), SINGLE, magnitude).verdict == "disagree"


def test_zero_agrees_with_a_constant_and_disagrees_with_a_slope():
    assert judge(0.0, settled(0.0, 1e-9), SINGLE).verdict == "agree"
    assert judge(0.0, settled(1.0, 1e-3), SINGLE).verdict == "disagree"
    assert judge(1.0, settled(0.0, 1e-9), SINGLE).verdict == "disagree"


@pytest.mark.parametrize("ad", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_not_finite_is_wrong_where_the_derivative_is(ad):
    assert judge(ad, settled(1.0, 1e-3), SINGLE).reason == "nonfinite"
    assert judge(ad, settled(1.0, 1e-3), SINGLE).verdict == "disagree"
    broken = judge(ad, settled(math.nan, math.inf, "nonfinite"), SINGLE)
    assert (broken.verdict, broken.reason) == ("inconclusive", "nonfinite")


def test_a_kink_is_inconclusive_with_both_slopes():
    found = judge(1.0, settled(0.0, 1.0, "kink", left=-1.0, right=1.0), SINGLE)
    assert (found.verdict, found.reason) == ("inconclusive", "kink")
    assert "left slope -1, right slope 1" in found.message


def test_a_staircase_is_a_modelling_choice():
    found = judge(0.0, settled(0.0, 1.0, "staircase"), SINGLE)
    assert (found.verdict, found.reason) == ("inconclusive", "staircase")
    assert "surrogate is a modelling choice" in found.message


@pytest.mark.parametrize("status", ["quantised", "not_reproducible", "unsettled", "nonfinite"])
def test_unmeasured_is_inconclusive_with_its_reason(status):
    found = judge(1.0, settled(99.0, 0.0, status), SINGLE)
    assert (found.verdict, found.reason) == ("inconclusive", status)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_nothing_within_the_error_ever_disagrees(ad, value, error, magnitude):
    found = judge(ad, settled(value, error), SINGLE, magnitude)
    if abs(ad - value) <= ERROR_MULTIPLE * error:
        assert found.verdict != "disagree"
    if found.verdict == "agree":
        assert abs(ad - value) <= 0.05 * max(abs(value), magnitude)


AGREE = judge(1.0, settled(1.0, 1e-3), SINGLE)
WRONG = judge(2.0, settled(1.0, 1e-3), SINGLE)
BARELY = judge(1.0035, settled(1.0, 1e-3), SINGLE)
NEARLY = judge(1.0022, settled(1.0, 1e-3), SINGLE)
OTHER_SIDE = judge(0.9975, settled(1.0, 1e-3), SINGLE)
KINK = judge(1.0, settled(0.0, 1.0, "kink", left=-1.0, right=1.0), SINGLE)
NOISE = judge(1.0, settled(1.0, 0.5), SINGLE)
BROKEN = judge(math.nan, settled(1.0, 1e-3), SINGLE)


@pytest.mark.parametrize(
    ("judgements", "verdict", "reason"),
    [
        ([AGREE, AGREE, AGREE], "agree", None),
        ([AGREE, AGREE, NOISE], "agree", None),
        ([AGREE, NOISE, KINK], "inconclusive", "imprecise"),
        ([WRONG, WRONG, AGREE], "disagree", None),
        ([BARELY, BARELY, KINK], "disagree", None),
        ([WRONG, AGREE, AGREE], "disagree", None),  # a fault in few elements
        ([BARELY, AGREE, AGREE], "inconclusive", "directions_differ"),
        ([BARELY, KINK, NOISE], "inconclusive", "directions_differ"),
        ([BARELY, NEARLY, AGREE], "disagree", None),
        ([BARELY, OTHER_SIDE, AGREE], "inconclusive", "directions_differ"),
        ([BARELY], "disagree", None),
        ([KINK, KINK, NOISE], "inconclusive", "kink"),
        ([AGREE, AGREE, BROKEN], "disagree", "nonfinite"),
        ([], "inconclusive", "unmeasured"),
    ],
)
def test_several_directions(judgements, verdict, reason):
    found = combine(judgements)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_the_combined_message_counts_directions():
    assert combine([WRONG, WRONG, AGREE]).message.endswith("(2 of 3 directions disagree)")
    assert combine([AGREE, AGREE, KINK]).message.endswith("(2 of 3 directions agree)")


def test_a_judgement_without_a_band_is_infinitely_off():
    assert Judgement("disagree", "nonfinite", "").bands_off == math.inf
