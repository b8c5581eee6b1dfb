"""Both engines ask for the same evaluations and get the same numbers, to float precision."""

import math

import pytest
import truths

NUMBERS = ("autodiff", "finite_difference", "error", "step")
PRECISION = 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["01_rod_cooling_pingpong", "08_cart_short_window", "15_drag_custom_adjoint"])
def test_the_engines_give_the_same_numbers(name, tmp_path):
    program = truths.named(name)
    results, shapes = {}, {}
    for engine in ("fork", "rerun"):
        answer = truths.gradcheck(
            program, program.copy(tmp_path / engine), "--iteration", "0", "--engine", engine, timeout_s=280
        )
        assert answer.result["status"] == "completed", answer.result["message"]
        assert answer.result["engine"] == engine
        (check,) = answer.checks  # evaluate.json, of either engine
        assert check["seconds_per_evaluation"] > 0.0
        shapes[engine] = {key: type(value).__name__ for key, value in check.items()}
        results[engine] = answer.result
    assert shapes["rerun"] == shapes["fork"]
    fork, rerun = results["fork"], results["rerun"]
    for field in ("verdict", "reason", "message", "iteration", "parameter", "objective", "horizon", "consumed"):
        assert rerun[field] == fork[field], field
    assert rerun["checks"][0]["evaluations"] == fork["checks"][0]["evaluations"] > 0
    assert all(same(fork["gradient"][n], rerun["gradient"][n]) for n in NUMBERS[:3])
    for part, ours, theirs in [
        *pairs(fork["gradient"], rerun["gradient"], "directions"),
        *pairs(fork["gradient"], rerun["gradient"], "elements"),
        *pairs(fork, rerun, "windows"),
    ]:
        for number in NUMBERS:
            assert same(ours.get(number), theirs.get(number)), (part, number, ours, theirs)
        for other in ("label", "index", "backward_call", "verdict", "evaluations"):
            assert ours.get(other) == theirs.get(other), (part, other)


def pairs(fork, rerun, part):
    """What both have under one name, side by side."""
    assert len(fork[part]) == len(rerun[part])
    assert part == "windows" or fork[part]
    return [(part, ours, theirs) for ours, theirs in zip(fork[part], rerun[part])]


def same(ours, theirs):
    """Equal to float precision; None and non-finite numbers only to themselves."""
    if ours is None or theirs is None or isinstance(ours, str) or isinstance(theirs, str):
        return ours == theirs
    return math.isclose(ours, theirs, rel_tol=PRECISION, abs_tol=0.0)
