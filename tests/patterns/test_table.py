"""Every pattern: where it must be found, in plain and in disguise, and look-alikes in which it must not be."""

from pathlib import Path

import pytest
from snippets import FOUND, HARMLESS

from warp_debug_gradients.catalogue import CATALOGUE
from warp_debug_gradients.patterns import STRONG, all_patterns, examine

WEAK_ALWAYS = {  # true of many right programs as well
    "random draw without a seed", "another framework inside the tape", "custom gradient", "continue in a dynamic loop",
    "work after the loss inside the tape", "conditional expression on array elements",
}  # fmt: skip
PATTERNS = [p.name for p in all_patterns()]


def cases(table):
    return [pytest.param(name, text, id=f"{name}-{n}") for name, texts in table.items() for n, text in enumerate(texts)]


def hits_in(folder: Path, text: str):
    file = folder / "program.py"
    file.write_text(text)
    found = examine([file], folder, strict=True)
    assert found.scanned == ["program.py"], found.skipped
    assert not found.notes
    return found.hits


def test_no_pattern_is_left_out():
    assert set(PATTERNS) == set(FOUND) == set(HARMLESS)
    assert len(PATTERNS) == len(set(PATTERNS))
    assert all(p.code in CATALOGUE for p in all_patterns())


@pytest.mark.parametrize(("name", "text"), cases(FOUND))
def test_found(tmp_path, name, text):
    line = next(n for n, row in enumerate(text.splitlines(), 1) if row.rstrip().endswith("#!"))
    found = [(h.pattern.name, h.line) for h in hits_in(tmp_path, text)]
    assert (name, line) in found, found


@pytest.mark.parametrize(("name", "text"), [(n, t[0]) for n, t in FOUND.items() if n not in WEAK_ALWAYS])
def test_the_first_of_each_is_a_strong_lead(tmp_path, name, text):
    assert [h for h in hits_in(tmp_path, text) if h.pattern.name == name and h.likelihood == STRONG]


@pytest.mark.parametrize(("name", "text"), cases(HARMLESS))
def test_harmless(tmp_path, name, text):
    assert [(h.pattern.name, h.line) for h in hits_in(tmp_path, text) if h.pattern.name == name] == []
