"""A tape that ends in what the tape before began with, on stand-ins for Warp's arrays."""

from types import SimpleNamespace

import numpy as np
import pytest

from warp_debug_gradients.probe import boundaries
from warp_debug_gradients.probe.boundaries import Boundaries
from warp_debug_gradients.probe.leaves import Leaf


class Array:
    """A NumPy array with a gradient, as far as boundaries.py looks at it."""

    def __init__(self, values, gradient=None, dtype=np.float32):
        self.values = np.asarray(values, dtype=dtype)
        self._grad = None if gradient is None else Array(gradient, dtype=dtype)
        self.size, self.shape, self.capacity = self.values.size, self.values.shape, self.values.nbytes


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    monkeypatch.setattr(boundaries, "scalars", lambda array: array.values.reshape(-1).copy())
    monkeypatch.setattr(boundaries, "host", lambda array: array.values)
    monkeypatch.setattr(boundaries, "checksum", lambda array: hash(array.values.tobytes()))
    monkeypatch.setattr(boundaries, "describe_dtype", lambda array: str(array.values.dtype))
    monkeypatch.setattr(boundaries, "is_differentiable", lambda array: array.values.dtype.kind == "f")


def joints(begin, end, adjoint=(0.5, -1.0, 2.0), grads=None, leaves=(), constants=(), recent=()):
    """(how, norm) of what a tape that wrote `end` is handed of the adjoint of `begin`."""
    first = Array(begin)
    leaf = SimpleNamespace(
        content=hash(first.values.tobytes()),
        array=lambda: first,
        gradient=None if adjoint is None else np.asarray(adjoint, dtype=np.float32),
    )
    memory = Boundaries(SimpleNamespace(serial=id))
    memory.begun([leaf])
    state = SimpleNamespace(
        recent=dict(enumerate([end, *recent])), leaves=dict(enumerate(leaves)), constants=dict(enumerate(constants))
    )
    return [(joint.how, pytest.approx(joint.norm)) for joint in memory.joints(state, grads)]


STATE = [1.0, 2.5, -3.0]
NORM = np.linalg.norm([0.5, -1.0, 2.0])
ZEROS = [0.0, 0.0, 0.0]


def test_nothing_seeds_the_end_of_a_segment():
    assert joints(STATE, Array(STATE, ZEROS)) == [("dropped", NORM)]
    end = Array(STATE, ZEROS)
    assert joints(STATE, end, grads={end: Array(ZEROS)}) == [("dropped", NORM)]


def test_an_adjoint_is_handed_on_with_backward_or_in_the_buffer():
    end = Array(STATE, ZEROS)
    assert joints(STATE, end, grads={end: Array([0.5, -1.0, 2.0])}) == [("seed", NORM)]
    assert joints(STATE, Array(STATE, [0.5, -1.0, 2.0])) == [("seed", NORM)]
    assert joints(STATE, Array(STATE, ZEROS), recent=[Array(STATE, [0.5, -1.0, 2.0])]) == [
        ("seed", NORM)
    ]  # a copy of it


@pytest.mark.parametrize("where", ["leaves", "constants"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_adjoint_is_a_factor_of_the_loss(where, dtype):
    factor = Array([0.5, -1.0, 2.0], ZEROS if where == "leaves" else None, dtype)
    assert joints(STATE, Array(STATE, ZEROS), **{where: [factor]}) == [("product", NORM)]
    others = [Array([0.5, -1.0, 2.1]), Array([3], dtype=np.int32), Array([0.5, -1.0])]
    assert joints(STATE, Array(STATE, ZEROS), constants=others) == [("dropped", NORM)]


def test_a_segment_on_which_nothing_depends_drops_nothing():
    assert joints(STATE, Array(STATE, ZEROS), adjoint=ZEROS) == [("nothing", 0.0)]
    assert joints(STATE, Array(STATE, ZEROS), adjoint=None) == [("nothing", 0.0)]


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (STATE, [1.0, 2.5, -3.1]),
        (STATE, [[1.0, 2.5, -3.0]]),  # another shape
        (ZEROS, ZEROS),  # a content that many arrays have
        ([2.0], [2.0]),
        ([np.nan, 1.0, 2.0], [np.nan, 1.0, 2.0]),
    ],
)
def test_another_content_is_no_boundary(begin, end):
    assert joints(begin, Array(end, np.zeros_like(end))) == []


def test_a_single_number_is_a_state_too():
    assert joints([0.3], Array([0.3], [0.0]), adjoint=[2.0]) == [("dropped", 2.0)]


def test_a_state_that_the_tape_still_reads_is_no_segments_copy():
    """Multiple shooting from a rollout: the next segment's initial state is trained, and this tape compares its end with it."""
    assert joints(STATE, Array(STATE, ZEROS), leaves=[Array(STATE, ZEROS)]) == []


@pytest.mark.parametrize(
    ("calls", "resumed", "expected"),
    [
        (12, 8, True),  # four iterations of three segments
        (8, 4, True),  # four of two
        (2, 1, True),
        (12, 2, False),  # the first iteration only: its nodes are trained apart afterwards
        (12, 0, False),
        (1, 0, False),
    ],
)
def test_what_most_tapes_end_in_is_no_parameter(calls, resumed, expected):
    leaf = Leaf.__new__(Leaf)
    leaf.uses, leaf.resumed = [{"call": call} for call in range(calls)], resumed
    assert leaf.begins_segments(calls) is expected
