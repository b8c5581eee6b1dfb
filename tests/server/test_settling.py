"""Has a solver on the tape settled: which loops are asked, and what their numbers say."""

import pytest

from warp_debug_gradients.operations.settling import Passes, _cause, settled, settles
from warp_debug_gradients.operations.solver_loops import SolverLoop, read, solver_loops

SOURCE = """
import warp as wp
COUNT = 4
NUM_STEPS = 4
ITERATIONS = 10

@wp.kernel
def {kernel}(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

def {function}(x):
    for _ in range({bound}):
        wp.launch({kernel}, 8, inputs=[x])

for it in range(ITERATIONS):
    with wp.Tape() as tape:
        {function}(x)
        wp.launch(misfit, 8, inputs=[x])
    tape.backward(loss)
"""


@pytest.mark.parametrize(
    ("kernel", "function", "bound", "expected"),
    [
        ("jacobi_sweep", "run", "COUNT", ["wall.COUNT"]),
        ("step", "solve_pressure", "COUNT", ["wall.COUNT"]),
        ("newtonUpdate", "run", "COUNT", ["wall.COUNT"]),
        ("solve_contacts", "run", "NUM_STEPS", []),  # a solver's kernel in the loop over time
        ("an_hour", "after_sunset", "COUNT", []),
        ("jacobi_sweep", "run", "4", ["wall.run.range"]),
        ("step", "run", "4", []),
        ("jacobi_sweep", "run", "n", []),
    ],
)
def test_loops_that_their_author_calls_a_solvers(tmp_path, kernel, function, bound, expected):
    path = tmp_path / "wall.py"
    path.write_text(SOURCE.format(kernel=kernel, function=function, bound=bound))
    found = solver_loops([read(path, "wall.py")])
    assert [loop.knob for loop in found] == expected
    line = 12 if bound == "4" else 3
    assert [(loop.count, loop.line, loop.kernels) for loop in found] == [(4, line, (kernel,))] * len(expected)


def passes(*objectives):
    return [Passes(4 * 4**k, value, 1.0) for k, value in enumerate(objectives)]


def test_what_moves_and_then_settles_is_a_solution_that_was_not_reached():
    assert settles(passes(2.9, 2.5, 2.52))
    assert not settled(passes(2.9, 2.5, 2.52))
    assert settled(passes(2.5, 2.501, 2.501))
    assert not settles(passes(1.0, 2.0, 4.0))  # a horizon that only grows
    assert settles(passes(80.0, 11.0, 92.0, 95.0))  # it passes by the optimum on its way
    cause = _cause(SolverLoop("wall.COUNT", 4, "wall.py", 3), passes(2.9, 2.5, 2.52))
    assert (cause.code, cause.confidence, cause.line) == ("unconverged_solver", "likely", 3)
    assert "from 2.9 to 2.5 (13.8%)" in cause.evidence[0]


COUNTED = """
import warp as wp
from dataclasses import dataclass

@dataclass
class Options:
    size: int = 8
    inner: int = 6

class Wall:
    def __init__(self, options):
        self.options = options
        self.passes = 5

    def solve(self, x):
        for _ in range({bound}):
            wp.launch(sweep, 8, inputs=[x])

def relax(x, count=7):
    for _ in range(count):
        wp.launch(spread, 8, inputs=[x])

{call}
"""


@pytest.mark.parametrize(
    ("bound", "call", "expected"),
    [
        ("self.options.inner", "", {"wall.Options.inner": 6, "wall.relax.count": 7}),
        ("self.passes", "relax(x)", {"wall.Wall.passes": 5, "wall.relax.count": 7}),
        ("self.unknown", "N = 9\nrelax(x, N)", {"wall.N": 9}),
        ("self.unknown", "N = 9\nrelax(x, count=N)\nrelax(x, Options().inner)", {}),  # two counts
        ("3", "relax(x, read())", {"wall.Wall.solve.range": 3}),
    ],
)
def test_the_count_may_be_an_option_or_a_parameter(tmp_path, bound, call, expected):
    path = tmp_path / "wall.py"
    path.write_text(COUNTED.format(bound=bound, call=call))
    assert {loop.knob: loop.count for loop in solver_loops([read(path, "wall.py")])} == expected


def test_the_count_may_be_imported_from_a_module_of_the_package(tmp_path):
    (tmp_path / "pkg").mkdir()
    files = {"__init__": "", "config": "SWEEPS = 4\n", "wall": "from .config import SWEEPS\n" + SOURCE}
    for name, text in files.items():
        (tmp_path / "pkg" / f"{name}.py").write_text(text.replace("{bound}", "SWEEPS").format(kernel="a", function="b"))
    sources = [read(tmp_path / "pkg" / f"{name}.py", f"pkg/{name}.py") for name in files]
    assert [loop.knob for loop in solver_loops(sources)] == ["pkg.config.SWEEPS"]
