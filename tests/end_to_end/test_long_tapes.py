"""Long tapes: coarse to fine finds the line early, in the middle and late, and its memory does not grow with the tape."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from memory import MIB, peak_of

import warp_debug_gradients
from warp_debug_gradients.render import title
from warp_debug_gradients.schemas import EnableTrackerResult

PROGRAM = Path(__file__).parents[1] / "programs" / "long" / "main.py"
BOOTSTRAP = Path(warp_debug_gradients.__file__).parent / "probe" / "bootstrap.py"
LINES = PROGRAM.read_text().splitlines()
STEPS = 400
SMALL_MB = "0.4"  # the recordings of 400 operations on 2 kB take three times 800 kB

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and the budget is that of Linux")


def line_with(mark: str) -> int:
    return next(k for k, text in enumerate(LINES, 1) if text.endswith(f"# {mark}"))


def command(workspace: Path, *arguments: str) -> list[str]:
    shutil.copy(PROGRAM, workspace / "main.py")
    words = [sys.executable, "-m", "warp_debug_gradients", "enable-tracker", "main.py", "--workspace", str(workspace)]
    return [*words, "--python", sys.executable, "--timeout", "600", "--json", "--", *arguments]


def ledger_of(workspace: Path, output: str) -> tuple[dict, dict]:
    result = json.loads(output)
    assert result["status"] == "completed", result
    (ledger,) = json.loads((workspace / result["evidence"] / "ledger.json").read_text())["ledgers"]
    return result, ledger


def sampled(workspace: Path, *arguments: str) -> tuple[dict, dict]:
    """The answer and the ledger where little fits into the recordings."""
    environment = {**os.environ, "WARP_DEBUG_GRADIENTS_LEDGER_MB": SMALL_MB}
    done = subprocess.run(
        command(workspace, "--steps", str(STEPS), *arguments),
        cwd=workspace, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    result, ledger = ledger_of(workspace, done.stdout)
    assert ledger["timing"]["forward_runs"] <= 8
    assert abs(ledger["balance"]) < 1e-9
    assert len(ledger["stretches"]) > 8
    assert any("too long to record every operation" in note for note in result["notes"])
    return result, ledger


@pytest.mark.parametrize("step", [4, STEPS // 2, STEPS - 40])
def test_an_overwrite_is_found_wherever_it_is(tmp_path, step):
    result, ledger = sampled(tmp_path, "--clobber", str(step))
    (found,) = [row for row in result["overwrites"] if row["harmful"]]
    assert found["reader"]["line"] == line_with("reader")
    assert found["writer"]["line"] == line_with("writer")
    assert found["op"] == step + 1
    first = result["causes"][0]
    assert (first["code"], first["confidence"], first["line"]) == ("overwrite", "proven", line_with("writer"))
    assert 0 < ledger["ops_recorded"] < 0.5 * ledger["ops"]
    assert ledger["timing"]["forward_runs"] == 4  # the operations of the stretch are made again from its ends


def test_a_severed_chain_is_found(tmp_path):
    _, ledger = sampled(tmp_path, "--sever", str(STEPS // 2))
    lost = ledger["jumps"][0]
    assert (lost["kind"], lost["line"]) == ("lost", line_with("severed"))
    assert ledger["timing"]["forward_runs"] == 4


def test_what_the_tape_alone_cannot_make_again_is_run_again(tmp_path):
    """A host write between two operations: a replay would not end as the run did, and the program runs once more."""
    result, ledger = sampled(tmp_path, "--nudge", str(STEPS // 2 + 7))
    assert ledger["timing"]["forward_runs"] == 7
    jump = ledger["jumps"][0]
    assert (jump["kind"], jump["line"]) == ("unrecorded", line_with("nudge"))


DIAGNOSE = """
import sys
from warp_debug_gradients.operations import diagnose
diagnose.OPTIONS["sparing_from"] = 0.0  # as if every program were a slow one
from warp_debug_gradients.cli import main
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("fault", [["--sever", "1500"], ["--apart"]])
def test_a_diagnosis_of_a_long_tape_takes_ten_forward_runs(tmp_path, fault):
    environment = {**os.environ, "WARP_DEBUG_GRADIENTS_LEDGER_MB": "2"}
    words = command(tmp_path, "--steps", "3000", "--cells", "64", *fault)
    words[1:3] = ["-c", DIAGNOSE]
    words[words.index("enable-tracker")] = "diagnose"
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    result = json.loads(done.stdout)
    evidence = tmp_path / result["evidence"]
    (check,) = json.loads((evidence / "evaluate.json").read_text())["checks"]
    assert any("sparingly" in spot for spot in result["blind_spots"])
    assert not any("for lack of time" in spot for spot in result["blind_spots"])
    assert check["repeats"]["reproducible"]  # told by the watched run's own loss
    runs = 1 + check["evaluations"]
    if fault == ["--apart"]:
        assert result["verdict"] == "agree"
        assert runs <= 10
        return
    (ledger,) = json.loads((evidence / "ledger.json").read_text())["ledgers"]
    assert (result["verdict"], result["causes"][0]["code"]) == ("disagree", "missing_requires_grad")
    assert ledger["jumps"][0]["line"] == line_with("severed")
    assert ledger["timing"]["forward_runs"] == 3
    assert runs + 3 <= 10


