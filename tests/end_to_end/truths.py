"""The programs with a known truth, and the real command run on them in a copy.

How truth.json names things: tests/programs/README.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "programs"
TOLERANCE = 0.01  # of the number, or of a tenth of the largest one where a number is near zero
NEAR_ZERO = 0.1
EXIT_CODES = {"agree": 0, "disagree": 1, "inconclusive": 4}
OURS = ".warp-debug-gradients"
NO_COPY = shutil.ignore_patterns("truth*.json", "answer.json", "__pycache__", OURS, "README.md")


@dataclass(frozen=True)
class Program:
    """A program as it stands, and what is known of it."""

    name: str
    folder: Path
    truth: dict[str, Any]
    script: str | None
    module: str | None = None
    edits: tuple[tuple[str, str, str], ...] = field(default=(), repr=False)

    @property
    def target(self) -> list[str]:
        """The command's arguments that say what is run."""
        return ["--module", self.module] if self.module else [str(self.script)]

    @property
    def iteration(self) -> int:
        return self.truth.get("iteration_to_look_at") or 0

    @property
    def random(self) -> bool:
        """Whether the truth says that its numbers are those of other random draws than the script's."""
        other_seed = "seed=5 used here" in (self.truth.get("root_cause") or "")
        return other_seed or "in every run" in self.truth.get("note", "")

    def copy(self, folder: Path) -> Path:
        """The program's files (repaired, if it is a repair) in a folder of their own."""
        shutil.copytree(self.folder, folder, ignore=NO_COPY)
        for file, old, new in self.edits:
            text = (folder / file).read_text()
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
            (folder / file).write_text(text.replace(old, new))
        return folder

    def bare_command(self, python: str = sys.executable) -> list[str]:
        """How its user runs it."""
        start = [python, "-m", self.module] if self.module else [python, str(self.script)]
        return [*start, *self.truth.get("args", [])]


@dataclass(frozen=True)
class Answer:
    """What the command said."""

    code: int
    result: dict[str, Any]
    checks: list[dict[str, Any]]  # all that was measured, of evaluate.json
    stderr: str

    def check(self, iteration: int, name: str | None = None) -> dict[str, Any] | None:
        """The check of a parameter in an iteration; names match by their last component."""
        found = [c for c in self.checks if c["iteration"] == iteration]
        if name is not None and len(found) != 1:
            found = [c for c in found if last_component(c["parameter"]["name"]) == last_component(name)]
        return found[0] if len(found) == 1 else None


def programs() -> list[Program]:
    """The programs as their users wrote them."""
    found = []
    for path in sorted(PROGRAMS.glob("*/*/truth.json")):
        truth = json.loads(path.read_text())
        run = truth.get("run", {"script": "main.py"})
        found.append(Program(path.parent.name, path.parent, truth, run.get("script"), run.get("module")))
    return found


def blind() -> list[Program]:
    """Programs of an author who did not know the tool; what is true of them is that author's own measurement."""
    found = []
    for path in sorted(PROGRAMS.glob("blind/*/answer.json")):
        answer = json.loads(path.read_text())
        truth = {**answer, "root_cause_lines": [f"{answer['file']}:{n}" for n in answer["root_cause_lines"]]}
        found.append(Program(path.parent.name, path.parent, truth, "main.py"))
    return found


def examples() -> list[Program]:
    """The programs of the gallery: what the user brings, its repair and its look-alike."""
    found = []
    for path in sorted((ROOT / "examples").glob("*/truth_*.json")):
        truth = json.loads(path.read_text())
        script = truth["run"]["script"]
        found.append(Program(f"{path.parent.name}-{Path(script).stem}", path.parent, truth, script))
    return found


def repairs() -> list[Program]:
    """The broken ones, repaired: a twin beside them, or the replacements of `fix`."""
    found = []
    for path in sorted(PROGRAMS.glob("*/*/truth.json")):
        truth = json.loads(path.read_text())
        run = truth.get("run", {"script": "main.py"})
        if (path.parent / "fixed.py").exists():
            found.append(Program(path.parent.name, path.parent, truth, "fixed.py"))
        elif truth.get("fix"):
            edits = tuple((e["file"], e["old"], e["new"]) for e in truth["fix"])
            found.append(Program(path.parent.name, path.parent, truth, run.get("script"), run.get("module"), edits))
    return found


def named(name: str) -> Program:
    """One program."""
    (found,) = [p for p in [*programs(), *examples()] if p.name == name]
    return found


