"""The skill's own texts (SKILL.md, references, examples): where they lie, and which they are.

In a wheel they lie beside this file in `skill/`; in a checkout they are the repository's own files.
Their addresses are skill://warp-debug-gradients/PATH, so that the relative links inside them resolve.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NAME = "warp-debug-gradients"
RUNBOOK = "SKILL.md"


@dataclass(frozen=True)
class Text:
    """One text of the skill. `path` is relative to the skill's folder."""

    path: str
    title: str
    description: str

    @property
    def uri(self) -> str:
        return f"skill://{NAME}/{self.path}"


TEXTS = (
    Text(
        RUNBOOK,
        "Runbook",
        "Debugging gradients in Warp: the eight steps, the signature table, a worked session, limits.",
    ),
    Text(
        "references/quick-checks.md",
        "Quick checks",
        "Known patterns by section: disguises, look-alikes, proof, repair.",
    ),
    Text(
        "references/verification.md", "Verification", "The instruments, by tool and by hand, and what each cannot see."
    ),
    Text(
        "references/custom-gradients.md",
        "Custom gradients",
        "func_grad, func_replay, func_native: when, and how misused.",
    ),
    Text("references/case-studies.md", "Case studies", "Two sagas that show how subtle it gets."),
)


def folder() -> Path:
    """The folder that holds SKILL.md."""
    here = Path(__file__).parent
    packed = here / "skill"
    return packed if (packed / RUNBOOK).exists() else here.parent.parent


def read(path: str) -> str:
    """A text by its path. KeyError: there is none, or it lies outside of what the skill gives away."""
    known = path in {text.path for text in TEXTS}
    root = (folder() / "examples").resolve()
    file = (folder() / path).resolve()
    if not (known or (root in file.parents and file.suffix in (".py", ".md"))) or not file.is_file():
        raise KeyError(path)
    return file.read_text(encoding="utf-8")


def files() -> list[str]:
    """All paths that `read` gives: the texts, and the examples' programs and pages."""
    root = folder()
    examples = sorted(p for p in (root / "examples").glob("*/*") if p.suffix in (".py", ".md") and p.is_file())
    return [*(text.path for text in TEXTS), *(p.relative_to(root).as_posix() for p in examples)]


def front_matter() -> dict[str, str]:
    """What stands between the first two lines of dashes of the runbook: plain `key: value` lines."""
    head = read(RUNBOOK).split("---\n")[1]
    return dict(line.split(": ", 1) for line in head.splitlines())
