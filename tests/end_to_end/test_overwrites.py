"""Seven routes by which memory that an adjoint needs is overwritten, flat and nested, and four that harm nobody."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "programs" / "routes" / "main.py"
LINES = {text.strip(): k for k, text in enumerate(PROGRAM.read_text().splitlines(), 1)}


def line_with(mark: str) -> int:
    """The number of the program's line that carries a comment."""
    return next(k for text, k in LINES.items() if text.endswith(f"# {mark}"))


def track(workspace: Path, *arguments: str) -> dict:
    shutil.copy(PROGRAM, workspace / "main.py")
    command = [sys.executable, "-m", "warp_debug_gradients", "enable-tracker", "main.py", "--json", "--timeout", "200"]
    done = subprocess.run(
        [*command, "--", *arguments], cwd=workspace, capture_output=True, text=True, timeout=240, check=False
    )
    result = json.loads(done.stdout)
    assert result["status"] == "completed", result
    result["exit_code"] = done.returncode
    return result


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize("route", ["kernel", "slice", "pointer", "struct", "numpy", "after", "fill"])
def test_every_route_is_found_with_victim_reader_and_writer(tmp_path, route, nested):
    result = track(tmp_path, "--route", route, *(["--nested"] if nested else []))
    harmful = [o for o in result["overwrites"] if o["harmful"]]
    assert len(harmful) == 1
    (found,) = harmful
    assert found["variable"] == "self.dye"
    assert found["allocated"] == {
        "file": "main.py",
        "line": next(k for text, k in LINES.items() if text.startswith("self.dye = ")),
    }
    assert (found["reader"]["file"], found["reader"]["line"]) == (
        "main.py",
        line_with("reader, nested" if nested else "reader, flat"),
    )
    assert (found["writer"]["file"], found["writer"]["line"]) == ("main.py", line_with(f"writer {route}"))
    assert result["exit_code"] == 1


def test_a_launch_onto_its_own_input_is_its_own_writer(tmp_path):
    """One array as two arguments: what is read and what is written have different names in the kernel."""
    result = track(tmp_path, "--route", "itself")
    (found,) = [o for o in result["overwrites"] if o["harmful"]]
    here = ("main.py", line_with("reader and writer"))
    assert (found["how"], found["variable"], found["path"]) == ("in_kernel", "self.dye", None)
    assert [(found[side]["file"], found[side]["line"]) for side in ("reader", "writer")] == [here, here]
    assert not found["races"]  # each thread reads and writes its own element


@pytest.mark.parametrize("route", ["writeback", "slices", "accumulate", "none"])
def test_harmless_programs_are_not_accused(tmp_path, route):
    result = track(tmp_path, "--route", route)
    assert [o for o in result["overwrites"] if o["harmful"]] == []
    assert result["exit_code"] == 0
