"""What a run depends on. In processes of their own: an audit hook cannot be taken back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[2] / "server"
START = """
import json, os, sys
sys.path.insert(0, {server!r})
from warp_debug_gradients.probe.inputs import Inputs
inputs = Inputs({own!r})
"""
END = "\nprint(json.dumps(inputs.record(None)))"


def record(folder: Path, program: str) -> dict:
    text = START.format(server=str(SERVER), own=str(folder / "own")) + program + END
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "note.txt").write_text("ours")
    (tmp_path / "data.csv").write_text("1,2")
    return tmp_path


@pytest.mark.parametrize(
    ("program", "files"),
    [
        ("open('data.csv').read()", {"data.csv"}),
        ("open(b'data.csv', 'rb')", {"data.csv"}),
        ("import numpy; numpy.loadtxt('data.csv', delimiter=',')", {"data.csv"}),
        ("import pathlib; pathlib.Path('data.csv').read_text()", {"data.csv"}),
        ("os.close(os.open('data.csv', os.O_RDONLY))", {"data.csv"}),
        ("open('log.txt', 'w').write('x')", set()),  # only written
        ("open('log.txt', 'a+').read()", {"log.txt"}),
        ("open('own/note.txt').read()", set()),  # ours
        ("open('/proc/self/stat').read()", set()),
        ("os.listdir('.')", {"."}),
    ],
)
def test_files_that_are_read(folder, program, files):
    found = record(folder, program)
    assert found["unknown"] is None
    mine = {p for p in found["files"] if Path(p).is_relative_to(folder)}
    assert mine == {str((folder / name).resolve()) for name in files}


def test_a_file_that_is_looked_for_in_vain(folder):
    """If it is there the next time, that will be another run."""
    found = record(folder, "try: open('settings.json')\nexcept OSError: pass")
    assert found["files"][str(folder / "settings.json")] is None


@pytest.mark.parametrize(
    "program",
    [
        "import subprocess; subprocess.run(['true'])",
        "os.system('true')",
        "import sqlite3; sqlite3.connect(':memory:')",
        "import socket\ntry: socket.create_connection(('127.0.0.1', 9), 0.1)\nexcept OSError: pass",
        "sys.modules['h5py'] = sys",
        "os.fork() or os._exit(0)",
    ],
)
def test_what_else_it_may_depend_on(folder, program):
    assert record(folder, program)["unknown"]


def test_what_is_asked_of_the_machine_is_always_the_same(folder):
    assert record(folder, "import subprocess; subprocess.run(['uname', '-p'])")["unknown"] is None


def test_a_program_that_removes_its_folder_goes_on(folder):
    program = "import shutil\nos.makedirs('gone'); os.chdir('gone'); os.rmdir('../gone')\ntry: open('x')\nexcept OSError: pass"
    assert record(folder, program)["unknown"]


def test_an_identity_changes_with_content_and_name(tmp_path):
    from warp_debug_gradients.probe.inputs import identity

    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("a")
    other.write_text("b")
    seen = {identity(str(one))}
    one.write_text("c")
    seen.add(identity(str(one)))
    stamp = os.stat(one).st_mtime
    os.utime(other, (stamp, stamp))
    other.rename(one)  # an older file under the old name, with the same time and size
    seen.add(identity(str(one)))
    assert len(seen) == 3
    assert identity(str(other)) is None
