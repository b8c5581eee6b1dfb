"""Constants replaced while files are compiled: values, places, refusals, and what stays as it was."""

import ast
import importlib
import importlib.machinery
import sys
import textwrap

import pytest

from warp_debug_gradients.probe.attach import Program
from warp_debug_gradients.probe.overrides import Overrides
from warp_debug_gradients.probe.replacer import OverrideError, Replacer

PREAMBLE = """
import dataclasses, math
class wp:
    class int32(int): ...
    class vec3(tuple):
        def __new__(cls, *v): return tuple.__new__(cls, v)
    @staticmethod
    def constant(x): return ("constant", x)
def field(**kw): return dataclasses.field(**kw)
"""


def replaced(source, path, value):
    """The module's namespace after the replacement, and what was described."""
    replacer = Replacer(PREAMBLE + textwrap.dedent(source), "train.py")
    places = replacer.replace("train." + path, path.split("."), value)
    scope = {"__name__": "train"}
    exec(compile(ast.fix_missing_locations(replacer.tree), "train.py", "exec"), scope)
    return scope, places


@pytest.mark.parametrize(
    ("source", "value", "expected"),
    [
        ("N = 5", 10, 10),
        ("N = 5", 10.0, 10),
        ("N = 1_000 * 3", 10, 10),
        ("N = -5", -6, -6),
        ("N = 0.5", 1, 1.0),
        ("N = 1.0 / 60.0", 1, 1.0),
        ("N = 2.0 * math.pi", 3, 3.0),
        ("N = 0.5", "inf", float("inf")),
        ("N = True", False, False),
        ("N = 'a'", "b", "b"),
        ("N = 5", None, None),
        ("N = None", 7, 7),
        ("N = (1, 2)", [3, 4, 5], (3, 4, 5)),
        ("N = [1.0, 2.0]", [3, 4], [3.0, 4.0]),
        ("N = {'a': 1}", {"b": [1, None]}, {"b": [1, None]}),
        ("N = wp.constant(5)", 10, ("constant", 10)),
        ("N = wp.constant(0.5)", 1, ("constant", 1.0)),
        ("N = wp.constant(wp.int32(5))", 10, ("constant", 10)),
        ("N = wp.int32(5)", 10, 10),
        ("N = int(2.5 * 4)", 7, 7),
        ("N = wp.vec3(0.0, -9.8, 0.0)", [1, 2, 3], (1.0, 2.0, 3.0)),
        ("N = len([1, 2])", 7, 7),
        ("def f(): return 3\nN = f()", 7, 7),
        ("N: int = 5", 6, 6),
        ("N: float = 5", 2.5, 2.5),
        ("N: 'float' = 5", 2.5, 2.5),
        ("from typing import Final\nN: Final[float] = 5", 2.5, 2.5),
        ("M, N = 3, 4", 9, 9),
        ("[M, N] = (3, 4)", 9, 9),
        ("def f(): return 3, 4\nM, N = f()", 9, 9),
        ("M = N = 5", 9, 9),
        ("if 1 > 2:\n    N = 5\nelse:\n    N = 6", 9, 9),
        ("try:\n    import nothing_like_it\nexcept ImportError:\n    N = 5\nfinally:\n    pass", 9, 9),
        ("import contextlib\nwith contextlib.nullcontext():\n    N = 5", 9, 9),
        ("for i in range(2):\n    N = i", 9, 9),
        ("match 3:\n    case 3:\n        N = 1\n    case _:\n        N = 2", 9, 9),
        ("N = 5\nN *= 2", 9, 9),
        ("try:\n    from math import pi as N\nexcept ImportError:\n    N = 3.0", 9, 9),
        ("'''doc'''\nfrom math import pi\nN = 5; M = N + 1", 9, 9),
    ],
)
def test_values(source, value, expected):
    scope, places = replaced(source, "N", value)
    assert scope["N"] == expected
    assert type(scope["N"]) in (type(expected), scope["wp"].int32, scope["wp"].vec3)
    assert places
    assert all(place["key"] == "train.N" and place["new"] == value for place in places)


def test_neighbours_keep_their_values():
    scope, _ = replaced("M = N = 5\nP, N, Q = 1, 2, 3\ndef f():\n    N = 4\n    return N\nclass C:\n    N = 8", "N", 9)
    assert [scope[name] for name in "MNPQ"] == [5, 9, 1, 3]
    assert scope["f"]() == 4
    assert scope["C"].N == 8


CLASSES = """
import dataclasses
@dataclasses.dataclass
class Config:
    steps: int = 5
    rate: float = field(default=0.5)
    sizes: list = field(default_factory=lambda: [1, 2])
    needed: int = dataclasses.field(init=False, default=1)
    bare: int = dataclasses.field()
    class Inner:
        depth = 3
"""


