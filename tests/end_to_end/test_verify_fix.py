"""verify_fix on real programs: repaired twins, other faults, and edits that only look like repairs."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sweep
import truths
from mcp import Client, StdioServerParameters

TIMEOUT = "200"
PROGRAM = """
import numpy as np
import warp as wp
import helper

STEPS = 12
n = 6


@wp.kernel
def advance(x: wp.array(dtype=float), k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 0.05 * wp.sin(k[i] * x[i])


@wp.kernel
def misfit(x: wp.array(dtype=float), goal: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - goal[i]
    wp.atomic_add(loss, 0, d * d)


k = wp.array(np.linspace(0.5, 1.5, n), dtype=float, requires_grad=True)
goal = wp.array(np.full(n, helper.GOAL), dtype=float)
buffers = [wp.zeros(n, dtype=float, requires_grad=True) for _ in range(2)]
for it in range(4):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    buffers[0].assign(np.linspace(0.4, 1.0, n))
    tape = wp.Tape()
    with tape:
        for s in range(STEPS):
            wp.launch(advance, n, inputs=[buffers[s % 2], k], outputs=[buffers[(s + 1) % 2]])
        wp.launch(misfit, n, inputs=[buffers[STEPS % 2], goal], outputs=[loss])
    tape.backward(loss)
    print(f"iter {it} loss {loss.numpy()[0]:.6f}")
    k.assign(k.numpy() - 0.2 * k.grad.numpy())
    tape.zero()
"""
REPAIR = [
    ("for _ in range(2)]", "for _ in range(STEPS + 1)]"),
    ("buffers[s % 2]", "buffers[s]"),
    ("buffers[(s + 1) % 2]", "buffers[s + 1]"),
    ("buffers[STEPS % 2]", "buffers[STEPS]"),
]
STALE = ("    tape.zero()", "    pass")
EDITS = {  # name: (edits besides the repair, outcome, words of the message)
    "repaired": ([], "fixed", ["iteration 1, too", "the same objective"]),
    "horizon shortened": ([("STEPS = 12", "STEPS = 2")], "masked", ["derivative of the objective by differences"]),
    "no longer updated": ([("k.assign(k.numpy() - 0.2 * k.grad.numpy())", "k.grad.numpy()")], "masked", ["updated"]),
    "loss detached": ([("inputs=[buffers[STEPS], goal]", "inputs=[goal, goal]")], "masked", ["no longer depends"]),
    "loss scaled": ([("0, d * d)", "0, 0.01 * d * d)")], "masked", ["scaled by 0.01"]),
    "other start": ([("np.linspace(0.5, 1.5, n)", "np.linspace(0.6, 1.4, n)")], "masked", ["initial values of k"]),
    "another fault": ([STALE], "improved_but_wrong", ["iteration 1", "stale_gradient"]),
}


def edited(text, edits):
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def command(folder, *arguments):
    """(exit code, result or error text) of the real command."""
    done = subprocess.run(
        [sys.executable, "-m", "warp_debug_gradients", *arguments, "--workspace", str(folder)],
        cwd=truths.ROOT, env=truths.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout + done.stderr


def verify(folder, *options):
    return command(folder, "verify-fix", "--timeout", TIMEOUT, "--json", *options)


def baseline(folder, *options):
    code, result = command(
        folder,
        "gradcheck-full-horizon",
        "train.py",
        "--python",
        sys.executable,
        "--timeout",
        TIMEOUT,
        "--json",
        *options,
    )
    assert (code, result["verdict"]) == (1, "disagree"), result["message"]
    return result


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The broken program with a baseline, shared: every test writes its own train.py."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "helper.py").write_text("GOAL = 1.6\n")
    (folder / "train.py").write_text(PROGRAM)
    (folder / "typing_extensions.py").write_text("raise ImportError('not the standard library')\n")
    baseline(folder)
    return folder


@pytest.mark.parametrize("name", EDITS)
def test_edits(project, name):
    edits, outcome, words = EDITS[name]
    (project / "train.py").write_text(edited(PROGRAM, [*REPAIR, *edits]))
    code, result = verify(project, "--no-workflow")
    assert result["outcome"] == outcome, result["message"]
    assert code == (0 if outcome == "fixed" else 1)
    for word in words:
        assert word in result["message"], result["message"]
    assert (project / result["report_html"]).stat().st_size > 10_000


def test_the_broken_program_again(project):
    (project / "train.py").write_text(PROGRAM)
    code, result = verify(project, "--no-workflow")
    assert (code, result["outcome"], result["reason"]) == (1, "not_fixed", "nothing_changed"), result["message"]
    assert "overwrite" in result["message"]
    before, after = result["before"], result["after"]
    for number in ("autodiff", "finite_difference", "objective"):
        assert before[number] == pytest.approx(after[number], rel=1e-6)


def test_a_repair_in_a_file_that_is_not_loaded_is_not_judged(project):
    (project / "train.py").write_text(PROGRAM)
    (project / "train_new.py").write_text(edited(PROGRAM, REPAIR))
    code, result = verify(project, "--no-workflow")
    (project / "train_new.py").unlink()
    assert (code, result["outcome"], result["reason"]) == (4, "inconclusive", "edit_not_loaded"), result["message"]
    assert result["edited_elsewhere"] == ["train_new.py"]
    assert "train_new.py changed since the baseline, but this program does not load it" in result["message"]
    assert result["after"]["verdict"] == "disagree"


def test_other_overrides_are_refused(project):
    code, said = verify(project, "--set", "train.STEPS=2")
    assert code == 2
    assert "overrides: {'train.STEPS': 2} here, {} in the baseline" in said


def test_two_faults_at_once(tmp_path):
    """The state is overwritten, and gradients are never zeroed: the repair of one leaves the other."""
    (tmp_path / "helper.py").write_text("GOAL = 1.6\n")
    (tmp_path / "train.py").write_text(edited(PROGRAM, [STALE]))
    baseline(tmp_path)
    (tmp_path / "train.py").write_text(edited(PROGRAM, [*REPAIR, STALE]))
    _, result = verify(tmp_path, "--no-workflow")
    assert result["outcome"] == "improved_but_wrong", result["message"]
    assert any(c["code"] == "stale_gradient" and c["file"] == "train.py" for c in result["causes"])


def test_rerun_from_a_clean_shell(project):
    """In a workspace with a module that is called like one that we import."""
    run = next((project / truths.OURS / "runs").glob("*gradcheck*"))
    first = json.loads((run / "result.json").read_text())
    (project / "train.py").write_text(PROGRAM)
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    done = subprocess.run(
        ["sh", str(run / "rerun.sh"), "--json"], cwd="/", env=clean, capture_output=True, text=True, check=False
    )
    again = json.loads(done.stdout)
    assert (done.returncode, again["verdict"]) == (1, "disagree")
    for number in ("autodiff", "finite_difference", "error"):
        assert again["gradient"][number] == pytest.approx(first["gradient"][number], rel=1e-6)


RERUN = """
import numpy as np
import warp as wp


@wp.kernel
def swell(x: wp.array(dtype=float), k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 0.2 * wp.sin(k[0] * x[i])


@wp.kernel
def misfit(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 1.3) * (x[i] - 1.3))


k = wp.array([0.7], dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
cells = [wp.zeros(4, dtype=float, requires_grad=True) for _ in range(2)]
for it in range(2):
    loss.zero_()
    cells[0].assign(np.linspace(0.4, 1.0, 4))
    with wp.Tape() as tape:
        for s in range(2):
            wp.launch(swell, 4, inputs=[cells[s % 2], k], outputs=[cells[(s + 1) % 2]])
        wp.launch(misfit, 4, inputs=[cells[0]], outputs=[loss])
    tape.backward(loss)
    k.assign(k.numpy() - 0.05 * k.grad.numpy())
    tape.zero()
"""


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_baseline_of_the_rerun_engine(tmp_path):
    """Measured at a shell, verified over MCP: by the same engine, in runs of their own, with the numbers of before."""
    (tmp_path / "train.py").write_text(RERUN)
    before = baseline(tmp_path, "--engine", "rerun", "--iteration", "0")
    assert before["engine"] == "rerun"
    repaired = edited(
        RERUN, [("range(2)]", "range(3)]"), ("[s % 2]", "[s]"), ("(s + 1) % 2", "s + 1"), ("[cells[0]]", "[cells[2]]")]
    )
    (tmp_path / "train.py").write_text(repaired)
    environment = truths.environment()
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "warp_debug_gradients", "serve"], cwd=str(tmp_path),
        env={k: environment[k] for k in ("PATH", "HOME", "PYTHONPATH", "WARP_CACHE_PATH") if k in environment},
    )  # fmt: skip
    async with Client(server) as client:
        answer = await client.call_tool("verify_fix", {"workflow": False, "timeout_s": float(TIMEOUT)})
    assert not answer.is_error, answer.content
    result = answer.structured_content
    assert result["outcome"] == "fixed", result["message"]
    evaluated = json.loads((tmp_path / result["evidence"] / "evaluate.json").read_text())
    assert evaluated["engine"] == "rerun"
    assert [c["iteration"] for c in evaluated["checks"]] == [0, 1]
    options = [
        json.loads((tmp_path / r["evidence"] / "evaluate.job.json").read_text())["options"] for r in (before, result)
    ]
    assert options[0] == options[1]
    assert result["before"]["finite_difference"] == pytest.approx(result["after"]["finite_difference"], rel=1e-6)
    assert not list((tmp_path / result["evidence"]).glob("evaluations*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["08_cart_short_window", "09_mixer_gain_inplace", "frame_truncation-broken"])
def test_repaired_twins(tmp_path, name):
    """Among them the repair of a truncation, by which the number of windows or operations changes."""
    program = truths.named(name)
    twin = program.folder / ("repaired.py" if (program.folder / "repaired.py").exists() else "fixed.py")
    shutil.copy(program.folder / str(program.script), tmp_path / "train.py")
    stated = program.truth.get("objective")
    baseline(tmp_path, *(["--objective", stated] if stated else []))
    shutil.copy(twin, tmp_path / "train.py")
    code, result = verify(tmp_path)
    assert (code, result["outcome"]) == (0, "fixed"), result["message"]
    assert result["workflow"]["after"]["health"] == "decreasing"
    page = (tmp_path / result["report_html"]).read_text()
    assert len(re.findall("<svg", page)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accumulator_reset-broken", "seed_mismatch-broken"])
def test_repaired_then_broken_again_then_broken_otherwise(tmp_path, name):
    """A slice of `make sweep WHAT=twins`: an overwrite, a stated objective. docs/sweeps.md has the whole."""
    ((broken, repaired),) = [pair for pair in sweep.twins() if pair[0].name == name]
    assert sweep.verified(broken, repaired, tmp_path).problems == []


@pytest.mark.slow
def test_the_repair_of_a_race_moves_the_forward_values(tmp_path):
    """One state for all strides: threads read what others of the same launch wrote. The repair is no mask."""
    program = truths.named("caterpillar")
    text = (program.folder / "main.py").read_text()
    (tmp_path / "train.py").write_text(text)
    baseline(tmp_path)
    (fix,) = program.truth["fix"]
    (tmp_path / "train.py").write_text(edited(text, [(fix["old"], fix["new"])]))
    code, result = verify(tmp_path, "--no-workflow")
    assert (code, result["outcome"]) == (0, "fixed"), result["message"]
    assert "their order decided the forward values" in result["message"]
    assert any("no witness" in text for text in result["blind_spots"])
