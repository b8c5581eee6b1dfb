"""The server is tested with a stand-in for the probe (fakes/probe.py), which needs no Warp and gives canned numbers."""

from pathlib import Path

import psutil
import pytest

from warp_debug_gradients import worker
from warp_debug_gradients.workspace import Workspace

HERE = Path(__file__).parent
KINDS = (
    "right",
    "wrong",
    "diverges",
    "crash",
    "exits",
    "hang",
    "stubborn",
    "floods",
    "broken",
    "nobackward",
    "cuda",
    "lost",
)
PROGRAM = "STEPS = 40\nfor step in range(STEPS):\n    pass\n"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def fakes() -> Path:
    return HERE / "fakes"


@pytest.fixture
def fake_probe(monkeypatch, fakes) -> Path:
    """Lets the worker start the stand-in."""
    monkeypatch.setattr(worker, "BOOTSTRAP", fakes / "probe.py")
    return fakes / "probe.py"


@pytest.fixture
def project(tmp_path) -> Path:
    """A workspace with a script for each thing that the stand-in can do."""
    root = tmp_path / "project"
    root.mkdir()
    for kind in KINDS:
        (root / f"{kind}.py").write_text(PROGRAM)
    return root


@pytest.fixture
def workspace(project) -> Workspace:
    return Workspace.find(project)


@pytest.fixture
def is_gone():
    """Whether a process has ended (a zombie that nobody waits for has)."""

    def check(pid: int, timeout: float = 10.0) -> bool:
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
            process.wait(timeout)
        except psutil.NoSuchProcess:
            return True
        except psutil.TimeoutExpired:
            return process.status() == psutil.STATUS_ZOMBIE
        return True

    return check
