"""What ended the user's program, said in its own lines: each script fails in one known way."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[2] / "server"

# Imports Warp once and forks a child a job: a fresh interpreter for each would take a minute.
DRIVER = """
import json, os, sys
from warp_debug_gradients.probe import attach, failure
jobs = json.load(sys.stdin)
sys.path.remove(sys.argv[1])
if any("warp" in job["source"] for job in jobs):
    import warp
for job in jobs:
    sys.stdout.flush()
    if os.fork() == 0:
        if job.get("hide") or os.path.exists(os.path.join(job["workspace"], "warp.py")):
            for name in [name for name in sys.modules if name.partition(".")[0] == "warp"]:
                del sys.modules[name]
        if job.get("hide"):
            sys.modules["warp"] = None
        sys.stdin = open(os.devnull)
        outcome = attach.Program.from_job(job).execute()
        error = outcome.exception and failure.describe_failure(
            outcome, workspace=job["workspace"], script=job["target"]["script"], cwd=job["cwd"])
        print("RESULT", json.dumps([job["name"], error]), flush=True)
        os._exit(0)
    os.wait()
"""


def job(workspace, name, source, script="train.py", **more):
    path = workspace / script
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source).lstrip("\n"))
    here = {"target": {"script": str(path)}, "cwd": str(workspace), "workspace": str(workspace)}
    return {"name": name, "source": source, **here, **more}


def run(jobs):
    start = f"import sys; sys.path.insert(0, {str(SERVER)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", start + DRIVER, str(SERVER)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=200,
    )
    results = dict(json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("RESULT "))
    assert len(results) == len(jobs), done.stdout + done.stderr
    return results


def fail(workspace, source, script="train.py", **more):
    return run([job(workspace, "one", source, script, **more)])["one"]


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    """name -> (workspace, error object) for all the tables of this file, run in one go."""
    tables = {**KERNELS, **REFUSED, **PLAIN}
    folders = {name: tmp_path_factory.mktemp(name) for name in tables}
    errors = run([job(folders[name], name, source) for name, (source, _) in tables.items()])
    return {name: (folders[name], errors[name]) for name in tables}


HEAD = """
import warp as wp
wp.config.quiet = True
"""
LAUNCH = """
wp.launch(k, 1, inputs=[wp.zeros(1)], device="cpu")
"""


def kernel(line, before=""):
    return f"{HEAD}{before}\n@wp.kernel\ndef k(x: wp.array(dtype=float)):\n    i = wp.tid()\n    {line}\n{LAUNCH}"


KERNELS = {
    "undefined": (
        kernel("x[i] = undefined_thing * 2.0"),
        {
            "source": "x[i] = undefined_thing * 2.0",
            "message": "Referencing undefined symbol: undefined_thing",
            "type": "WarpCodegenKeyError",
            "advice": "defined",
        },
    ),
    "no_function": (
        kernel("x[i] = wp.sinn(x[i])"),
        {"source": "x[i] = wp.sinn(x[i])", "message": "wp.sinn", "advice": "@wp.func"},
    ),
    "mismatch": (
        kernel("x[i] = x[i] * i"),
        {"source": "x[i] = x[i] * i", "message": "['float32', 'int32']", "advice": "float(i)"},
    ),
    "unsupported": (
        kernel("x[i] = [float(j) for j in range(3)][0]"),
        {"source": "x[i] = [float(j) for j in range(3)][0]", "message": "ast.ListComp", "advice": "subset"},
    ),
    "in_a_function": (
        kernel("x[i] = f(x[i])", "@wp.func\ndef f(a: float):\n    b = a * 1\n    return b\n"),
        {"source": "b = a * 1", "function": "f", "message": "Input types must be the same", "advice": "types"},
    ),
    "return_types": (
        kernel("x[i] = f(x[i])", "@wp.func\ndef f(a: float):\n    if a > 1.0:\n        return a\n    return 1\n"),
        {"source": "return 1", "function": "f", "message": "different types", "advice": "types"},
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_do_not_compile(failures, name):
    (folder, error), (_, expected) = failures[name], KERNELS[name]
    assert error["kernel"] == "k"
    assert error["file"] == str(folder / "train.py")
    assert "Error while parsing function" in error["compiler_message"]
    for key, text in expected.items():
        assert text in error[key]
    assert error["function"] == expected.get("function", "k")
    assert not any("/probe/" in frame["file"] for frame in error["traceback"])


REFUSED = {
    "annotations": (
        HEAD + "@wp.kernel\ndef k(x):\n    i = wp.tid()\n",
        {"kernel": "k", "source": "@wp.kernel", "message": "Incomplete", "advice": "a type"},
    ),
    "launch_arguments": (
        kernel("x[i] = 1.0").replace("inputs=[wp.zeros(1)]", "inputs=[]"),
        {
            "kernel": "k",
            "source": "wp.launch(k, 1, inputs=[]",
            "message": "passed 0 arguments",
            "advice": "one each",
        },
    ),
    "cuda": (
        HEAD + "x = wp.zeros(1, device='cuda:7')",
        {"source": "x = wp.zeros", "message": "cuda:7", "advice": "run it on the CPU"},
    ),
    "scalar": (
        HEAD + "x = wp.zeros(3, requires_grad=True)\nwith wp.Tape() as t:\n    wp.copy(x, x)\nt.backward(x)",
        {"source": "t.backward(x)", "advice": "one element"},
    ),
    "sim": (HEAD + "import warp.sim", {"missing_module": "warp.sim", "advice": "newton"}),
    "sim_attribute": (HEAD + "wp.sim.ModelBuilder()", {"missing_module": "warp.sim", "advice": "warp-lang<1.10"}),
    "sim_from": (HEAD + "from warp import sim", {"missing_module": "warp.sim", "advice": "newton"}),
    "name": (HEAD + "wp.no_such_name()", {"advice": "no such name", "source": "wp.no_such_name()"}),
    "part": (HEAD + "import warp.no_such_part", {"missing_module": "warp.no_such_part", "advice": "version"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_warp_refuses(failures, name):
    (folder, error), (_, expected) = failures[name], REFUSED[name]
    assert error["file"] == str(folder / "train.py")
    for key, text in expected.items():
        assert text in error[key], error


PLAIN = {
    "zero_division": ("def f():\n    return 1 / 0\nf()", {"line": 2, "function": "f", "source": "return 1 / 0"}),
    "key": ("{}['a']", {"message": "'a'", "type": "KeyError"}),
    "torch": ("import torch_not_here", {"missing_module": "torch_not_here", "advice": "pip install torch-not-here"}),
    "renamed": (
        "raise ModuleNotFoundError(\"No module named 'cv2'\", name='cv2')",
        {"advice": f"{sys.executable} -m pip install opencv-python"},
    ),
    "explained": (
        "try:\n    import torch_not_here\nexcept ImportError as e:\n    raise ImportError('needs it') from e",
        {"missing_module": "torch_not_here", "message": "needs it", "line": 4},
    ),
    "syntax": ("x = 1\ny = = 2\n", {"line": 2, "type": "SyntaxError", "source": "y = = 2", "advice": "Python"}),
    "file": ("open('data/in.npy')", {"type": "FileNotFoundError", "advice": "relative to the working folder"}),
    "absolute_file": ("open('/no/such/file')", {"advice": "There is no /no/such/file"}),
    "exit": ("import sys\nsys.exit('bad input')", {"message": "sys.exit('bad input')", "line": 2}),
    "input": ("input()", {"type": "EOFError", "advice": "arguments"}),
    "relative": ("from . import x", {"type": "ImportError", "advice": "python -m"}),
    "library": ("import json\n\njson.loads('{')", {"line": 3, "source": "json.loads('{')"}),
    "arguments": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('x')\np.parse_args()",
        {"type": "SystemExit", "line": 4, "advice": "arguments", "message": "are required: x"},
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_python_failures(failures, name):
    (folder, error), (_, expected) = failures[name], PLAIN[name]
    assert error["file"] == str(folder / "train.py")
    for key, value in expected.items():
        assert error[key] == value if isinstance(value, int) else value in error[key], (key, error)


def test_warp_missing_from_the_interpreter(tmp_path):
    error = fail(tmp_path, "import warp as wp", hide=True)
    assert error["missing_module"] == "warp"
    assert f"{sys.executable} -m pip install warp-lang" in error["advice"]


def test_a_users_file_named_warp(tmp_path):
    (tmp_path / "warp.py").write_text("")
    error = fail(tmp_path, "import warp as wp\nwp.init()")
    assert "warp.py is not NVIDIA Warp: rename it" in error["advice"]


def test_a_module_of_the_workspace_off_the_search_path(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "my_model.py").write_text("")
    error = fail(tmp_path, "import my_model", "scripts/train.py")
    assert str(tmp_path / "lib" / "my_model.py") in error["advice"]
    assert "PYTHONPATH" in error["advice"]


def test_a_file_beside_the_script(tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "data.csv").write_text("")
    error = fail(tmp_path, "open('data.csv')", "scripts/train.py")
    assert f"use {tmp_path / 'scripts'} as cwd" in error["advice"]


def test_the_deepest_own_line_is_in_an_imported_file_of_the_workspace(tmp_path):
    (tmp_path / "helper.py").write_text("import json\ndef parse():\n    json.loads('{')\n")
    error = fail(tmp_path, "import helper\nhelper.parse()")
    assert (error["file"], error["line"], error["function"]) == (str(tmp_path / "helper.py"), 3, "parse")
    assert [Path(frame["file"]).name for frame in error["traceback"]][:3] == ["train.py", "helper.py", "__init__.py"]


def test_an_override_that_is_refused(tmp_path):
    error = fail(tmp_path, "NUM_STEPS = 5", overrides={"train.NUM_STEP": 3})
    assert error["type"] == "OverrideError"
    assert "did you mean NUM_STEPS?" in error["message"]
