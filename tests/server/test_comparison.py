"""Is the fault gone? Decided from recorded numbers; no program is run."""

import copy
import math

import pytest

from warp_debug_gradients.operations.comparison import compare, compared_checks, compared_directions, measured
from warp_debug_gradients.operations.forward_change import Side, derivative_moved, whole_error
from warp_debug_gradients.operations.ledger_comparison import vanished
from warp_debug_gradients.operations.repeated_plan import find_parameters, iterations_to_check, pinned_plans
from warp_debug_gradients.operations.workflow import health, judge_workflow, run_health
from warp_debug_gradients.schemas import Jump, LedgerSide, VerifyFixRequest

FD = (-2.0, 0.7, 1.1)
SAME = {"model.k": "model.k"}


def check(iteration=0, factor=1.0, fd=FD, verdict=None, digest="a", name="model.k", objective=None, shape=(6,)):
    """One check whose AD is `factor` times FD in every direction."""
    verdict = verdict or ("agree" if factor == 1.0 else "disagree")
    rows = [
        {"label": f"random direction {k + 1}", "autodiff": factor * x, "finite_difference": x, "error": 1e-5 * abs(x)}
        for k, x in enumerate(fd)
    ]
    return {
        "iteration": iteration, "verdict": verdict, "reason": None, "message": "They differ.",
        "parameter": {"name": name, "shape": list(shape), "dtype": "float32", "key": f"/x/train.py:7:{name}#0"},
        "objective": {"name": "loss", "kind": "loss", "value": 3.0 - iteration if objective is None else objective},
        "horizon": {"windows": 1, "ops": 41, "full": True}, "signature": {"message": ""},
        "gradient": {**{k: rows[0][k] for k in ("autodiff", "finite_difference", "error")}, "directions": rows, "elements": []},
        "start": {"digest": f"{digest}{iteration}", "rms": 1.0, "first": [0.5, 0.7]},
        "consumed": {"norm": abs(factor)},
    }  # fmt: skip


def trace(losses=(3.0, 2.0, 1.0), norm=1.0, ops=41, kernels=("advance", "misfit"), backward_calls=None):
    return {
        "status": "completed", "backward_calls": backward_calls or len(losses),
        "iterations": [{"index": k, "losses": [x], "gradient_norm": norm, "parameter_keys": ["k"]} for k, x in enumerate(losses)],
        "structure": {"launches_per_iteration": ops, "kernels": dict.fromkeys(kernels, 1), "arrays": 5},
    }  # fmt: skip


def side(*checks, **kwargs):
    return Side(trace(norm=checks[0]["consumed"]["norm"], **kwargs), list(checks))


BROKEN = side(check(0, 1.2), check(1, 1.2))


def decide(after, before=BROKEN, changed=True):
    return compare(before, after, SAME, changed=changed)


def test_fixed_with_a_later_iteration():
    found = decide(side(check(0), check(1, digest="b", fd=(1.0, 2.0, 3.0))))
    assert (found.outcome, found.reason, found.changes, found.blind_spots) == ("fixed", None, [], [])
    assert "20% before, 0% now" in found.message
    assert "iteration 1, too" in found.message
    assert "the same objective" in found.message


def test_without_a_later_iteration_that_is_a_blind_spot():
    found = decide(side(check(0)))
    assert found.outcome == "fixed"
    assert found.blind_spots == ["later iterations: the watched run has none"]


def test_a_later_iteration_that_is_not_decided_is_a_blind_spot():
    found = decide(side(check(0), check(1, verdict="inconclusive")))
    assert found.outcome == "fixed"
    assert "iteration 1, which is not decided" in found.blind_spots[0]


@pytest.mark.parametrize("changed", [True, False])
def test_the_same_error_is_not_fixed(changed):
    found = decide(side(check(0, 1.2), check(1, 1.2)), changed=changed)
    assert found.outcome == "not_fixed"
    assert found.wrong_now is not None


@pytest.mark.parametrize(
    ("factor", "outcome"),
    [
        (1.05, "improved_but_wrong"),
        (1.195, "not_fixed"),
        (1.5, "regressed"),
        (-1.0, "regressed"),
        (math.nan, "regressed"),
    ],
)
def test_by_the_size_of_what_is_left(factor, outcome):
    assert decide(side(check(0, factor))).outcome == outcome


def test_from_nan_to_wrong_is_an_improvement():
    before = side(check(0, math.nan))
    assert whole_error(before.checks[0]) == math.inf
    assert decide(side(check(0, 1.5)), before).outcome == "improved_but_wrong"
    assert decide(side(check(0, math.nan)), before).outcome == "not_fixed"


def test_an_error_that_only_later_iterations_have_is_a_second_fault():
    found = decide(side(check(0), check(1, 2.0)))
    assert found.outcome == "improved_but_wrong"
    assert found.wrong_now["iteration"] == 1


