"""The programs that were answered blind, asked again: those that were missed are repaired, and right ones are accused by nobody.

The first answers, of a tool that had not been changed for them, are in docs/sweeps.md; `make sweep WHAT=diagnose` asks them all.
"""

import pytest
import truths

ACCUSES = ("proven", "likely")
MISSED = {
    "backlight_zones", "cell_fit", "exposure_fit", "photon_slab", "receiver_fix", "soil_column", "truss_calib"
}  # fmt: skip
ASKED = [p for p in truths.blind() if p.truth["gradients_correct"] or p.name in MISSED]


@pytest.mark.parametrize("program", ASKED, ids=lambda program: program.name)
def test_the_cause_is_found_and_nobody_is_accused_wrongly(program, tmp_path):
    truth, result = program.truth, truths.call("diagnose", program, program.copy(tmp_path / program.name)).result
    causes = [(c["code"], c["confidence"]) for c in result["causes"]]
    known = (truth["cause"], *truth["other_accepted"])
    if truth["gradients_correct"]:
        assert result["verdict"] != "disagree", result["message"]
        assert not [c for c, sure in causes if sure in ACCUSES and c not in ("gradients_correct", *known)], causes
    else:
        assert causes, result["message"]
        assert causes[0][0] in known, causes
