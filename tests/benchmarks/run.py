"""What watching and measuring cost, as ratios to the bare script, all measured in this run: `make benchmark`.

Nothing is asserted: clocks of shared machines are no judges. Everything runs on one core, one at a time; of what is
measured several times the least counts, on both sides (other work on the machine only ever adds).
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SERVER = HERE.parents[1] / "server"
BOOTSTRAP = SERVER / "warp_debug_gradients" / "probe" / "bootstrap.py"
LAUNCHES = 10_000
FORWARDS_S = (0.12, 0.3, 1.0)
LEDGER_OPS = 998
EXAMPLE = HERE.parents[1] / "examples" / "buffer_reuse"
CELLS = (64, 25_000)  # that the ledger's operations work on: Python's own cost a call, and the memory's
ELEMENTS, ITERATIONS = 96 * 64, 3  # of struct_rollout.py
BY_HAND_RUNS = 3  # of the script, for the cost of one evaluation by hand
REPEATS = 3
COMMAND = [sys.executable, "-m", "warp_debug_gradients"]


def main() -> None:
    """Measures, and prints the table."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="warp-debug-gradients-benchmark-") as scratch:
        folder = Path(scratch)
        for script in ("rollout.py", "struct_rollout.py"):
            shutil.copy(HERE / script, folder / script)
        os.environ.setdefault("WARP_CACHE_PATH", str(folder / "kernels"))
        os.environ["PYTHONPATH"] = str(SERVER)
        bare(folder, 10)  # compiles the kernels
        print("| what | bare | measured | ratio | target |\n|---|---|---|---|---|", flush=True)
        per_launch = tracing(folder)
        for seconds in FORWARDS_S:
            evaluations(folder, round(seconds / per_launch), whole_check=seconds == FORWARDS_S[1])
        locating(folder)
        diagnosing(folder)
        struct_overwrite(folder)
        start_up(folder)
    print(f"\nAll of it took {time.perf_counter() - began:.0f} s on one core of {os.cpu_count()}.")


def tracing(folder: Path) -> float:
    """A watched run against the bare one; returns the seconds of one launch of the bare forward pass."""
    job = trace_job(folder)
    bares, traced = [], []
    for _ in range(3):
        bares.append(bare(folder, LAUNCHES))
        traced.append(timed([sys.executable, str(BOOTSTRAP), str(job)], folder))
    row(
        f"traced run of {LAUNCHES:,} launches, whole process",
        min(r["wall"] for r in bares),
        min(r["wall"] for r in traced),
        "≤ 1.5x",
    )
    for name in ("forward", "backward"):
        output = [min(r[name] for r in runs) for runs in (bares, traced)]
        row(f"… its {name} pass alone", *output)
    return min(r["forward"] for r in bares) / LAUNCHES


def evaluations(folder: Path, steps: int, whole_check: bool) -> None:
    """An evaluation by the fork engine against the bare forward pass, and the whole check against reruns by hand."""
    runs, checks, check_s = [], [], float("inf")
    for _ in range(REPEATS):
        runs.append(bare(folder, steps))
        started = time.perf_counter()
        checks += gradcheck(folder, steps)["checks"][:1]
        check_s = min(check_s, time.perf_counter() - started)
    forward = min(r["forward"] for r in runs)
    measured = min(c["seconds_per_evaluation"] for c in checks)
    name = f"one evaluation (fork), forward of {forward:.2f} s"
    row(name, forward, measured, f"≤ 1.25x and ≤ +25 ms (here {1e3 * (measured - forward):+.0f} ms)")
    both, reference = min(r["forward"] + r["backward"] for r in runs), min(c["seconds_of_reference"] for c in checks)
    row("… the watched reference, once an iteration, with its backward pass", both, reference)
    if whole_check:
        count = checks[0]["evaluations"]
        by_hand = count * min(r["wall"] for r in runs)
        row(f"whole check, against {count} runs of the script by hand*", by_hand, check_s)


