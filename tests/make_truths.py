"""Measure what each program of tests/programs/unseen, found and examples really does, and write its truth.json.

Nothing here imports the product. A program is run as its user would run it, with three kinds of
statements inserted into its syntax tree (line numbers untouched, the file is never edited):

    begin(name=array)   where an optimizer iteration starts: the place where the parameter is perturbed
    got(name=gradient)  where the update takes the gradient: the consumed gradient is recorded
    loss(value)         only where the objective is not "the sum of what is handed to Tape.backward"

At `begin` of the wanted iteration the process forks once per evaluation; a child perturbs one scalar of
the parameter, runs the program on to `got`, reports the objective and ends. Central differences at
two step sizes, the first eight scalars of each parameter (these are written down) and up to eight more.

    python tests/make_truths.py                 # measure everything, check it, write truth.json
    python tests/make_truths.py NAME ...        # only these
    python tests/make_truths.py --check [NAME]  # measure and compare with the truth.json on disk

The descriptions (cause, symptom, repair, where to insert) live in tests/programs/examples.py, unseen/programs.py
and found/programs.py;
all the numbers come from the measurement. A program called broken that is less than 2 % wrong, or one
called correct that is more than 0.5 % wrong, stops the run.
"""

import argparse
import ast
import builtins
import importlib.machinery
import json
import os
import pickle
import random
import runpy
import struct
import subprocess
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNSEEN = ROOT / "tests" / "programs" / "unseen"
FOUND = ROOT / "tests" / "programs" / "found"
EXAMPLES = ROOT / "examples"
SHOWN = 8
BROKEN_AT_LEAST = 0.02
CORRECT_AT_MOST = 0.005
RIGHT = ("gradients_correct", "piecewise_constant", "precision_floor", "chaotic_horizon", "unconverged_solver")
UNDECIDED = ("nonsmooth_choice", "stochastic_forward")  # there is no one derivative to be right about


# ---------------------------------------------------------------- inside the measured process


class Meter:
    def __init__(self, iteration, steps):
        self.iteration = iteration
        self.steps = steps
        self.begun = -1
        self.objective = 0.0
        self.explicit = False
        self.pipe = None
        self.result = None

    def begin(self, **arrays):
        self.begun += 1
        self.objective = 0.0
        if self.begun != self.iteration:
            return
        base = [self.child(None), self.child(None)]
        differences = {}
        for step in self.steps:
            for name, array in arrays.items():
                out = []
                for k in chosen(flat(array).size):
                    up = self.child((array, k, step))
                    down = self.child((array, k, -step))
                    out.append((up - down) / (2.0 * step))
                differences.setdefault(repr(step), {})[name] = out
        self.result = {"repeats": base, "finite_difference": differences}

    def child(self, change):
        read, write = os.pipe()
        drawn = random.getstate()
        pid = os.fork()
        if pid == 0:
            random.setstate(drawn)  # Python reseeds the random module in a forked child
            self.pipe = write
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            try:
                if change is not None:
                    shift(*change)
            except BaseException:
                os._exit(1)
            raise _InChild
        os.close(write)
        data = b""
        while chunk := os.read(read, 64):
            data += chunk
        os.close(read)
        os.waitpid(pid, 0)
        if len(data) != 8:
            raise RuntimeError("an evaluation ended without reaching the end of the iteration")
        return struct.unpack("d", data)[0]

    def loss(self, value):
        import numpy as np

        self.explicit = True
        self.objective += float(np.sum(numbers(value)))

    def got(self, **gradients):
        if self.pipe is not None:
            os.write(self.pipe, struct.pack("d", self.objective))
            os._exit(0)
        if self.begun == self.iteration and self.result is not None:
            self.result["autodiff"] = {n: [flat(g)[k] for k in chosen(flat(g).size)] for n, g in gradients.items()}
            self.result["objective"] = self.objective
            self.report(self.result)

    def report(self, result):
        with open(os.environ["MT_RESULT"], "wb") as f:
            pickle.dump(result, f)
        sys.stdout.flush()
        os._exit(0)


