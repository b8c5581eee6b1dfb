"""enable_tracker and bisect_steps from request to result, with the stand-in probe."""

import json
import os
import sys

import pytest

from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.operations import explain
from warp_debug_gradients.operations.agreement import bound_in_words
from warp_debug_gradients.operations.bisect_steps import bisect_steps, ledger_message
from warp_debug_gradients.operations.enable_tracker import enable_tracker
from warp_debug_gradients.operations.gradcheck import gradcheck_full_horizon
from warp_debug_gradients.operations.knob import between, constant, knob_message, sweep_values, unsettled
from warp_debug_gradients.operations.ledger import place_numpy_writes
from warp_debug_gradients.operations.picture import draw_ledger
from warp_debug_gradients.render import render
from warp_debug_gradients.render.text import pair
from warp_debug_gradients.schemas import (
    BisectStepsRequest,
    BisectStepsResult,
    CheckSummary,
    EnableTrackerRequest,
    GradcheckRequest,
    KnobPoint,
    RunReproRequest,
)
from warp_debug_gradients.trim import trimmed

anyio_test = pytest.mark.anyio
pytestmark = pytest.mark.usefixtures("fake_probe")


async def track(workspace, **settings):
    return await enable_tracker(EnableTrackerRequest(**settings), workspace)


async def bisect(workspace, **settings):
    return await bisect_steps(BisectStepsRequest(**settings), workspace)


# --- enable_tracker


@anyio_test
async def test_two_instruments_side_by_side(workspace):
    result = await track(workspace, script="wrong.py")
    assert (result.status, result.verdict, result.exit_code) == ("completed", None, 1)
    (row,) = result.overwrites
    assert (row.variable, row.reader.kernel, row.writer.line, row.harmful) == ("fit.now", "diffuse", 12, True)
    (warning,) = result.warnings
    assert (warning.array, warning.line, warning.count, warning.stale) == ("fit.now", 12, 38, False)
    assert result.tracker_blind_spots == ["tiles", "structs"]
    assert result.message.startswith("1 harmful overwrite: fit.now (wrong.py:8) is overwritten by kernel diffuse")
    assert "20.6% to 0.01%" in result.message
    assert [(c.code, c.confidence) for c in result.causes] == [("overwrite", "proven")]
    assert (result.next.tool, result.next.arguments["iteration"]) == ("gradcheck_full_horizon", 0)
    job = json.loads((workspace.root / result.evidence / "tracker.job.json").read_text())
    assert job["kernel_cache"].startswith(str(workspace.root / result.evidence))


@anyio_test
async def test_nothing_overwritten(workspace):
    result = await track(workspace, script="right.py", iteration=1)
    assert (result.exit_code, result.iteration) == (0, 1)
    assert "No harmful overwrite in iteration 1" in result.message
    assert "silent" in result.message
    assert result.next.tool == "bisect_steps"


@anyio_test
async def test_the_tracker_answers_where_the_ledger_cannot(workspace):
    result = await track(workspace, script="right.py", iteration=2)
    assert (result.status, result.reason, result.exit_code) == ("completed", "not_reproducible", 4)
    assert result.tracker_available
    cuda = await track(workspace, script="cuda.py")
    assert (cuda.reason, cuda.exit_code, cuda.next.arguments["device"]) == ("needs_fork", 4, "cpu")


@anyio_test
@pytest.mark.parametrize("operation", [track, bisect])
async def test_obstacles(workspace, operation):
    blocked = await operation(workspace, script="broken.py")
    assert (blocked.status, blocked.exit_code, blocked.next.tool) == ("blocked", 3, "run_repro")
    nothing = await operation(workspace, script="nobackward.py")
    assert (nothing.status, nothing.reason, nothing.exit_code) == ("completed", "no_parameter", 4)
    with pytest.raises(UsageError, match="no iteration 9"):
        await operation(workspace, script="right.py", iteration=9)


# --- bisect_steps


@anyio_test
async def test_the_ledger_names_line_and_cause(workspace):
    result = await bisect(workspace, script="wrong.py")
    assert (result.status, result.verdict, result.exit_code, result.iteration) == ("completed", "disagree", 1, 0)
    assert result.message.startswith("wrong.py:12 (diffuse) puts in 20.6% of the derivative of fit.kappa over 40 ops")
    assert result.causes[0].code == "overwrite"
    assert result.step == 1e-3  # the step at which the quick check settled
    picture = workspace.root / result.picture
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert result.next.why.startswith("After the repair (overwrite)")
    job = json.loads((workspace.root / result.evidence / "evaluate.job.json").read_text())
    assert job["options"]["directions"] == 1


