"""A seed that an earlier backward pass left is a link of a chain, on stand-ins for Warp's arrays."""

from types import SimpleNamespace

import numpy as np
import pytest

from warp_debug_gradients.probe import seeds
from warp_debug_gradients.probe.seeds import ReadGradients, SeedMemory, origin


class Array:
    """A NumPy array with a gradient, as far as seeds.py looks at it."""

    def __init__(self, values, gradient=None):
        self.values = np.asarray(values, dtype=float)
        self._grad = None if gradient is None else Array(gradient)
        self.size = self.values.size


class Registry:
    """Numbers arrays."""

    def serial(self, array):
        return id(array)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    monkeypatch.setattr(seeds, "scalars", lambda array: array.values.copy())


@pytest.fixture
def read():
    return ReadGradients()


def leaf(array, gradient):
    return SimpleNamespace(serial=id(array), gradient=gradient)


STATE = Array([1.0, 2.0], gradient=[3.0, 4.0])
END = Array([5.0, 6.0])


def test_a_copied_and_then_zeroed_gradient_is_a_link(read):
    read.note(STATE, Registry())
    seed = Array([3.0, 4.0])
    known = leaf(STATE, None)  # zeroed since
    assert origin({END: seed}, [END], [known], read) == (True, [known], [])
    assert origin({END: seed}, [END], [], read) == (True, [], [])  # an intermediate's: no leaf


def test_a_seed_of_another_origin_states_an_objective(read):
    read.note(STATE, Registry())
    assert origin({END: Array([1.0, 1.0])}, [END], [], read) == (False, [], [END])


def test_a_running_cost_beside_a_link_states_a_term(read):
    read.note(STATE, Registry())
    other = Array([0.0, 0.0])
    both = {END: Array([3.0, 4.0]), other: Array([1.0, 0.5])}
    assert origin(both, [END, other], [], read) == (True, [], [other])


def test_ones_are_no_trace_of_a_link(read):
    """Every sum that a loss goes through is left with a one: the next loss is not seeded with that."""
    cost, known = Array([0.5]), leaf(STATE, np.array([1.0]))
    assert origin({cost: Array([1.0])}, [cost], [known], read) == (False, [], [cost])
    unit = Array([0.0], gradient=[1.0])
    read.note(unit, Registry())  # but one that the program has read may be handed on
    assert origin({cost: Array([1.0])}, [cost], [], read) == (True, [], [])


def test_a_seed_of_zeros_says_nothing(read):
    read.note(STATE, Registry())
    other = Array([0.0, 0.0])
    assert origin({END: Array([0.0, 0.0])}, [END], [], read) == (False, [], [])
    assert origin({END: Array([3.0, 4.0]), other: Array([0.0, 0.0])}, [END, other], [], read) == (True, [], [])


def test_only_the_last_reads_are_kept(read, monkeypatch):
    monkeypatch.setattr(seeds, "MOST_LINKS", 2)
    states = [Array([0.0], gradient=[float(k)]) for k in (1, 2, 3)]
    for state in states:
        read.note(state, Registry())
    assert read.hold(np.array([1.0])) is None
    assert read.hold(np.array([3.0])) == id(states[2])


def test_the_same_seed_again_is_no_link():
    """`loss.grad.fill_(2)` before every backward: the array that holds a two is the loss itself."""
    memory, loss = SeedMemory(), Array([0.5], gradient=[2.0])
    known = leaf(loss, np.array([2.0]))
    for expected in (set(), {id(loss)}):
        again = memory.again([loss], None, Registry())
        assert again == expected
    assert origin(None, [loss], [known], None, again) == (False, [], [loss])


def test_a_state_that_is_seeded_with_what_it_was_left_is_a_link():
    """Segments that all end in the same array: each is seeded with another gradient."""
    memory, state = SeedMemory(), Array([0.5], gradient=[2.0])
    memory.again([state], None, Registry())
    state._grad = Array([1.5])
    again = memory.again([state], None, Registry())
    known = leaf(state, np.array([1.5]))
    assert origin(None, [state], [known], None, again) == (True, [known], [])


def test_a_constant_seed_of_another_output_is_no_link():
    """Each batch has a loss of its own; that of the batch before still holds what seeds this one."""
    memory, losses = SeedMemory(), [Array([0.5], gradient=[0.25]), Array([0.7], gradient=[0.25])]
    assert memory.again(losses[:1], None, Registry()) == set()
    again = memory.again(losses[1:], None, Registry())
    assert again == {id(losses[0])}
    known = leaf(losses[0], np.array([0.25]))
    assert origin(None, losses[1:], [known], None, again) == (False, [], losses[1:])


def test_only_the_last_seeds_are_kept(monkeypatch):
    monkeypatch.setattr(seeds, "MOST_LINKS", 2)
    memory, outputs = SeedMemory(), [Array([0.0], gradient=[float(k)]) for k in range(4)]
    for output in outputs:
        memory.again([output], None, Registry())
    assert memory.again(outputs[:1], None, Registry()) == set()
    assert memory.again(outputs[3:], None, Registry()) == {id(outputs[3])}
