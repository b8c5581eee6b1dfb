"""Going back in time: whatever happened to a root, undoing it step by step gives every earlier content."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warp_debug_gradients.probe import shadows
from warp_debug_gradients.probe.shadows import (
    BEFORE,
    WRITTEN,
    Arena,
    ArenaFull,
    Shadows,
    differing_range,
    renumbered,
    view_of,
)


class Memory:
    """What `Shadows` needs of an array: an address and a size."""

    def __init__(self, size: int):
        self._bytes = (ctypes.c_uint8 * size)()
        self.ptr, self.capacity = ctypes.addressof(self._bytes), size
        self.view = np.frombuffer(self._bytes, dtype=np.uint8)


edits = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 39), st.integers(1, 40), st.integers(0, 255)), max_size=25)


@settings(max_examples=60, deadline=None)
@given(edits=edits)
def test_undo_gives_back_every_content(tmp_path_factory, edits):
    recorded = Shadows(Arena(str(tmp_path_factory.mktemp("arena"))))
    roots = [Memory(40) for _ in range(3)]
    for number, root in enumerate(roots):
        recorded.sync(number, root, 0, BEFORE)
    history = []
    for op, (number, low, length, value) in enumerate(edits):
        history.append([root.view.copy() for root in roots])
        roots[number].view[low : low + length] = value
        recorded.sync(number, roots[number], op, WRITTEN)
    final = [root.view.copy() for root in roots]
    replayed = Shadows.from_state(recorded.arena, recorded.state())
    for op in reversed(range(len(edits))):
        replayed.undo(op, WRITTEN)
        for number in range(3):
            np.testing.assert_array_equal(replayed.bytes[number], history[op][number])
    for number in range(3):  # the recording itself is untouched, for the next pass
        np.testing.assert_array_equal(recorded.bytes[number], final[number])


def test_roots_of_another_run_are_matched_by_the_order_in_which_the_tape_meets_them(tmp_path):
    """A solver before the tape made three arrays more in one of the runs."""
    states = []
    for numbers in ((4, 9), (7, 12)):
        recorded = Shadows(Arena(str(tmp_path)))
        for number, size in zip(numbers, (16, 24)):
            root = Memory(size)
            recorded.sync(number, root, 0, BEFORE)
            root.view[2] = number
            recorded.sync(number, root, 0, WRITTEN)
        states.append(recorded.state())
        arena = recorded.arena
    matched = renumbered(states[1], states[0])
    assert list(matched["place"]) == [4, 9]
    found = Shadows.from_state(arena, matched)
    assert found.pending(0, WRITTEN) == {4, 9}
    assert (found.bytes[4][2], found.bytes[9][2]) == (7, 12)
    other = {**states[1], "place": {7: (0, 16), 12: (16, 32)}}
    assert renumbered(other, states[0]) is None


def test_positions_are_undone_one_at_a_time(tmp_path):
    recorded, root = Shadows(Arena(str(tmp_path))), Memory(16)
    recorded.sync(7, root, 0, BEFORE)
    root.view[:] = 1
    assert recorded.sync(7, root, 0, WRITTEN)
    root.view[3] = 9
    assert recorded.sync(7, root, 1, BEFORE)
    assert not recorded.sync(7, root, 1, WRITTEN)
    assert recorded.pending(1, BEFORE) == {7}
    assert recorded.undo(1, WRITTEN) == []
    recorded.undo(1, BEFORE)
    assert set(recorded.bytes[7]) == {1}
    recorded.undo(0, WRITTEN)
    assert set(recorded.bytes[7]) == {0}


@given(st.binary(min_size=0, max_size=70), st.integers(0, 69), st.integers(0, 255))
def test_the_differing_range_holds_every_difference(data, at, value):
    a = np.frombuffer(data, dtype=np.uint8)
    b = a.copy()
    if at < b.size:
        b[at] = value
    found = differing_range(a, b)
    if np.array_equal(a, b):
        assert found is None
    else:
        low, high = found
        assert low <= at < high
        assert high - low <= 8


def test_a_view_is_seen_in_a_copy_of_its_root():
    class Root:
        ptr = 1000

    class View:  # every second row of a (4, 3) float32 array
        ptr, shape, strides = 1000 + 12, (2, 3), (24, 4)

    content = np.arange(12, dtype=np.float32)
    seen = view_of(content.view(np.uint8), Root, View, np.dtype(np.float32), ())
    np.testing.assert_array_equal(seen, [[3, 4, 5], [9, 10, 11]])
    vectors = type("View", (), {"ptr": 1000, "shape": (4,), "strides": (12,)})
    assert view_of(content.view(np.uint8), Root, vectors, np.dtype(np.float32), (3,)).shape == (4, 3)


def test_a_full_arena_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(shadows, "ARENA_BYTES", 1 << 16)
    arena = Arena(str(tmp_path))
    arena.allocate(60_000)
    with pytest.raises(ArenaFull):
        arena.allocate(60_000)