@anyio_test
async def test_a_lost_chain_is_located(workspace):
    result = await bisect(workspace, script="lost.py")
    assert "loses (in fit.now) 20.6%" in result.message
    assert (result.causes[0].code, result.causes[0].line) == ("missing_requires_grad", 8)


@anyio_test
async def test_nothing_to_locate(workspace):
    result = await bisect(workspace, script="right.py")
    assert (result.verdict, result.exit_code, result.next) == ("agree", 0, None)
    assert render(result).startswith("CLEAN")


@anyio_test
async def test_a_knob_is_bisected_to_its_smallest_failing_value(workspace):
    result = await bisect(workspace, script="right.py", knob="right.STEPS")
    assert (result.method, result.smallest_failing, result.exit_code) == ("knob", 11, 1)
    values = [p.value for p in result.points]
    assert values[0] == 1
    assert values[-1] == 40
    assert {10, 11} <= set(values)
    assert "AD and FD part at 11" in result.message
    assert "agree at 10" in result.message
    assert result.next.arguments["overrides"] == {"right.STEPS": 11}


@anyio_test
async def test_a_knob_that_never_fails_and_listed_values(workspace):
    result = await bisect(workspace, script="right.py", knob="right.STEPS", values=[4, 2, 8])
    assert (result.exit_code, result.smallest_failing, [p.value for p in result.points]) == (0, None, [2, 4, 8])
    sweep = await bisect(workspace, script="right.py", method="sweep", knob="right.STEPS")
    assert [p.value for p in sweep.points] == [10, 20, 40, 80]
    assert "Over 4 values of right.STEPS" in sweep.message


@anyio_test
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"method": "knob"}, "needs knob"),
        ({"knob": "right.NOTHING"}, "not a number in the source"),
        ({"knob": "right.STEPS", "overrides": {"right.STEPS": 3}}, "both the knob and an override"),
    ],
)
async def test_knobs_that_cannot_be_used(workspace, settings, text):
    with pytest.raises(UsageError, match=text):
        await bisect(workspace, script="right.py", **settings)


def test_the_middle_values():
    assert between(1, 40, 2) == [14, 27]
    assert between(1, 3, 2) == [2]
    assert between(4, 5, 2) == []
    assert sweep_values(2) == [1, 2, 4]


