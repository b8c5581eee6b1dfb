"""The real command in a temporary folder, as a person types it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from warp_debug_gradients.cli import main


@pytest.fixture
def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "COLUMNS": "200"}


@pytest.fixture
def command(project, fakes, environment):
    """Runs the command (with the stand-in probe) in the project."""

    def run(*arguments, cwd=None):
        return subprocess.run(
            [sys.executable, str(fakes / "command.py"), *arguments],
            cwd=cwd or project, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return run


@pytest.mark.parametrize(
    ("script", "code", "first"),
    [
        ("right.py", 0, "AGREE"),
        ("wrong.py", 1, "DISAGREE"),
        ("missing.py", 2, ""),
        ("broken.py", 3, "BLOCKED"),
        ("nobackward.py", 4, "INCONCLUSIVE"),
    ],
)
def test_exit_codes_and_first_word(command, script, code, first):
    done = command("gradcheck-full-horizon", script)
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(first)
    assert "Traceback" not in done.stderr


def test_time_runs_out(command):
    done = command("run-repro", "hang.py", "--timeout", "2")
    assert done.returncode == 5
    assert done.stdout.startswith("OUT OF TIME")


def test_json_is_exactly_one_object(command):
    done = command("gradcheck-full-horizon", "wrong.py", "--json", "--iteration", "1")
    result = json.loads(done.stdout)
    assert (result["verdict"], result["iteration"], result["operation"]) == ("disagree", 1, "gradcheck_full_horizon")
    assert result["horizon"]["full"] is True


def test_what_follows_the_dashes_is_the_scripts(command):
    result = json.loads(command("run-repro", "right.py", "--json", "--", "--lr", "0.1", "--json", "--").stdout)
    assert result["next"]["arguments"]["args"] == ["--lr", "0.1", "--json", "--"]
    module = command("run-repro", "--module", "pkg.train", "--json", "--", "--lr", "0.1")
    assert json.loads(module.stdout)["next"]["arguments"] == {"module": "pkg.train", "args": ["--lr", "0.1"]}


def test_settings(command):
    result = json.loads(
        command("run-repro", "right.py", "--json", "--set", "right.STEPS=8", "--set", "right.NAME=a b").stdout
    )
    assert result["next"]["arguments"]["overrides"] == {"right.STEPS": 8, "right.NAME": "a b"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["gradcheck-full-horizon", "--paramter", "x", "right.py"], "--parameter"),
        (["gradchek-full-horizon", "right.py"], "No such command"),
        (["run-repro", "right.py", "--lr", "0.1"], "No such option"),
        (["run-repro", "right.py", "extra"], "unexpected extra argument"),
        (["run-repro"], "exactly one target"),
        (["run-repro", "right.py", "--set", "STEPS"], "MODULE.NAME=VALUE"),
        (["run-repro", "right.py", "--timeout", "-1"], "timeout_s"),
        (["run-repro", "right.py", "--timeout", "soon"], "--timeout"),
        (["run-repro", "right.py", "--engine", "fork"], "No such option"),
        (["gradcheck-full-horizon", "right.py", "--engine", "magic"], "magic"),
        (["run-repro", "../right.py"], "--workspace"),
        (["run-repro", "right.py", "--workspace", "nowhere"], "not a folder"),
    ],
)
def test_usage_errors(project, monkeypatch, capsys, arguments, text):
    monkeypatch.chdir(project)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert text in printed.err


def test_a_script_elsewhere_with_its_workspace(command, project, tmp_path):
    done = command("gradcheck-full-horizon", "right.py", "--workspace", str(project), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (project / ".warp-debug-gradients" / "runs").is_dir()
    assert not (tmp_path / ".warp-debug-gradients").exists()


def test_help_teaches(command):
    top = command("--help").stdout
    assert "run-repro train.py" in top
    assert "Exit codes" in top
    for name in ("run-repro", "gradcheck-full-horizon", "enable-tracker", "bisect-steps", "scan-patterns"):
        assert "Example: warp-debug-gradients" in command(name, "--help").stdout


def test_the_installed_form_starts_without_the_sdk(environment):
    code = (
        "import sys, warp_debug_gradients.cli as c; print([m for m in ('mcp', 'warp', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_script_too(project, fakes, environment, is_gone, signum):
    arguments = [sys.executable, str(fakes / "command.py"), "run-repro", "hang.py"]
    process = subprocess.Popen(arguments, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pids = wait_for_pids(project)
    process.send_signal(signum)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert all(is_gone(pid) for pid in pids)


def wait_for_pids(project):
    for _ in range(600):
        if (project / "pids").exists() and len(found := (project / "pids").read_text().split()) == 3:
            return [int(pid) for pid in found]
        time.sleep(0.05)
    raise AssertionError("the script never started")


@pytest.mark.parametrize(
    ("arguments", "code", "first"),
    [
        (["enable-tracker", "wrong.py"], 1, "FOUND"),
        (["enable-tracker", "right.py"], 0, "CLEAN"),
        (["enable-tracker", "right.py", "--iteration", "2"], 4, "INCONCLUSIVE"),
        (["bisect-steps", "wrong.py"], 1, "FOUND"),
        (["bisect-steps", "right.py"], 0, "CLEAN"),
        (["bisect-steps", "broken.py"], 3, "BLOCKED"),
        (["bisect-steps", "right.py", "--knob", "right.STEPS", "--values", "2,12"], 1, "FOUND"),
        (["bisect-steps", "right.py", "--knob", "right.STEPS", "--values", "two"], 2, ""),
    ],
)
def test_locating(command, arguments, code, first):
    done = command(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.startswith(first)
