"""A stand-in for probe/bootstrap.py: reads the job, prints, and writes canned JSON.

The name of the measured script says what the stand-in does: `crash.py` dies of a signal, `hang.py` hangs with a
grandchild, `wrong.py` has a wrong gradient, and so on. Used through the `bootstrap` argument of the worker only.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

job = json.loads(Path(sys.argv[1]).read_text())
script = job["target"]["script"] or (job["target"]["forward"] or "module.py").rsplit(":", 1)[0]
kind = Path(script).stem


def finish(value, code=0):
    Path(job["result"]).write_text(json.dumps(value))
    sys.stdout.flush()
    os._exit(code)


def say(stage, message, done=None, total=None):
    with open(job["progress"], "a") as stream:
        stream.write(json.dumps({"stage": stage, "message": message, "done": done, "total": total}) + "\n")


def iteration(index, loss, norm):
    read = {"file": script, "line": 21, "how": "numpy", "when": "after"}
    return {"index": index, "parameter_keys": ["k"], "backward_calls": [index], "ops": 41, "tapes": 1,
            "losses": [loss], "gradient_norm": norm, "gradient_read": read, "plan": {"opaque": index}}  # fmt: skip


def trace():
    rising = kind == "diverges"
    losses = [0.04, 0.09, 0.3] if rising else [0.04, 0.02, 0.01]
    return {
        "status": "completed", "stopped_because": None, "warp_version": "1.19.0", "python_version": "3.11.7",
        "numpy_version": "2.4.6", "device": "cpu", "devices": ["cpu"], "uses_cuda": kind == "cuda",
        "seconds": {"import": 0.5, "compile": 0.1, "run": 0.2, "total": 0.8}, "exit_code": 0, "error": None,
        "events": 99, "backward_calls": 3,
        "parameters": [{"name": "fit.kappa", "shape": [1], "dtype": "float32", "scalars": 1, "device": "cpu",
                        "allocated": {"file": script, "line": 7}, "gradient_read": None, "key": "k"}],
        "leaves": [{"name": "fit.goal", "shape": [24], "dtype": "float32", "scalars": 24, "device": "cpu",
                    "allocated": {"file": script, "line": 9}, "gradient_read": None, "key": "g"}],
        "objectives": [{"name": "fit.err", "dtype": "float32", "kind": "loss", "file": script, "line": 20}],
        "iterations": [] if kind == "nobackward" else [iteration(k, loss, 0.2) for k, loss in enumerate(losses)],
        "structure": {"launches_per_iteration": 41, "kernels": {"diffuse": 40, "misfit": 1}, "arrays": 5},
        "nonfinite": None, "loaded_files": [script], "notes": [],
    }  # fmt: skip


def check(index, verdict):
    autodiff, difference = (-0.238, -0.2998) if verdict == "disagree" else (-0.2998, -0.2998)
    numbers = {"autodiff": autodiff, "finite_difference": difference, "error": 2e-5,
               "relative_error": abs(autodiff - difference) / 0.2998}  # fmt: skip
    return {
        "iteration": index, "parameter": {"name": "fit.kappa", "key": "k"}, "objective": {"name": "fit.err", "kind": "loss", "value": 0.04},
        "horizon": {"windows": 1, "ops": 41, "full": True, "from": {"file": script, "line": 18}, "to": {"file": script, "line": 20}},
        "verdict": verdict, "reason": None, "message": f"They {verdict}.",
        "gradient": {**numbers,
                     "directions": [{"label": "random 1", **numbers, "verdict": verdict, "reason": None, "step": 1e-3,
                                     "evaluations": 15, "rungs": []}],
                     "elements": [{"index": 0, "component": None, **numbers, "ratio": autodiff / difference, "verdict": verdict}]},
        "signature": {"kind": "subtle" if verdict == "disagree" else "none", "factor": None,
                      "message": "It is 21% too small, with the right sign."},
        "windows": [{"backward_call": 0, "verdict": verdict, "autodiff": autodiff, "finite_difference": difference,
                     "error": 2e-5, "file": script, "line": 20}],
        "repeats": {"values": [0.04, 0.04], "reproducible": True}, "evaluations": 31, "seconds_per_evaluation": 0.01,
        "not_covered": ["integer arrays"],
    }  # fmt: skip


def ledger(index, settings):
    at, kept, lost = {"file": script, "line": 12}, kind == "wrong", kind == "lost"
    jump = {"kind": "lost" if lost else "adjoint", **at, "function": "fit", "kernel": "diffuse", "ops": 40, "first_op": 0,
            "value": 0.06, "share": 0.206, "noise": 0.001, "significant": kept or lost, "share_restored": 1e-5 if kept else None,
            "lost": [{"variable": "fit.now", "allocated": {"file": script, "line": 8}}] if lost else [], "writers": [],
            "series": [[k, 0.0015] for k in range(40)]}  # fmt: skip
    overwrite = {"variable": "fit.now", "allocated": {"file": script, "line": 8}, "argument": "u",
                 "reader": {"kernel": "diffuse", **at}, "writer": {"what": "kernel diffuse", **at}, "op": 0, "ops": 20,
                 "change": {"max_abs": 0.3, "relative": 0.2}, "harmful": True, "how": "clobbered"}  # fmt: skip
    what_if = {"finite_difference": -0.2998, "as_is": -0.238, "restored": -0.2998, "relative_error_as_is": 0.206,
               "relative_error_restored": 1e-4, "arrays": []}  # fmt: skip
    alone = [{"what": "launch", "kernel": "diffuse", **at, "op": 3, "argument": "u", "autodiff": 0.5, "finite_difference": 0.5,
              "error": 1e-5, "verdict": "right", "reason": None, "restored": None, "adjoint": "arriving", "blamed": True}]  # fmt: skip
    said = {
        "passed": None,
        "message": "it raised ValueError",
        "looked_at": "2 of 41 launches (diffuse, misfit)",
        "skipped": [],
    }
    return {"iteration": index, "backward_call": 0, "parameter": {"name": "fit.kappa"}, "objective": {"name": "fit.err"},
            "ops": 41, "step": settings["step"], "finite_difference": -0.2998, "autodiff": -0.238, "error": 1e-4,
            "seed": {"value": 0.0, "share": 0.0, "noise": 1e-4, "significant": False}, "stale": [], "truncated": [],
            "jumps": [jump], "book": [[k, 0.0015 * (40 - k)] for k in range(41)], "flat": not (kept or lost), "balance": 0.0,
            "nonfinite": None, "overwrites": [overwrite] if kept else [], "what_if": what_if if kept else None,
            "observations": [], "isolated": alone if kept else [], "gradcheck_tape": said}  # fmt: skip


say("trace", "running the script", 1, 3)
print("cwd", os.getcwd(), "args", job["args"], "secret", os.environ.get("MY_TOKEN"), flush=True)
for k in range(3):
    print(f"iter {k}  err={0.04 / (k + 1):.4f} grad=-0.238", flush=True)
if kind == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if kind == "exits":
    os._exit(7)
if kind in ("hang", "stubborn"):
    if kind == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: finish({**trace(), "status": "stopped", "stopped_because": "signal"}))
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    stray = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    Path("pids").write_text(f"{os.getpid()} {child.pid} {stray.pid}")
    time.sleep(600)
if kind == "floods":
    print("x" * 100_000, flush=True)
if kind == "broken":
    finish({"status": "failed", "seconds": {"total": 0.5}, "warp_version": "1.19.0", "device": "cpu", "notes": [], "loaded_files": [script],
            "error": {"type": "ModuleNotFoundError", "message": "No module named 'warp.sim'", "file": script, "line": 4,
                      "function": "<module>", "source": "import warp.sim", "traceback": [{"file": script, "line": 4, "function": "<module>"}],
                      "kernel": None, "compiler_message": None, "missing_module": "warp.sim", "advice": "Install newton."}})  # fmt: skip
if job["mode"] == "trace":
    finish(trace())
if job["mode"] == "warp_tracker":
    warning = {"kind": "launch", "array": "fit.now", "allocated": {"file": script, "line": 8}, "argument": "u_next",
               "kernel": "diffuse", "file": script, "line": 12, "definition": {"file": script, "line": 3}, "count": 38,
               "stale": False, "text": "Array fit.now is being written to."}  # fmt: skip
    finish({"status": "completed", "error": None, "warp_version": "1.19.0", "available": True,
            "warnings": [warning] if kind == "wrong" else [], "blind_spots": ["tiles", "structs"],
            "cache": job["kernel_cache"]})  # fmt: skip
if job["mode"] == "ledger":
    if kind == "right" and job["plan"]["iterations"][0]["opaque"] == 2:
        finish(
            {
                "status": "completed",
                "error": None,
                "reason": "not_reproducible",
                "message": "Two runs differ.",
                "ledgers": [],
            }
        )
    finish({"status": "completed", "error": None, "verdict": None, "reason": None, "message": "",
            "ledgers": [ledger(job["plan"]["iterations"][0]["opaque"], job["ledger"])]})  # fmt: skip
repaired = job["target"]["script"] and "repaired" in Path(script).read_text()
verdict = (
    "agree"
    if repaired
    else "disagree"
    if kind in ("wrong", "lost") or job["overrides"].get("right.STEPS", 0) >= 11
    else "agree"
)
checks = [check(plan["opaque"], verdict) for plan in job["plan"]["iterations"]]
finish({"status": "completed", "error": None, "engine": "fork", "checks": checks, "gradcheck": None})