def test_constants(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("A, B = 3, 4.5\nC: int = 7\nD = True\n")
    assert [constant(file, name) for name in "ABCDE"] == [3, 4.5, 7, None, None]


def test_texts_of_a_table():
    agree = KnobPoint(value=4, verdict="agree", objective=1.0, gradient_norm=1.0)
    wrong = KnobPoint(
        value=8, verdict="disagree", autodiff=1.0, finite_difference=2.0, relative_error=0.5, objective=2.0
    )
    unsure = KnobPoint(value=16, verdict="inconclusive", reason="kink")
    assert "smallest failing value tried is 8" in knob_message("t.N", [agree, wrong, unsure], "knob")
    assert "Not decided at 16" in knob_message("t.N", [agree, wrong, unsure], "knob")
    assert "agree at every decided value" in knob_message("t.N", [agree], "knob")
    assert "No value of t.N" in knob_message("t.N", [unsure], "knob")
    assert "the objective goes from 1 to 2 (50%) between 4 and 8" in knob_message("t.N", [agree, wrong], "sweep")
    assert [c.code for c in unsettled("t.N", [agree, wrong])] == ["unconverged_solver"]
    assert unsettled("t.N", [agree, agree]) == []


def test_a_picture_of_numbers_that_are_not_finite(tmp_path):
    draw_ledger({"finite_difference": "nan", "jumps": [{"series": [[0, "nan"], [1, 2.0]]}], "book": [[0, "inf"]]}, tmp_path / "p.png")  # fmt: skip
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


# --- texts


@anyio_test
async def test_texts_are_short(workspace):
    for result in (await track(workspace, script="wrong.py"), await bisect(workspace, script="wrong.py")):
        assert len(render(result)) < 4500
        result.overwrites, result.causes = result.overwrites * 50, result.causes * 50
        assert len(render(result)) < 9000
        short = trimmed(result, "concise")
        assert len(short.overwrites) < 10
        assert "of 50" in short.notes[-1]


GOLDEN = {"tracker": (track, "wrong.py"), "bisect": (bisect, "wrong.py"), "clean": (track, "right.py")}


@anyio_test
@pytest.mark.parametrize("name", GOLDEN)
async def test_golden_texts(workspace, name, request):
    operation, script = GOLDEN[name]
    result = await operation(workspace, script=script)
    text = render(result).replace(result.run_id, "RUN").replace(sys.executable, "PYTHON") + "\n"
    text = text.replace(result.interpreter.why, "WHY")
    golden = request.path.parent / "golden" / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        golden.write_text(text)
    assert text == golden.read_text()


# --- truncation, factors, and variables that are passed on


def check_of(windows, autodiff=-1.0, difference=-4.0, count=None, **fields):
    numbers = {"autodiff": autodiff, "finite_difference": difference, "error": 1e-3}
    return {"iteration": 0, "parameter": {"name": "drag"}, "objective": {"name": "loss", "kind": "loss"}, "message": "off",
            "verdict": "disagree", "horizon": {"windows": count or len(windows), "full": True},
            "gradient": {**numbers, "directions": [numbers]}, "windows": windows, "signature": {}, **fields}  # fmt: skip


def window(autodiff, difference, verdict="agree"):
    return {
        "verdict": verdict,
        "autodiff": autodiff,
        "finite_difference": difference,
        "error": 1e-3,
        "file": "t.py",
        "line": 9,
    }


@pytest.mark.parametrize("windows", [[], [window(-2.0, -2.0)], [window(-1.0, -1.0), window(-0.5, -0.5)]])
def test_a_call_that_repeats_the_one_before_counts_twice(windows):
    again = [{"file": "t.py", "line": 14}]
    check = check_of(windows, autodiff=-4.0, difference=-2.0, count=2, contributed=-2.0, repeated=again)
    (cause,) = explain.proven_causes(check, {"iterations": []})
    assert (cause.code, cause.confidence, cause.line) == ("double_count", "likely", 14)


def test_one_window_that_agrees_by_itself_is_truncation():
    check = check_of([window(-1.0, -1.001)])
    message = explain.headline_message(check, [check], {})
    assert (
        "the tape's own window agrees (AD = -1, FD = -1.001) but the gradient misses what happens before it" in message
    )
    (cause,) = explain.proven_causes(check, {}, {"file": "t.py", "line": 7})
    assert (cause.code, cause.file, cause.line) == ("truncation", "t.py", 7)


def test_windows_that_add_up_to_the_whole_are_no_truncation():
    stale = check_of([window(-4.0, -4.001)], autodiff=-8.0)
    assert not explain.is_truncated(stale)
    assert explain.proven_causes(stale, {}) == []
    assert explain.is_truncated(check_of([window(-1.0, -1.0), window(-0.5, -0.5)]))
    assert not explain.is_truncated(check_of([window(-1.0, -1.0), window(-0.5, -3.0, "disagree")]))
    assert explain.is_truncated(check_of([window(-1.0, -1.0), window(-0.5, -0.5)], count=9))  # not all were measured
    assert not explain.is_truncated(check_of([window(-1.0, -1.0)], verdict="inconclusive"))


def test_a_gradient_that_is_changed_behind_its_backward_calls_is_no_truncation():
    """Each call is right by itself, and the update uses something else than their sum: only two of five were measured."""
    fields = {"autodiff": -7.0, "difference": -4.0, "count": 5}
    check = check_of([window(-1.0, -1.0), window(-0.5, -0.5)], contributed=-4.001, **fields)
    assert not explain.is_truncated(check)
    assert explain.proven_causes(check, {}) == []
    edit = {"file": "t.py", "line": 5, "scale": 0.5, "how": "launch of shrink"}
    (cause,) = explain.proven_causes(check, {"iterations": [{"index": 0, "gradient_edited": edit}]})
    assert (cause.code, cause.line) == ("stale_gradient", 5)
    assert "what the 5 backward calls add adds up to -4.001" in cause.evidence[1]
    assert "the update uses -7" in cause.evidence[1]
    check["consumed"] = {"when": "readings", "read": {"file": "t.py", "line": 11, "how": "numpy"}}
    (cause,) = explain.proven_causes(check, {})
    assert (cause.code, cause.line) == ("double_count", 11)


def test_what_backward_left_and_the_update_uses_may_miss_what_came_before():
    """The update uses what the calls added, and that misses a part: two of five were measured, and it says so."""
    check = check_of([window(-1.0, -1.0), window(-0.5, -0.5)], autodiff=-2.5, count=5, contributed=-2.5)
    edited = [{"index": 0, "gradient_edited": {"line": 5, "scale": 0.5}}]
    (cause,) = explain.proven_causes(check, {"iterations": edited})
    assert cause.code == "truncation"
    assert cause.evidence[0].startswith("each of the 2 backward calls looked at (of 5) agrees")


def test_a_factor_against_a_stated_objective():
    signature = {"kind": "factor", "factor": 0.25, "message": "It is 0.25 times the right one."}
    check = check_of([], signature=signature, objective={"name": "mean(l)", "kind": "expression"})
    message = explain.headline_message(check, [check], {})
    assert "the gradient is right if the program scales it by 4 afterwards" in message
    check["objective"]["kind"] = "loss"
    assert "scales" not in explain.headline_message(check, [check], {})


@anyio_test
async def test_a_named_variable_is_passed_on(workspace, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "abc")
    request = GradcheckRequest(script="right.py", env=["MY_TOKEN"])
    result = await gradcheck_full_horizon(request, workspace)
    folder = workspace.root / result.evidence
    assert "secret abc" in (folder / "output.txt").read_text()
    assert "--env MY_TOKEN" in (folder / "rerun.sh").read_text()
    assert "abc" not in (folder / "job.json").read_text() + (folder / "trace.job.json").read_text()
    monkeypatch.delenv("MY_TOKEN")
    with pytest.raises(UsageError, match="MY_TOKEN is not set"):
        await gradcheck_full_horizon(request, workspace)


def test_an_uninitialised_device_is_named():
    from warp_debug_gradients.schemas import RunReproResult

    result = RunReproResult(run_id="r", operation="run_repro", status="completed", message="m", evidence="e")
    assert "device not initialised" in render(result)
    assert RunReproRequest(script="x").env == []


def test_a_write_through_a_view_gets_the_line_that_the_source_shows(workspace):
    (workspace.root / "view.py").write_text("v = mid.numpy()\nlaunch(mid)\nv[:] = 3.0\n")
    row = {"variable": "mid", "reader": {"file": "view.py", "line": 2}, "writer": {"what": "a write that no hook saw (a NumPy view)"}}  # fmt: skip
    jump = {"file": "view.py", "line": 1, "writers": [{"what": "a write to mid through a NumPy view", "file": "view.py", "line": 1}]}  # fmt: skip
    place_numpy_writes(workspace, {"overwrites": [row], "jumps": [jump]})
    assert (row["writer"]["file"], row["writer"]["line"], jump["line"]) == ("view.py", 3, 3)


OVERWRITE = {
    "variable": "buffer",
    "harmful": True,
    "reader": {"kernel": "force", "file": "t.py", "line": 5},
    "writer": {"what": "kernel net", "file": "t.py", "line": 9},
    "change": {"max_abs": 0.1, "relative": 0.2},
}


@pytest.mark.parametrize(
    ("restored", "jumps", "said"),
    [
        (
            0.995,
            [],
            "changes the derivative by 0.5%: buffer is read by force at t.py:5 and changed by kernel net at t.py:9",
        ),
        (0.9, [], "changes the derivative by 10%, which is more: something else makes up for it along this direction"),
        (
            None,
            [{"kind": "adjoint", "share": 0.01, "significant": True, "file": "t.py", "line": 5, "noise": 0.001}],
            "derivative by 1%: t.py",
        ),
    ],
)
def test_an_agreement_beside_a_fault_says_what_it_rules_out(restored, jumps, said):
    """The room that the differences leave, and what the fault does to the derivative: two numbers, side by side."""
    what_if = {"finite_difference": 1.0, "as_is": 1.0, "restored": restored}
    result = BisectStepsResult.model_validate(
        {"run_id": "r", "operation": "bisect_steps", "evidence": "e", "status": "completed", "message": "",
         "parameter": "w", "iteration": 0, "jumps": jumps, "overwrites": [OVERWRITE] if restored else [],
         "what_if": what_if if restored else None}
    )  # fmt: skip
    check = {"verdict": "agree", "gradient": {"resolution": 0.024}}
    text = ledger_message(result, check)
    assert text.startswith(
        "The gradient of w agrees with differences in iteration 0. The agreement leaves room for an error up "
    )
    assert "up to 2.4% of its size, which this check would not have seen" in text
    assert said in text


@pytest.mark.parametrize(
    ("autodiff", "size", "said"),
    [
        (1.075, 25.0, "7.5% of this slope, 0.3% of the gradient's size, which is what is judged"),
        (1.004, 25.0, ""),  # nobody wonders at that
        (1.075, 1.5, ""),  # the slope is of the gradient's size
        (1.075, None, ""),
    ],
)
def test_an_agreement_says_what_its_error_is_judged_against(autodiff, size, said):
    """A direction that happens to be nearly level: its own slope is no measure."""
    gradient = {"autodiff": autodiff, "finite_difference": 1.0, "error": 1e-3, "relative_error": autodiff - 1.0}
    check = {"verdict": "agree", "iteration": 1, "gradient": {**gradient, "size": size, "resolution": 0.005}}
    summary = CheckSummary.model_validate({**gradient, "verdict": "agree", "size": size})
    for text in (explain.headline_message(check, [check], {}), bound_in_words(check["gradient"]), pair(summary)):
        assert said in text
        assert ("which is what is judged" in text) == bool(said), text
