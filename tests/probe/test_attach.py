"""A program under the probe cannot tell that it is not run by Python itself: each is run both ways."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

PROBE = Path(__file__).parents[2] / "server" / "warp_debug_gradients" / "probe"

# The interpreter that runs the programs: any from 3.10 on, with or without packages.
PYTHON = os.environ.get("PROBE_TEST_PYTHON", sys.executable)

# Stands in for the probe's main.py: runs the program, writes how it ended beside the job.
MAIN = """
import json, sys
from .attach import Program, after_import

def run(job):
    program = Program.from_job(job)
    imports = []
    hooks = {name: after_import(name, lambda m: imports.append([m.__name__, m.READY])) for name in job.get("watch", ())}
    outcome = program.execute()
    with open(job["result"], "w") as stream:
        json.dump({
            "exit_code": outcome.exit_code,
            "exception": type(outcome.exception).__name__ if outcome.exception else None,
            "frames": frames(outcome.traceback),
            "imports": imports,
            "seconds": {name: hook.seconds for name, hook in hooks.items()},
            "stopped": outcome.stopped is not None,
        }, stream)
    return outcome.exit_code

def frames(traceback):
    found = []
    while traceback is not None:
        found.append(traceback.tb_frame.f_code.co_filename.rpartition("/")[2])
        traceback = traceback.tb_next
    return found
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    """A copy of the probe with a small main: these tests are about the start, not about gradients."""
    folder = tmp_path_factory.mktemp("probe")
    for source in PROBE.glob("*.py"):
        (folder / source.name).write_bytes(source.read_bytes())
    (folder / "main.py").write_text(MAIN)
    (folder / "trace.py").write_text("raise ImportError('the standard library is shadowed')")
    return folder


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "work space"
    folder.mkdir()
    return folder


def write(workspace, files):
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def environment():
    # COLUMNS: argparse wraps its usage lines to the terminal's width.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "100"}


