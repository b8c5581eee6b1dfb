"""The skill's form: front matter, sizes, and links that resolve in the repository, in the wheel and over MCP."""

import json
import posixpath
import re
import subprocess
import sys
import zipfile

import blocks
import pytest

from warp_debug_gradients import skill

ROOT = blocks.ROOT
READMES = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("examples/*/README.md"))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def test_agentskills_validates_it(tmp_path):
    """The format wants a folder of the skill's name."""
    (tmp_path / skill.NAME).symlink_to(ROOT, target_is_directory=True)
    command = [sys.executable, "-m", "skills_ref.cli", "validate", str(tmp_path / skill.NAME)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Valid skill" in done.stdout + done.stderr


def test_sizes():
    _, front, body = (ROOT / "SKILL.md").read_text().split("---\n", 2)
    description = re.search(r"^description: (.*)$", front, re.MULTILINE).group(1)
    assert len(description) <= 1024
    assert len(body.splitlines()) < 500
    words = re.findall(r"\w+|[^\w\s]", body)
    pieces = sum(max(1, -(-len(word) // 6)) for word in words)  # long words are several tokens
    assert pieces < 5000


def text_of(path):
    return (ROOT / path).read_text()


def anchors(text):
    """As GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def links():
    for path in (*(t.path for t in skill.TEXTS), *READMES, "docs/seed-coverage.md"):
        for target in LINK.findall(text_of(path)):
            if "://" not in target:
                yield path, target


@pytest.mark.parametrize(("path", "target"), sorted(set(links())))
def test_links_resolve(path, target):
    file, _, anchor = target.partition("#")
    full = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
    if full.split("/")[0] not in ("docs", "README.md"):
        skill.read(full)  # over MCP, and in the wheel: KeyError if it is not given away
    assert (ROOT / full).is_file()
    if anchor:
        assert anchor in anchors(text_of(full))


def test_evals():
    """Tasks as a user would put them, and near misses; what they name exists."""
    evals = json.loads(text_of("evals/evals.json"))
    assert evals["skill_name"] == skill.NAME
    tasks = evals["evals"]
    assert len({task["id"] for task in tasks}) == len(tasks) >= 12
    assert sum(not task["should_trigger"] for task in tasks) >= 4
    for task in tasks:
        assert set(task) == {
            *("id", "prompt", "expected_output", "files", "assertions", "expected_skill", "should_trigger")
        }
        assert len(task["assertions"]) >= 2
        assert bool(task["files"]) is task["should_trigger"]
        for file in task["files"]:
            assert (ROOT / file).is_file(), file
            assert posixpath.basename(file) in task["prompt"]


def test_only_what_is_the_skills_is_read():
    for path in ("pyproject.toml", "../x", "examples/../pyproject.toml", "examples/buffer_reuse", "/etc/hostname"):
        with pytest.raises(KeyError):
            skill.read(path)


@pytest.mark.slow
def test_the_wheel_carries_it(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for path in (*(t.path for t in skill.TEXTS), *READMES):
            packed = f"warp_debug_gradients/skill/{path}"
            assert packed in names
            assert archive.read(packed).decode() == text_of(path)
