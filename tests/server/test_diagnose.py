"""From checks, lines and leads to causes: hand-made records with known answers."""

from dataclasses import replace

import pytest

from warp_debug_gradients.catalogue import CATALOGUE
from warp_debug_gradients.operations.diagnose import new_causes, ranked
from warp_debug_gradients.operations.line_search import line_of, line_sentence
from warp_debug_gradients.operations.reported import reported_otherwise
from warp_debug_gradients.operations.scan_leads import at_their_constructs, harmless, with_leads
from warp_debug_gradients.operations.situations import SITUATIONS, at_their_launches, blocked, right, situations
from warp_debug_gradients.patterns import STRONG, WEAK, Hit, Pattern, Spot
from warp_debug_gradients.schemas import Cause, Isolated, ScriptError

AGREES = {
    "iteration": 0,
    "verdict": "agree",
    "parameter": {"name": "beam.stiffness"},
    "horizon": {"to": {"file": "train.py", "line": 40}},
    "gradient": {"autodiff": 2.0, "finite_difference": 2.0001, "error": 1e-4},
}


def check_with_line(taken, limit=0.5, falls=True, cosine=1.0):
    line = {"points": [[0.1, 4.0], [0.4, 1.0], [1.6, 9.0]], "best": 0.4, "falls": falls, "limit": limit, "base": 5.0}
    return {**AGREES, "line": line, "update": {"rate": taken, "cosine": cosine, "length": 1.0} if taken else None}


@pytest.mark.parametrize(
    ("taken", "limit", "advice"),
    [
        (2.0, 0.5, "beyond what the objective's curvature"),
        (2.0, None, "5 times the one"),
        (0.001, 0.5, "raise the learning rate"),
        (0.3, 0.5, "Look at the learning rate, the loss's scale"),
        (None, 0.5, "Look at the learning rate, the loss's scale"),
    ],
)
def test_a_right_gradient_with_the_step_that_was_taken(taken, limit, advice):
    cause = right([check_with_line(taken, limit)], {"iterations": []})
    assert (cause.code, cause.confidence, cause.line) == ("gradients_correct", "proven", 40)
    assert advice in cause.repair
    assert "AD = 2, FD = 2.0001" in cause.evidence[0]
    assert "lowest, 1 (from 5)" in cause.evidence[1]


def test_a_line_that_nowhere_falls_is_no_statement_about_the_step():
    found = line_of(check_with_line(2.0, falls=False))
    assert "no step lowers the objective" in line_sentence(found, 0)


def test_an_update_across_the_gradient_is_named():
    assert "does not follow the gradient (cosine 0.1)" in line_sentence(line_of(check_with_line(0.4, cosine=0.1)), 3)


def test_a_limit_beyond_which_the_objective_still_falls_advises_nothing():
    """Newton's bear: a step of 7.2 gradients is the best one, where the curvature at the point allows 0.98."""
    check = check_with_line(5.8)
    check["line"].update(best=7.2, limit=0.98)
    assert line_of(check).limit is None
    assert "allows at most" not in line_sentence(line_of(check), 0)
    assert "lower" not in (right([check], {}).repair or "")


@pytest.mark.parametrize("reason", SITUATIONS)
def test_every_reason_has_its_situation(reason):
    check = {
        **AGREES,
        "verdict": "inconclusive",
        "reason": reason,
        "message": "measured so.",
        "repeats": {"values": [1.0, 3.0]},
    }
    (cause,) = situations(check)
    assert cause.code in CATALOGUE
    assert "measured so" in cause.evidence
    assert "2 repeats of the objective spread over 2" in cause.evidence
    assert situations({**check, "verdict": "disagree"}) == []
    assert situations({**check, "reason": "not_measured"}) == []


def test_a_program_that_does_not_run_has_its_line():
    error = ScriptError(type="NameError", message="name 'k' is not defined", file="a.py", line=3, advice="Define k.")
    cause = blocked(error)
    assert (cause.code, cause.file, cause.line, cause.repair) == ("does_not_run", "a.py", 3, "Define k.")


def cause(code, confidence="likely", line=1, **more):
    return Cause(code=code, confidence=confidence, file="a.py", line=line, **more)


def test_a_later_ledger_adds_only_what_is_new():
    known = [cause("overwrite", line=5)]
    found = [cause("overwrite", line=9), cause("stale_gradient", line=5), cause("stale_gradient", line=7)]
    assert [c.line for c in new_causes(known, found)] == [7]
    assert new_causes([], found) == found


def test_an_undecided_check_ranks_what_was_shown_first():
    located = [cause("overwrite", "possible"), cause("custom_gradient"), cause("precision_floor", "possible")]
    codes = [c.code for c in ranked(located, [cause("precision_floor")])]
    assert codes == ["custom_gradient", "precision_floor", "overwrite"]


