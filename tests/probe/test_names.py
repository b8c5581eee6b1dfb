"""Whose line a frame is: the user's, a library's, Warp's."""

import sys
from functools import partial
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


def test_a_checkout_of_a_library_in_the_workspace_is_located_with_the_line_that_called_it(tmp_path):
    origins = Origins("/warp", str(tmp_path))
    for folder in ("solver", "solver/core"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    mine = call_through(tmp_path / "train.py")
    outer = call_through(tmp_path / "solver" / "api.py")
    inner = call_through(tmp_path / "solver" / "core" / "forces.py")
    found = mine(lambda: outer(lambda: inner(lambda: origins.located(sys._getframe(1)))))
    assert found["file"] == str(tmp_path / "solver" / "core" / "forces.py")
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


def test_the_programs_that_are_installed_with_warp_are_a_users_and_the_rest_is_not(tmp_path):
    origins = Origins(str(tmp_path / "warp"), str(tmp_path / "work"))
    program = call_through(tmp_path / "warp" / "examples" / "optim" / "example_fluid.py")
    optimizer = call_through(tmp_path / "warp" / "_src" / "optim" / "adam.py")
    found = program(lambda: optimizer(lambda: [f.f_code.co_filename for f in origins.frames(sys._getframe(1))]))
    assert str(tmp_path / "warp" / "examples" / "optim" / "example_fluid.py") in found
    assert str(tmp_path / "warp" / "_src" / "optim" / "adam.py") not in found


def test_who_takes_what_a_function_returns_at_once(tmp_path):
    origins = Origins("/warp", str(tmp_path))
    maker = call_through(tmp_path / "make.py", "def step(inner):\n    return inner()\n")
    keeper = call_through(tmp_path / "keep.py", "def step(inner):\n    gain = inner()\n    return gain\n")
    taken = partial(maker, lambda: _where(origins.taker(sys._getframe(1))))
    assert keeper(taken) == (str(tmp_path / "keep.py"), 2)
    assert keeper(lambda: _where(origins.taker(sys._getframe(1)))) is None, "it keeps the value first"


def _where(frame):
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)
