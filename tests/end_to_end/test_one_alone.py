"""Real runs: Warp's own tracker heard, and one adjoint alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import numpy as np
import warp as wp


@wp.func
def spring(x: float, k: float):
    return k * x * x * x


@wp.func_grad(spring)
def adj_spring(x: float, k: float, adj_ret: float):
    wp.adjoint[x] += FACTOR * k * x * x * adj_ret
    wp.adjoint[k] += x * x * x * adj_ret


@wp.kernel
def pull(x: wp.array(dtype=float), k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = spring(wp.sin(x[i]), k[0])


@wp.kernel
def shift(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = wp.float32(0.1) + wp.float32(i)


@wp.kernel
def energy(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, y[i] * y[i])


k = wp.array([0.8], dtype=float, requires_grad=True)
for turn in range(2):
    x = wp.array(np.linspace(0.2, 1.0, 6), dtype=float, requires_grad=True)
    y = wp.zeros(6, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(pull, 6, inputs=[x, k], outputs=[y])
        wp.launch(shift, 6, outputs=[x])
        wp.launch(energy, 6, inputs=[y], outputs=[loss])
    tape.backward(loss)
    gradient = k.grad.numpy().copy()
    print(loss.numpy(), gradient)
    tape.zero()
    k.assign(k.numpy() - 0.01 * gradient)
"""


def measure(folder: Path, command: str, factor: str) -> tuple[dict, int]:
    """The real command on the program; its result and the line of the launch of `shift`."""
    (folder / "main.py").write_text(PROGRAM.replace("FACTOR", factor))
    words = [sys.executable, "-m", "warp_debug_gradients", command, "main.py", "--json", "--timeout", "200"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=240, check=False, env=os.environ)
    result = json.loads(done.stdout)
    assert result["status"] == "completed", result
    return result, 1 + PROGRAM.splitlines().index("        wp.launch(shift, 6, outputs=[x])")


def test_warps_own_tracker_is_heard_with_the_launch_line_that_it_does_not_give(tmp_path):
    result, line = measure(tmp_path, "enable-tracker", "3.0")
    assert result["tracker_available"] is True
    (warning,) = result["warnings"]
    assert (warning["array"], warning["kernel"], warning["argument"], warning["line"]) == ("x", "shift", "x", line)
    assert warning["stale"] is False
    assert any("left operand" in spot for spot in result["tracker_blind_spots"])
    (row,) = result["overwrites"]
    assert (row["variable"], row["writer"]["line"]) == ("x", line)


@pytest.mark.parametrize(("factor", "verdict"), [("3.0", "right"), ("2.0", "wrong")])
def test_a_custom_gradient_and_every_launch_by_themselves(tmp_path, factor, verdict):
    result, _ = measure(tmp_path, "bisect-steps", factor)
    rows = {(row["what"], row["kernel"]): row for row in result["isolated"]}
    assert rows["function", "spring"]["verdict"] == verdict
    assert rows["function", "spring"]["samples"] > 32
    assert rows["launch", "pull"]["verdict"] == verdict
    assert rows["launch", "energy"]["verdict"] == "right"
    assert result["warp_gradcheck_tape"]["message"]
    accused = [c for c in result["causes"] if c["code"] == "custom_gradient"]
    assert bool(accused) == (result["verdict"] == "disagree" and verdict == "wrong")
