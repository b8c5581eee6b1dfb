"""How programs are started, and what they do around their training, changes no answer and is done no more often."""

import json
import os
import shutil
import subprocess
import sys

import psutil
import pytest
import truths
from mcp import Client, StdioServerParameters

SOURCE = truths.PROGRAMS / "entry_points"
HABITS = [
    "reads hooks logs",
    "moves exits shows",
    "command executor fork during",
    "hooks raises",
    pytest.param("spawn", marks=pytest.mark.slow),
    pytest.param("serves hooks", marks=pytest.mark.slow),  # a helper that lives: every evaluation is a run of its own
]
STARTS = {
    "module": (["--module", "trainer"], ["train.lr=0.1", "+solver.steps=4", "~db"]),
    "module in a package": (["--module", "trainer.cli"], ["train.lr=0.1"]),
    "console script": (["train-force"], ["train.lr=0.1"]),
}


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(SOURCE, tmp_path, ignore=truths.NO_COPY, dirs_exist_ok=True)
    yield tmp_path
    left = [p.info["pid"] for p in psutil.process_iter(["pid", "cwd", "cmdline"]) if str(tmp_path) in str(p.info)]
    assert left == [], "processes are left"


def diagnose(folder, target, arguments):
    """(exit code, answer); the caller's standard input has an answer that the program must not get."""
    command = [sys.executable, "-m", "warp_debug_gradients", "diagnose", *target, "--workspace", str(folder)]
    command += ["--python", sys.executable, "--timeout", "400", "--json", "--", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=truths.environment(), input="9\n", capture_output=True, text=True, check=False
    )
    return done.returncode, json.loads(done.stdout)


def bare(folder, *arguments):
    """The program as its user runs it."""
    kept = {**os.environ, "MPLBACKEND": "Agg"}
    command = [sys.executable, "main.py", *arguments]
    return subprocess.run(command, cwd=folder, env=kept, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def shared(result):
    """What no habit may change: the verdict, the gradient, the first cause and its place."""
    cause, norm = result["causes"][0], result["consumed"]["norm"]
    place = (os.path.basename(cause["file"]), cause["line"])
    return result["verdict"], cause["code"], cause["confidence"], place, pytest.approx(norm, rel=1e-5)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The answers for the program without any habit, right and wrong."""
    root = shutil.copytree(SOURCE, tmp_path_factory.mktemp("plain"), ignore=truths.NO_COPY, dirs_exist_ok=True)
    return {fault: diagnose(root, ["main.py"], ["--rate", "0.1", *fault.split()])[1] for fault in ("", "fault")}


def test_the_plain_program(plain):
    assert (plain[""]["verdict"], plain["fault"]["verdict"]) == ("agree", "disagree")
    line = (SOURCE / "trainer" / "model.py").read_text().splitlines()[plain["fault"]["causes"][0]["line"] - 1]
    assert "last" in line


@pytest.mark.parametrize("habits", HABITS)
def test_habits_change_no_answer_and_happen_once(folder, plain, habits, tmp_path_factory):
    other = shutil.copytree(SOURCE, tmp_path_factory.mktemp("bare"), ignore=truths.NO_COPY, dirs_exist_ok=True)
    bare(other, "--rate", "0.1", *habits.split())
    code, result = diagnose(folder, ["main.py"], ["--rate", "0.1", *habits.split()])
    assert (code, shared(result)) == (0, shared(plain[""])), result["message"]
    assert result["engine"] == (
        "rerun" if "serves" in habits or "spawn" in habits else "fork"
    )  # spawn leaves a tracker
    for name in ("notes.txt", "train.log"):
        home = (other / name).read_text() if (other / name).exists() else None
        here = (folder / name).read_text() if (folder / name).exists() else None
        assert (here is None) == (home is None)
        if home is None or here is None:
            continue
        assert here.startswith(home)  # the run that is watched
        again = here.removeprefix(home)  # the run that is measured, up to its backward call; its forks write nothing
        assert again == "" if result["engine"] == "rerun" else again.count("begins") <= 1, again
        assert again.count("loss") <= 1, again
        assert again.count("atexit") <= 1, again
    if "raises" in habits:
        assert "excepthook ZeroDivisionError" in (folder / "notes.txt").read_text()
        assert any("ZeroDivisionError" in note for note in result["notes"])


def test_a_fault_is_found_behind_habits(folder, plain):
    code, result = diagnose(folder, ["main.py"], ["--rate", "0.1", "fault", "hooks", "logs", "fork"])
    assert (code, shared(result)) == (1, shared(plain["fault"])), result["message"]


@pytest.mark.parametrize("start", STARTS)
def test_ways_to_start(folder, plain, start):
    code, result = diagnose(folder, *STARTS[start])
    assert (code, shared(result)) == (0, shared(plain[""])), result["message"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "the following arguments are required: --rate"),
        (["--rate", "fast"], "argument --rate: invalid float value: 'fast'"),
        (["--rate", "0.1", "asks"], "The program waits for input, and there is none here"),
    ],
)
def test_what_is_missing_is_said(folder, arguments, says):
    code, result = diagnose(folder, ["main.py"], arguments)
    assert (code, result["reason"]) == (3, "does_not_run")
    assert says in result["message"] + result["causes"][0]["repair"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "target",
    [
        {"module": "trainer", "args": ["train.lr=0.1", "+solver.steps=4"]},
        {"script": "main.py", "args": ["--rate", "0.1", "reads", "hooks", "logs", "executor"]},
    ],
    ids=["module", "script"],
)
async def test_the_same_through_a_client(folder, plain, target):
    """Our own standard input and output carry the protocol: the program reads and writes neither."""
    environment = {**truths.environment(), "WARP_DEBUG_GRADIENTS_WORKSPACE": str(folder)}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "warp_debug_gradients", "serve"], env=environment, cwd=str(folder)
    )
    async with Client(server) as client:
        answer = await client.call_tool("diagnose", {**target, "python": sys.executable, "timeout_s": 200})
    assert shared(answer.structured_content) == shared(plain[""])
