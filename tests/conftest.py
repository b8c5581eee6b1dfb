"""What all tests share: a folder for the kernels that Warp compiles, and environments with other packages."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

CACHE = "WARP_CACHE_PATH"
OLDEST = "1.13.0"
ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "warp-debug-gradients-tests"


def pytest_configure(config):
    """The controller makes the folder; xdist's workers inherit it with the environment.

    A shell starts what it puts in the background with Ctrl-C ignored, and children inherit that: tests that interrupt
    a command would then test nothing.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if CACHE not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="warp-debug-gradients-kernels-", ignore_cleanup_errors=True)
        os.environ[CACHE] = folder.name
        config.add_cleanup(folder.cleanup)
        config.add_cleanup(lambda: os.environ.pop(CACHE, None))


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def python_with():
    """A function: the interpreter of an environment with these packages, such as `python_with("warp-lang==1.13.0")`."""
    return environment_with


@pytest.fixture(scope="session")
def old_python(python_with):
    """The interpreter of an environment with the oldest Warp."""
    return python_with(f"warp-lang=={OLDEST}")


def environment_with(*requirements):
    """The interpreter of an environment of the tests' own, made by the first who asks. Not to be had: a failure, no skip.

    Environments stay from run to run. The last file written marks a whole one.
    """
    named = "-".join(re.sub(r"[^\w.]+", "-", requirement) for requirement in requirements)
    folder = ENVIRONMENTS / f"{named}-python-{sys.version_info[0]}.{sys.version_info[1]}"
    python, whole = folder / "bin" / "python", folder / "whole"
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (ENVIRONMENTS / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other workers wait
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]
            made = subprocess.run([*pip, *requirements], capture_output=True, text=True, check=False, timeout=600)
            if made.returncode:
                pytest.fail(f"pip could not install {named}: it is untested.\n{made.stdout}{made.stderr}")
            whole.touch()
    return str(python)
