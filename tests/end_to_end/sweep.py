"""Every program with a known truth through `diagnose` or `bisect_steps`, or every one with a repaired twin through `verify_fix`.

    make sweep WHAT=diagnose [NAMES='...']   top cause and its line against the truth; who is accused
    make sweep WHAT=ledger [NAMES='...']     is the largest jump the faulty launch; the first cause; does a right program jump
    make sweep WHAT=twins [NAMES='...']      repaired, broken again, another fault planted

Takes about an hour each on two cores; one line a program as it is measured, then the table of docs/sweeps.md. Exit code 1:
something is not as it should be. A name is a part of a program's.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import truths
from largest_jump import NEAR, NO_JUMP, OUTSIDE, is_fault, significant
from truths import Answer, Program

ACCUSES = ("proven", "likely")
SITUATIONS = ("chaotic_horizon", "nonsmooth_choice", "piecewise_constant", "precision_floor", "stochastic_forward",
              "unconverged_solver")  # fmt: skip


@dataclass
class Row:
    """One program's outcome: what was found, and what of it is wrong."""

    name: str
    cells: list[str]
    problems: list[str] = field(default_factory=list[str])


def objective(program: Program) -> list[str]:
    """What the user says that the objective is, where that is not what is handed to backward."""
    stated = program.truth.get("objective")
    return ["--objective", stated] if stated else []


# -- diagnose --------------------------------------------------------------------------------------------------------


def diagnosed(program: Program, folder: Path) -> Row:
    """The top cause of one program, and whom it accuses."""
    truth = program.truth
    answer = truths.call("diagnose", program, program.copy(folder / program.folder.name), *objective(program))
    result = answer.result
    top = (result["causes"] or [{}])[0]
    place = f"{top.get('file')}:{top.get('line')}" if top.get("file") else "-"
    row = Row(program.name, [truth["cause"], f"{result['verdict'] or result['status']}", f"{top.get('code', '-')}",
                             f"{top.get('confidence', '-')}", place, f"{result['elapsed_s']:.0f} s"])  # fmt: skip
    if truth["gradients_correct"]:
        row.problems += accusations(result, truth["cause"])
        if truth["cause"] != "gradients_correct" and top.get("code") != truth["cause"]:
            row.problems.append(f"not called {truth['cause']}")
    elif top.get("code") != truth["cause"]:
        others = [c["code"] for c in result["causes"][1:]]
        row.problems.append("the cause is another" + (", named further down" if truth["cause"] in others else ""))
    elif truth["root_cause_lines"] and place not in root_lines(program):
        row.problems.append(f"the line is {', '.join(root_lines(program))}")
    return row


def accusations(result: dict[str, Any], cause: str) -> list[str]:
    """What is said against a right gradient."""
    said = [f"accused of {c['code']}" for c in result["causes"]
            if c["confidence"] in ACCUSES and c["code"] not in ("gradients_correct", cause, *SITUATIONS)]  # fmt: skip
    return [*(["called wrong"] if result["verdict"] == "disagree" else []), *said]


def near_root(program: Program, cause: dict[str, Any]) -> bool:
    """Whether a cause's place is within a few lines of one of the truth's."""
    lines = [x.rpartition(":") for x in root_lines(program)]
    return any(
        Path(f).name == Path(cause.get("file") or "").name and abs(int(n) - cause["line"]) <= NEAR for f, _, n in lines
    )


def root_lines(program: Program) -> list[str]:
    """As file:line."""
    found = [str(line) for line in program.truth["root_cause_lines"]]
    return [line if ":" in line else f"{program.script}:{line}" for line in found]


# -- the ledger ------------------------------------------------------------------------------------------------------