@pytest.mark.parametrize(
    ("path", "value"), [("steps", 7), ("rate", 1.5), ("sizes", [3]), ("needed", 4), ("Inner.depth", 5)]
)
def test_class_attributes_and_dataclass_defaults(path, value):
    source = CLASSES.replace("    bare: int = dataclasses.field()\n", "")
    scope, places = replaced(source, "Config." + path, value)
    found = scope["Config"]()
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value
    assert len(places) == 1


def test_what_init_sets_on_self():
    source = """
        class Solver:
            def __init__(this, steps=3):
                this.steps = 120
                if steps:
                    this.rate = this.other = 0.5
                this.total = this.steps * 2
                other = 7
            def step(this):
                this.steps = this.steps + 1
    """
    scope, places = replaced(source, "Solver.steps", 4)
    found = scope["Solver"]()
    assert (found.steps, found.total, found.rate) == (4, 8, 0.5)
    found.step()
    assert found.steps == 5  # what the program makes of it later is its own
    assert len(places) == 1
    scope, _ = replaced(source, "Solver.rate", 2)
    assert (scope["Solver"]().rate, scope["Solver"]().other) == (2.0, 0.5)


@pytest.mark.parametrize(
    ("source", "path", "expected"),
    [
        ("def solve(x, n=3):\n    return n\nN = solve(0)", "solve.n", 9),
        ("def solve(x, *, n: int = 3, m=4):\n    return n + m\nN = solve(0)", "solve.n", 13),
        ("class Solver:\n    def solve(self, n=3):\n        return n\nN = Solver().solve()", "Solver.solve.n", 9),
        ("def solve():\n    for k in range(3):\n        pass\n    return k + 1\nN = solve()", "solve.range", 9),
    ],
)
def test_the_default_of_a_parameter_or_the_number_in_a_loop(source, path, expected):
    scope, places = replaced(source, path, 9)
    assert scope["N"] == expected
    assert [(p["old"], p["new"]) for p in places] == [("3", 9)]


def test_what_was_replaced_is_described_with_its_source():
    source = "A = 1\n\nN = wp.constant(\n    2 * 8)\nM, N = 3, 4\n"
    places = Replacer(source, "/w/train.py").replace("train.N", ["N"], 9)
    assert places == [
        {"key": "train.N", "old": "wp.constant( 2 * 8)", "new": 9, "file": "/w/train.py", "line": 3},
        {"key": "train.N", "old": "4", "new": 9, "file": "/w/train.py", "line": 5},
    ]


def test_line_numbers_stay():
    replacer = Replacer("A = B = (1,\n  2)\nN = 5\n\n\ndef f():\n    raise ValueError\n", "train.py")
    replacer.replace("train.B", ["B"], [5])
    replacer.replace("train.N", ["N"], 7)
    scope = {}
    exec(compile(ast.fix_missing_locations(replacer.tree), "train.py", "exec"), scope)
    assert scope["f"].__code__.co_firstlineno == 6
    assert scope["B"] == (5,)


@pytest.mark.parametrize(
    ("source", "path", "value", "code", "says"),
    [
        ("N = 5", "N", "abc", "override_type", "train.py:1: an int cannot become 'abc'"),
        ("N = 5", "N", 2.5, "override_type", "an int cannot become 2.5"),
        ("N = 5", "N", True, "override_type", "an int cannot become True"),
        ("N = True", "N", 1, "override_type", "a bool cannot become 1"),
        ("N = 0.5", "N", "abc", "override_type", "a float"),
        ("N = 'a'", "N", 5, "override_type", "a str"),
        ("N = (1, 2)", "N", 5, "override_type", "a tuple"),
        ("N = {}", "N", [], "override_type", "a dict"),
        ("N: int = f()", "N", "abc", "override_type", "an int"),
        ("N = wp.constant(5)", "N", 2.5, "override_type", "an int"),
        ("NUM_STEPS = 5\nDT = 1.0", "NUM_STEP", 3, "override_unknown_name", "did you mean NUM_STEPS?"),
        ("A = 5\nclass C:\n    x = 1", "B", 3, "override_unknown_name", "Constants there: A, C.x"),
        ("class C:\n    x = 1", "C.y", 3, "override_unknown_name", "no constant C.y"),
        ("class C:\n    x = 1", "D.x", 3, "override_unknown_name", "did you mean C.x?"),
        ("class C:\n    def __init__(s):\n        s.step = 1", "C.steps", 3, "override_unknown_name", "mean C.step?"),
        ("class C:\n    def __init__(s):\n        t = s.step = 1", "C.t", 3, "override_unknown_name", "C.step"),
        ("class C:\n    def run(self):\n        self.n = 1", "C.n", 3, "override_unknown_name", "no constant C.n"),
        ("class C:\n    def __init__(s):\n        s.n = 5", "C.n", 0.5, "override_type", "an int cannot become 0.5"),
        ("from config import *", "N", 3, "override_unknown_name", "may come from config"),
        ("def N(): ...", "N", 3, "override_unknown_name", "N is a function"),
        ("from config import NUM as N", "N", 3, "override_imported_name", "set config.NUM instead"),
        ("from .config import N", "N", 3, "override_imported_name", "set pkg.config.N instead"),
        ("from ..config import N", "N", 3, "override_imported_name", "set config.N instead"),
        ("from . import N", "N", 3, "override_imported_name", "set pkg.N instead"),
        ("import numpy as N", "N", 3, "override_imported_name", "imported module numpy"),
        ("from config import *\nN += 1", "N", 3, "override_augmented_only", "never assigns N"),
        ("class C:\n    x: int", "C.x", 3, "override_no_value", "without a value"),
    ],
)
def test_refusals(source, path, value, code, says):
    with pytest.raises(OverrideError) as caught:
        Replacer(source, "/w/train.py", "pkg").replace("train." + path, path.split("."), value)
    assert caught.value.code == code
    assert says in caught.value.message


