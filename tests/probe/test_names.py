"""Whose line a frame is: the user's, a library's, Warp's."""

import sys
from pathlib import Path

from warp_debug_gradients.probe.names import Origins


def call_through(path: Path, body: str = "def step(inner):\n    return inner()\n"):
    """The function `step` of a file of its own, which calls what it is handed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body)
    made: dict = {}
    exec(compile(body, str(path), "exec"), made)
    return made["step"]


def test_a_launch_in_a_library_is_located_with_the_line_that_called_it(tmp_path):
    origins = Origins("/warp", str(tmp_path))
    mine = call_through(tmp_path / "train.py")
    library = call_through(tmp_path / "venv" / "site-packages" / "solver.py")
    found = mine(lambda: library(lambda: origins.located(sys._getframe(1))))
    assert (found["file"], found["function"]) == (str(tmp_path / "venv" / "site-packages" / "solver.py"), "step")
    assert found["via"] == {"file": str(tmp_path / "train.py"), "line": 2}


def test_the_users_own_line_needs_no_caller_and_libraries_are_left_out_of_the_callers(tmp_path):
    origins = Origins("/warp", str(tmp_path))
    outer, inner = call_through(tmp_path / "train.py"), call_through(tmp_path / "sim.py")
    library = call_through(tmp_path.parent / "elsewhere.py")
    found = outer(
        lambda: library(lambda: inner(lambda: (origins.located(sys._getframe(1)), origins.own_lines(sys._getframe(1)))))
    )
    place, callers = found
    assert "via" not in place
    assert callers == [(str(tmp_path / "sim.py"), 2), (str(tmp_path / "train.py"), 2)]