def test_what_was_right_and_is_wrong_has_regressed():
    before = side(check(0), check(1, 1.2))
    assert decide(side(check(0, 1.1), check(1)), before).outcome == "regressed"


@pytest.mark.parametrize(
    ("after", "what", "word"),
    [
        (check(0, fd=(-0.2, 0.3, 0.4)), "derivative", "moved by"),
        (check(0, fd=tuple(0.01 * x for x in FD), objective=0.03), "derivative", "scaled by 0.01"),
        (check(0, fd=(0.0, 0.0, 0.0)), "derivative", "no longer depends on the parameter"),
        (check(0, digest="z"), "start", "initial values"),
        (check(0, shape=(3,)), "parameter", "was [6]"),
    ],
)
def test_a_program_that_computes_something_else_is_masked(after, what, word):
    found = decide(side(after, losses=(3.0, 2.0)))
    assert (found.outcome, found.reason) == ("masked", f"{what}_changed"), found.message
    assert word in found.message


def test_a_disagreement_in_another_program_is_no_improvement():
    assert decide(side(check(0, 1.02, fd=(-0.2, 0.3, 0.4)))).outcome == "not_fixed"
    found = decide(side(check(0, digest="z"), check(1, 1.1, digest="z")))
    assert found.outcome == "not_fixed"
    assert "initial values" in found.message


def test_a_parameter_that_is_no_longer_updated():
    still = [check(0), {**check(1), "start": check(0)["start"]}]
    found = decide(side(*still, losses=(3.0, 3.0, 3.0)))
    assert (found.outcome, found.reason) == ("masked", "training_changed")
    one = decide(side(check(0), losses=(3.0,), backward_calls=3))
    assert (one.outcome, one.reason) == ("masked", "training_changed")


def test_a_repaired_race_moves_the_forward_values():
    """Threads that read what others wrote: the right program computes something else, by as much as that mattered."""
    racing = side(check(0, 1.2), check(1, 1.2))
    racing.trace["structure"]["races"] = [{"kernel": "advance", "file": "crawler.py", "line": 64}]
    moved = side(check(0, fd=tuple(0.96 * x for x in FD), objective=3.5), check(1, digest="b"))
    assert decide(moved).outcome == "masked"
    found = decide(moved, racing)
    assert found.outcome == "fixed"
    assert "advance (launched at crawler.py:64)" in found.message
    assert "moved by 4%" in found.message
    assert found.blind_spots
    moved.trace["structure"].update(racing.trace["structure"])
    assert decide(moved, racing).outcome == "masked"  # it races still: that is no reason
    far = side(check(0, fd=tuple(0.6 * x for x in FD)), check(1, digest="b"))
    assert decide(far, racing).outcome == "masked"
    same = decide(side(check(0), check(1, digest="b", fd=(1.0, 2.0, 3.0))), racing)
    assert (same.outcome, same.blind_spots, "crawler" in same.message) == ("fixed", [], False)


def test_slight_changes_are_told_and_do_not_mask():
    found = decide(side(check(0, fd=tuple(1.004 * x for x in FD), objective=3.003), check(1)))
    assert found.outcome == "fixed"
    assert "forward values changed" in found.message
    assert {c.what for c in found.changes} == {"derivative", "objective"}


def test_a_slight_change_masks_a_slight_fault():
    before = side(check(0, 1.01), check(1, 1.01))
    assert decide(side(check(0, fd=tuple(1.004 * x for x in FD)), check(1)), before).outcome == "masked"


def test_an_added_constant_is_told_and_does_not_mask():
    found = decide(side(check(0, objective=4.0), check(1), losses=(4.0, 3.0)))
    assert found.outcome == "fixed"
    assert [c.what for c in found.changes] == ["objective"]


def test_structure_is_told_and_does_not_mask():
    after = side(check(0), check(1), ops=61, kernels=("advance", "keep", "misfit"))
    found = decide(after)
    assert found.outcome == "fixed"
    assert {c.what for c in found.changes} == {"launches", "kernels"}


def test_unseeded_programs_are_judged_by_their_spread():
    """Two runs of the same files differ by 4 %, the sides by 6 %: that is not a change of the program."""
    before = Side(trace((3.12, 2.0), norm=1.25), [check(0, 1.2)])
    after = Side(trace((3.3, 2.0), norm=1.1), [check(0, digest="z", objective=3.18)])
    found = compare(before, after, SAME, changed=True)
    assert found.outcome == "fixed", found.message
    assert "unseeded" in " ".join(found.blind_spots)
    far = Side(trace((30.0, 2.0), norm=1.1), [check(0, digest="z", objective=29.0)])
    assert compare(before, far, SAME, changed=True).outcome == "masked"


def test_agreement_though_nothing_changed_is_no_repair():
    found = decide(side(check(0), check(1)), changed=False)
    assert (found.outcome, found.reason) == ("inconclusive", "nothing_changed")