def hit(code, line, likelihood=STRONG, variable=None, function=None):
    pattern = Pattern(name="p", code=code, why="it hurts", harmless="else", repair="Mend it.")
    return Hit(pattern, likelihood, "a.py", line, "x[i] *= 2.0", variable=variable, function=function)


def test_a_lead_supports_the_cause_of_its_kind_at_its_place():
    supported = with_leads([cause("overwrite", line=5)], [hit("overwrite", 5)], wrong=True)[0]
    assert "the source shows it: a.py:5" in supported.evidence[-1]
    assert (
        with_leads([cause("overwrite", line=5)], [hit("overwrite", 9), hit("seed_mismatch", 5)], True)[0].evidence == []
    )


def test_a_kernel_without_a_backward_pass_is_placed_where_it_is_switched_off():
    """Measured at the launch; the lead is at the decorator, and knows the launch."""
    launched = replace(hit("backward_disabled", 5), related=[Spot("a.py", 40, "launched under the tape")])
    found = with_leads([cause("backward_disabled", line=40)], [launched], wrong=True)[0]
    assert (found.file, found.line) == ("a.py", 5)
    assert "a.py:40" in " ".join(found.evidence)
    other = with_leads([cause("backward_disabled", line=60)], [launched], wrong=True)[0]
    assert other.line == 60


def test_leads_stand_in_only_where_the_gradient_is_wrong_and_nothing_is_known():
    leads = [hit("inplace_muldiv", 3, function="step"), hit("seed_mismatch", 8), hit("overwrite", 9, WEAK)]
    assert [c.code for c in with_leads([], leads, wrong=True)] == ["inplace_muldiv", "seed_mismatch"]
    assert all(c.confidence == "possible" for c in with_leads([], leads, wrong=True))
    assert with_leads([], leads, wrong=False) == []
    unexplained = cause("warp_defect", "possible", kernel="step")
    assert [c.code for c in with_leads([unexplained], leads, wrong=True)] == ["inplace_muldiv", "warp_defect"]


def test_where_the_gradient_agrees_strong_leads_are_ruled_out():
    assert harmless([hit("overwrite", 4, WEAK)]) == []
    assert "overwrite a.py:4" in harmless([hit("overwrite", 4)])[0]


def test_a_zero_gradient_that_differences_do_not_settle_is_placed_at_its_steps():
    check = {"verdict": "inconclusive", "gradient": {"directions": [{"autodiff": 0.0}, {"autodiff": 0.0}]}}
    (found,) = at_their_constructs([], check, [], [hit("piecewise_constant", 18)])
    assert (found.code, found.confidence, found.line) == ("piecewise_constant", "likely", 18)
    slope = {"verdict": "inconclusive", "gradient": {"directions": [{"autodiff": 0.0}, {"autodiff": 1e-3}]}}
    assert at_their_constructs([], slope, [], [hit("piecewise_constant", 18)]) == []
    assert at_their_constructs([], check, [], [hit("piecewise_constant", 18, WEAK)]) == []


def test_a_term_that_is_constant_at_small_steps_is_placed_in_the_launch_that_shows_it():
    check = {"verdict": "inconclusive", "gradient": {"directions": [{"autodiff": 0.4}, {"autodiff": -0.1}]}}
    row = {"what": "launch", "file": "a.py", "line": 28, "argument": "level", "verdict": "undecided"}
    flat = Isolated(**row, kernel="quantise", reason="staircase", autodiff=0.0)
    (found,) = at_their_constructs([], check, [flat], [hit("piecewise_constant", 8, function="quantise")])
    assert (found.code, found.confidence, found.line) == ("piecewise_constant", "likely", 8)
    assert "a.py:28: quantise by itself hands back 0 for level" in found.evidence[0]
    for other in (flat.model_copy(update={"autodiff": 0.3}), flat.model_copy(update={"reason": "kink"})):
        assert at_their_constructs([], check, [other], [hit("piecewise_constant", 8, function="quantise")]) == []
    assert at_their_constructs([], check, [flat], [hit("piecewise_constant", 8, function="sample")]) == []
    assert at_their_constructs([], check, [flat], []) == []


def test_a_program_that_does_not_repeat_its_steps_is_stochastic_where_the_source_draws():
    check = {
        "verdict": "inconclusive",
        "reason": "not_repeated",
        "message": "the same backward call came at another event",
    }
    found = situations(check)
    assert [(c.code, c.confidence) for c in found] == [("stochastic_forward", "possible")]
    (found,) = at_their_constructs(found, check, [], [hit("stochastic_forward", 51)])
    assert (found.confidence, found.line) == ("likely", 51)


