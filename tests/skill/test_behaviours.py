"""What the version notes and the server's table say is what every supported Warp does."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import behaviours
import blocks
import pytest

from warp_debug_gradients import versions

SCRIPT = Path(__file__).with_name("behaviours.py")
TABLE = blocks.ROOT / "references" / "quick-checks.md"


def measured(python):
    done = subprocess.run([python, str(SCRIPT)], capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def rows():
    """The table of §11: {name: (right, {version: cell})}."""
    text = TABLE.read_text()
    lines = text[text.index("<!-- versions") : text.index("<!-- end -->")].splitlines()
    head = [cell.strip() for cell in lines[1].strip("|").split("|")]
    found = {}
    for line in lines[3:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = re.match(r"`(\w+)`", cells[0]).group(1)
        found[name] = (json.loads(cells[1]), dict(zip(head[2:-1], cells[2:-1])))
    return found


def test_the_table_is_that_of_the_behaviours():
    table = rows()
    assert set(table) == set(behaviours.BEHAVIOURS)
    for name, (_, right, wrong) in behaviours.BEHAVIOURS.items():
        assert table[name][0] == right
        assert set(table[name][1]) == set(behaviours.VERSIONS)
        for version, cell in table[name][1].items():
            assert cell == (f"wrong: {wrong[version]}" if version in wrong else "right"), (name, version)


@pytest.mark.slow
def test_the_installed_warp():
    check(measured(sys.executable))


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.13.0", "1.16.0", "1.17.0", "1.18.0"])
def test_another_warp(version, python_with):
    assert check(measured(python_with(f"warp-lang=={version}"))) == version.removesuffix(".0")


def test_the_table_of_the_server_is_that_of_the_behaviours():
    """Each of its rows changes at the version it names, and nowhere else; nothing that changes is left out."""
    named = [name for row in versions.BEHAVIOURS for name in row.measured]
    assert len(set(named)) == len(named)
    assert set(behaviours.BEHAVIOURS) - set(named) == {"copy_overlapping"}  # wrong on all of them
    for row in versions.BEHAVIOURS:
        for name, version in itertools.product(row.measured, behaviours.VERSIONS):
            wrong = version in behaviours.BEHAVIOURS[name][2]
            assert wrong == (versions.parse(version) < row.since), (name, version)


def check(result):
    version = ".".join(result.pop("warp").split(".")[:2])
    for name, value in result.items():
        assert value == pytest.approx(behaviours.expected(name, version)), (name, version)
    return version


def test_version_limits_in_the_texts_are_versions_at_which_something_changes():
    """`Warp < 1.17` and the like name a version at which a row of the table, or a listed behaviour of a check, changes."""
    changes = {"1.13", "1.16", "1.17"}  # 1.16: messages, determinism; 1.17: gradcheck, tracker, copies
    for file in blocks.TEXTS:
        for version in re.findall(r"Warp [<≥] (\d+\.\d+)", (blocks.ROOT / file).read_text()):
            assert version in changes, (file, version)
