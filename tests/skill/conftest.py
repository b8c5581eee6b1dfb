"""The tests share `blocks` and `behaviours`, plain modules of this folder."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).parents[2]


@pytest.fixture
def workspace(tmp_path):
    """A user's folder as the texts assume it: the example as train.py, and the examples; our command on the path."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__", ".warp*"))
    shutil.copy(ROOT / "examples" / "buffer_reuse" / "broken.py", tmp_path / "train.py")
    shims = tmp_path / "bin"
    shims.mkdir()
    for name, command in (
        ("python", f'exec {shlex.quote(sys.executable)} "$@"'),
        (
            "warp-debug-gradients",
            f"PYTHONPATH={shlex.quote(str(ROOT / 'server'))} exec {shlex.quote(sys.executable)} -m warp_debug_gradients "
            f'"$@" --python {shlex.quote(sys.executable)} --timeout 200',
        ),
    ):
        (shims / name).write_text(f"#!/bin/sh\n{command}\n")
        (shims / name).chmod(0o755)
    return tmp_path


@pytest.fixture
def shell(workspace):
    """Runs a line in the user's folder as at a shell."""

    def run(line):
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment["PATH"] = f"{workspace / 'bin'}{os.pathsep}{environment['PATH']}"
        return subprocess.run(
            line, shell=True, cwd=workspace, env=environment, capture_output=True, text=True, check=False, timeout=400
        )

    return run