@pytest.mark.parametrize("key", ["N", "train.", ".N", ""])
def test_a_key_that_names_no_module_is_refused(key, tmp_path):
    with pytest.raises(OverrideError) as caught:
        Overrides({key: 1}, tmp_path)
    assert caught.value.code == "override_syntax"


# -- through the import system ----------------------------------------------------------------------------


PATH_HOOKS = list(sys.path_hooks)  # before other tests' packages add theirs


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A folder to run programs in; this process's own state comes back afterwards."""
    main, modules, finders = sys.modules["__main__"], set(sys.modules), list(sys.meta_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "path_hooks", list(PATH_HOOKS))
    sys.path_importer_cache.clear()
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "orig_argv", list(sys.orig_argv))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules["__main__"] = main
    sys.meta_path[:] = finders
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in sys.modules[name].__file__:
            del sys.modules[name]


FILES = {
    "over_train.py": """
        import os, inspect
        import over_config
        from over_pkg.deep import DEPTH
        from over_pkg import Settings
        NUM_STEPS = 5
        def f():
            return NUM_STEPS
        if __name__ == "__main__":
            SEEN = [f(), over_config.RATE, DEPTH, Settings.size, inspect.getsource(f)]
    """,
    "over_config.py": "RATE = 0.5\nOTHER = 1\n",
    "over_pkg/__init__.py": "class Settings:\n    size = 3\nTOP = 1\n",
    "over_pkg/deep.py": "DEPTH = 4\n",
    "over_pkg/__main__.py": "N = 3\nSEEN = N\n",
    "over_unused.py": "X = 1\n",
}


def run(workspace, overrides, target=None):
    for name, text in FILES.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(textwrap.dedent(text))
    target = target or {"script": str(workspace / "over_train.py")}
    importlib.invalidate_caches()
    program = Program.from_job(
        {"target": target, "cwd": str(workspace), "workspace": str(workspace), "overrides": overrides}
    )
    outcome = program.execute()
    return program, outcome, getattr(sys.modules["__main__"], "SEEN", None)


def test_a_program_runs_with_its_constants_replaced(workspace):
    overrides = {
        "over_train.NUM_STEPS": 50,
        "over_config.RATE": 2,
        "over_pkg.deep.DEPTH": 40,
        "over_pkg.Settings.size": 30,
    }
    program, outcome, seen = run(workspace, overrides)
    assert outcome.exception is None
    assert seen == [50, 2.0, 40, 30, "def f():\n    return NUM_STEPS\n"]
    assert {each["key"]: each["old"] for each in program.overrides.describe()} == {
        "over_train.NUM_STEPS": "5",
        "over_config.RATE": "0.5",
        "over_pkg.deep.DEPTH": "4",
        "over_pkg.Settings.size": "3",
    }
    assert program.overrides.unapplied() == []


