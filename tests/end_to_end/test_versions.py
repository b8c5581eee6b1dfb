"""The shared cases and a slice of the gallery on other Warps than the installed one, each in its own environment.

What a case shows on which version stands in its truth.json (`shows_on_warp`): the broken ones are broken on all that
are supported, so that verdicts and numbers are those of the newest. Two programs of ours are broken by Warp itself,
on some versions only. The installed Warp is measured by all other tests.
"""

import json
import re
import subprocess
import sys

import pytest
import truths
from truths import EXIT_CODES

from warp_debug_gradients import versions

CASES = [p for p in truths.programs() if p.folder.parent.name == "cases"]
NEEDS_A_HISTORY = {"06_antenna_phases_nozero"}  # right in iteration 0
SLICES = {  # of the gallery, another for each version
    "1.13.0": ["buffer_reuse-broken", "buffer_reuse-repaired"],
    "1.16.0": ["stale_gradient-broken", "stale_gradient-repaired"],
    "1.17.0": ["warp_defect-broken", "warp_defect-repaired"],
    "1.18.0": ["custom_gradient-broken", "unrecorded_operation-broken"],
}
MATRIX = [(name, version) for version, own in SLICES.items() for name in [*(p.name for p in CASES), *own]]
COPIES = """
import warp as wp


@wp.kernel
def cost(x: wp.array(dtype=float), kept: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i] + 5.0 * kept[i])


x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
kept = wp.zeros(3, dtype=float, requires_grad=True)
for _ in range(2):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(kept, x)
        wp.launch(cost, 3, inputs=[x, kept], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
"""
CHOOSES = COPIES.replace("x[i] * x[i] + 5.0 * kept[i]", "x[i] if i < 2 else kept[i]").replace(
    "        wp.copy(kept, x)\n", ""
)


def shows_on(program, version):
    """Whether truth.json says that what the program is for shows on this version."""
    said = program.truth.get("shows_on_warp", "1.13-1.19")
    limits = re.match(r"(?:fails )?(\d+\.\d+)(?:-(\d+\.\d+)|\+)", said)
    first, last = versions.parse(limits[1]), versions.parse(limits[2])
    return first <= versions.parse(version) and (last is None or versions.parse(version) <= last)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), MATRIX)
def test_verdicts(name, version, python_with, tmp_path):
    program, python = truths.named(name), python_with(f"warp-lang=={version}")
    assert shows_on(program, version)
    objective = program.truth.get("objective")
    options = ["--objective", objective] if objective else []
    if program.truth["runs"] and name not in NEEDS_A_HISTORY:
        options += ["--iteration", str(program.iteration)]
    answer = truths.gradcheck(program, program.copy(tmp_path / "copy"), *options, python=python)
    result = answer.result
    assert result["interpreter"]["path"] == python
    if not program.truth["runs"]:
        assert (result["status"], answer.code) == ("blocked", 3)
        return
    assert result["warp_version"] == version
    right = program.truth["gradients_correct"]
    unsure = {"inconclusive"} if right and program.truth.get("verdict") != "agree" else set()
    assert result["verdict"] in {"agree" if right else "disagree"} | unsure, result["message"]
    assert answer.code == EXIT_CODES[result["verdict"]]
    assert program.random or truths.numbers_wrong(program, answer) == []


@pytest.mark.slow
@pytest.mark.parametrize("source", [COPIES, CHOOSES], ids=["copies", "chooses"])
@pytest.mark.parametrize("version", ["1.13.0", "1.16.0", "1.17.0"])
def test_a_defect_of_some_versions(source, version, python_with, tmp_path):
    """Wrong before 1.17 by Warp's own fault, and said to be; right from then on."""
    (tmp_path / "train.py").write_text(source)
    program = truths.Program("defect", tmp_path, {}, "train.py")
    answer = truths.call("diagnose", program, tmp_path, python=python_with(f"warp-lang=={version}"))
    if versions.parse(version) >= (1, 17):
        assert answer.result["verdict"] == "agree", answer.result["message"]
        return
    assert answer.result["verdict"] == "disagree", answer.result["message"]
    top = answer.result["causes"][0]
    assert (top["code"], top["confidence"]) == ("warp_defect", "likely"), top
    line = "wp.copy(kept, x)" if source is COPIES else "wp.launch(cost"
    assert line in source.splitlines()[top["line"] - 1]
    assert any(f"Warp {version}: " in said and "from 1.17 on" in said for said in top["evidence"]), top


@pytest.mark.slow
def test_doctor_lists_what_an_old_warp_does_otherwise(old_python, tmp_path):
    command = [sys.executable, "-m", "warp_debug_gradients", "doctor", "--workspace", str(tmp_path)]
    command += ["--python", old_python, "--json"]
    done = subprocess.run(command, env=truths.environment(), capture_output=True, text=True, check=False)
    known = [c["found"] for c in json.loads(done.stdout)["checks"] if c["name"] == "known behaviour"]
    assert known == [f"Warp 1.13.0: {b.before}" for b in versions.BEHAVIOURS]
