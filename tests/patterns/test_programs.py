"""All programs with a known truth, read without being run: is the true cause among the leads, and how loud are the
right programs? A lead is no verdict, but one that points elsewhere costs the reader time."""

import json
import shutil
from pathlib import Path

import pytest

from warp_debug_gradients.patterns import STRONG, examine
from warp_debug_gradients.patterns.closure import closure

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "tests" / "programs").glob("*/*/truth.json")) + sorted(
    (ROOT / "examples").glob("*/truth*.json")
)
NEAR = 3  # lines
NOT_STATIC = {  # what no reading of the source can tell
    "gradients_correct", "does_not_run", "precision_floor", "chaotic_horizon", "nonsmooth_choice", "unconverged_solver",
}  # fmt: skip
WEAK_IS_ENOUGH = {"custom_gradient", "stochastic_forward", "tape_scope"}  # true of many right programs, too
# Strong leads at right programs: it overflows for other data, and the data are not in the source.
LOUD = {("where_overflow/truth_lookalike.json", "wp.where with a branch that can overflow")}
# No lead at their causes. What is read one day leaves this list.
NOT_READ: set[str] = set()
UNKNOWN = {"singular_point/truth_broken.json"}  # the source does not say whether its root is reached at 0


def target(truth_file: Path, truth: dict) -> tuple[Path, Path]:
    """The file that is run, and the program's folder."""
    folder = truth_file.parent
    run = truth.get("run") or {}
    if run.get("module"):
        return folder.joinpath(*run["module"].split(".")).with_suffix(".py"), folder
    version = truth_file.stem.removeprefix("truth").strip("_")
    return folder / (run.get("script") or (f"{version}.py" if version else "main.py")), folder


def leads(truth_file: Path, truth: dict):
    script, folder = target(truth_file, truth)
    files, _ = closure([script], [script.parent, folder], folder.resolve())
    return examine(files, folder.resolve(), strict=True)


def named(truth_file: Path) -> str:
    return f"{truth_file.parent.name}/{truth_file.name}" if truth_file.name != "truth.json" else truth_file.parent.name


@pytest.fixture(scope="module")
def scanned():
    found = []
    for file in PROGRAMS:
        truth = json.loads(file.read_text())
        found.append((named(file), truth, target(file, truth)[0].name, leads(file, truth)))
    return found


def test_the_true_cause_is_among_the_leads(scanned):
    missed, found = [], 0
    for name, truth, script, scan in scanned:
        cause = truth["cause"]
        if cause in NOT_STATIC or truth.get("gradients_correct") or name in UNKNOWN:
            continue
        lines = [text.rsplit(":", 1) if isinstance(text, str) else (script, text) for text in truth["root_cause_lines"]]
        where = {(file, int(line)) for file, line in lines}
        hits = [h for h in scan.hits if h.code == cause and (h.likelihood == STRONG or cause in WEAK_IS_ENOUGH)]
        places = {(p.file, p.line) for h in hits for p in [h, *h.related]}
        near = any(f == file and abs(n - line) <= NEAR for f, n in places for file, line in where)
        found += near
        if not near:
            missed.append((name, cause, where, [(h.pattern.name, h.line) for h in scan.hits]))
    print(f"the true cause among the leads: {found} of {found + len(missed)}")
    assert {name for name, *_ in missed} == NOT_READ, missed
    assert found > 30


def test_right_programs_are_left_alone(scanned):
    right = [(name, scan) for name, truth, _, scan in scanned if truth["cause"] == "gradients_correct"]
    loud = {(name, h.pattern.name) for name, scan in right for h in scan.hits if h.likelihood == STRONG}
    weak = sum(h.likelihood != STRONG for _, scan in right for h in scan.hits)
    print(f"{len(right)} right programs: {len(loud)} strong and {weak} weak leads")
    assert len(right) > 35
    assert loud == LOUD
    assert weak <= len(right)


def test_repaired_programs_are_left_alone(tmp_path):
    loud, repaired = [], 0
    for file in PROGRAMS:
        truth = json.loads(file.read_text())
        if not truth.get("fix"):
            continue
        folder = tmp_path / file.parent.name / file.stem
        shutil.copytree(file.parent, folder)
        for edit in truth["fix"]:
            text = (folder / edit["file"]).read_text()
            assert edit["old"] in text, (file, edit)
            (folder / edit["file"]).write_text(text.replace(edit["old"], edit["new"], 1))
        repaired += 1
        scan = leads(folder / file.name, truth)
        loud += [(named(file), h.pattern.name, h.line) for h in scan.hits if h.likelihood == STRONG]
    assert repaired > 20
    assert loud == []


def test_everything_is_read_to_its_end(scanned):
    assert [(name, scan.notes, scan.skipped) for name, _, _, scan in scanned if scan.notes or scan.skipped] == []
