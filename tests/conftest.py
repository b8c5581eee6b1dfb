"""What all tests share: a folder for the kernels that Warp compiles, and an environment with the oldest Warp."""

import fcntl
import os
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
def old_python():
    """The interpreter of an environment with the oldest Warp; made once, then reused. No Warp: an error, no skip."""
    version = "{}.{}".format(*sys.version_info[:2])
    folder = ENVIRONMENTS / f"warp-{OLDEST}-python-{version}"
    python = folder / "bin" / "python"
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (ENVIRONMENTS / f"{folder.name}.lock").open("w") as lock:
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