def test_inconclusive_now_is_inconclusive():
    assert decide(side(check(0, verdict="inconclusive"))).outcome == "inconclusive"


def test_derivative_moved_needs_something_in_common():
    other = copy.deepcopy(check(0))
    other["gradient"]["directions"] = []
    assert derivative_moved(check(0), other) is None
    assert decide(side(other)).outcome == "fixed"
    assert "could not be compared" in " ".join(decide(side(other)).blind_spots)


def test_tables():
    before, after = BROKEN, side(check(0), check(1, digest="b"), check(2))
    found = decide(after)
    rows = compared_checks(before, after, found.pairs)
    assert [(r.iteration, r.before, r.after, r.same_point) for r in rows] == [
        (0, "disagree", "agree", True), (1, "disagree", "agree", False), (2, None, "agree", None)]  # fmt: skip
    assert len(compared_directions(found.pairs[0])) == 3
    assert measured(before.checks[0], "random direction 2").ratio == pytest.approx(1.2)


# --- which iterations, parameters, directions


def listed(*names, shape=(6,)):
    return {"parameters": [{"name": n, "shape": list(shape), "dtype": "float32"} for n in names], "leaves": []}


def test_a_renamed_parameter_is_found_by_shape():
    assert find_parameters([check(0)], listed("model.k"), listed("model.k", "other")) == SAME
    assert find_parameters([check(0)], listed("model.k"), listed("model.kappa")) == {"model.k": "model.kappa"}


def test_another_array_of_the_same_shape_is_no_rename():
    assert find_parameters([check(0)], listed("model.k", "state"), listed("state")) == {}
    assert find_parameters([check(0)], listed("model.k"), listed("a", "b")) == {}
    still_there = {**listed("new"), "leaves": listed("model.k")["parameters"]}
    assert find_parameters([check(0)], listed("model.k"), still_there) == {}


def test_iterations_and_pins():
    checks = [check(0), check(1, 1.2)]
    checks[1]["gradient"]["elements"] = [{"index": 4}]
    now = {"iterations": [{"index": k, "plan": {"parameters": [{"name": "model.k", "key": "new"}]}} for k in range(4)]}
    assert iterations_to_check(now, checks) == [1, 0, 2]
    assert iterations_to_check(now, [check(3, 1.2)]) == [3]
    plans = pinned_plans(now, checks, SAME, [0, 1, 2])
    assert len(plans) == 3
    assert plans[1]["parameters"][0] == {
        "name": "model.k", "key": "new", "direction_key": checks[1]["parameter"]["key"], "elements": [4]}  # fmt: skip
    assert now["iterations"][3]["plan"]["parameters"][0] == {"name": "model.k", "key": "new"}


# --- the ledger, and the user's own numbers


def ledger(*jumps):
    rows = [
        Jump(kind="adjoint", kernel=k, share=s, file="train.py", line=n, ops=1, share_restored=None)
        for k, s, n in jumps
    ]
    return LedgerSide(run_id="x", jumps=rows)


def test_a_jump_that_is_gone_is_named_though_lines_shift():
    before = ledger(("advance", 0.3, 12), ("misfit", 0.5, 20))
    assert vanished(before, ledger(("misfit", 0.5, 24))) == "train.py:12 (advance)"
    assert vanished(before, ledger(("advance", 0.3, 15), ("misfit", 0.5, 24))) is None
    assert vanished(None, before) is None


@pytest.mark.parametrize(
    ("values", "word"),
    [([3, 2, 1], "decreasing"), ([3, 3, 3], "stalled"), ([3, 4], "diverging"), ([3, math.nan], "nan"), ([1, 0.995], "stalled"), ([-1, -2], "decreasing")],
)  # fmt: skip
def test_health(values, word):
    assert health(values) == word


def test_the_printed_loss_is_preferred_to_the_objective():
    output = "\n".join(f"iter {k} grad {k + 1} loss {1 / (k + 1):.3f}" for k in range(4))
    found = run_health(output, trace(), full_size=True)
    assert (found.name, found.first, found.last, found.count) == ("loss", 1.0, 0.25, 4)
    assert run_health("", trace(), full_size=True).name == "loss handed to backward"
    assert run_health("", trace(losses=(1.0,)), full_size=True) is None


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ((3, 3), (3, 1), "gone"),
        ((3, 2), (3, 1), "was_not_seen"),
        ((3, 4), (3, 4), "remains"),
        ((3, 2), (3, 4), "remains"),
    ],
)
def test_is_the_complaint_gone(before, after, complaint):
    sides = [run_health("\n".join(f"loss {v}" for v in values), trace(), full_size=True) for values in (before, after)]
    found = judge_workflow(VerifyFixRequest(script="train.py", args=["--lr", "0.1"]), "/x/python", *sides, "")
    assert found.complaint == complaint
    assert found.command == "python train.py --lr 0.1"