def booked(program: Program, folder: Path) -> Row:
    """The largest entry of one program's ledger: the fault (hit), another (miss), or none.

    None where none can be (apart), and where the update follows another gradient than the tape's (behind the tape): there
    the first cause has to name the line.
    """
    truth, project = program.truth, program.copy(folder / program.folder.name)
    options = [] if truth["gradients_correct"] or program.iteration == 0 else ["--iteration", str(program.iteration)]
    result = truths.call("bisect-steps", program, project, *objective(program), *options, timeout_s=200).result
    ledger = result if "jumps" in result else {}  # the ledger as the user gets it
    entries = significant(ledger)
    largest = f"{entries[0]}: {entries[0].share:.2%} ± {entries[0].noise:.2%}" if entries else "-"
    said = ", ".join(f"{c['code']} ({c['confidence']})" for c in result["causes"]) or "-"
    if result["causes"] and not entries:
        said += f" {result['causes'][0].get('file')}:{result['causes'][0].get('line')}"
    row = Row(program.name, [truth["cause"], result["verdict"] or result["status"], largest, said])
    cause = truth["cause"]
    top = (result["causes"] or [{}])[0].get("code")
    if truth["gradients_correct"] is False and top not in (cause, *truth.get("other_accepted", [])):
        row.problems.append(f"the first cause is {top or 'none'}")
    if truth["gradients_correct"] is not False:
        row.cells.append(f"apart: {NO_JUMP[cause]}" if cause in NO_JUMP else "jumps" if entries else "quiet")
        row.problems += accusations(result, cause)
    elif ledger.get("flat") is None and not entries:
        row.cells.append("miss")
        row.problems.append(f"no ledger: {result['message']}")
    elif not entries and cause in OUTSIDE:
        behind = near_root(program, (result["causes"] or [{}])[0])
        row.cells.append("behind the tape" + (", its line named" if behind else ""))
        row.problems += [] if behind else ["no line of the truth is named"]
    else:
        lines = {(Path(file).name, int(line)) for file, _, line in (x.rpartition(":") for x in root_lines(program))}
        hit = bool(entries) and is_fault(entries[0], ledger, cause, lines, project)
        row.cells.append("hit" if hit else "miss")
        row.problems += [] if hit else ["the largest jump is another" if entries else "nothing jumps"]
    return row


# -- verify_fix ------------------------------------------------------------------------------------------------------


def twins() -> list[tuple[Program, Program]]:
    """Broken and repaired programs of the gallery and of the cases and unseen ones, where the broken one disagrees."""
    gallery = {p.name: p for p in truths.examples()}
    found = [
        (p, gallery[p.name.replace("-broken", "-repaired")]) for p in gallery.values() if p.name.endswith("-broken")
    ]
    broken = {p.name: p for p in truths.programs()}
    found += [(broken[p.name], p) for p in truths.repairs()]
    wrong = ("disagree", None)  # the cases state no verdict; where nothing can be decided there is no baseline
    return [
        (b, r)
        for b, r in found
        if b.truth["runs"] and not b.truth["gradients_correct"] and b.truth.get("verdict") in wrong
    ]


def verified(broken: Program, repaired: Program, folder: Path) -> Row:
    """Baseline on the broken files; then the repaired, the broken and the differently broken ones."""
    project = broken.copy(folder / broken.folder.name)
    row = Row(broken.name, [broken.truth["cause"]])
    baseline = truths.gradcheck(broken, project, *objective(broken)).result
    if baseline["verdict"] != "disagree":
        row.problems.append(f"the baseline says {baseline['verdict']}")
        return row
    for edit, expected in ((repaired_files, "fixed"), (broken_files, "not_fixed"), (another_fault, "never fixed")):
        edit(project, broken, repaired)
        answer = verify(project)
        outcome = answer.result["outcome"]
        row.cells.append(outcome)
        if (outcome == "fixed") if expected == "never fixed" else (outcome != expected):
            row.problems.append(f"{expected} was expected: {answer.result['message']}")
    return row


def verify(project: Path, *options: str) -> Answer:
    """verify_fix against the latest baseline of the project."""
    return truths.call("verify-fix", Program("", project, {}, "--no-workflow"), project, *options, timeout_s=200)


def repaired_files(project: Path, broken: Program, repaired: Program) -> None:
    """The repaired twin in the broken one's place."""
    with tempfile.TemporaryDirectory() as other:
        source = repaired.copy(Path(other) / "copy")
        if repaired.script and repaired.script != broken.script:  # a twin beside it, under a name of its own
            shutil.copy(source / repaired.script, source / str(broken.script))
        replace_sources(source, project)


def broken_files(project: Path, broken: Program, repaired: Program) -> None:
    """The broken ones again."""
    replace_sources(broken.folder, project)


