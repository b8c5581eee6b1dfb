"""Byte ranges against a set of bytes."""

from hypothesis import given
from hypothesis import strategies as st

from warp_debug_gradients.probe.registry import Ranges

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=25)


def filled(spans):
    ranges, content = Ranges(), set()
    for low, high in spans:
        ranges.add(low, high)
        content |= set(range(low, high))
    return ranges, content


@given(SPANS, st.integers(0, 60), st.integers(0, 60))
def test_touches_says_whether_any_byte_was_added(spans, low, high):
    ranges, content = filled(spans)
    assert ranges.touches(low, high) == bool(content & set(range(low, high)))


@given(SPANS)
def test_ranges_stay_sorted_and_disjoint(spans):
    ranges, content = filled(spans)
    kept = list(zip(ranges._starts, ranges._ends, strict=True))
    assert all(low < high for low, high in kept)
    assert all(before[1] < after[0] for before, after in zip(kept, kept[1:], strict=False))
    assert sum(high - low for low, high in kept) == len(content)