def test_a_right_gradient_is_told_by_the_ends_of_stretches_alone(tmp_path):
    result, ledger = sampled(tmp_path)
    assert ledger["flat"]
    assert result["causes"] == []
    assert (ledger["ops_recorded"], ledger["timing"]["forward_runs"]) == (0, 4)
    heading = title(EnableTrackerResult.model_validate({k: v for k, v in result.items() if k != "exit_code"}))
    assert heading == f"NOTHING FOUND: 0 of {STEPS + 1} operations looked at singly"


def test_a_parameter_that_only_copies_read_is_known_at_the_ends_of_stretches_too(tmp_path):
    result, ledger = sampled(tmp_path, "--apart")
    assert ledger["flat"]
    assert ledger["autodiff"] == pytest.approx(ledger["finite_difference"], rel=0.01)
    assert result["causes"] == []


def test_a_fault_in_every_step_is_measured_where_it_fits_and_the_rest_is_said(tmp_path):
    result, ledger = sampled(tmp_path, "--pingpong")
    assert any(row["harmful"] for row in result["overwrites"])
    assert ledger["unrecorded"]["significant"]
    assert ledger["what_if"] is None  # it could restore a part of the reads only


def test_states_that_are_rows_of_one_array_are_looked_at_row_by_row(tmp_path):
    result, ledger = sampled(tmp_path, "--rows")
    assert ledger["flat"]
    assert result["causes"] == []


