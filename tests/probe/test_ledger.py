"""The ledger's arithmetic on small hand-made books with known answers."""

import math

import pytest

from warp_debug_gradients.probe.ledger import Jump, Term, book, group_jumps, is_flat, labelled_term, summed
from warp_debug_gradients.probe.ledger_result import better_step, is_better, settle_noise

HERE = {"file": "sim.py", "line": 10, "function": "step"}
THERE = {"file": "sim.py", "line": 20, "function": "score"}


def exact(value: float) -> Term:
    return Term(value, value, 0.0)


def test_a_term_knows_its_curvature_and_its_round_off():
    term = Term(1.2, 0.8, 0.03)
    assert term.value == pytest.approx(1.0)
    assert term.noise == pytest.approx(math.hypot(0.2, 0.03))


def test_terms_add_with_round_off_in_quadrature_and_curvature_by_sign():
    total = Term(1.0, 1.2, 3.0) + Term(2.0, 1.8, 4.0)
    assert (total.plus, total.minus, total.rounding) == (3.0, 3.0, 5.0)
    assert (Term(2.0, 2.0, 3.0) - Term(0.5, 0.5, 4.0)).rounding == 5.0


def test_jumps_of_one_line_are_summed_and_the_largest_comes_first():
    jumps = [
        Jump(3, "adjoint", exact(0.1), "score", THERE),
        *[Jump(k, "adjoint", exact(-0.2), "step", HERE) for k in range(3)],
    ]
    rows = group_jumps(jumps, scale=2.0)
    assert [(row["line"], row["ops"]) for row in rows] == [(10, 3), (20, 1)]
    assert rows[0]["share"] == pytest.approx(-0.3)
    assert rows[0]["first_op"] == 0
    assert all(row["significant"] for row in rows)


@pytest.mark.parametrize(
    ("term", "significant"),
    [
        (exact(0.5), True),
        (Term(0.5, 0.5, 0.2), False),  # 2.5 times its round-off
        (Term(0.9, 0.1, 0.0), False),  # the one-sided values differ: curvature
        (exact(5e-4), False),  # a part in 2,000 of the derivative
        (exact(2e-3), True),
    ],
)
def test_a_jump_counts_only_beyond_its_own_noise(term, significant):
    (row,) = group_jumps([Jump(0, "adjoint", term, "step", HERE)], scale=1.0)
    assert row["significant"] is significant


def test_a_significant_jump_that_reads_an_array_without_gradient_is_a_lost_term():
    lost = {"variable": "flow", "allocated": {"file": "sim.py", "line": 4}}
    jump = Jump(1, "adjoint", exact(-0.7), "step", HERE, lost=[lost])
    (row,) = group_jumps([jump], scale=1.0)
    assert (row["kind"], row["lost"]) == ("lost", [lost])
    quiet = Jump(1, "adjoint", Term(1e-5, 1e-5, 1e-4), "step", HERE, lost=[lost])
    assert group_jumps([quiet], scale=1.0)[0]["kind"] == "adjoint"


def test_a_reset_that_costs_nothing_is_not_listed():
    writer = {"what": "zero_()", "file": "sim.py", "line": 9}
    harmless = Jump(1, "unrecorded", exact(0.0), "zero_()", HERE, writers=[writer])
    harmful = Jump(2, "unrecorded", exact(0.4), "zero_()", HERE, writers=[writer])
    assert group_jumps([harmless], scale=1.0) == []
    assert group_jumps([harmful], scale=1.0)[0]["writers"] == [writer]


def test_the_same_jump_with_restored_reads_stands_beside_it():
    jumps = [Jump(k, "adjoint", exact(0.5), "step", HERE) for k in range(2)]
    (row,) = group_jumps(jumps, scale=2.0, restored={(0, "adjoint"): 0.001, (1, "adjoint"): 0.003})
    assert row["share"] == pytest.approx(0.5)
    assert row["share_restored"] == pytest.approx(0.002)


def test_the_book_runs_from_the_end_of_the_tape_to_its_start():
    jumps = [Jump(k, "adjoint", exact(0.1), "step", HERE) for k in range(4)]
    points = book(jumps, start=1.0)
    assert [op for op, _ in points] == [3, 2, 1, 0]
    assert points[-1][1] == pytest.approx(1.4)
    long = book([Jump(k, "adjoint", exact(0.001), "step", HERE) for k in range(10_000)], start=0.0)
    assert len(long) < 1000
    assert long[-1][1] == pytest.approx(10.0)


def test_flat_means_that_nothing_is_significant():
    rows = group_jumps([Jump(0, "adjoint", exact(1e-6), "step", HERE)], scale=1.0)
    seed = labelled_term(exact(0.0), 1.0)
    assert is_flat(rows, [seed])
    assert not is_flat(rows, [labelled_term(exact(0.3), 1.0, variable="force")])


def test_what_cancels_by_chance_in_a_sum_is_noise_all_the_same():
    """Round-off: the spreads of many launches are samples of one noise; their sum may be near zero and says nothing."""
    terms = [Term(0.02, -0.02), Term(-0.02, 0.02)] * 50
    assert summed(terms).noise == pytest.approx(0.02 * 10)
    bent = [Term(0.3, 0.1)] * 4  # curvature of one sign adds up as it is
    assert summed(bent).noise == pytest.approx(0.4)
    assert summed([Term(0.3, 0.1, 0.2)]).noise == Term(0.3, 0.1, 0.2).noise