def test_changed_code_is_never_cached_and_stale_caches_are_not_read(workspace):
    run(workspace, {})  # plain: leaves .pyc files of over_config and over_pkg
    plain = sorted(workspace.rglob("*.pyc"))
    stamps = {path: path.read_bytes() for path in plain}
    assert any(path.name.startswith("over_config") for path in plain)
    for name in ("over_config", "over_pkg", "over_pkg.deep"):
        sys.modules.pop(name, None)
    _, _, seen = run(workspace, {"over_config.RATE": 2, "over_pkg.deep.DEPTH": 40})
    assert seen[1:3] == [2.0, 40]
    assert {path: path.read_bytes() for path in sorted(workspace.rglob("*.pyc"))} == stamps


def test_modules_that_a_type_checker_loads_are_overridden_and_still_checked(workspace, monkeypatch):
    """beartype.claw, jaxtyping and typeguard put loaders of their own in the place of Python's."""

    class Checking(importlib.machinery.SourceFileLoader):
        def source_to_code(self, data, path, *, _optimize=-1):
            tree = ast.parse(data) if isinstance(data, bytes) else data
            tree.body += ast.parse("CHECKED = True").body
            return super().source_to_code(tree, path, _optimize=_optimize)

    hook = importlib.machinery.FileFinder.path_hook((Checking, [".py"]))
    monkeypatch.setattr(sys, "path_hooks", [hook, *sys.path_hooks])
    sys.path_importer_cache.clear()
    program, _, seen = run(workspace, {"over_config.RATE": 2})
    sys.path_importer_cache.clear()
    assert seen[1] == 2.0
    assert sys.modules["over_config"].CHECKED
    assert type(sys.modules["over_config"].__loader__) is Checking
    assert program.overrides.unapplied() == []


def test_main_is_another_name_of_the_script(workspace):
    _, _, seen = run(workspace, {"__main__.NUM_STEPS": 8})
    assert seen[0] == 8


@pytest.mark.parametrize("key", ["over_pkg.__main__.N", "__main__.N"])
def test_a_package_run_as_a_module(workspace, key):
    program, _, seen = run(workspace, {key: 8}, {"module": "over_pkg"})
    assert seen == 8
    assert program.overrides.unapplied() == []


@pytest.mark.parametrize("key", ["over_pkg.deep.DEPTH", "__main__.DEPTH", "deep.DEPTH"])
def test_a_module_run_by_its_dotted_name(workspace, key):
    program, outcome, _ = run(workspace, {key: 8}, {"module": "over_pkg.deep"})
    assert outcome.exception is None
    assert sys.modules["__main__"].DEPTH == 8
    assert program.overrides.unapplied() == []


def test_an_installed_module_that_is_run_by_name(workspace, monkeypatch):
    """`--module` names it, so it is the program, wherever it lies."""
    installed = workspace / ".venv/lib/site-packages"
    installed.mkdir(parents=True)
    (installed / "over_installed.py").write_text(
        "N = 2\nclass E:\n    def __init__(self):\n        self.n = 3\nn = E().n\n"
    )
    monkeypatch.syspath_prepend(str(installed))
    values = {"over_installed.N": 5, "over_installed.E.n": 6}
    program, outcome, _ = run(workspace, values, {"module": "over_installed"})
    assert outcome.exception is None
    assert (sys.modules["__main__"].N, sys.modules["__main__"].n) == (5, 6)
    assert program.overrides.unapplied() == []


def test_a_file_that_is_never_loaded_is_reported_at_the_end(workspace):
    program, outcome, _ = run(workspace, {"over_unused.X": 3})
    assert outcome.exception is None
    (error,) = program.overrides.unapplied()
    assert error.code == "override_not_loaded"
    assert "over_unused" in error.message


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("over_trian.NUM_STEPS", 3, "override_unknown_module"),
        ("over_train.NUM_STEP", 3, "override_unknown_name"),
        ("over_train.DEPTH", 3, "override_imported_name"),
        ("over_config.RAET", 3, "override_unknown_name"),
        ("over_pkg.deep.NOTHING", 3, "override_unknown_name"),
        ("over_config.OTHER", 0.5, "override_type"),
    ],
)
def test_refusals_end_the_program(workspace, capsys, key, value, code):
    program, outcome, _ = run(workspace, {key: value})
    assert isinstance(outcome.exception, OverrideError)
    assert outcome.exception.code == code
    assert [error.code for error in program.overrides.errors] == [code]
    assert program.overrides.unapplied() == []
    assert "importlib" not in capsys.readouterr().err


def test_installed_packages_are_not_the_users(workspace):
    overrides = Overrides({"json.X": 1}, str(workspace))
    (workspace / ".venv/lib/site-packages").mkdir(parents=True)
    (workspace / ".venv/lib/site-packages/json.py").write_text("X = 2")
    with pytest.raises(OverrideError) as caught:
        overrides.install(str(workspace / "train.py"))
    assert caught.value.code == "override_unknown_module"
