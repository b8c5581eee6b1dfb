"""One adjoint alone, on functions with known derivatives: no Warp, a launch is a callable."""

import math

import numpy as np
import pytest

from warp_debug_gradients.probe import isolate
from warp_debug_gradients.probe.ledger import Jump, Term
from warp_debug_gradients.probe.resummed import TIMES, sum_noise
from warp_debug_gradients.probe.roughness import roughness
from warp_debug_gradients.probe.verdict import Judgement

EPS = 1.19209e-7


def direction(f, slope, at=1.3, noise_eps=EPS, dtype=np.float32):
    """Judge `slope` as the derivative of f at `at`, with values rounded to float32 as a kernel's are."""
    base = float(dtype(f(at)))
    return isolate.judge_direction(
        lambda t: (t, float(dtype(f(at + t))) - base), abs(base), slope, abs(slope), noise_eps
    )


@pytest.mark.parametrize(
    ("f", "slope"),
    [(lambda x: x * x, 2.6), (math.sin, math.cos(1.3)), (lambda x: 40.0 * math.exp(x), 40.0 * math.exp(1.3))],
)
def test_a_right_slope_is_right_and_a_wrong_one_wrong(f, slope):
    assert direction(f, slope).verdict == "agree"
    assert direction(f, 1.01 * slope).verdict == "disagree"
    assert direction(f, -slope).verdict == "disagree"
    assert direction(f, 0.0).verdict == "disagree"


def test_a_kink_accuses_nobody():
    assert direction(lambda x: abs(x - 1.3), 0.0).verdict == "inconclusive"


def test_the_noise_of_a_recorded_tangent_is_what_larger_steps_do_not_confirm():
    """A sum of many numbers that nearly cancel: a small step shows its round-off, larger ones the slope."""
    weights = np.cos(np.linspace(0.0, np.pi, 4001)).astype(np.float32)

    def total(t):
        return float(np.cumsum(weights * np.float32(1.0 + t), dtype=np.float32)[-1])

    def total_of(slope):
        alone = isolate.differenced(lambda t: (t, total(t) - total(0.0) + slope * t), 1.0, EPS)
        return isolate.tangent_noise(recorded, alone)

    recorded = (total(1e-5) - total(-1e-5)) / 2e-5
    assert abs(recorded) > 1.0  # the sum of the weights is zero
    assert total_of(0.0) == pytest.approx(abs(recorded), rel=0.05)
    assert total_of(recorded) < 0.05 * abs(recorded)


def test_a_launch_that_does_not_settle_says_nothing_of_noise():
    step = isolate.differenced(lambda t: (t, abs(t)), 1.0, EPS)
    assert isolate.tangent_noise(7.0, step) is None


def test_the_noise_of_a_float32_sum_is_measured_and_that_of_a_smooth_function_is_none():
    rng = np.random.default_rng(4)
    terms, moves = rng.uniform(2.0, 4.0, 50_000), rng.standard_normal(50_000)

    def total(t, dtype=np.float32):
        return float(np.cumsum((terms + t * moves).astype(np.float32), dtype=dtype)[-1])

    errors = [total(t) - total(t, np.float64) for t in np.linspace(-3.0, 3.0, 41)]
    assert np.std(errors) / 4.0 < roughness(total, EPS * total(0.0)) < 4.0 * np.std(errors)
    assert roughness(lambda t: math.exp(3.0 * t), EPS) < 1e-12
    assert roughness(lambda t: math.nan, EPS) == 0.0
    assert roughness(lambda t: math.sin(1e4 * t), EPS) == 0.0  # winds many times: no round-off


def test_a_recorded_tangent_is_as_rough_as_its_sum_where_the_launch_alone_knows_no_better():
    settled = isolate.differenced(lambda t: (t, 5.0 * t), 1.0, EPS)
    assert isolate.tangent_noise(5.1, settled, 0.03) == pytest.approx(0.1, rel=0.01)  # they differ by more
    assert isolate.tangent_noise(5.0, settled, 0.03) < 1e-3  # it knows better
    vague = isolate.differenced(lambda t: (t, 5.0 * t), 1.0, EPS, noise=1e-4)
    assert vague.error > settled.error
    kink = isolate.differenced(lambda t: (t, abs(t)), 1.0, EPS)
    assert isolate.tangent_noise(7.0, kink, 0.2) == 0.2


def sums(values, dtype=np.float32):
    """The adjoint of an array that every thread reads: the sum of what arrives, in its dtype."""

    def leaving(scale):
        return [np.cumsum((scale * values).astype(dtype), dtype=dtype)[-1:].astype(np.float64) / scale]

    return leaving