def locating(tangent_noise, value=0.01, kind="adjoint", lost=()):
    """A ledger with one jump, and its launch by itself. The derivative is 2."""
    jump = Jump(7, kind, exact(value), "score", THERE, lost=list(lost))
    rows = group_jumps([jump, Jump(1, "adjoint", exact(1e-9), "step", HERE)], scale=2.0)
    row = {"file": "sim.py", "line": 20, "kernel": "score", "blamed": True, "tangent_noise": tangent_noise}
    nothing = labelled_term(exact(0.0), 1.0)
    terms = {"seed": nothing, "unrecorded": nothing, "stale": [], "truncated": [], "stretches": []}
    return {"jumps": rows, "isolated": [row], "nonfinite": None, "flat": is_flat(rows), **terms}


def test_a_jump_that_a_launch_alone_explains_by_the_noise_of_its_tangent_accuses_nobody():
    ledger = locating(0.0099)
    settle_noise(ledger)
    assert not any(row["significant"] for row in ledger["jumps"])
    assert ledger["flat"]
    assert not ledger["isolated"][0]["blamed"]
    assert max(row["noise"] for row in ledger["jumps"]) == pytest.approx(0.0099 / 2.0)


def test_a_jump_within_the_round_off_of_its_adjoints_sums_accuses_nobody():
    ledger = locating(None)
    ledger["isolated"][0]["sum_noise"] = 0.004
    settle_noise(ledger)
    assert ledger["flat"]
    assert max(row["noise"] for row in ledger["jumps"]) == pytest.approx(0.004 / 2.0)


@pytest.mark.parametrize("tangent_noise", [None, 0.0, 0.002])
def test_a_jump_beyond_the_noise_of_its_tangent_stays(tangent_noise):
    ledger = locating(tangent_noise)
    settle_noise(ledger)
    assert [row["kernel"] for row in ledger["jumps"] if row["significant"]] == ["score"]
    assert not ledger["flat"]


def test_a_lost_term_of_noise_is_no_lost_term():
    ledger = locating(0.5, lost=[{"variable": "flow", "allocated": {"file": "sim.py", "line": 4}}])
    assert ledger["jumps"][0]["kind"] == "lost"
    settle_noise(ledger)
    assert [(row["kind"], row["lost"]) for row in ledger["jumps"]] == [("adjoint", [])] * 2


def quiet(value, noise, error, step=1e-3, autodiff=1.0, significant=False, fd=1.0, **fields):
    """A ledger at one step, with one jump of this value; the derivative is fd."""
    jump = {"value": value, "noise": noise, "significant": significant}
    return {"step": step, "finite_difference": fd, "autodiff": autodiff, "error": error, "jumps": [jump], "stretches": [],
            "flat": not significant, "nonfinite": None, "stale": [], "truncated": [],
            "seed": {"value": 0.0, "significant": False}, **fields}  # fmt: skip


@pytest.mark.parametrize("fd", [1.0, -4e-5])
def test_a_jump_that_round_off_hides_asks_for_a_larger_step_and_one_that_curvature_hides_for_a_smaller(fd):
    size = abs(fd)
    assert better_step(quiet(0.007 * size, 0.016, 0.008 * size, fd=fd)) > 1.0
    assert better_step(quiet(-4.9 * size, 1.8, 0.002 * size, fd=fd)) < 1.0
    assert better_step(quiet(0.0005 * size, 0.016, 0.008 * size, fd=fd)) is None  # would not count without its noise


@pytest.mark.parametrize("where", ["stale", "truncated"])
def test_any_term_that_curvature_hides_asks_for_a_smaller_step(where):
    assert better_step(quiet(0.0, 0.0, 0.002, **{where: [{"value": -0.7, "significant": False}]})) < 1.0


@pytest.mark.parametrize("fields", [{"significant": True}, {"nonfinite": {"op": 3}}, {"stretches": [{"first_op": 0}]}])
def test_a_ledger_that_tells_something_or_is_of_a_long_tape_keeps_its_step(fields):
    assert better_step(quiet(0.5, 0.2, 0.001, **fields)) is None


def test_the_quieter_of_two_flat_ledgers_is_kept():
    first = quiet(0.007, 0.016, 0.008)
    assert is_better(quiet(0.001, 0.004, 0.002, step=4e-3), first)
    assert not is_better(quiet(0.03, 0.044, 0.033, step=4e-3), first)


def test_what_stands_out_at_a_larger_step_alone_is_no_error():
    kink = quiet(0.02, 0.001, 0.001, step=4e-3, autodiff=1.02, significant=True)
    assert not is_better(kink, quiet(0.007, 0.016, 0.008, autodiff=1.007))


@pytest.mark.parametrize(("off", "better"), [(0.4, True), (0.02, False)])
def test_what_stands_out_at_a_smaller_step_is_an_error_if_the_gradient_is_off_at_both(off, better):
    wide = quiet(0.4, 0.2, 0.0002, step=0.1, autodiff=1.4)
    assert is_better(quiet(off, 0.001, 0.001, step=0.025, autodiff=1.0 + off, significant=True), wide) is better
