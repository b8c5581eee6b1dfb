"""Which gradient an update used, from hand-made histories of one parameter."""

import numpy as np
import pytest

from warp_debug_gradients.probe.consumption import (
    Entry,
    consumed,
    spans_updates,
    split_iterations,
    update_events,
    zeroed_under_view,
)


def history(text):
    """Entries from letters: w write, W write of the same values, b backward, r read, R read while a view of an
    earlier read is held, e read of an edited buffer, l read of an earlier array's buffer, z zeroing, Z zeroing under a held view. Events count in tens; the k-th
    backward leaves the gradient [k + 1]."""
    entries, calls = [], 0
    for position, letter in enumerate(text):
        event = 10 * position
        if letter in "wW":
            entries.append(Entry("write", event, unchanged=letter == "W"))
        elif letter == "b":
            gradient = np.array([float(calls + 1)])
            entries.append(Entry("backward", event, calls, gradient, float(calls + 1)))
            calls += 1
        elif letter in "rRe":
            entries.append(Entry("read", event, same=letter != "e", held=letter == "R"))
        elif letter == "l":
            entries.append(Entry("read", event, gradient=np.array([-7.0]), same=False, left_behind=True))
        else:
            entries.append(Entry("zero", event, held=letter == "Z"))
    return entries


def calls_of(iterations):
    return [[e.call for e in entries if e.kind == "backward"] for entries in iterations]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("wbr", [[0]]),
        ("wbrzwbrz", [[0], [1]]),
        ("wwbr", [[0]]),  # a clamp after the update
        ("wbbr", [[0, 1]]),  # two windows
        ("wbzwwbr", [[0], [1]]),
        ("bwb", [[0], [1]]),  # the first write was before the hooks
        ("wr", []),
    ],
)
def test_iterations_are_cut_at_writes(text, calls):
    assert calls_of(split_iterations(history(text))) == calls


def test_an_update_of_another_parameter_ends_the_iteration_where_the_buffer_is_zeroed():
    entries = history("wbzbr")
    assert calls_of(split_iterations(entries)) == [[0, 1]]
    first, second = split_iterations(entries, updates=[15])
    assert calls_of([first, second]) == [[0], [1]]
    assert second[0].borrowed
    assert second[0].event == 15


def test_an_update_of_another_parameter_does_not_cut_a_sum_that_is_still_growing():
    entries = history("wbrbr")
    (whole,) = split_iterations(entries, updates=[25])
    assert spans_updates(whole, [25])
    assert not spans_updates(whole, [5])


def test_parameters_updated_one_after_the_other_share_their_iteration():
    assert calls_of(split_iterations(history("wbrwzbr"), updates=[12])) == [[0], [1]]


def test_updates_are_writes_of_new_values_after_a_backward():
    assert update_events(history("wbrwbrW")) == [30]


@pytest.mark.parametrize(
    ("text", "when", "calls", "gradient"),
    [
        ("wbr", "after", [0], 1.0),
        ("wrb", "before", [0], None),  # read before backward: stale
        ("wRb", "unseen", [0], 1.0),  # ... through a view that sees what backward leaves
        ("wbz", "unseen", [0], 1.0),
        ("wbzr", "zeroed", [0], 0.0),
        ("wb", "unseen", [0], 1.0),
        ("wbbr", "after", [0, 1], 2.0),  # the buffer accumulates by itself
        ("wbrzbr", "after", [0, 1], 3.0),  # read and zeroed window by window
        ("wbzbr", "after", [1], 2.0),  # the first window is thrown away
        ("wbrr", "after", [0], 1.0),  # logged, then used
        ("wbrbr", "after", [0, 1], 2.0),  # the second read sees both
    ],
)
def test_what_the_update_used(text, when, calls, gradient):
    used = consumed(history(text))
    assert (used.when, used.calls) == (when, calls)
    if gradient is None:
        assert used.gradient is None
    else:
        assert used.gradient == pytest.approx([gradient])


def test_a_discarded_window_is_named():
    assert consumed(history("wbzbr")).discarded == [0]
    assert consumed(history("wbrzbr")).discarded == []


def test_a_gradient_that_is_clipped_in_place_is_taken_as_backward_left_it():
    used = consumed(history("wbre"))
    assert used.edited
    assert used.gradient == pytest.approx([1.0])


def test_a_view_zeroed_before_its_use_shows_in_a_parameter_that_never_moves():
    assert zeroed_under_view(history("wbRZWbRZWbRZ"))
    assert not zeroed_under_view(history("wbRZwbRZ"))
    assert not zeroed_under_view(history("wbrzWbrz"))  # nobody holds a view
    assert not zeroed_under_view(history("wb"))


@pytest.mark.parametrize(
    ("text", "calls", "parts"),
    [
        ("bbr", [0, 1], 1),  # a warm-up whose gradient stays in the buffer, or two batches: the same history
        ("bzbr", [1], 1),  # a warm-up that is zeroed
        ("wbrbr", [0, 1], 1),  # logged after each window, summed in the buffer
        ("wbrzbr", [0, 1], 2),  # zeroed between two reads: summed by the program, or logged and lost
    ],
)
def test_windows_that_are_read_one_by_one(text, calls, parts):
    (iteration,) = split_iterations(history(text))
    used = consumed(iteration)
    assert (used.calls, used.parts) == (calls, parts)


@pytest.mark.parametrize(
    ("text", "when", "used"), [("wbl", "left_behind", -7.0), ("wbrl", "after", 1.0), ("wblr", "after", 1.0)]
)
def test_the_gradient_of_an_array_that_was_left_behind_counts_where_no_other_is_read(text, when, used):
    found = consumed(history(text))
    assert (found.when, list(found.gradient), found.calls) == (when, [used], [0])
