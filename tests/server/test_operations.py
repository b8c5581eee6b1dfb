"""The operations from request to result and evidence, with the stand-in probe."""

import json
import os
import shlex
import stat
import subprocess
import sys

import pytest

from warp_debug_gradients.cli_options import parse_setting
from warp_debug_gradients.errors import EngineUnavailable, ProbeFailed, UsageError, WorkspaceError
from warp_debug_gradients.evidence import START, Evidence
from warp_debug_gradients.operations.command import command_line
from warp_debug_gradients.operations.gradcheck import gradcheck_full_horizon
from warp_debug_gradients.operations.run_repro import run_repro
from warp_debug_gradients.render import render
from warp_debug_gradients.schemas import GradcheckRequest, RunReproRequest
from warp_debug_gradients.trim import trimmed

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("fake_probe")]


async def check(workspace, **settings):
    return await gradcheck_full_horizon(GradcheckRequest(**settings), workspace)


async def repro(workspace, **settings):
    return await run_repro(RunReproRequest(**settings), workspace)


async def test_a_wrong_gradient(workspace):
    result = await check(workspace, script="wrong.py")
    assert (result.status, result.verdict, result.exit_code) == ("completed", "disagree", 1)
    assert (result.parameter, result.objective, result.iteration) == ("fit.kappa", "fit.err", 0)
    assert result.horizon.full
    assert (result.gradient.autodiff, result.gradient.finite_difference) == (-0.238, -0.2998)
    assert "21% too small" in result.message
    assert [c.iteration for c in result.checks] == [0, 1]
    assert result.next.tool == "bisect_steps"
    assert result.horizon.start.file == "wrong.py"
    assert any("fit.goal" in spot for spot in result.blind_spots)


async def test_a_right_gradient_of_a_training_that_diverges(workspace):
    result = await check(workspace, script="diverges.py")
    assert (result.verdict, result.exit_code) == ("agree", 0)
    assert "0.04 -> 0.09" in result.message
    assert "the gradient is not the reason" in result.message


async def test_one_iteration_on_request(workspace):
    result = await check(workspace, script="right.py", iteration=2)
    assert [c.iteration for c in result.checks] == [2]
    with pytest.raises(UsageError, match="no iteration 9"):
        await check(workspace, script="right.py", iteration=9)


@pytest.mark.parametrize("operation", [check, repro])
async def test_a_program_that_does_not_run(workspace, operation):
    result = await operation(workspace, script="broken.py")
    assert (result.status, result.reason, result.verdict, result.exit_code) == ("blocked", "does_not_run", None, 3)
    assert (result.error.file, result.error.line, result.error.missing_module) == ("broken.py", 4, "warp.sim")
    assert result.error.advice == "Install newton."
    assert result.next.tool == "run_repro"


async def test_a_process_that_dies(workspace):
    result = await check(workspace, script="crash.py")
    assert (result.status, result.exit_code) == ("blocked", 3)
    assert "SIGSEGV" in result.error.message
    assert "iter 2" in result.error.message  # the last thing it said


async def test_nothing_to_check(workspace):
    result = await check(workspace, script="nobackward.py")
    assert (result.verdict, result.reason, result.exit_code) == ("inconclusive", "no_parameter", 4)
    assert result.next.arguments["parameter"] == "fit.goal"


async def test_time_runs_out_with_partial_results(workspace):
    result = await repro(workspace, script="hang.py", timeout_s=2.0)
    assert (result.status, result.exit_code) == ("timeout", 5)
    assert result.iterations_seen == 3


async def test_engines(workspace):
    with pytest.raises(EngineUnavailable):
        await check(workspace, script="cuda.py", engine="fork")


async def test_run_repro_reports_what_is_there(workspace):
    result = await repro(workspace, script="right.py", args=["--lr", "0.1"])
    assert result.exit_code == 0
    assert (result.warp_version, result.device) == ("1.19.0", "cpu")
    assert [p.name for p in result.parameters] == ["fit.kappa"]
    assert [p.name for p in result.leaves] == ["fit.goal"]
    assert result.parameters[0].allocated.file == "right.py"
    assert [series.name for series in result.metrics] == ["err", "grad"]
    assert [knob.name for knob in result.shrink] == ["right.STEPS"]
    assert result.next.arguments == {"script": "right.py", "args": ["--lr", "0.1"]}


async def test_overrides_are_compared_with_the_unshrunk_run(workspace):
    first = await repro(workspace, script="right.py", overrides={"right.STEPS": 10})
    assert first.structure_compared.startswith("unknown")
    whole = await repro(workspace, script="right.py")
    assert whole.structure_compared is None
    again = await repro(workspace, script="right.py", overrides={"right.STEPS": 10})
    assert whole.run_id in again.structure_compared
    assert "the same kernels" in again.structure_compared


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "exactly one target"),
        ({"script": "fit.ipynb"}, "nbconvert --to script fit.ipynb"),
        ({"script": "right.py", "module": "pkg.train"}, "exactly one target"),
        ({"script": "missing.py"}, "no script missing.py"),
        ({"script": "right.py", "inputs": "right.py:make"}, "inputs goes with forward"),
        ({"forward": "right.py"}, "FILE.py:FUNCTION"),
        ({"script": "right.py", "cwd": ".."}, "outside the workspace"),
        ({"script": "right.py", "python": "nope"}, "not an executable"),
    ],
)
async def test_requests_that_cannot_be_met(workspace, settings, text):
    with pytest.raises(UsageError, match=text):
        await repro(workspace, **settings)
    assert not (workspace.root / ".warp-debug-gradients").exists()