@pytest.mark.parametrize("term", [0.37, 0.11, 2.3])
def test_the_round_off_of_an_adjoints_sum_is_measured_at_other_scales(term):
    """Equal terms are rounded alike: the sum of a million is off by far more than sqrt(n) digits."""
    values = np.full(1_000_000, term)
    off = abs(float(sums(values)(1.0)[0][0]) - term * 1e6)
    noise = sum_noise(sums(values), [np.ones(1)])
    assert noise is not None
    assert off <= TIMES * noise < 0.1 * term * 1e6
    assert sum_noise(sums(values, np.float64), [np.ones(1)]) < 1e-9 * term * 1e6


def test_an_adjoint_that_is_not_linear_in_what_arrives_has_no_such_noise():
    """A custom gradient that clips is wrong, not rough."""
    assert sum_noise(lambda s: [np.clip(s * np.array([0.3, 4.0]), -1.0, 1.0) / s], [np.ones(2)]) is None
    assert sum_noise(lambda s: [np.array([np.nan])], [np.ones(1)]) is None


def judged(verdict, ad=1.0, fd=1.0, reason=None, band=0.1):
    return Judgement(verdict, reason, "", ad, fd, 0.01, band)


def test_wrong_needs_every_direction():
    wrong, right = judged("disagree", 2.0), judged("agree")
    assert isolate.verdict_of([wrong, wrong])[0] == "wrong"
    assert isolate.verdict_of([wrong, right])[:2] == ("undecided", "directions_differ")
    assert isolate.verdict_of([right])[0] == "right"
    assert isolate.verdict_of([judged("inconclusive", reason="kink")])[:2] == ("undecided", "kink")


def row(verdict, argument, ad=1.0, fd=1.0):
    return {
        "verdict": verdict,
        "reason": None,
        "argument": argument,
        "autodiff": ad,
        "finite_difference": fd,
        "error": 0.1,
    }


def test_one_wrong_input_makes_the_launch_wrong_and_a_dead_one_decides_nothing():
    assert isolate.of_inputs([row("right", "x"), row("wrong", "gain")])["argument"] == "gain"
    assert isolate.of_inputs([row("right", "x"), row("undecided", "dead", 0.0, 0.0)])["verdict"] == "right"
    assert isolate.of_inputs([]) == {
        "verdict": "undecided", "reason": "no_input", "argument": None,
        "autodiff": None, "finite_difference": None, "error": None,
    }  # fmt: skip


def test_a_function_is_wrong_where_a_good_part_of_its_samples_are():
    good, bad = judged("agree"), judged("disagree", 3.0)
    assert isolate.of_samples([good] * 60 + [bad] * 4)["verdict"] == "undecided"
    found = isolate.of_samples([good] * 30 + [bad] * 34)
    assert (found["verdict"], found["wrong"], found["samples"]) == ("wrong", 34, 64)
    assert isolate.of_samples([good] * 64)["verdict"] == "right"
    assert isolate.of_samples([])["reason"] == "no_usable_argument"


def test_a_surrogate_of_a_piecewise_constant_function_is_a_choice_not_a_fault():
    stepped = [judged("inconclusive", 1.0, math.nan, "staircase") for _ in range(4)]
    flat = [judged("disagree", 1.0, 0.0) for _ in range(60)]
    assert isolate.of_samples(stepped + flat)["reason"] == "surrogate"
    assert isolate.of_samples([judged("agree", 0.0, 0.0)] * 64)["verdict"] == "right"


def test_the_largest_jump_of_a_blamed_line_and_every_other_kernel_once():
    from warp_debug_gradients.probe import isolate_launch
    from warp_debug_gradients.probe.recording import Operation

    here, there = {"file": "a.py", "line": 3}, {"file": "a.py", "line": 9}
    operations = [Operation(k, "step", here, [], {"file": "a.py", "line": 1}) for k in range(4)]
    operations.append(Operation(4, "array copy", there, []))
    operations.append(Operation(5, "score", there, [], {"file": "a.py", "line": 2}))
    jumps = [Jump(k, "adjoint", Term(v, v), "step", here) for k, v in enumerate([0.1, -0.7, 0.3, 0.2])]
    blamed = {("a.py", 3, "step")}
    assert isolate_launch.chosen(operations, jumps, blamed) == {1: True, 5: False}
    assert isolate_launch.chosen(operations, jumps, set()) == {5: False, 3: False}
