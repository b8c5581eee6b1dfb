"""The oldest Warp that is supported, in an environment that the tests make themselves (tests/conftest.py)."""

import json
import subprocess
import sys

import pytest
import truths

OLDEST = "1.13.0"


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