def test_a_situation_moves_to_the_construct_behind_it():
    (found,) = at_their_constructs(
        [cause("stochastic_forward", line=70)], {"verdict": "inconclusive"}, [], [hit("stochastic_forward", 12)]
    )
    assert found.line == 12
    assert "a.py:12" in found.evidence[-1]


@pytest.mark.parametrize(
    ("fine", "fd", "code"),
    [
        (1e-7, -1.06e7, "chaotic_horizon"),
        (1e-7, -2.4e7, None),  # AD is right nowhere
        (5e-4, -1.06e7, None),  # and so it is at the same steps: the fault is along the other direction
    ],
)
def test_a_gradient_that_is_right_at_the_finest_steps_only_is_chaos(fine, fd, code):
    rows = [
        {
            "label": "1",
            "verdict": "disagree",
            "autodiff": 2.8e7,
            "finite_difference": 2.7e3,
            "error": 7e6,
            "step": 1e-3,
        },
        {
            "label": "2",
            "verdict": "inconclusive",
            "autodiff": -1.06e7,
            "finite_difference": fd,
            "error": 9e4,
            "step": fine,
        },
    ]
    check = {"verdict": "inconclusive", "reason": "directions_differ", "iteration": 0, "objective": {"value": 414.0},
             "gradient": {"directions": rows}}  # fmt: skip
    assert [c.code for c in situations(check)] == ([code] if code else [])


@pytest.mark.parametrize(("autodiff", "code"), [(5e8, "chaotic_horizon"), (50.0, None)])
def test_a_derivative_that_only_holds_at_the_finest_steps(autodiff, code):
    check = {
        **AGREES,
        "verdict": "inconclusive",
        "reason": "scale_dependent",
        "objective": {"value": 600.0},
        "gradient": {"directions": [{"autodiff": autodiff, "step": 0.12}]},
    }
    assert [c.code for c in situations(check)] == ([code] if code else [])


STAIRS = {
    "verdict": "inconclusive",
    "reason": "staircase",
    "message": "AD = 1.4, FD = 0: no change up to step 0.5, a change at 4; AD has a slope that no such step shows",
    "objective": {"name": "loss", "value": 5760.0},
}


@pytest.mark.parametrize(
    ("autodiff", "reason", "code"),
    [
        (1.4, "quantised", "precision_floor"),
        (0.0, "quantised", "piecewise_constant"),
        (1.4, "surrogate", "piecewise_constant"),
    ],
)
def test_stairs_of_rounding_and_stairs_that_are_meant(autodiff, reason, code):
    check = {**STAIRS, "gradient": {"directions": [{"autodiff": autodiff}]}}
    coarse = Isolated(
        what="launch", kernel="read_out", file="a.py", line=61, verdict="undecided", reason=reason, blamed=True
    )
    (found,) = at_their_launches(situations(check), check, [coarse])
    assert found.code == code
    if code == "precision_floor":
        assert (found.file, found.line, found.kernel) == ("a.py", 61, "read_out")


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ({"objective": [260.0, 343.0, 509.0]}, True),
        ({"step loss": [260.0, 509.0, 343.0]}, True),
        ({"objective": [260.0, 190.0, 97.0]}, False),
        ({"objective": [260.0, 509.0]}, False),  # too few to say
        ({"rate": [1.0, 2.0, 3.0]}, False),  # no loss by its name
        ({"objective": [260.0, 261.0, 262.0]}, False),  # hardly moves
        ({}, False),
    ],
)
def test_a_printed_loss_that_goes_the_other_way_is_another_number(printed, said):
    trace = {"iterations": [{"losses": [v]} for v in (260.0, 150.0, 97.0)], "printed": printed}
    found = reported_otherwise(trace)
    assert bool(found) is said
    if said:
        assert "from 260 to 97" in found
        assert any(found.rstrip(".") in sentence for sentence in right([AGREES], trace).evidence)


def test_a_printed_loss_beside_one_that_does_not_move_says_nothing():
    trace = {"iterations": [{"losses": [v]} for v in (260.0, 261.0, 260.5)], "printed": {"loss": [1.0, 2.0, 3.0]}}
    assert reported_otherwise(trace) is None


@pytest.mark.parametrize(("lines", "placed"), [([43], 43), ([43, 43], 43), ([43, 50], 40), ([], 40)])
def test_a_kink_is_placed_at_the_only_launch_that_has_one(lines, placed):
    check = {**AGREES, "verdict": "inconclusive", "reason": "kink", "message": "AD = 1, FD = 2"}
    rows = [
        Isolated(what="launch", kernel="pick", file="a.py", line=n, verdict="undecided", reason="kink") for n in lines
    ]
    (found,) = at_their_launches(situations(check), check, rows)
    assert (found.code, found.line) == ("nonsmooth_choice", placed)
