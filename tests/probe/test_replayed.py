"""The recording of a stretch in place of what a run kept at its end: going back finds every content where it was."""

import numpy as np

from warp_debug_gradients.probe.replayed import spliced
from warp_debug_gradients.probe.shadows import BEFORE, WRITTEN, Arena, Shadows

SIZE = 64


class Root:
    """An array as `Shadows` sees it."""

    def __init__(self):
        self.content = np.zeros(SIZE, np.uint8)
        self.ptr, self.capacity = self.content.ctypes.data, SIZE


def test_going_back_over_a_stretch_made_again(tmp_path):
    """Root 0 outlives the stretch [2, 5); the second half of root 1 and all of root 2 do not."""
    arena, roots = Arena(str(tmp_path)), [Root(), Root(), Root()]
    run = Shadows(arena)
    for number in (0, 1):
        run.sync(number, roots[number], 0, BEFORE)
    roots[0].content[:], roots[1].content[:32] = 1, 7
    for number in (0, 1):
        run.sync(number, roots[number], 0, WRITTEN, 0, SIZE if number == 0 else 32)  # the first stretch, [0, 2)
    start = [root.content.copy() for root in roots]

    roots[0].content[:] = 5
    run.sync(0, roots[0], 2, WRITTEN)  # the end of the stretch, at its first operation
    roots[0].content[:] = 6
    run.sync(0, roots[0], 5, WRITTEN)
    state = run.state()

    arena.resume(state["used"], state["held"])
    inner, left = Shadows(arena), []
    for number, root in enumerate(roots):
        root.content[:] = start[number]
        inner.sync(number, root, 2, BEFORE)
    for op in (2, 3, 4):
        roots[0].content[:], roots[1].content[32:], roots[2].content[:] = op + 1, 10 * op, 20 * op
        for number, root in enumerate(roots):
            inner.sync(number, root, op, WRITTEN)
        left.append([root.content.copy() for root in roots])

    made = spliced(state, inner.state(), range(2, 5), [(1, 32, SIZE), (2, 0, SIZE)], end=6)
    back = Shadows.from_state(arena, made)
    assert back.bytes[0][0] == 6
    back.undo(5, WRITTEN)
    back.undo(5, BEFORE)
    for op, contents in ((4, left[2]), (3, left[1]), (2, left[0])):
        for number in range(3):
            assert np.array_equal(back.bytes[number], contents[number]), (op, number)
        back.undo(op, WRITTEN)
        back.undo(op, BEFORE)
    for number in range(3):
        assert np.array_equal(back.bytes[number], start[number])
    back.undo(0, WRITTEN)
    assert not back.bytes[0].any()
