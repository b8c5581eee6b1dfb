"""From measured floating-point steps to a cause, on hand-made checks and launches."""

import pytest

from warp_debug_gradients.operations.constructs import difference_line
from warp_debug_gradients.operations.digits import rounded_away, update_lost
from warp_debug_gradients.schemas import Cause, Isolated


def check(reason="imprecise", share=0.3, rungs=(), **fields):
    own = {
        "index": 2,
        "component": "[0].z",
        "value": 4.7e6,
        "step": 0.5,
        "change": 2.4,
        "share": share,
        "dtype": "float32",
    }
    return {"iteration": 0, "verdict": "inconclusive", "reason": reason, "message": "FD is too uncertain here",
            "parameter": {"name": "self.receiver"}, "objective": {"name": "loss", "value": 8.0},
            "horizon": {"to": {"file": "a.py", "line": 90}},
            "gradient": {"directions": [{"reason": reason, "rungs": list(rungs)}]},
            "digits": {"parameter": own, "objective": {"value": 8.0, "step": 1e-6, "change": 9.0, "share": 1e-7}}, **fields}  # fmt: skip


def alone(share=0.5, reason=None, kernel="residuals", verdict="undecided"):
    digits = {"argument": "ranges", "size": 2.4e7, "step": 2.0, "result_size": 4.1, "share": share} if share else None
    return Isolated(what="launch", kernel=kernel, file="a.py", line=60, verdict=verdict, reason=reason, digits=digits)


def named(code):
    return Cause(code=code, confidence="likely", file="a.py", line=90, variables=[], evidence=[], repair="")


def gaps(*pairs):
    return [{"step": step, "forward": gap / 2, "backward": -gap / 2} for step, gap in pairs]


@pytest.mark.parametrize("reason", ["imprecise", "staircase", "directions_differ", "unsettled", "quantised"])
@pytest.mark.parametrize("own", [None, "staircase", "kink", "imprecise"])
def test_a_launch_that_loses_the_digits(reason, own):
    (cause,) = rounded_away(
        [named("piecewise_constant")], check(reason), [alone(reason=own), alone(0.0, None, "chi2", "right")]
    )
    assert (cause.code, cause.confidence, cause.line, cause.variables) == ("precision_floor", "likely", 60, ["ranges"])
    said = " ".join(cause.evidence)
    assert "one float32 step of self.receiver[0].z (4.7e+06) is 0.5" in said
    assert "neighbouring numbers are 2 apart" in said


def test_curvature_that_rounding_hides_is_no_kink():
    curved = check("kink", rungs=gaps((1e-5, 2e8), (4e-5, 8e8), (1e-4, 2e9)))
    (cause,) = rounded_away([named("nonsmooth_choice")], curved, [alone(reason="kink")])
    assert cause.code == "precision_floor"


def test_a_kink_stays_one_though_a_difference_is_nearly_zero_there():
    kinked = check("kink", rungs=gaps((1e-5, 31.0), (1e-4, 36.0), (1e-3, 36.2)))
    situation = [named("nonsmooth_choice")]
    assert rounded_away(situation, kinked, [alone(2.0)]) is situation


@pytest.mark.parametrize("own", ["staircase", "surrogate"])
def test_another_launch_that_is_meant_to_have_steps(own):
    situation = [named("piecewise_constant")]
    assert rounded_away(situation, check("staircase"), [alone(0.5), alone(0.0, own, "bins")]) is situation


@pytest.mark.parametrize("reason", ["not_reproducible", "unresolved", "scale_dependent", "unseeded", "time"])
def test_other_reasons_are_left_alone(reason):
    assert rounded_away([], check(reason), [alone()]) == []
    situation = [named("stochastic_forward")]
    assert rounded_away(situation, check(reason), [alone()]) is situation


def test_a_steep_objective_alone_accuses_nobody():
    """A chaotic program moves by much for one step of its parameter, too; its launches by themselves are smooth."""
    assert rounded_away([], check(share=5.0), [alone(0.0, None, "step", "right")]) == []
    assert rounded_away([], check(share=1e-5), [alone(1e-4, "imprecise")]) == []
    (cause,) = rounded_away([], check(share=5.0), [alone(0.0, "imprecise")])
    assert (cause.code, cause.confidence, cause.line) == ("precision_floor", "possible", 90)


def test_what_is_decided_is_left_alone():
    for verdict in ("agree", "disagree"):
        assert rounded_away([], {**check(), "verdict": verdict}, [alone()]) == []


def test_an_update_that_is_rounded_away():
    agrees = {**check(), "verdict": "agree", "update": {"rate": 0.0, "cosine": None, "length": 0.0}}
    assert "neighbouring float32 numbers are 0.5 apart" in update_lost(agrees)
    assert update_lost({**agrees, "update": {"rate": 0.1, "length": 0.3}}) == ""
    assert update_lost({**check(share=1e-6), "update": agrees["update"]}) == ""
    assert update_lost(check()) == ""


KERNEL = """
@wp.kernel
def other(sats: wp.array(dtype=wp.vec3)):
    x = sats[0] - sats[1]

@wp.kernel
def residuals(receiver: wp.array(dtype=wp.vec3), sats: wp.array(dtype=wp.vec3), clock: Clock, res: wp.array2d(dtype=float)):
    i = wp.tid()
    sat = sats[i]
    w = 2.0 * clock.rate[0]
    d = receiver[0] - sat
    res[i, 0] = (
        wp.length(d)
        - clock.drift[i]
    )
"""


@pytest.mark.parametrize(
    ("argument", "line"), [("receiver", 11), ("sats", 11), ("clock.drift", 13), ("clock.rate", None), ("res", None)]
)
def test_the_line_that_takes_a_difference(argument, line):
    assert difference_line(KERNEL, "residuals", argument) == line
    assert difference_line("def broken(:", "residuals", argument) is None