def another_fault(project: Path, broken: Program, repaired: Program) -> None:
    """The repaired twin, whose kernels store through a function with a custom gradient that is twice what it should be."""
    repaired_files(project, broken, repaired)
    planted = 0
    for path in project.rglob("*.py"):
        planter = Planter()
        tree = planter.visit(ast.parse(path.read_text()))
        first = next((k for k, n in enumerate(tree.body) if "wp.kernel" in ast.unparse(n)), 0)
        tree.body[first:first] = ast.parse("\n".join(PLANTED.format(**f) for f in planter.functions.values())).body
        if planter.functions:
            path.write_text(ast.unparse(ast.fix_missing_locations(tree)) + "\n")
        planted += len(planter.functions)
    assert planted, "no store in a kernel was found"


PLANTED = """
@wp.func
def {name}(x: {dtype}) -> {dtype}:
    return x

@wp.func_grad({name})
def adj_{name}(x: {dtype}, adj_ret: {dtype}):
    wp.adjoint[x] += adj_ret + adj_ret
"""


class Planter(ast.NodeTransformer):
    """`y[i] = ...` and `wp.atomic_add(y, i, ...)` in a kernel store `planted_0(...)`."""

    def __init__(self) -> None:
        self.functions: dict[str, dict[str, str]] = {}  # by dtype
        self.arrays: dict[str, str] = {}  # of the kernel: name -> dtype

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if not any("kernel" in ast.unparse(d) for d in node.decorator_list):
            return node
        self.arrays = {a.arg: d for a in node.args.args if (d := dtype_of(a.annotation))}
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and ast.unparse(target.value) in self.arrays:
            node.value = self.wrapped(node.value, self.arrays[ast.unparse(target.value)])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func) == "wp.atomic_add" and ast.unparse(node.args[0]) in self.arrays:
            node.args[-1] = self.wrapped(node.args[-1], self.arrays[ast.unparse(node.args[0])])
        return node

    def wrapped(self, value: ast.expr, dtype: str) -> ast.expr:
        """`value` handed through the planted function of its type."""
        function = self.functions.setdefault(dtype, {"name": f"planted_{len(self.functions)}", "dtype": dtype})
        return ast.Call(ast.Name(function["name"], ast.Load()), [value], [])


def dtype_of(annotation: ast.expr | None) -> str | None:
    """Of an array of floats or vectors; None for anything else."""
    text = ast.unparse(annotation) if annotation else ""
    inner = text.partition("dtype=")[2].split(",")[0].rstrip(")") if "dtype=" in text else ""
    return inner if inner and not any(t in inner for t in ("int", "Any", "bool")) else None


def replace_sources(source: Path, project: Path) -> None:
    """The Python files of `source` over those of the project that differ: a file that is written counts as edited."""
    for path in source.rglob("*.py"):
        target = project / path.relative_to(source)
        if truths.OURS in path.parts or "__pycache__" in path.parts:
            continue
        if not target.exists() or target.read_bytes() != path.read_bytes():
            shutil.copy(path, target)


# -- both ------------------------------------------------------------------------------------------------------------


def swept(names: list[str], rows: list[tuple[str, Callable[[Path], Row]]]) -> list[Row]:
    """One by one, each in a folder of its own."""
    done: list[Row] = []
    for name, measure in rows:
        if names and not any(part in name for part in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                row = measure(Path(folder))
            except Exception as error:
                row = Row(name, [], [f"{type(error).__name__}: {error}"])
        print(json.dumps([row.name, *row.cells, "; ".join(row.problems)]), flush=True)
        done.append(row)
    return done


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["diagnose", "ledger", "twins"])
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args()
    if chosen.what != "twins":
        one = diagnosed if chosen.what == "diagnose" else booked
        programs = [*truths.programs(), *truths.blind(), *truths.examples()]
        programs.sort(key=lambda p: p.truth["gradients_correct"] is not False)  # the broken ones first
        rows = swept(chosen.names, [(p.name, lambda f, p=p: one(p, f)) for p in programs])
    else:
        rows = swept(chosen.names, [(b.name, lambda f, b=b, r=r: verified(b, r, f)) for b, r in twins()])
    for row in rows:
        print("| " + " | ".join([row.name, *row.cells, "; ".join(row.problems) or "as it should be"]) + " |")
    wrong = sum(bool(row.problems) for row in rows)
    print(f"{len(rows) - wrong} of {len(rows)} as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