def locating(folder: Path) -> None:
    """What the content check and the ledger take, against the bare passes: CPU time.

    The content check as bisect_steps makes it, by itself; the ledger as enable_tracker keeps it, beside Warp's own tracker,
    with which it shares the core and its caches here.
    """
    for cells in CELLS:
        runs: list[dict[str, float]] = []
        kept: dict[str, list[dict[str, Any]]] = {"bisect-steps": [], "enable-tracker": []}
        for _ in range(REPEATS):
            runs.append(bare(folder, LEDGER_OPS, cells))
            for name, ledgers in kept.items():
                result = command(folder, name, LEDGER_OPS, cells=cells)
                ledgers += json.loads((folder / result["evidence"] / "ledger.json").read_text())["ledgers"]
        forward, backward = (min(r[name] for r in runs) for name in ("forward_cpu", "backward_cpu"))
        checks, ledgers = kept.values()
        recording, total = min(k["timing"]["recording"] for k in checks), min(k["timing"]["total"] for k in ledgers)
        sized = f"{ledgers[0]['ops']:,} ops on {cells:,} cells"
        row(f"content check: {sized} recorded", forward, recording, "≤ 2x the forward pass")
        row(
            f"ledger: {sized}, {ledgers[0]['timing']['forward_runs']} forward runs and the passes through the adjoints",
            4 * forward + backward,
            total,
            "≤ 4 forward runs; its time beside that of 4 forward passes and a backward pass",
        )


