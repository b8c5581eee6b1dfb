"""The twelve shared cases through `diagnose`, the real command: cause, place, and what it says besides."""

import re

import pytest
import truths

CASES = [p for p in truths.programs() if p.folder.parent.name == "cases"]
NEAR = 3  # lines: a launch and the statement before it, a tape and the `with` that opens it


def lines_of(program):
    return [int(str(line).rpartition(":")[2]) for line in program.truth["root_cause_lines"]]


@pytest.mark.slow
@pytest.mark.parametrize("program", CASES, ids=lambda p: p.name)
def test_the_cause_and_its_place(program, tmp_path):
    folder = program.copy(tmp_path / program.folder.name)
    answer = truths.call("diagnose", program, folder)
    result = answer.result
    top = result["causes"][0]
    assert top["code"] == program.truth["cause"], result["message"]
    expected = lines_of(program)
    assert not expected or min(abs(top["line"] - line) for line in expected) <= NEAR
    assert top["evidence"]
    assert re.search(r"\d", " ".join(top["evidence"])) or result["status"] == "blocked"
    assert top["quick_check"].startswith("references/quick-checks.md §")
    assert top["documentation"]
    if result["verdict"] == "disagree":
        assert result["next"] == {**result["next"], "tool": "verify_fix", "arguments": {"baseline": result["run_id"]}}
    assert result["stages"][0]["name"] == "run"
