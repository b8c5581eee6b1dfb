"""Code blocks of the skill's texts: found, run, and their outputs compared.

A ```python block belongs to the program of its file: all blocks of a file are one program, so that Warp compiles once.
Kernels, functions and structs of all blocks come first, then the statements, block after block. A block whose first line is
`# a file of its own` (or `# a file of its own: NAME.py`) is a program by itself. Expected output stands behind the statement that prints it, `# -> text`, or in
the ```text block that follows. Numbers are compared with a tolerance; a line `...` stands for any number of lines.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFERENCES = ("quick-checks", "verification", "custom-gradients", "case-studies")
TEXTS = ("SKILL.md", *(f"references/{n}.md" for n in REFERENCES), "examples/checkpointing/README.md")
ALONE = "# a file of its own"
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
EXPECTED = re.compile(r"# -> (.*)$", re.MULTILINE)
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
MARK = "=====block"
QUIET = "wp.config.quiet, wp.config.log_level = True, getattr(wp, 'LOG_WARNING', None)"  # Warp's lines are no output


@dataclass(frozen=True)
class Block:
    """A fenced block and where it stands."""

    file: str
    line: int
    language: str
    code: str
    output: str | None  # of the text block that follows

    @property
    def alone(self) -> bool:
        return self.code.startswith(ALONE)

    @property
    def name(self) -> str:
        """The name to save a file of its own under."""
        head = self.code.splitlines()[0].partition(":")[2].strip()
        return head or "harness.py"

    @property
    def expected(self) -> list[str]:
        """The lines it must print."""
        return EXPECTED.findall(self.code) if self.output is None else self.output.splitlines()


def blocks(file: str) -> list[Block]:
    """All fenced blocks of a text, in order."""
    text = (ROOT / file).read_text()
    found = list(FENCE.finditer(text))
    out = []
    for match, after in zip(found, [*found[1:], None]):
        gap = text[match.end() : after.start()] if after else "x"
        follows = after is not None and after.group(2) == "text" and not gap.strip()
        code = "".join(line.removeprefix(match.group(1)) for line in match.group(3).splitlines(keepends=True))
        line = text[: match.start()].count("\n") + 2
        out.append(Block(file, line, match.group(2), code, after.group(3) if after and follows else None))
    return out


def program(python: list[Block]) -> str:
    """One program of several blocks: what Warp compiles comes first."""
    first, then = [], []
    for number, block in enumerate(python):
        tree = ast.parse(block.code)
        lines = block.code.splitlines()
        then.append(f"print('{MARK} {number}')")
        for node in tree.body:
            compiled = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.decorator_list
            start = node.decorator_list[0].lineno if compiled else node.lineno
            source = "\n".join(lines[start - 1 : node.end_lineno])
            imported = isinstance(node, (ast.Import, ast.ImportFrom))
            (first if compiled or imported else then).append(source)
    return "\n\n".join([*first, QUIET, *then]) + "\n"


def printed(output: str, count: int) -> list[list[str]]:
    """What each block of a program printed."""
    parts = re.split(rf"^{MARK} \d+\n", output, flags=re.MULTILINE)[1:]
    assert len(parts) == count, output[-2000:]
    return [part.splitlines() for part in parts]


def differences(expected: list[str], got: list[str], tolerance: float = 0.02) -> list[str]:
    """Lines of `expected` that do not come in `got`, in order; `...` skips lines."""
    at, skipping = 0, False
    for line in expected:
        if line.strip() == "...":
            skipping = True
            continue
        here = next((k for k in range(at, len(got)) if same(line, got[k], tolerance)), None)
        if here is None or (here != at and not skipping):
            return [f"expected {line!r}, got {got[at : at + 3]!r}"]
        at, skipping = here + 1, False
    if at < len(got) and not skipping:
        return [f"more than expected: {got[at : at + 3]!r}"]
    return []


def same(expected: str, got: str, tolerance: float) -> bool:
    """Equal words, and numbers within the tolerance."""
    words = [" ".join(NUMBER.sub("#", text).split()).replace("[ ", "[").replace(" ]", "]") for text in (expected, got)]
    if words[0] != words[1]:
        return False
    return all(
        near(float(e.group()), float(g.group()), tolerance, is_noise(e, expected))
        for e, g in zip(NUMBER.finditer(expected), NUMBER.finditer(got))
    )


def is_noise(number: re.Match[str], line: str) -> bool:
    """An error estimate, or a share too small to be more than rounding: its magnitude is all that repeats."""
    small = line[number.end() :].startswith("%") and abs(float(number.group())) < 0.1
    return small or bool(re.search(r"(±|noise) *$", line[: number.start()]))


def near(expected: float, got: float, tolerance: float, noise: bool) -> bool:
    """Within the tolerance; noise must not be ten times as large."""
    if noise:
        return abs(got) <= 10.0 * abs(expected)
    return math.isclose(expected, got, rel_tol=tolerance, abs_tol=1e-9)
