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
    checks = {}
    for engine in ("fork", "rerun"):
        answer = truths.gradcheck(
            program, program.copy(tmp_path / engine), "--iteration", "0", "--engine", engine, timeout_s=280
        )
        assert answer.result["status"] == "completed", answer.result["message"]
        assert answer.result["engine"] == engine
        (checks[engine],) = answer.checks
    fork, rerun = checks["fork"], checks["rerun"]
    for field in ("verdict", "reason", "iteration", "evaluations", "horizon", "signature"):
        assert rerun[field] == fork[field], field
    assert rerun["objective"]["value"] == pytest.approx(fork["objective"]["value"], rel=PRECISION)
    assert rerun["repeats"]["values"] == pytest.approx(fork["repeats"]["values"], rel=PRECISION)
    for part in ("directions", "elements"):
        assert len(rerun["gradient"][part]) == len(fork["gradient"][part]) > 0
        for ours, theirs in zip(fork["gradient"][part], rerun["gradient"][part]):
            for number in NUMBERS:
                assert same(ours.get(number), theirs.get(number)), (part, number, ours, theirs)
            for other in ("label", "index", "verdict", "evaluations"):
                assert ours.get(other) == theirs.get(other)
    assert len(rerun["windows"]) == len(fork["windows"])
    for ours, theirs in zip(fork["windows"], rerun["windows"]):
        assert all(same(ours[n], theirs[n]) for n in NUMBERS[:3])


def same(ours, theirs):
    """Equal to float precision; None and non-finite numbers only to themselves."""
    if ours is None or theirs is None or isinstance(ours, str) or isinstance(theirs, str):
        return ours == theirs
    return math.isclose(ours, theirs, rel_tol=PRECISION, abs_tol=0.0)
