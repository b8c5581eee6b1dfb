"""A layer that hands Warp's gradient to another framework, and never zeroes it: found from its second call on.

The real thing, with torch, is run where torch can be imported; docs/real-programs.md has its outcome. The stand-in
has the same tape, seed and kept array, and runs everywhere.
"""

import importlib.util

import pytest
from truths import PROGRAMS, answer_on_a_copy

NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not a test dependency")
LAYERS = ["numpy_layer", pytest.param("torch_layer", marks=NEEDS_TORCH)]


def check(name, folder, *arguments):
    """(exit code, result) of the gradient check of a copy of the program."""
    return answer_on_a_copy("gradcheck-full-horizon", PROGRAMS / "bridges" / f"{name}.py", folder, *arguments)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_gradient_that_is_never_zeroed_on_warps_side_is_a_running_sum(layer, tmp_path):
    code, result = check(layer, tmp_path)
    assert (code, result["verdict"], result["iteration"]) == (1, "disagree", 1)
    assert [row["verdict"] for row in result["checks"][:2]] == ["agree", "disagree"]
    assert "never zeroed" in result["message"]


@pytest.mark.parametrize("layer", LAYERS)
def test_its_repaired_twin_agrees(layer, tmp_path):
    code, result = check(layer, tmp_path, "--zero")
    assert (code, result["verdict"]) == (0, "agree"), result["message"]
    assert result["causes"] == []