def environment() -> dict[str, str]:
    """The tests' own, with the server importable."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "server")}


def gradcheck(program: Program, folder: Path, *options: str, **how: Any) -> Answer:
    """The check of the program's copy in `folder`."""
    return call("gradcheck-full-horizon", program, folder, *options, **how)


def call(
    operation: str,
    program: Program,
    folder: Path,
    *options: str,
    python: str = sys.executable,
    timeout_s: float = 100,
) -> Answer:
    """The real command on the program's copy in `folder`."""
    settings = [f"--set={k}={v!r}" for k, v in (program.truth.get("set") or {}).items()]
    args = program.truth.get("args") or []
    command = [
        *(sys.executable, "-m", "warp_debug_gradients", operation, *program.target),
        *("--workspace", str(folder), "--python", python, "--timeout", f"{timeout_s:g}", "--json"),
        *settings,
        *options,
        *(["--", *args] if args else []),
    ]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{"), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    result = json.loads(done.stdout)
    evaluated = folder / result["evidence"] / "evaluate.json"
    checks = json.loads(evaluated.read_text())["checks"] if evaluated.exists() else []
    return Answer(done.returncode, result, checks, done.stderr)


def answer_on_a_copy(operation: str, file: Path, folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """(exit code, result) of the command on a copy of one file; arguments: the program's own."""
    shutil.copy(file, folder)
    command = [sys.executable, "-m", "warp_debug_gradients", operation, file.name, "--workspace", str(folder)]
    command += ["--python", sys.executable, "--timeout", "200", "--json", "--", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{"), done.stderr
    return done.returncode, json.loads(done.stdout)


def run_bare(program: Program, folder: Path) -> subprocess.CompletedProcess[str]:
    """The program as its user runs it."""
    bare = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(program.bare_command(), cwd=folder, env=bare, capture_output=True, text=True, check=False)


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file and folder of the copy but our own, with its contents."""
    found = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if relative.parts[0] != OURS:
            found[str(relative)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """Names whose contents differ, or that came or went."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def numbers_wrong(program: Program, answer: Answer) -> list[str]:
    """Where the measured gradient or difference of an element is not the truth's. Empty: all are."""
    truth, problems = program.truth, []
    for name, autodiff in _by_parameter(truth["autodiff"]).items():
        check = answer.check(program.iteration, name)
        if check is None:
            found = [(c["iteration"], c["parameter"]["name"]) for c in answer.checks]
            problems.append(f"{name} is not checked in iteration {program.iteration}, only {found}")
            continue
        if truth.get("autodiff_per_call"):
            autodiff = truth["autodiff_per_call"][program.iteration]
        steps = [_by_parameter(by_step)[name] for by_step in truth["finite_difference"].values()]
        elements = [e for e in check["gradient"]["elements"] if e["index"] < len(autodiff)]
        if not elements and check["verdict"] != "inconclusive":
            problems.append(f"{name}: none of the first {len(autodiff)} elements was measured")
        for element in elements:
            k = element["index"]
            where = f"{check['parameter']['name']}[{k}]"
            if not close(element["autodiff"], [autodiff[k]], scale(autodiff)):
                problems.append(f"{where}: gradient {element['autodiff']}, truth {autodiff[k]}")
            judged = check["verdict"] != "inconclusive" and element["verdict"] != "inconclusive"
            if judged and not close(element["finite_difference"], [s[k] for s in steps], scale(steps[-1])):
                problems.append(
                    f"{where}: difference {element['finite_difference']} ± {element['error']}, "
                    f"truth {[s[k] for s in steps]}"
                )
    return problems


def close(measured: Any, truths: list[Any], size: float) -> bool:
    """Within one per cent of one of the truths (differences at several steps), or of what they leave open."""
    got, known = float(measured), [float(t) for t in truths]
    if any(math.isnan(t) for t in known):
        return math.isnan(got)
    spread = max(known) - min(known)
    return any(abs(got - t) <= TOLERANCE * max(abs(t), NEAR_ZERO * size) + spread for t in known)


def scale(values: list[Any]) -> float:
    """The largest finite one."""
    return max((abs(float(v)) for v in values if math.isfinite(float(v))), default=0.0)


def last_component(name: str) -> str:
    """`controls.vent` -> vent, `params["base"]` -> base, `vent` -> vent."""
    return name.rstrip("\"'])").replace("[", ".").replace('"', "").replace("'", "").split(".")[-1]


def _by_parameter(values: Any) -> dict[str | None, list[Any]]:
    return values if isinstance(values, dict) else {None: values}
