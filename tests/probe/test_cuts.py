"""Coarse to fine on hand-made tapes: what is kept at the ends of stretches, and which stretches are taken apart."""

from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from warp_debug_gradients.probe.cuts import Cuts, Shape, coarse, fine, first_touched

SIZE = 1000
PARAMETER = 10_000


def rollout(steps: int, first: int = 0) -> Shape:
    """Each operation reads one state and the parameter, and writes the next state."""
    touched = [[(k, 0, SIZE), (PARAMETER, 0, 4), (k + 1, 0, SIZE)] for k in range(steps)]
    return Shape(first, touched, [SIZE] * steps)


def covers(cuts: Cuts, shape: Shape) -> bool:
    return [op for stretch in cuts.stretches for op in stretch] == list(range(shape.first, shape.stop))


def test_only_what_a_later_operation_touches_is_kept_at_an_end():
    shape = rollout(10)
    cuts = Cuts([range(0, 5), range(5, 10)], shape)
    kept = [part for part in [(k, 0, SIZE) for k in range(11)] if cuts.outlives(part, range(0, 5))]
    assert kept == [(k, 0, SIZE) for k in range(5, 11)]  # state 5 is read by operation 5
    assert cuts.outlives((PARAMETER, 0, 4), range(0, 5))
    assert not cuts.outlives((10, 0, SIZE), range(5, 10))
    assert cuts.outlives((77, 0, 8), range(5, 10))  # unknown: kept


def test_a_seed_or_a_stale_gradient_counts_to_the_end():
    shape = rollout(10)
    shape.lasting.add(3)
    assert Cuts([range(0, 10)], shape).outlives((3, 0, SIZE), range(0, 10))


def test_slices_of_one_array_live_as_long_as_each_of_them_is_used():
    touched = [[(0, k * SIZE, (k + 1) * SIZE), (0, (k + 1) * SIZE, (k + 2) * SIZE)] for k in range(6)]
    cuts = Cuts([range(0, 3), range(3, 6)], Shape(0, touched, [SIZE] * 6))
    assert [cuts.outlives((0, k * SIZE, (k + 1) * SIZE), range(0, 3)) for k in range(4)] == [False, False, False, True]
    assert cuts.outlives((0, 0, 7 * SIZE), range(0, 3))  # the whole array, of which a part is used later


@settings(deadline=None)
@given(st.integers(2, 400), st.integers(0, 9), st.integers(20, 2000))
def test_stretches_cover_the_tape_and_their_ends_fit(steps, first, states):
    shape = rollout(steps, first)
    budget = states * SIZE
    cuts = coarse(shape, budget)
    if cuts is not None:
        assert covers(cuts, shape)
        assert len(cuts.stretches) <= steps
        taken = {s.start: float(s.start) for s in cuts.stretches}
        singly = fine(shape, cuts, taken, budget)
        if singly is not None:
            assert covers(singly, shape)
            apart = [s for s in singly.stretches if s not in cuts.stretches]
            assert len(apart) * SIZE <= budget


def test_a_tape_that_lives_in_its_whole_state_at_every_cut_cannot_be_cut():
    everything = [[(k, 0, SIZE) for k in range(50)] for _ in range(50)]
    assert coarse(Shape(0, everything, [50 * SIZE] * 50), budget=60 * SIZE) is None


def test_the_stretch_that_jumps_most_is_taken_apart_first():
    shape = rollout(64)
    cuts = coarse(shape, budget=60 * SIZE)
    assert cuts is not None
    starts = [s.start for s in cuts.stretches]
    jumps = dict.fromkeys(starts, 0.0) | {starts[3]: -5.0, starts[9]: 0.1}
    size = len(cuts.stretch(starts[3]))
    ends = sum(cuts.outlives(p, s) * (p[2] - p[1]) for s in cuts.stretches for op in s for p in set(shape.touched[op]))
    singly = fine(shape, cuts, jumps, budget=round((size * SIZE + ends) / 0.9) + SIZE // 2)
    assert singly is not None
    alone = [s.start for s in singly.stretches if len(s) == 1]
    assert set(cuts.stretch(starts[3])) <= set(alone)
    assert fine(shape, cuts, jumps, budget=SIZE) is None


def test_a_non_finite_stretch_comes_before_all_others():
    shape = rollout(64)
    cuts = Cuts([range(0, 32), range(32, 64)], shape)
    singly = fine(shape, cuts, {0: 1e9, 32: float("nan")}, budget=60 * SIZE)
    assert singly is not None
    assert [len(s) for s in singly.stretches] == [32] + [1] * 32


def test_what_nobody_touched_before_belongs_to_the_stretch_that_meets_it():
    operations = [SimpleNamespace(parts=parts) for parts in rollout(6).touched]
    found = first_touched([range(0, 3), range(3, 6)], operations, 0)
    assert {part[0] for part in found[0]} == {0, 1, 2, 3, PARAMETER}
    assert {part[0] for part in found[3]} == {4, 5, 6}
