"""The programs that were answered wrongly, or not at all, when they were asked blind.

The first answers, of a tool that had not been changed for them, are in docs/sweeps.md; `make sweep WHAT=diagnose` asks all of them
again, those that were right as well.
"""

import pytest
import truths

ACCUSES = ("proven", "likely")
MISSED = {
    "backlight_zones", "cell_fit", "exposure_fit", "fog_lidar", "photon_slab", "receiver_fix", "sled_launch", "soil_column",
    "thermosyphon_fit", "truss_calib", "tumour_growth", "weld_filter",
}  # fmt: skip
ASKED = [p for p in truths.blind() if p.name in MISSED]


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
