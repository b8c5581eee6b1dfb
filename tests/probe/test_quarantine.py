"""A forked evaluation leaves no trace in the user's files, whichever way it writes."""

import errno
import os
import sqlite3

import numpy as np
import pytest

from warp_debug_gradients.probe import quarantine

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="isolation of mappings is Linux only")


def in_quarantine(action, keep=()):
    """Run `action` in an isolated fork; its exit status."""
    pid = os.fork()
    if pid == 0:
        try:
            quarantine.enter(keep=set(keep))
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_writes_that_fail_here_and_not_at_home_are_told_from_errors_of_the_program(tmp_path):
    """SQLite writes below Python: the size limit stops it, and its own words would send the user astray."""
    database = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    database.execute("CREATE TABLE losses (value REAL)")

    def commit():
        try:
            for _ in range(400):
                database.execute("INSERT INTO losses VALUES (1.0)")
        except sqlite3.Error as error:
            wrapped = RuntimeError("logging failed")
            wrapped.__cause__ = error
            os._exit(0 if "SQLite database" in (quarantine.forbidden_write(wrapped) or "") else 3)
        os._exit(4)  # nothing stopped it

    assert in_quarantine(commit) == 0
    assert database.execute("SELECT count(*) FROM losses").fetchone() == (0,)
    assert quarantine.forbidden_write(OSError(errno.EFBIG, "File too large")) is not None
    assert quarantine.forbidden_write(OSError(errno.ENOENT, "No such file")) is None
    assert quarantine.forbidden_write(sqlite3.ProgrammingError("closed")) is None
    assert quarantine.forbidden_write(None) is None


def test_a_memory_mapped_file_keeps_its_content(tmp_path):
    history = np.memmap(tmp_path / "history.bin", dtype=np.float32, mode="w+", shape=(4096,))
    history[:] = 1.0

    def write():
        assert history[7] == 1.0  # what was there is still readable
        history[:] = 9.0
        assert history[7] == 9.0
        history.flush()

    assert in_quarantine(write) == 0
    assert set(np.fromfile(tmp_path / "history.bin", dtype=np.float32)) == {1.0}
    assert set(np.array(history)) == {1.0}


def test_a_kept_file_stays_shared(tmp_path):
    path = tmp_path / "arena.bin"
    shared = np.memmap(path, dtype=np.uint8, mode="w+", shape=(4096,))
    descriptor = os.open(path, os.O_RDWR)
    try:
        assert in_quarantine(lambda: shared.__setitem__(0, 5), keep=[descriptor]) == 0
    finally:
        os.close(descriptor)
    assert shared[0] == 5


def test_files_opened_before_and_after_keep_their_content(tmp_path):
    path = tmp_path / "log.txt"
    with open(path, "w", encoding="utf-8") as before:
        before.write("first\n")
        before.flush()

        def write():
            before.write("perturbed\n")
            before.flush()
            with open(path, "a", encoding="utf-8") as after:
                after.write("perturbed\n")
            os.remove(path)

        assert in_quarantine(write) == 0
    assert path.read_text(encoding="utf-8") == "first\n"
