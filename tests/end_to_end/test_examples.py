"""Every program of the gallery through the real command: what the user brings, its repair, its look-alike.

The first must be answered with its cause and one of its lines, the others must not be accused.
"""

import re

import pytest
import truths
from truths import EXIT_CODES, ROOT, numbers_wrong

from warp_debug_gradients.catalogue import CATALOGUE

EXAMPLES = truths.examples()
GALLERY = ROOT / "examples"
BROKEN = [p for p in EXAMPLES if p.truth["cause"] != "gradients_correct"]
RIGHT = [p for p in EXAMPLES if p.truth["cause"] == "gradients_correct"]
VERDICTS = {"not_disagree": {"agree", "inconclusive"}}


def objective_of(program):
    stated = program.truth.get("objective")
    return ["--objective", stated] if stated else []


def by_name(programs):
    return pytest.mark.parametrize("program", programs, ids=lambda p: p.name)


@by_name([p for p in BROKEN if p.truth["verdict"] == "disagree"])
def test_the_cause_and_its_line(program, tmp_path):
    folder = program.copy(tmp_path / program.folder.name)
    answer = truths.call("bisect-steps", program, folder, *objective_of(program))
    result = answer.result
    assert result["verdict"] == "disagree", result["message"]
    assert answer.code == EXIT_CODES["disagree"]
    top = result["causes"][0]
    assert top["code"] == program.truth["cause"], result["message"]
    assert f"{top['file']}:{top['line']}" in program.truth["root_cause_lines"]


@by_name(RIGHT)
def test_nobody_right_is_accused(program, tmp_path):
    folder = program.copy(tmp_path / program.folder.name)
    one = ["--iteration", str(program.iteration)] if program.name.endswith("-repaired") else []
    answer = truths.gradcheck(program, folder, *objective_of(program), *one)
    result = answer.result
    assert result["verdict"] == "agree", result["message"]
    assert answer.code == EXIT_CODES[result["verdict"]]
    assert [c for c in result["causes"] if c["confidence"] != "possible"] == []
    assert numbers_wrong(program, answer) == []


@by_name([p for p in BROKEN if p.truth["verdict"] != "disagree"])
def test_a_situation_is_called_by_its_name(program, tmp_path):
    folder = program.copy(tmp_path / program.folder.name)
    answer = truths.call("diagnose", program, folder)
    result, verdict, cause = answer.result, program.truth["verdict"], program.truth["cause"]
    assert result["verdict"] in VERDICTS.get(verdict, {verdict}), result["message"]
    assert result["causes"][0]["code"] == cause, result["message"]
    assert answer.code == (EXIT_CODES[result["verdict"]] if result["verdict"] else 3)


def test_the_ledger_follows_a_seed_that_becomes_the_gradient_of_an_array_without_one(tmp_path):
    """`backward(grads={a: g})` where a has no buffer: g is its gradient from then on."""
    program = truths.named("seed_mismatch-repaired")
    result = truths.call("bisect-steps", program, program.copy(tmp_path / program.folder.name)).result
    assert result["verdict"] == "agree"
    assert result["flat"], result["message"]
    assert result["causes"] == []
    assert next(j for j in result["jumps"] if j["kernel"] == "listen")["noise"] < 0.01


def test_every_cause_has_an_example():
    assert {p.truth["cause"] for p in EXAMPLES} == set(CATALOGUE)


def test_every_folder_is_in_the_index():
    index = (GALLERY / "README.md").read_text()
    assert set(re.findall(r"^\| \[(\w+)\]\(\1/\)", index, re.MULTILINE)) == {p.folder.name for p in EXAMPLES}


@pytest.mark.parametrize("folder", sorted({p.folder for p in EXAMPLES}), ids=lambda f: f.name)
def test_the_text_quotes_the_cause_and_a_line_of_it(folder):
    text = (folder / "README.md").read_text()
    (program,) = [p for p in BROKEN if p.folder == folder] or [p for p in EXAMPLES if p.name.endswith("-train")]
    cause = program.truth["cause"]
    assert f"quick-checks.md, section {CATALOGUE[cause].section}" in text
    quoted = re.search(rf"^  {cause} \(\w+\) ([\w.]+:\d+)", text, re.MULTILINE)
    if program.truth["verdict"] == "disagree":
        assert quoted
    if quoted:
        assert quoted[1] in program.truth["root_cause_lines"]