def run_plain(workspace, arguments, cwd=None):
    return subprocess.run(
        [PYTHON, *arguments],
        cwd=cwd or workspace,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def run_probe(probe, workspace, target, arguments=(), cwd=None, **more):
    job = {"target": target, "args": list(arguments), "cwd": str(cwd or workspace), "workspace": str(workspace), **more}
    job["result"] = str(workspace.parent / "result.json")
    path = workspace.parent / "job.json"
    path.write_text(json.dumps(job))
    done = subprocess.run(
        [PYTHON, str(probe / "bootstrap.py"), str(path)],
        cwd=cwd or workspace,  # as the worker does: a relative PYTHONPATH depends on it
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    result = Path(job["result"])
    done.result = json.loads(result.read_text()) if result.exists() else None
    return done


def assert_same(plain, probed):
    assert probed.stdout == plain.stdout
    assert probed.stderr == plain.stderr
    assert probed.returncode == plain.returncode


LOOK_AROUND = """
    import sys, os
    print(sorted(globals()))
    skip = ("__loader__", "__spec__")
    print({n: str(globals().get(n)) for n in sorted(globals()) if n.startswith("__") and n not in skip})
    print(__spec__ and (__spec__.name, __spec__.origin, __spec__.cached, __spec__.parent, type(__spec__.loader)))
    print(type(__loader__).__name__, getattr(__loader__, "name", None), getattr(__loader__, "path", None))
    print(sys.argv, sys.path, os.getcwd(), sys.orig_argv[1:])
    print(sorted(os.environ), sys.modules["__main__"].__dict__ is globals())
    print([name for name in sys.modules if "warp" in name and not name.startswith("_warp_debug_gradients_probe")])
    print("trace" in sys.modules, __import__("trace").__file__)
"""

SCRIPTS = {
    "surroundings": LOOK_AROUND,
    "definitions": """
        import dataclasses, inspect, linecache, pickle, typing, warnings
        @dataclasses.dataclass
        class Config:
            steps: int = 3
            other: "typing.ClassVar[int]" = 4
        def f(x: "Config") -> int:
            return 1  # a comment
        print(pickle.loads(pickle.dumps(Config(5))), Config.__module__, f.__module__)
        print(inspect.getsource(f), inspect.getsource(Config), inspect.getsourcefile(f), typing.get_type_hints(f))
        warnings.warn("careful")
    """,
    "exits_0": "import sys; sys.exit()",
    "exits_3": "import sys; sys.exit(3)",
    "exits_negative": "import sys; sys.exit(-1)",
    "exits_text": "import sys; sys.exit('no such thing')",
    "exits_tuple": "import sys; sys.exit((1, 2))",
    "exits_true": "raise SystemExit(True)",
    "bad_arguments": """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--steps", type=int, required=True)
        parser.parse_args()
    """,
    "raises": """
        def f(x):
            return 1 / x
        def g():
            try:
                f(0)
            except ZeroDivisionError as error:
                raise KeyError("no gradient") from error
        print("before")
        if __name__ == "__main__":
            g()
    """,
    "raises_in_context": """
        try:
            {}["a"]
        except KeyError:
            undefined
    """,
    "fails_to_parse": """
        x = 1
        y = (x +
    """,
    "fails_to_import": "from helper_that_fails import x",
    "fails_to_parse_import": "import helper_with_bad_syntax",
    "imports_missing": "import no_such_module_anywhere",
    "excepthook": """
        import sys
        sys.excepthook = lambda kind, error, traceback: print("hooked", kind, error, traceback.tb_lineno)
        raise ValueError("x")
    """,
    "excepthook_fails": """
        import sys
        def hook(*error):
            raise TypeError("hook")
        sys.excepthook = hook
        raise ValueError("x")
    """,
    "atexit": """
        import atexit, threading, time
        value = 7
        def bye():
            print("bye", value, __name__)
        atexit.register(bye)
        threading.Thread(target=lambda: (time.sleep(0.1), print("thread done"))).start()
    """,
    "imports_itself": """
        import importlib, os, sys
        name = os.path.splitext(os.path.basename(__file__))[0]
        if __name__ == "__main__":
            print(importlib.import_module(name).__name__, importlib.import_module(name).__file__)
    """,
    "encoding": "# -*- coding: latin-1 -*-\nprint('caf\xe9')\n",
    "future": "from __future__ import annotations\ndef f(x: undefined): ...\nprint(f.__annotations__)",
    "groups": "import sys\nif sys.version_info >= (3, 11): raise ExceptionGroup('both', [ValueError(1), KeyError(2)])",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_as_under_python(probe, workspace, name):
    write(
        workspace,
        {
            "helper_that_fails.py": "def inner():\n    raise RuntimeError('helper')\n\ninner()\n",
            "helper_with_bad_syntax.py": "x = = 1\n",
        },
    )
    (workspace / f"{name}.py").write_text(textwrap.dedent(SCRIPTS[name]), encoding="latin-1")
    plain = run_plain(workspace, [f"{name}.py", "--flag", "a b"])
    probed = run_probe(probe, workspace, {"script": str(workspace / f"{name}.py")}, ["--flag", "a b"])
    assert_same(plain, probed)
    assert probed.result["exit_code"] == plain.returncode
    assert not {"attach.py", "bootstrap.py", "main.py"} & set(probed.result["frames"])


def test_a_script_in_another_folder(probe, workspace):
    write(workspace, {"sub/train.py": LOOK_AROUND + "    import beside; print(beside.__file__)", "sub/beside.py": ""})
    plain = run_plain(workspace, ["sub/train.py"])
    assert_same(plain, run_probe(probe, workspace, {"script": str(workspace / "sub/train.py")}))


def test_a_script_that_is_a_link_has_the_target_folder_on_its_path(probe, workspace):
    write(workspace, {"real/train.py": "import beside, sys; print(__file__, sys.path[0])", "real/beside.py": ""})
    (workspace / "link.py").symlink_to(workspace / "real" / "train.py")
    assert_same(run_plain(workspace, ["link.py"]), run_probe(probe, workspace, {"script": str(workspace / "link.py")}))


PACKAGE = {
    "pkg/__init__.py": "print('package', __name__)",
    "pkg/__main__.py": LOOK_AROUND + "    from . import sibling",
    "pkg/sibling.py": "X = 1",
    "pkg/train.py": LOOK_AROUND
    + "    from .sibling import X\n    import pickle\n    class C: ...\n    pickle.dumps(C())",
    "pkg/fails.py": "from .sibling import Y",
    "pkg/needs.py": "import no_such_thing",
    "plain.py": LOOK_AROUND,
    "empty/readme.txt": "",
    "bare/__init__.py": "",
    "broken/__init__.py": "import no_such_thing",
    "broken/train.py": "",
}


@pytest.mark.parametrize("module", ["pkg", "pkg.train", "pkg.fails", "pkg.needs", "plain"])
def test_a_module_runs_as_under_python(probe, workspace, module):
    write(workspace, PACKAGE)
    plain = run_plain(workspace, ["-m", module, "one"])
    probed = run_probe(probe, workspace, {"module": module}, ["one"])
    assert probed.stdout == plain.stdout
    # Python's own runpy frames are no part of the program: the probe leaves them out.
    assert probed.stderr == without_runpy(plain.stderr)
    assert probed.returncode == plain.returncode


@pytest.mark.parametrize("module", ["nothing", "pkg.nothing", "empty", "bare", "nothing.at.all"])
def test_a_module_that_is_not_there_is_refused_in_pythons_words(probe, workspace, module):
    write(workspace, PACKAGE)
    plain = run_plain(workspace, ["-m", module])
    probed = run_probe(probe, workspace, {"module": module})
    assert (probed.returncode, probed.stdout) == (plain.returncode, plain.stdout)
    assert probed.stderr == plain.stderr
    assert probed.result["exception"] in ("ModuleNotFoundError", "ImportError")  # what the answer gives as the reason


def test_a_package_that_misses_something_of_its_own_says_what(probe, workspace):
    write(workspace, PACKAGE)
    probed = run_probe(probe, workspace, {"module": "broken.train"})
    assert probed.returncode == 1
    assert "No module named 'no_such_thing'" in probed.stderr


def without_runpy(text):
    lines, kept = text.splitlines(keepends=True), []
    for line in lines:
        if line.startswith("  File ") or not line.startswith("    "):
            skipping = "<frozen runpy>" in line or "runpy.py" in line
        if not skipping:
            kept.append(line)
    return "".join(kept)


def test_a_missing_script_is_reported_as_python_does(probe, workspace):
    plain = run_plain(workspace, ["nowhere.py"])
    probed = run_probe(probe, workspace, {"script": str(workspace / "nowhere.py")})
    assert probed.returncode == plain.returncode == 2
    assert "No such file or directory" in probed.stderr
    assert "Traceback" not in probed.stderr
    assert probed.result["exception"] == "FileNotFoundError"


def test_an_interrupt_ends_with_130(probe, workspace):
    write(workspace, {"train.py": "raise KeyboardInterrupt"})
    probed = run_probe(probe, workspace, {"script": str(workspace / "train.py")})
    assert probed.returncode == 130
    assert probed.stderr.rstrip().endswith("KeyboardInterrupt")


def test_stopping_the_program_is_no_failure(probe, workspace):
    write(
        workspace,
        {
            "train.py": """
        import sys
        stop = sys.modules["_warp_debug_gradients_probe.attach"].StopProgram
        try:
            raise stop()
        except Exception:
            print("swallowed")
        """
        },
    )
    probed = run_probe(probe, workspace, {"script": str(workspace / "train.py")})
    assert probed.result["stopped"]
    assert probed.result["exit_code"] == 0
    assert (probed.stdout, probed.stderr) == ("", "")


@pytest.mark.parametrize(
    "line",
    [
        "import later",
        "import later as l; print(l.READY)",
        "from later import READY",
        "import later.inner",
        "import importlib; importlib.import_module('later.inner')",
        "import importlib.util; importlib.util.find_spec('later'); import later",
        "import importlib, later; importlib.reload(later)",
    ],
)
def test_after_import_calls_back_once_when_the_package_is_complete(probe, workspace, line):
    write(
        workspace,
        {
            "later/__init__.py": "import time; from . import inner; time.sleep(0.05); READY = True",
            "later/inner.py": "",
            "train.py": f"import sys; {line}\nprint(type(sys.modules['later'].__loader__).__name__)",
        },
    )
    probed = run_probe(probe, workspace, {"script": str(workspace / "train.py")}, watch=["later", "never"])
    assert probed.result["imports"] == [["later", True]], probed.stderr
    assert 0.05 <= probed.result["seconds"]["later"] < 5
    assert probed.result["seconds"]["never"] is None
    assert probed.stdout.endswith("SourceFileLoader\n")


def test_after_import_leaves_failures_alone(probe, workspace):
    write(
        workspace,
        {
            "later/__init__.py": "def f():\n    raise ValueError('broken package')\nf()",
            "train.py": "import importlib.util; print(importlib.util.find_spec('never'))\nimport later",
        },
    )
    plain = run_plain(workspace, ["train.py"])
    probed = run_probe(probe, workspace, {"script": str(workspace / "train.py")}, watch=["later", "never"])
    assert_same(plain, probed)
    assert probed.result["imports"] == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's parent-death signal is Linux")
def test_the_probe_dies_with_its_parent(probe, workspace):
    write(workspace, {"train.py": "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)"})
    job = {"target": {"script": str(workspace / "train.py")}, "cwd": str(workspace), "workspace": str(workspace)}
    (workspace / "job.json").write_text(json.dumps({**job, "result": str(workspace / "r.json")}))
    starter = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True).wait()"
    arguments = [PYTHON, str(probe / "bootstrap.py"), str(workspace / "job.json")]
    parent = subprocess.Popen([sys.executable, "-c", starter, *arguments])
    pid = int(eventually(lambda: (workspace / "pid").read_text()))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert eventually(lambda: not alive(pid))


def eventually(ask, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if answer := ask():
                return answer
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_load_callable(probe, workspace):
    write(
        workspace,
        {
            "model.py": "import beside\nclass Model:\n"
            "    @staticmethod\n    def rollout(): return beside.X\n"
            "def make(): ...",
            "beside.py": "X = 42",
            "pkg/__init__.py": "",
            "pkg/model.py": "from .data import Y\ndef rollout(): return Y, __name__",
            "pkg/data.py": "Y = 43",
            "json.py": "def f(): ...",
        },
    )
    driver = """
        import sys
        from probe_package.attach import TargetError, load_callable
        here = sys.argv[1]
        print(load_callable("model.py:Model.rollout", here)(), sys.modules["model"].__file__, sys.path[0])
        print(load_callable("model.py:make", here) is sys.modules["model"].make)
        print(load_callable("pkg/model.py:rollout", here)())
        for spec in ("model.py", "nowhere.py:f", "model.py:maker", "model.py:Model.roll", "json.py:f"):
            try:
                print(load_callable(spec, here))
            except TargetError as error:
                print("refused", error)
    """
    (probe.parent / "probe_package").exists() or (probe.parent / "probe_package").symlink_to(probe)
    done = subprocess.run(
        [PYTHON, "-c", "import json\n" + textwrap.dedent(driver), str(workspace)],
        env={**environment(), "PYTHONPATH": str(probe.parent)},
        cwd="/",
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert lines[:3] == [f"42 {workspace}/model.py {workspace}", "True", "(43, 'pkg.model')"], done.stderr
    assert [line.split()[0] for line in lines[3:]] == ["refused"] * 5
    assert "it has Model, beside, make" in lines[5]
    assert "Model has no 'roll'" in lines[6]
    assert "rename" in lines[7]
