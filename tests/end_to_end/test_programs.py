"""Every program with a known truth, unedited, through the real command: verdict, exit code, numbers, files."""

import pytest
import truths
from truths import EXIT_CODES, OURS, named, numbers_wrong

PROGRAMS = truths.programs()
RUNNING = [p for p in PROGRAMS if p.truth["runs"]]
STILLBORN = [p for p in PROGRAMS if not p.truth["runs"]]
BLOCKED_BY = {  # the message, and the user's own deepest line
    "26_norun_old_sim_module": ("warp.sim", 4),
    "relay": ("CPU kernel build failed", 19),  # the launch; the name that C++ does not take stands in line 8
}
VIEWS = {"mosaic": "patch"}  # found by itself is the whole array, of which the truth names a part
SCALED_ON_THE_HOST = {"vineyard": 2.0}  # against the stated objective AD is that many times the derivative


@pytest.fixture
def measure(tmp_path):
    """Runs the command on a copy, and sees that the copy's own files are left alone."""

    def run(program, *options):
        folder = program.copy(tmp_path / program.folder.name)
        before = truths.fingerprint(folder)
        answer = truths.gradcheck(program, folder, *options)
        different = truths.changed(before, truths.fingerprint(folder))
        if different:  # only what the program writes by itself may be
            by_hand = program.copy(tmp_path / "by_hand")
            truths.run_bare(program, by_hand)
            assert different <= truths.changed(before, truths.fingerprint(by_hand))
        assert (folder / OURS).is_dir()
        assert (folder / answer.result["evidence"] / "rerun.sh").exists()
        return answer

    return run


def objective_of(program):
    stated = program.truth.get("objective")
    return ["--objective", stated] if stated else []


def allowed_verdicts(truth):
    """What may be said of it."""
    if not truth["gradients_correct"]:
        return {"disagree"}
    certain = truth.get("verdict") == "agree"  # the cases state none: there, right is right
    return {"agree"} if certain else {"agree", "inconclusive"}


@pytest.mark.parametrize(
    "program", [p for p in RUNNING if p.name not in SCALED_ON_THE_HOST], ids=lambda program: program.name
)
def test_verdict_and_numbers(program, measure):
    view = ["--parameter", VIEWS[program.name]] if program.name in VIEWS else []
    answer = measure(program, *objective_of(program), *view)
    result = answer.result
    assert result["status"] == "completed", result["message"]
    assert result["verdict"] in allowed_verdicts(program.truth), result["message"]
    assert answer.code == EXIT_CODES[result["verdict"]]
    assert result["horizon"]["full"] is True
    if not program.random:
        assert numbers_wrong(program, answer) == []


@pytest.mark.parametrize("name", SCALED_ON_THE_HOST)
def test_a_division_on_the_host_accuses_nobody(name, measure):
    """What is read is a sum, what is reported a mean: only the program knows that it divides afterwards."""
    program, factor = named(name), SCALED_ON_THE_HOST[name]
    result = measure(program, *objective_of(program)).result
    assert (result["verdict"], result["reason"]) == ("inconclusive", "scaled_objective")
    assert f"AD is {factor:g} times" in result["message"]
    assert "on the host" in result["message"]
    ratios = [e["ratio"] for e in result["gradient"]["elements"]]
    assert ratios == [pytest.approx(factor, rel=0.01)] * len(ratios)
    assert "objective" not in result["next"]["arguments"]


def stated(program):
    return program.truth.get("objective") or program.name in VIEWS


@pytest.mark.parametrize(
    "program", [p for p in RUNNING if stated(p) and p.truth["gradients_correct"]], ids=lambda p: p.name
)
def test_right_gradients_with_nothing_stated(program, measure):
    answer = measure(program)
    assert answer.result["verdict"] in {"agree", "inconclusive"}, answer.result["message"]
    assert answer.code == EXIT_CODES[answer.result["verdict"]]


@pytest.mark.parametrize("program", truths.repairs(), ids=lambda p: p.name)
def test_repaired(program, measure):
    answer = measure(program, *objective_of(program), "--iteration", str(program.iteration))
    assert answer.result["verdict"] == "agree", answer.result["message"]
    assert answer.code == 0


@pytest.mark.parametrize("program", STILLBORN, ids=lambda p: p.name)
def test_blocked(program, measure):
    answer = measure(program)
    result, error = answer.result, answer.result["error"]
    assert answer.code == 3
    assert result["status"] == "blocked"
    assert result["verdict"] is None
    message, line = BLOCKED_BY[program.name]
    assert message in error["message"]
    assert (error["file"], error["line"]) == ("main.py", line)
    assert error["advice"]
    assert result["gradient"] is None
    if program.name == "relay":  # what only the compiler knows, and prints
        assert error["kernel"] == "wait"
        assert "switch;" in error["compiler_message"]
        assert "switch is a word of C++" in error["advice"]


def test_a_truncated_window_agrees_by_itself(measure):
    answer = measure(named("08_cart_short_window"))
    assert answer.result["verdict"] == "disagree"
    assert answer.result["horizon"]["full"] is True
    windows = [w for c in answer.checks for w in c["windows"]]
    assert windows
    assert {w["verdict"] for w in windows} == {"agree"}
    assert answer.result["windows"]


def test_the_second_iteration_is_looked_at_by_itself(measure):
    answer = measure(named("06_antenna_phases_nozero"))
    assert answer.result["verdict"] == "disagree"
    assert answer.result["iteration"] == 1
    assert answer.check(0)["verdict"] == "agree"


def test_an_error_that_grows_with_the_horizon(measure):
    """Every step rewrites what earlier adjoints need: the last ops' derivative is nearly right, all ops' is not."""
    signature = measure(named("buffer_reuse-broken"), "--iteration", "0").result["signature"]
    assert signature["kind"] == "growing"
    rows = signature["horizons"]
    errors = [abs(r["autodiff"] - r["finite_difference"]) / abs(r["finite_difference"]) for r in rows]
    assert errors == sorted(errors)
    assert errors[0] < 0.05 < 0.4 < errors[-1]
    assert [r["ops"] for r in rows] == sorted({r["ops"] for r in rows})
    assert "grows with the horizon" in signature["message"]
