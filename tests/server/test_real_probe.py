"""One measurement with the real probe and Warp, from the command to `rerun.sh`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "buffer_reuse" / "broken.py"


def test_rerun_gives_the_same_verdict(tmp_path):
    shutil.copy(EXAMPLE, tmp_path / "train.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

    def measure(*command):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        return json.loads(done.stdout)

    module = [sys.executable, "-m", "warp_debug_gradients"]
    first = measure(*module, "gradcheck-full-horizon", "train.py", "--iteration", "0", "--json")
    assert first["verdict"] == "disagree"
    assert first["horizon"]["full"] is True
    assert first["next"]["tool"] == "bisect_steps"

    again = measure("sh", str(tmp_path / first["evidence"] / "rerun.sh"), "--json")
    assert again["run_id"] != first["run_id"]
    assert again["verdict"] == "disagree"
    for name in ("autodiff", "finite_difference"):
        assert again["gradient"][name] == pytest.approx(first["gradient"][name], rel=1e-4)