def chosen(size):
    """The first eight scalars, and up to eight more spread over the rest."""
    rest = range(SHOWN, size)
    return [*range(min(SHOWN, size)), *rest[:: max(1, len(rest) // SHOWN)][:SHOWN]]


class _InChild(BaseException):
    """Raised in a forked child to leave the meter and carry on in the user's code."""


def numbers(value):
    import numpy as np

    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def flat(value):
    import numpy as np

    return np.array(numbers(value), dtype=np.float64).ravel()


def shift(array, k, step):
    data = array.numpy().copy() if hasattr(array, "numpy") else array
    moved = data.ravel().copy()
    moved[k] += step
    if hasattr(array, "numpy"):
        array.assign(moved.reshape(data.shape))
    else:
        array[...] = moved.reshape(data.shape)


class Insert(ast.NodeTransformer):
    """Puts a statement before or after the statement that starts at a given line."""

    def __init__(self, wanted):
        self.wanted = dict(wanted)  # (line, "before"|"after") -> [source]
        self.done = set()

    def generic_visit(self, node):
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                new = []
                for statement in block:
                    for where in ("before", "self", "after"):
                        if where == "self":
                            new.append(statement)
                            continue
                        key = (statement.lineno, where)
                        for source in self.wanted.get(key, ()):
                            self.done.add(key)
                            for extra in ast.parse(source).body:
                                for part in ast.walk(extra):
                                    if hasattr(part, "lineno"):
                                        part.lineno = part.end_lineno = statement.lineno
                                        part.col_offset = part.end_col_offset = 0
                                new.append(extra)
                setattr(node, field, new)
        return node


def instrumented(path, inserts):
    text = Path(path).read_text()
    lines = text.splitlines()
    wanted = {}
    for where, anchor, source in inserts:
        found = [n for n, line in enumerate(lines, 1) if line.strip().startswith(anchor)]
        if len(found) != 1:
            raise SystemExit(f"{path}: anchor {anchor!r} found {len(found)} times")
        wanted.setdefault((found[0], where), []).append(source)
    editor = Insert(wanted)
    tree = editor.visit(ast.parse(text, str(path)))
    if set(wanted) != editor.done:
        raise SystemExit(f"{path}: could not insert at {set(wanted) - editor.done}")
    return compile(tree, str(path), "exec")


def measure_here(spec):
    folder = Path(spec["folder"])
    os.chdir(folder)
    meter = Meter(spec["iteration"], spec["steps"])
    builtins.begin_, builtins.got_, builtins.loss_ = fork_safe(meter), meter.got, meter.loss
    code = {}
    for file, inserts in spec["inserts"].items():
        path = str(folder / file)
        code[path] = instrumented(path, inserts)
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self, fullname):
        path = os.path.abspath(self.get_filename(fullname))
        return code[path] if path in code else original(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = get_code
    sys.dont_write_bytecode = True

    import warp as wp

    backward = wp.Tape.backward

    def counted(self, loss=None, grads=None):
        if not meter.explicit and not spec["explicit"]:
            if loss is not None:
                meter.objective += float(loss.numpy().astype("float64").sum())
            for array, seed in (grads or {}).items():
                meter.objective += float((flat(array) * flat(seed)).sum())
        return backward(self, loss, grads)

    wp.Tape.backward = counted
    if "module" in spec["run"]:
        sys.path[0] = str(folder)
        sys.argv = [spec["run"]["module"], *spec["args"]]
        runpy.run_module(spec["run"]["module"], run_name="__main__", alter_sys=True)
    else:
        path = str(folder / spec["run"]["script"])
        sys.path[0] = str(folder)
        sys.argv = [path, *spec["args"]]
        main = types.ModuleType("__main__")
        main.__file__ = path
        sys.modules["__main__"] = main
        exec(code.get(path) or compile(Path(path).read_text(), path, "exec"), main.__dict__)
    raise SystemExit("the program ended before the wanted iteration")


def fork_safe(meter):
    def begin(**arrays):
        try:
            meter.begin(**arrays)
        except _InChild:
            return  # a child: carry on in the user's code

    return begin


# ---------------------------------------------------------------- the driver


def measure(spec):
    with tempfile.TemporaryDirectory() as scratch:
        result = os.path.join(scratch, "result")
        # the program runs in a copy, so that the files it writes never reach the repository
        copy = Path(scratch) / "copy"
        subprocess.run(["cp", "-r", spec["folder"], str(copy)], check=True)
        spec = {**spec, "folder": str(copy)}
        run = subprocess.run(
            [sys.executable, __file__, "--inside", json.dumps(spec)],
            env={**os.environ, "MT_RESULT": result},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        if not os.path.exists(result):
            raise SystemExit(f"{spec['folder']}: no measurement\n{run.stdout[-3000:]}")
        with open(result, "rb") as f:
            return pickle.load(f)


def measure_repaired(folder, spec, edits):
    """The relative error of the program after the edits of its repair, in a copy."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / folder.name
        subprocess.run(["cp", "-r", str(folder), str(copy)], check=True)
        for file, old, new in edits:
            text = (copy / file).read_text()
            if text.count(old) != 1:
                raise SystemExit(f"{folder.name}: {old!r} stands {text.count(old)} times in {file}")
            (copy / file).write_text(text.replace(old, new))
        return relative_error(measure({**spec, "folder": str(copy)}))


def relative_error(measured):
    """|AD - FD| / |FD| at the better of the two steps; inf where the gradient is not finite."""
    best = float("inf")
    ad = [x for values in measured["autodiff"].values() for x in values]
    for by_name in measured["finite_difference"].values():
        fd = [x for values in by_name.values() for x in values]
        scale = sum(x * x for x in fd) ** 0.5
        error = sum((a - b) ** 2 for a, b in zip(ad, fd, strict=True)) ** 0.5
        if error == error:
            best = min(best, error / scale if scale else (0.0 if error == 0 else float("inf")))
    return best


def plain(value):
    if isinstance(value, float):
        if value != value:
            return "nan"
        if value in (float("inf"), float("-inf")):
            return "inf" if value > 0 else "-inf"
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def root_lines(folder, marks):
    """Line numbers of the given lines, as 'file:line' (or only the number in the main file)."""
    out = []
    for mark in marks:
        file, text = mark if isinstance(mark, tuple) else (None, mark)
        lines = (folder / (file or "main.py")).read_text().splitlines()
        found = [n for n, line in enumerate(lines, 1) if line.strip().startswith(text)]
        if not found:
            raise SystemExit(f"{folder}: no line starts with {text!r}")
        out += [f"{file}:{n}" if file else n for n in found]
    return out


def truth_of_stillborn(folder, entry):
    """A program that must not run: what is measured is that it fails, and with which last line."""
    script = entry.get("run", {"script": "main.py"})["script"]
    run = subprocess.run(
        [sys.executable, script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    if run.returncode == 0:
        raise SystemExit(f"{folder.name}: called does_not_run, but it runs")
    import warp

    return {
        "cause": "does_not_run",
        "gradients_correct": None,
        "runs": False,
        "run": {"script": script},
        "args": [],
        "set": {},
        "parameter": entry["parameter"],
        "iteration_to_look_at": 0,
        "root_cause_lines": root_lines(folder, entry["lines"]),
        "verdict": None,
        "objective": None,
        "symptom": entry["symptom"],
        "repair": entry["repair"],
        "exit_code": run.returncode,
        "last_line": run.stdout.strip().splitlines()[-1],
        "run_with_warp": warp.config.version,
    }


def truth_of(folder, entry):
    if entry["cause"] == "does_not_run":
        return truth_of_stillborn(folder, entry), float("nan")
    run = entry.get("run", {"script": "main.py"})
    spec = {
        "folder": str(folder),
        "run": run,
        "args": entry.get("args", []),
        "iteration": entry.get("iteration", 0),
        "steps": entry.get("steps", [0.01, 0.003]),
        "explicit": any("loss_(" in s for i in entry["inserts"].values() for _, _, s in i),
        "inserts": entry["inserts"],
    }
    measured = measure(spec)
    error = relative_error(measured)
    repaired = measure_repaired(folder, spec, entry["fix"]) if "fix" in entry else None
    if repaired is not None and repaired > CORRECT_AT_MOST:
        raise SystemExit(f"{folder.name}: {repaired:.3%} wrong after the repair")
    correct = None if entry["cause"] in UNDECIDED else entry["cause"] in RIGHT
    if correct and error > CORRECT_AT_MOST:
        raise SystemExit(f"{folder.name}: called correct, but {error:.3%} wrong\n{measured}")
    if correct is False and error < BROKEN_AT_LEAST:
        raise SystemExit(f"{folder.name}: called {entry['cause']}, but only {error:.3%} wrong\n{measured}")
    names = list(measured["autodiff"])
    one = len(names) == 1

    def shown(by_name):
        by_name = {name: values[:SHOWN] for name, values in by_name.items()}
        return plain(by_name[names[0]] if one else by_name)

    parameter = entry.get("parameter", names)
    import warp

    truth = {
        "cause": entry["cause"],
        "gradients_correct": correct,
        "runs": True,
        "run": run,
        "args": spec["args"],
        "set": {},
        "parameter": parameter[0] if isinstance(parameter, list) and len(parameter) == 1 else parameter,
        "iteration_to_look_at": spec["iteration"],
        "root_cause_lines": root_lines(folder, entry.get("lines", [])),
        "verdict": entry.get("verdict", "agree" if correct else "disagree"),
        "objective": entry.get("objective"),
        "symptom": entry["symptom"],
        "repair": entry["repair"],
        "loss": plain(measured["objective"]),
        "repeats_agree": len(set(measured["repeats"] + [measured["objective"]])) == 1,
        "relative_error": plain(error),
        "autodiff": shown(measured["autodiff"]),
        "finite_difference": {h: shown(v) for h, v in measured["finite_difference"].items()},
        "run_with_warp": warp.config.version,
    }
    if repaired is not None:
        truth["relative_error_after_repair"] = plain(repaired)
        truth["fix"] = [{"file": f, "old": old, "new": new} for f, old, new in entry["fix"]]
    for extra in ("note", "teaches"):
        if extra in entry:
            truth[extra] = entry[extra]
    return truth, error


def programs():
    described = runpy.run_path(str(UNSEEN.parent / "examples.py"))
    for name, entry in described["EXAMPLES"].items():
        folder, version = name.split("/")
        yield name, EXAMPLES / folder, entry, EXAMPLES / folder / f"truth_{version}.json"
    for shelf in (UNSEEN, FOUND):
        described = runpy.run_path(str(shelf / "programs.py"))
        for name, entry in described["PROGRAMS"].items():
            yield name, shelf / name, entry, shelf / name / "truth.json"


def main():
    if sys.argv[1:2] == ["--inside"]:
        measure_here(json.loads(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true", help="compare with the files on disk, write nothing")
    options = parser.parse_args()
    failed = []
    for name, folder, entry, target in programs():
        if options.names and not any(n in name for n in options.names):
            continue
        try:
            truth, error = truth_of(folder, entry)
        except SystemExit as reason:
            failed.append(name)
            print(f"{name}: FAILED\n{reason}", flush=True)
            continue
        print(f"{name:44s} {truth['cause']:24s} {truth['verdict']!s:13s} error {error:.3g}", flush=True)
        if options.check:
            before = json.loads(target.read_text())
            if before["cause"] != truth["cause"] or before["verdict"] != truth["verdict"]:
                failed.append(name)
        else:
            target.write_text(json.dumps(truth, indent=1) + "\n")
    if failed:
        raise SystemExit(f"failed: {failed}")


if __name__ == "__main__":
    main()