def diagnosing(folder: Path) -> None:
    """A whole diagnosis of an example with warm kernels, against the example itself; and where its time goes."""
    shutil.copytree(EXAMPLE, folder / EXAMPLE.name, dirs_exist_ok=True)
    words = [*COMMAND, "diagnose", f"{EXAMPLE.name}/broken.py", "--workspace", str(folder), "--python", sys.executable]
    alone = [sys.executable, f"{EXAMPLE.name}/broken.py"]
    for command_line in (alone, words):  # compiles the kernels, those of the ledger too
        subprocess.run(command_line, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    seconds: list[float] = []
    for command_line in (alone, [*words, "--timeout", "600", "--json"]):
        before = os.times()
        done = subprocess.run(
            command_line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
        output = done.stdout
    row(f"diagnose examples/{EXAMPLE.name}/broken.py, CPU time of all its processes", *seconds, "≤ 10 s on two cores")
    result = json.loads(output)
    trace = json.loads((folder / result["evidence"] / "trace.json").read_text())
    stages = ", ".join(f"{s['name']} {s['seconds']:.2f} s" for s in result["stages"])
    probes = len(list((folder / result["evidence"]).glob("*.job.json")))
    importing = f"{trace['seconds']['import']:.2f} s of the first of its {probes} probes is the import of Warp"
    row("… by the clock", seconds[0], result["elapsed_s"], f"{stages}; {importing}")


def struct_overwrite(folder: Path) -> None:
    """A whole diagnosis against central differences of every element by runs of the script.

    Forward passes are counted, and cost what the bare one costs; beside them both ways as a whole, with all that they
    cost besides (forks, starts of Python, backward passes).
    """
    script = [sys.executable, "struct_rollout.py"]
    timed(script, folder)  # compiles the kernels
    runs = [timed(script, folder) for _ in range(BY_HAND_RUNS)]
    forward, whole = (statistics.median(r[name] for r in runs) for name in ("forward", "wall"))
    words = [*COMMAND, "diagnose", "struct_rollout.py", "--workspace", str(folder), "--python", sys.executable]
    started = time.perf_counter()
    done = subprocess.run(
        [*words, "--timeout", "600", "--json"], cwd=folder, capture_output=True, text=True, check=False
    )
    took = time.perf_counter() - started
    result = json.loads(done.stdout)
    assert [c["code"] for c in result["causes"]][:1] == ["overwrite"], result["message"]
    evidence = folder / result["evidence"]
    checks = json.loads((evidence / "evaluate.json").read_text())["checks"]
    ledgers = len([p for p in evidence.glob("ledger*.json") if ".job." not in p.name])
    passes = sum(c["evaluations"] + 1 for c in checks) + 4 * ledgers + ITERATIONS * (2 + ledgers)
    by_hand = 2 * ELEMENTS
    name = f"diagnosis of a struct-held overwrite, 96 steps, {ELEMENTS:,} elements: {passes} forward passes for {by_hand:,}"
    row(name, by_hand * forward, passes * forward, "≤ 0.05x")
    row("… all of it, against so many runs of the script by hand*", by_hand * whole, took)


def start_up(folder: Path) -> None:
    """The command, the server and the probe, against an empty interpreter."""
    empty = min(timed([sys.executable, "-c", "pass"], folder)["wall"] for _ in range(3))
    row("start of the command (--help)", empty, min(timed([*COMMAND, "--help"], folder)["wall"] for _ in range(3)))
    answers = [initialize(folder) for _ in range(3)]
    row("start of the server (initialize answered)", empty, min(a for a, _ in answers), "≤ 1.5 s")
    row("… and tools/list right after", empty, min(b for _, b in answers))
    (folder / "imports.py").write_text("import warp\n")
    job = {**json.loads(trace_job(folder).read_text()), "args": []}
    job["target"] = {**job["target"], "script": str(folder / "imports.py")}
    (folder / "imports.job.json").write_text(json.dumps(job))
    bare_cpu = min(cpu([sys.executable, "imports.py"], folder) for _ in range(5))
    probed = min(cpu([sys.executable, str(BOOTSTRAP), "imports.job.json"], folder) for _ in range(5))
    row("a script that imports Warp, watched (CPU time): the probe's own start", bare_cpu, probed, "≤ +0.2 s")
    print(f"\n* {BY_HAND_RUNS} runs were timed: what one takes, times the number of evaluations.")


def row(what: str, base: float, measured: float, target: str = "") -> None:
    """One line of the table, seconds."""
    print(f"| {what} | {base:.3f} s | {measured:.3f} s | {measured / base:.2f}x | {target} |", flush=True)


def bare(folder: Path, steps: int, cells: int = CELLS[0]) -> dict[str, float]:
    """The script as its user runs it."""
    return timed([sys.executable, "rollout.py", "--steps", str(steps), "--cells", str(cells)], folder)


def timed(command: list[str], folder: Path) -> dict[str, float]:
    """Wall time of a process, and the times that the script printed."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - started
    return {"wall": wall, **{name: float(s) for name, s in re.findall(r"(\w+)_s=(\S+)", done.stdout)}}


def trace_job(folder: Path) -> Path:
    """The job of a watched run, as the command writes it; from here the probe is started as the command starts it."""
    result = command(folder, "run-repro", LAUNCHES)
    path = folder / result["evidence"] / "trace.job.json"
    job = {**json.loads(path.read_text()), "parent_pid": os.getpid(), "budget_s": 600.0}
    path.write_text(json.dumps(job))
    return path


def gradcheck(folder: Path, steps: int) -> dict[str, Any]:
    """The whole check of one iteration."""
    result = command(folder, "gradcheck-full-horizon", steps, "--iteration", "0")
    assert result["verdict"] == "agree", result["message"]
    return json.loads((folder / result["evidence"] / "evaluate.json").read_text())


def command(folder: Path, name: str, steps: int, *options: str, cells: int = CELLS[0]) -> dict[str, Any]:
    """Our own command, with its result."""
    words = [*COMMAND, name, "rollout.py", "--workspace", str(folder), "--python", sys.executable]
    words += ["--timeout", "600", "--json", *options, "--", "--steps", str(steps), "--cells", str(cells)]
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return json.loads(done.stdout)


def cpu(command: list[str], folder: Path) -> float:
    """CPU seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def initialize(folder: Path) -> tuple[float, float]:
    """Seconds until the server has answered the handshake, and until the list of tools is there."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
    times: list[float] = []
    started = time.perf_counter()
    with subprocess.Popen(
        [*COMMAND, "serve"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for messages in (
            [{"id": 1, "method": "initialize", "params": client}],
            [{"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"}],
        ):
            lines = [json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages]
            process.stdin.write(b"".join(lines))
            process.stdin.flush()
            assert b'"result"' in process.stdout.readline()
            times.append(time.perf_counter() - started)
        process.terminate()
    return times[0], times[1]


if __name__ == "__main__":
    main()
