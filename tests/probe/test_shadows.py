"""Going back in time: whatever happened to a root, undoing it step by step gives every earlier content."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warp_debug_gradients.probe.shadows import BEFORE, WRITTEN, Arena, ArenaFull, Shadows, differing_range, view_of


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


def test_positions_are_undone_one_at_a_time(tmp_path):
    recorded, root = Shadows(Arena(str(tmp_path))), Memory(16)
    recorded.sync(7, root, 0, BEFORE)
    root.view[:] = 1
    assert recorded.sync(7, root, 0, WRITTEN)
    root.view[3] = 9
    assert recorded.sync(7, root, 1, BEFORE)
    assert not recorded.sync(7, root, 1, WRITTEN)
    assert set(recorded.pending(1, BEFORE)) == {7}
    recorded.undo(1, WRITTEN)  # nothing
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


def test_a_full_arena_says_so_and_is_empty_when_cleared(tmp_path):
    arena = Arena(str(tmp_path), limit=60_000)
    recorded, root = Shadows(arena), Memory(50_000)
    root.view[:] = 1
    recorded.sync(0, root, 0, BEFORE)
    root.view[:] = 2
    with pytest.raises(ArenaFull):
        recorded.sync(0, root, 0, WRITTEN)
    recorded.clear()
    assert arena.held == 0
    assert not arena.view(0, 50_000).any()


def test_memory_that_was_zero_takes_no_space_before_it_is_written(tmp_path):
    arena = Arena(str(tmp_path))
    recorded, root = Shadows(arena), Memory(8192)
    recorded.sync(0, root, 0, BEFORE)
    assert arena.held == 0
    root.view[:] = 7
    recorded.sync(0, root, 0, WRITTEN)
    assert arena.held == 8192  # the content; the zeros before it are not kept
    recorded.undo(0, WRITTEN)
    assert not recorded.bytes[0].any()


def test_a_part_of_a_root_is_followed_without_looking_at_the_rest(tmp_path):
    arena = Arena(str(tmp_path))
    recorded, root = Shadows(arena), Memory(1 << 20)
    root.view[:] = 1
    recorded.sync(0, root, 0, BEFORE, 0, 4096)
    assert arena.held == 4096
    root.view[100] = 2
    root.view[8192] = 2  # not looked at
    assert recorded.sync(0, root, 0, WRITTEN, 0, 4096)
    assert not recorded.sync(0, root, 1, BEFORE, 8192, 12288)  # met now for the first time, as it is
    recorded.sync_seen(0, root, 2, BEFORE)
    assert recorded.pending(2, BEFORE) == {}
    recorded.undo(0, WRITTEN)
    assert set(recorded.bytes[0][:4096]) == {1}
    assert recorded.bytes[0][8192] == 2


def test_what_is_forgotten_leaves_the_rest_as_it_was(tmp_path):
    recorded, root = Shadows(Arena(str(tmp_path))), Memory(1 << 16)
    recorded.sync(0, root, 0, BEFORE)
    for op in range(2):
        root.view[op << 15 : (op + 1) << 15] = op + 1
        recorded.sync(0, root, op, WRITTEN, op << 15, (op + 1) << 15)
    replayed = Shadows.from_state(recorded.arena, recorded.state())
    replayed.undo(1, WRITTEN)
    assert not replayed.bytes[0][1 << 15 :].any()
    replayed.forget(0, 1 << 15, 1 << 16)
    assert set(replayed.bytes[0][: 1 << 15]) == {1}
    replayed.undo(0, WRITTEN)
    assert not replayed.bytes[0][: 1 << 15].any()
