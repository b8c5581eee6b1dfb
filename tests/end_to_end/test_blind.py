"""The programs that were answered blind, asked again: what was right then stays right, and what was missed is repaired.

Their first answers, of a tool that had not been changed for them, are in docs/sweeps.md.
"""

import pytest
import truths

ACCUSES = ("proven", "likely")
OPEN: dict[str, str] = {}  # still answered wrongly, and how


def marked(program):
    """As a test's parameter; one that is open has to fail."""
    why = OPEN.get(program.name)
    marks = [pytest.mark.xfail(strict=True, reason=why)] if why else []
    return pytest.param(program, id=program.name, marks=marks)


@pytest.mark.parametrize("program", [marked(p) for p in truths.blind()])
def test_the_cause_is_found_and_nobody_is_accused_wrongly(program, tmp_path):
    truth, result = program.truth, truths.call("diagnose", program, program.copy(tmp_path / program.name)).result
    causes = [(c["code"], c["confidence"]) for c in result["causes"]]
    if truth["gradients_correct"]:
        assert result["verdict"] != "disagree", result["message"]
        assert not [c for c, sure in causes if sure in ACCUSES and c != "gradients_correct"], causes
    else:
        assert causes, result["message"]
        assert causes[0][0] in (truth["cause"], *truth["other_accepted"]), causes
