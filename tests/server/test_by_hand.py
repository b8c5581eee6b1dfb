"""Seeds made by hand: what is said of a gradient that is right for them."""

import pytest

from warp_debug_gradients.operations import by_hand
from warp_debug_gradients.operations.situations import right

CHECK = {
    "iteration": 2,
    "parameter": {"name": "height"},
    "objective": {"name": "gap", "kind": "seeded"},
    "verdict": "agree",
    "horizon": {"to": {"file": "fit.py", "line": 7}},
    "gradient": {"autodiff": 2.0, "finite_difference": 2.0001, "error": 1e-4},
}
OTHER = {"name": "self.chi", "value": 0.512345, "proportional": False, "factor": None, "autodiff": 1.0,
         "finite_difference": 8.0, "error": 0.01}  # fmt: skip
SAME = {**OTHER, "proportional": True, "factor": 1.001}
PRINTED = {"iterations": [], "printed": {"chi": [0.7, 0.5123]}}


def test_a_printed_number_of_another_derivative_is_a_possible_mismatch():
    cause = by_hand.mismatch([{**CHECK, "by_hand": [OTHER]}], PRINTED)
    assert (cause.code, cause.confidence, cause.file, cause.line) == ("seed_mismatch", "possible", "fit.py", 7)
    assert "AD = 1, FD of self.chi = 8" in cause.evidence[0]
    assert by_hand.other_objective([{**CHECK, "by_hand": [OTHER]}]) == "self.chi"


@pytest.mark.parametrize("printed", [{}, {"chi": [0.7, 0.6]}])
def test_one_that_nobody_prints_accuses_nobody(printed):
    assert by_hand.mismatch([{**CHECK, "by_hand": [OTHER]}], {"printed": printed}) is None


def test_a_number_that_fits_settles_it():
    check = {**CHECK, "by_hand": [OTHER, SAME]}
    assert by_hand.mismatch([check], PRINTED) is None
    assert by_hand.other_objective([check]) is None
    cause = right([check], PRINTED)
    assert cause.confidence == "proven"
    assert "the seeds fit self.chi: AD is its derivative by differences" in cause.evidence


def test_a_factor_is_said():
    words = by_hand.in_words([{**CHECK, "by_hand": [{**SAME, "factor": 5.0}]}])
    assert words == "the seeds fit self.chi: AD is 5 times its derivative by differences"


@pytest.mark.parametrize(("objective", "sure"), [
    ({"name": "gap", "kind": "seeded"}, "likely"),
    ({"name": "gap", "kind": "seeded", "seed": 0.25, "outputs": 4}, "proven"),
    ({"name": "loss", "kind": "loss"}, "proven"),
])  # fmt: skip
def test_what_is_taken_as_given_is_not_called_proven(objective, sure):
    cause = right([{**CHECK, "objective": objective}], {"iterations": []})
    assert (cause.code, cause.confidence) == ("gradients_correct", sure)
    assert ("taken as given" in " ".join(cause.evidence)) is (sure == "likely")