async def test_a_probe_without_checks_is_our_failure(workspace, fakes, monkeypatch, tmp_path):
    from warp_debug_gradients import worker

    silent = tmp_path / "silent.py"
    silent.write_text((fakes / "probe.py").read_text().replace('"checks": checks', '"checks": []'))
    monkeypatch.setattr(worker, "BOOTSTRAP", silent)
    with pytest.raises(ProbeFailed):
        await check(workspace, script="right.py")


# --- evidence


async def test_the_evidence_folder(workspace):
    result = await check(workspace, script="wrong.py")
    folder = workspace.root / result.evidence
    assert json.loads((folder / "result.json").read_text())["verdict"] == "disagree"
    assert (folder / "sources" / "wrong.py").read_text() == (workspace.root / "wrong.py").read_text()
    assert set(json.loads((folder / "sources.json").read_text())) == {"wrong.py"}
    assert json.loads((folder / "job.json").read_text())["request"]["script"] == "wrong.py"
    assert "iter 2" in (folder / "output.txt").read_text()
    assert "secret None" in (folder / "output.txt").read_text()
    assert (workspace.root / ".warp-debug-gradients" / ".gitignore").read_text() == "*\n"
    (line,) = (workspace.root / ".warp-debug-gradients" / "index.jsonl").read_text().splitlines()
    assert json.loads(line)["run_id"] == result.run_id
    assert not list(folder.glob("*.partial"))


async def test_rerun_repeats_the_measurement(workspace, fakes):
    result = await check(
        workspace, script="wrong.py", iteration=1, args=["--name", "two words"], overrides={"wrong.STEPS": 8}
    )
    script = workspace.root / result.evidence / "rerun.sh"
    assert script.stat().st_mode & stat.S_IXUSR
    text = script.read_text()
    assert sys.executable in text
    faked = script.with_name("faked.sh")
    faked.write_text(text.replace(f"-c {shlex.quote(START)}", str(fakes / "command.py")))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["sh", str(faked)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1, done.stderr
    latest = json.loads((workspace.root / ".warp-debug-gradients" / "index.jsonl").read_text().splitlines()[-1])
    assert latest["run_id"] != result.run_id
    assert (latest["verdict"], latest["overrides"], latest["args"]) == (
        "disagree",
        {"wrong.STEPS": 8},
        ["--name", "two words"],
    )


async def test_an_evidence_link_that_leaves_the_workspace_is_refused(workspace, tmp_path):
    (workspace.root / ".warp-debug-gradients").symlink_to(tmp_path)
    with pytest.raises(WorkspaceError, match="link"):
        Evidence.create(workspace, "run_repro")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("10", 10), ("1e-3", 0.001), ("-2", -2), ("True", True), ("true", True), ("false", False), ("None", None),
        ("null", None), ("(0, -9.8, 0)", [0, -9.8, 0]), ("[1, true]", [1, True]), ("'true'", "true"), ('"10"', "10"),
        ("cpu", "cpu"), ("inf", "inf"), ("Infinity", "Infinity"), ("a=b", "a=b"), ("", ""), ("010", "010"), ("{1}", "{1}"),
    ],
)  # fmt: skip
def test_values_of_settings(written, value):
    name, parsed = parse_setting(f"a.B={written}")
    assert name == "a.B"
    assert (type(parsed), parsed) == (type(value), value)


def test_every_setting_is_in_the_command(workspace):
    request = GradcheckRequest(
        forward="right.py:f", inputs="right.py:g", cwd=".", device="cpu", parameter="a[0].q", objective="x - 1",
        iteration=3, engine="rerun", overrides={"a.B": "it's", "a.C": True, "a.D": 0.5, "a.E": None, "a.F": [1, [True]]}, timeout_s=7.5, args=["-x"],
    )  # fmt: skip
    command = command_line("gradcheck_full_horizon", request, workspace, "/bin/py")
    pairs = dict(zip(command[1:-2:2], command[2:-2:2]))
    assert pairs["--iteration"] == "3"
    assert pairs["--parameter"] == "a[0].q"
    settings = [command[k + 1] for k, word in enumerate(command) if word == "--set"]
    assert dict(map(parse_setting, settings)) == request.overrides
    assert command[-2:] == ["--", "-x"]
    mentioned = {word[2:] for word in command if word.startswith("--")}
    assert mentioned >= {"python", "workspace", "forward", "inputs", "cwd", "device", "objective", "engine", "timeout"}


# --- texts


async def test_text_is_short(workspace):
    for result in (await check(workspace, script="wrong.py"), await repro(workspace, script="right.py")):
        assert len(render(result)) < 4500  # about 1,500 tokens at three characters each
        assert result.evidence in render(result)


async def test_long_lists_are_cut_and_say_so(workspace):
    result = await repro(workspace, script="right.py")
    result.iterations = result.iterations * 30
    short = trimmed(result, "concise")
    assert len(short.iterations) == 8
    assert "8 of 90" in short.notes[-1]
    assert len(trimmed(result, "full").iterations) == 90
    assert len(result.iterations) == 90


GOLDEN = {"wrong.py": check, "diverges.py": check, "broken.py": repro, "right.py": repro}


@pytest.mark.parametrize("script", GOLDEN)
async def test_golden_texts(workspace, script, request):
    result = await GOLDEN[script](workspace, script=script)
    text = render(result).replace(result.run_id, "RUN").replace(sys.executable, "PYTHON") + "\n"
    text = text.replace(result.interpreter.why, "WHY")
    golden = request.path.parent / "golden" / f"{script[:-3]}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        golden.write_text(text)
    assert text == golden.read_text()
