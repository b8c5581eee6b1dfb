"""A callable of the user's instead of a script; Warp's own gradcheck is reported beside our verdict."""

import json
import subprocess
import sys

import model_files
import pytest
import truths


@pytest.fixture
def check(tmp_path):
    """The command on a model file."""

    def run(source, inputs="make_inputs"):
        (tmp_path / "model.py").write_text(source)
        command = [sys.executable, "-m", "warp_debug_gradients", "gradcheck-full-horizon"]
        command += ["--forward", "model.py:rollout", "--inputs", f"model.py:{inputs}"]
        command += ["--workspace", str(tmp_path), "--timeout", "200", "--json"]
        done = subprocess.run(
            command, cwd=tmp_path, env=truths.environment(), capture_output=True, text=True, check=False
        )
        assert done.stdout.startswith("{"), done.stdout + done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


def test_right(check):
    code, result = check(model_files.RIGHT)
    assert (code, result["verdict"]) == (0, "agree"), result["message"]
    assert result["parameter"] == "theta"
    theirs = result["warp_gradcheck"]
    assert theirs["passed"] is True
    assert theirs["vacuous"] is False
    assert theirs["eps"] == pytest.approx(1e-4)


def test_wrong(check):
    code, result = check(model_files.WRONG)
    assert (code, result["verdict"]) == (1, "disagree"), result["message"]
    assert result["warp_gradcheck"]["passed"] is False
    assert result["signature"]["kind"] == "factor"
    assert float(result["signature"]["factor"]) == pytest.approx(2 / 3, rel=0.01)
    for element in result["gradient"]["elements"]:
        assert element["ratio"] == pytest.approx(2 / 3, rel=0.01)


def test_nothing_to_compare(check):
    """Without requires_grad, Warp's gradcheck passes: there was nothing to compare. We must not say agree."""
    code, result = check(model_files.RIGHT, inputs="without_gradient")
    assert (code, result["verdict"]) == (4, "inconclusive"), result["message"]
    theirs = result["warp_gradcheck"]
    assert theirs is not None
    assert theirs["vacuous"] is True


def test_large_values(check):
    """At its default step Warp's gradcheck calls this wrong; the gradient is right, and we say so."""
    code, result = check(model_files.LARGE)
    assert (code, result["verdict"]) == (0, "agree"), result["message"]
    assert result["warp_gradcheck"]["passed"] is False


def test_arrays_in_containers(check):
    """They are found, and called as the callable calls them; of what it does not use, zero is the derivative."""
    code, result = check(model_files.CONTAINERS)
    assert (code, result["verdict"]) == (0, "agree"), result["message"]
    assert {c["parameter"] for c in result["checks"]} == {"angles[0]", "angles[1]", "tuned['bend']", "bias"}
