"""Adjoints that are not handed on between segments: from trace and check to a cause."""

import pytest

from warp_debug_gradients.operations.bisect_steps import joined
from warp_debug_gradients.operations.host_places import unrecorded_writer
from warp_debug_gradients.operations.ledger_causes import Context, ledger_causes
from warp_debug_gradients.operations.segments import (
    cut_between,
    dropped_adjoints,
    is_cut_before,
    seeded_places,
)
from warp_debug_gradients.schemas import Cause

LINE = {"file": "run.py", "line": 40}
TRACE = {
    "iterations": [
        {
            "index": 0,
            "dropped": [
                {"call": 2, "variable": "begin", "norm": 0.25, **LINE},
                {"call": 3, "variable": "begin", "norm": 3.5, **LINE},
            ],
            "handed": [{"call": 1, "file": "run.py", "line": 12}],
        },
        {"index": 1},
    ]
}


def check(verdict="disagree", iteration=0, reason=None):
    return {"verdict": verdict, "iteration": iteration, "reason": reason}


def test_the_call_that_is_handed_nothing_is_named():
    (cause,) = dropped_adjoints(check(), TRACE, parted=True)
    assert (cause.code, cause.confidence, cause.file, cause.line) == ("truncation", "likely", "run.py", 40)
    assert cause.variables == ["begin"]
    assert "backward call 2, 3" in cause.evidence[0]
    assert "norm 0.25, 3.5" in cause.evidence[0]


def test_where_the_error_may_be_another_it_is_possible():
    (cause,) = dropped_adjoints(check(), TRACE, parted=False)
    assert cause.confidence == "possible"
    (cause,) = dropped_adjoints(check("inconclusive", reason="adjoint_in_loss"), TRACE, parted=False)
    assert cause.confidence == "possible"


@pytest.mark.parametrize(
    ("error", "measured", "confidence"),
    [(0.02, 2, "likely"), (0.2, 2, "possible"), (0.02, 3, "possible"), ("nan", 2, "possible")],
)
def test_segments_that_are_off_by_far_less_than_the_whole(error, measured, confidence):
    """One window's differences are too noisy for a verdict of its own."""
    windows = [
        {"verdict": "agree", "autodiff": 1.0, "finite_difference": 1.001, "error": 0.001},
        {"verdict": "inconclusive", "autodiff": 0.2, "finite_difference": 0.21, "error": error},
    ]
    gradient = {"directions": [{"autodiff": 1.2, "finite_difference": 2.0, "error": 0.001}]}
    case = {**check(), "windows": windows, "horizon": {"windows": measured}, "gradient": gradient}
    (cause,) = dropped_adjoints(case, TRACE, parted=False)
    assert cause.confidence == confidence


@pytest.mark.parametrize("case", [check("agree"), check("inconclusive", reason="kink"), check(iteration=1)])
def test_nobody_is_accused_where_the_gradient_is_not_wrong_or_nothing_is_dropped(case):
    assert dropped_adjoints(case, TRACE, parted=True) == []


def test_calls_behind_the_cut_and_before_it():
    assert cut_between(check(), TRACE) == LINE
    assert cut_between(check(iteration=1), TRACE) is None
    assert [is_cut_before(check(), TRACE, call) for call in (0, 1, 2, 3, None)] == [False, False, True, True, False]
    assert seeded_places(check(), TRACE, 1) == [{"file": "run.py", "line": 12}]
    assert seeded_places(check(), TRACE, 2) == []


def test_a_seed_that_misses_what_is_dropped_before_it_is_a_symptom():
    ledger = {"seed": {"value": 1.0, "share": 0.4, "significant": True}}
    assert [c.code for c in ledger_causes(ledger, None, Context(backward=LINE))] == ["seed_mismatch"]
    assert ledger_causes(ledger, None, Context(backward=LINE, cut_before=True)) == []


def test_a_buffer_that_holds_the_adjoint_is_not_stale():
    def stale(line):
        return {
            "stale": [
                {"variable": "end", "allocated": {"file": "run.py", "line": line}, "share": 0.4, "significant": True}
            ]
        }

    context = Context(backward=LINE, seeded=seeded_places(check(), TRACE, 1))
    assert ledger_causes(stale(12), None, context) == []
    assert [c.code for c in ledger_causes(stale(13), None, context)] == ["stale_gradient"]


def cause(code, variables, evidence, confidence="likely"):
    return Cause(code=code, confidence=confidence, variables=variables, evidence=[evidence], repair="")


def test_the_book_and_the_watched_run_speak_of_the_same_cut():
    (one,) = joined([cause("truncation", ["begin"], "67%")], [cause("truncation", ["begin"], "call 2")])
    assert one.evidence == ["call 2", "67%"]
    (one,) = joined([cause("truncation", ["other"], "67%")], [cause("truncation", ["begin"], "call 2")])
    assert (one.variables, one.evidence) == (["begin"], ["call 2"])  # the other's adjoint is handed on


def test_backward_writes_no_loss():
    source = "with wp.Tape() as tape:\n    run(loss)\nif last:\n    tape.backward(loss)\nelse:\n    tape.backward(loss, grads=seeds)\n"
    assert unrecorded_writer(source, 1, 6, "loss") is None
    assert unrecorded_writer(source.replace("tape.backward(loss)", "loss.assign([0])"), 1, 6, "loss") == (4, False)
