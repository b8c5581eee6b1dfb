"""What the hostile tests share; how a program's expected answer is written is in hostile.py."""

import sys
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from hostile import SECRETS


@pytest.fixture
def planted(monkeypatch):
    """Secrets in the environment of the server."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return SECRETS


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder of our own for temporary files, to see that none is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def processes_of(tmp_path, monkeypatch):
    """Lists what still runs of this test: its folder is in the environment of whatever it starts."""
    monkeypatch.setenv("WARP_TEST_FOLDER", str(tmp_path))

    def find():
        found = []
        for process in psutil.process_iter():
            try:
                said = f"{process.cmdline()} {process.environ()}"
                if str(tmp_path) in said and process.status() != psutil.STATUS_ZOMBIE:
                    found.append((process.pid, process.cmdline()))
            except psutil.Error:
                continue
        return found

    return find
