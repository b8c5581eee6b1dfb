"""The oldest Warp that is supported, in an environment that the tests make themselves."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import truths

OLDEST = "1.13.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "warp-debug-gradients-tests"


@pytest.fixture(scope="session")
def old_python():
    """The interpreter of an environment with the oldest Warp; made once, then reused. No Warp: an error, no skip."""
    version = "{}.{}".format(*sys.version_info[:2])
    folder = CACHE / f"warp-{OLDEST}-python-{version}"
    python = folder / "bin" / "python"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other workers wait
        if installed(python) != OLDEST:
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            made = subprocess.run(
                [*pip, f"warp-lang=={OLDEST}", "numpy"], capture_output=True, text=True, check=False, timeout=600
            )
            if made.returncode:
                pytest.fail(
                    f"pip could not install Warp {OLDEST}: the version is untested.\n{made.stdout}{made.stderr}"
                )
    assert installed(python) == OLDEST
    return str(python)


def installed(python):
    """The version of Warp there, or None."""
    if not python.exists():
        return None
    code = "import importlib.metadata as m; print(m.version('warp-lang'))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("01_rod_cooling_pingpong", "disagree"),
        ("06_antenna_phases_nozero", "disagree"),
        ("22_ok_noisy_sensor_sgd", "agree"),
    ],
)
def test_verdicts_with_the_oldest_warp(old_python, name, verdict, tmp_path):
    program = truths.named(name)
    answer = truths.gradcheck(program, program.copy(tmp_path / "copy"), python=old_python)
    assert answer.result["warp_version"] == OLDEST
    assert answer.result["verdict"] == verdict, answer.result["message"]
    assert answer.code == truths.EXIT_CODES[verdict]
    assert program.random or truths.numbers_wrong(program, answer) == []


@pytest.mark.slow
def test_run_repro_names_the_oldest_warp(old_python, tmp_path):
    program = truths.named("08_cart_short_window")
    folder = program.copy(tmp_path / "copy")
    command = [sys.executable, "-m", "warp_debug_gradients", "run-repro", str(program.script)]
    command += ["--workspace", str(folder), "--python", old_python, "--json"]
    done = subprocess.run(command, cwd=folder, env=truths.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["warp_version"] == OLDEST
    assert result["interpreter"]["path"] == old_python
    assert result["iterations_seen"] > 0