@pytest.mark.parametrize("apart", [False, True])
def test_a_gradient_that_is_a_long_sum_in_float32(tmp_path, apart):
    """Every adjoint is right, and what they add up to is 4 % off; a copy for each launch repairs it."""
    program = PROGRAM.with_name("long_sum.py")
    shutil.copy(program, tmp_path / "main.py")
    words = [sys.executable, "-m", "warp_debug_gradients", "bisect-steps", "main.py", "--workspace", str(tmp_path)]
    words += ["--python", sys.executable, "--iteration", "0", "--timeout", "400", "--json"]
    done = subprocess.run(
        [*words, *(["--", "--apart"] if apart else [])], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    result = json.loads(done.stdout)
    if apart:
        assert (result["verdict"], result["flat"], result["causes"]) == ("agree", True, [])
        return
    assert result["verdict"] == "disagree"
    (cause,) = result["causes"]
    lines = program.read_text().splitlines()
    assert (cause["code"], cause["confidence"], cause["variables"]) == ("precision_floor", "proven", ["rate"])
    assert "wp.launch(warm" in lines[cause["line"] - 1]


def test_the_round_off_of_a_long_sum_accuses_nobody(tmp_path):
    """At some of these steps the sum's round-off is a hundred times its one-sided spread: by chance, as in real life."""
    program = PROGRAM.with_name("cancelling.py")
    shutil.copy(program, tmp_path / "main.py")
    lines = program.read_text().splitlines()
    severed = next(k for k, text in enumerate(lines, 1) if "inputs=[a, rate]" in text)
    words = [sys.executable, "-m", "warp_debug_gradients", "bisect-steps", "main.py", "--workspace", str(tmp_path)]
    done = subprocess.run(
        [*words, "--python", sys.executable, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    evidence = tmp_path / json.loads(done.stdout)["evidence"]
    job = json.loads((evidence / "ledger.job.json").read_text())
    examined = []
    for step in (3e-5, 5e-5, 1e-5):
        here = evidence / "again.json"
        job |= {"parent_pid": os.getpid(), "result": str(here), "ledger": {**job["ledger"], "step": step}}
        (evidence / "again.job.json").write_text(json.dumps(job))
        subprocess.run([sys.executable, str(BOOTSTRAP), str(evidence / "again.job.json")], cwd=tmp_path, check=False)
        (ledger,) = json.loads(here.read_text())["ledgers"]
        assert [(j["kind"], j["line"]) for j in ledger["jumps"] if j["significant"]] == [("lost", severed)]
        examined += [row.get("tangent_noise") for row in ledger["isolated"] if row["kernel"] == "total"]
    assert any(examined), "the sum was never blamed at first: nothing was shown"


def atomic_loss(tmp_path, *arguments):
    """(the result of bisect-steps, its ledger) of the program whose loss and whose gradient are sums of one launch each."""
    shutil.copy(PROGRAM.with_name("atomic_loss.py"), tmp_path / "main.py")
    words = [sys.executable, "-m", "warp_debug_gradients", "bisect-steps", "main.py", "--workspace", str(tmp_path)]
    words += ["--python", sys.executable, "--iteration", "0", "--timeout", "300", "--json", "--", *arguments]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    return ledger_of(tmp_path, done.stdout)


@pytest.mark.parametrize("arguments", [[], ["--threads", "400000", "--offset", "0"]])
def test_the_round_off_of_an_adjoints_own_sum_is_no_wrong_adjoint(tmp_path, arguments):
    """The gradient is a float32 sum of what all threads of one launch give: its jump is what other scales show as rounding."""
    result, ledger = atomic_loss(tmp_path, *arguments)
    assert not any(j["significant"] for j in result["jumps"])
    (row,) = (r for r in ledger["isolated"] if r["kernel"] == "wave")
    assert (row["verdict"], row["reason"]) == ("undecided", "round_off")
    assert row["sum_noise"] > 0.0
    (jump,) = (j for j in ledger["jumps"] if j["kernel"] == "wave")
    assert 1e-4 < abs(jump["share"]) <= 4.0 * jump["noise"]
    assert "warp_defect" not in [c["code"] for c in result["causes"]]


def test_a_wrong_adjoint_of_a_long_sum_is_wrong_all_the_same(tmp_path):
    result, _ = atomic_loss(tmp_path, "--planted")
    assert [j["kernel"] for j in result["jumps"] if j["significant"]] == ["total_planted"]
    assert [c["code"] for c in result["causes"]] == ["custom_gradient"]
    assert result["causes"][0]["confidence"] != "possible"


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1000, 4000])
def test_memory_is_the_programs_own_twice_whatever_the_length_of_the_tape(tmp_path, steps):
    """An evaluation runs beside the finished program and takes as much; what the ledger records does not add up.

    With all of it recorded, 4,000 operations took 914 MiB, of 225 bare.
    """
    arguments = ("--steps", str(steps), "--cells", "2500", "--clobber", str(steps // 2))  # states of 20 kB
    environment = {**os.environ, "WARP_DEBUG_GRADIENTS_LEDGER_MB": "24"}
    bare, alone = peak_of([sys.executable, str(PROGRAM), *arguments], cwd=tmp_path)
    assert bare.returncode == 0, bare.stderr
    done, peak = peak_of(command(tmp_path, *arguments), cwd=tmp_path, env=environment)
    result, ledger = ledger_of(tmp_path, done.stdout)
    assert ledger["stretches"], "it fitted: nothing was shown"
    assert any(row["harmful"] for row in result["overwrites"])
    assert peak < 2 * alone + 200 * MIB, (peak / MIB, alone / MIB)  # the command, its guardians, the recordings


@pytest.mark.slow
def test_the_passes_of_a_ledger_hold_no_second_copy_of_the_gradients(tmp_path):
    """160 states of 2 MB, and as much of gradients: the program takes 678 MiB, the ledger 733.

    With the gradients kept that are zero before the passes (no `release_zeros`) it took 832 to 857.
    """
    arguments, recordings = ("--steps", "160", "--cells", "250000", "--clobber", "80"), 96
    environment = {**os.environ, "WARP_DEBUG_GRADIENTS_LEDGER_MB": str(recordings)}
    bare, alone = peak_of([sys.executable, str(PROGRAM), *arguments], cwd=tmp_path)
    assert bare.returncode == 0, bare.stderr
    words = command(tmp_path, *arguments)
    words[words.index("enable-tracker") : words.index("--workspace")] = ["bisect-steps", "main.py", "--iteration", "0"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    evidence = tmp_path / json.loads(done.stdout)["evidence"]
    job, here = json.loads((evidence / "ledger.job.json").read_text()), evidence / "again.json"
    (evidence / "again.job.json").write_text(json.dumps({**job, "parent_pid": os.getpid(), "result": str(here)}))
    _, peak = peak_of([sys.executable, str(BOOTSTRAP), str(evidence / "again.job.json")], cwd=tmp_path, env=environment)
    (ledger,) = json.loads(here.read_text())["ledgers"]  # by itself: evaluations would run beside the finished program
    assert any(row["significant"] for row in [*ledger["jumps"], *ledger["stretches"]])
    gradients = 160 * 250_000 * 8
    assert alone > 2 * gradients, "the program holds no gradients: nothing was shown"
    assert peak < alone + recordings * MIB + gradients // 16, (peak / MIB, alone / MIB)


@pytest.mark.slow
def test_the_ledger_of_ten_thousand_operations_takes_four_runs(tmp_path):
    environment = {**os.environ, "WARP_DEBUG_GRADIENTS_LEDGER_MB": "2"}
    words = command(tmp_path, "--steps", "10000", "--cells", "8", "--clobber", "9950")
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    result, ledger = ledger_of(tmp_path, done.stdout)
    assert ledger["ops"] > 10_000
    assert ledger["timing"]["forward_runs"] == 4
    first = result["causes"][0]
    assert (first["code"], first["line"]) == ("overwrite", line_with("writer"))
