"""Every code block of the skill's texts runs, and prints what the text says."""

import blocks
import pytest

PYTHON = [f for f in blocks.TEXTS if any(b.language == "python" and not b.alone for b in blocks.blocks(f))]
ALONE = [b for f in blocks.TEXTS for b in blocks.blocks(f) if b.language == "python" and b.alone]
SHELL = {}  # a command that several texts show is run once
for file in blocks.TEXTS:
    for block in blocks.blocks(file):
        if block.language == "sh":
            SHELL.setdefault(block.code.strip(), []).append(block)


def test_there_are_no_other_blocks():
    known = {"python", "sh", "text"}
    assert {b.language for f in blocks.TEXTS for b in blocks.blocks(f)} == known
    assert len(PYTHON) == 3
    assert len(ALONE) == 2


@pytest.mark.slow
@pytest.mark.parametrize("file", PYTHON)
def test_python(file, workspace, shell):
    python = [b for b in blocks.blocks(file) if b.language == "python" and not b.alone]
    (workspace / "program.py").write_text(blocks.program(python))
    done = shell("python program.py")
    assert done.returncode == 0, done.stderr
    for block, got in zip(python, blocks.printed(done.stdout, len(python))):
        assert blocks.differences(block.expected, got) == [], f"{file}:{block.line}"


@pytest.mark.slow
@pytest.mark.parametrize("block", ALONE, ids=lambda b: f"{b.file}:{b.line}")
def test_python_file_of_its_own(block, workspace, shell):
    (workspace / block.name).write_text(block.code)
    done = shell(f"python {block.name}")
    assert done.returncode == 0, done.stderr
    if block.output is not None:
        assert blocks.differences(block.expected, done.stdout.splitlines()) == []


@pytest.mark.slow
@pytest.mark.parametrize("line", SHELL)
def test_shell(line, workspace, shell):
    for block in ALONE:
        (workspace / block.name).write_text(block.code)
    done = shell(line)
    assert done.returncode in ((0, 1) if line.startswith("warp-debug-gradients") else (0,)), done.stdout + done.stderr
    for block in (b for b in SHELL[line] if b.output is not None):
        assert blocks.differences(block.expected, done.stdout.splitlines()) == [], f"{block.file}:{block.line}"


def told(text):
    """A diagnosis in one line, without what differs from machine to machine; folded or not."""
    lines = [line for line in text.partition("\nNext:")[0].splitlines() if not line.startswith(("Done:", "Warp "))]
    return " ".join(" ".join(lines).split())


@pytest.mark.slow
def test_the_session_of_the_readme(shell):
    (session,) = [b for b in blocks.blocks("README.md") if b.code.startswith("DISAGREE")]
    done = shell("warp-debug-gradients diagnose examples/buffer_reuse/broken.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert blocks.same(told(session.code), told(done.stdout), 0.02), told(done.stdout)


@pytest.mark.parametrize(
    ("expected", "got", "differs"),
    [
        (["a 1.00"], ["a 1.01"], False),
        (["a 1.00"], ["a 1.10"], True),
        (["a 1.0"], ["b 1.0"], True),
        (["x ± 0.001"], ["x ± 0.004"], False),
        (["x ± 0.001"], ["x ± 0.1"], True),
        (["...", "b"], ["a", "b"], False),
        (["a", "..."], ["a", "b"], False),
        (["a"], ["a", "b"], True),
        (["b"], ["a", "b"], True),
        (["a", "c"], ["a"], True),
        (["[2. 4.]"], ["[2. -4.]"], True),
        (["[0. 0.]"], ["[0. 1.]"], True),
    ],
)
def test_the_comparison_can_fail(expected, got, differs):
    assert bool(blocks.differences(expected, got)) is differs
