"""Where an iteration begins, from the source lines of what ran before its recording."""

from warp_debug_gradients.probe.leads import beginning, captured_until
from warp_debug_gradients.probe.tapes import SHOWN

SETUP, EMA, LOG, RESET, TAPE = range(5)


def lead(*sites, first=100):
    return [(first + k, site) for k, site in enumerate(sites)]


def test_what_follows_only_an_update_belongs_to_the_iteration_that_ends():
    first, second = lead(SETUP, SETUP, RESET, TAPE), lead(EMA, LOG, RESET, TAPE)
    assert beginning(second, [first], write=99, first_use=110) == 102
    assert beginning(first, [second], write=100, first_use=110) == 102


def test_where_both_have_the_same_lead_the_iteration_begins_at_the_write():
    again = lead(RESET, RESET, TAPE)
    assert beginning(again, [lead(RESET, TAPE)], write=99, first_use=110) == 100


def test_a_write_inside_the_lead_bounds_it():
    assert beginning(lead(EMA, RESET, TAPE), [lead(SETUP, RESET, TAPE)], write=101, first_use=110) == 102


def test_nothing_is_concluded_from_one_iteration_or_from_other_call_sites():
    alone = lead(SETUP, RESET, TAPE)
    assert beginning(alone, [], write=99, first_use=110) == 100
    assert beginning(alone, [lead(7, 8, 9)], write=99, first_use=110) == 100


def test_events_after_the_first_use_do_not_count():
    mixed = [*lead(SETUP, RESET, TAPE), (120, 77)]  # outside the tape, between its end and backward
    assert beginning(mixed, [lead(LOG, RESET, TAPE)], write=99, first_use=110) == 101


def test_a_capture_that_nothing_read_before_is_left_behind():
    captures = [(102, 140), (140, 180), (400, 500)]
    assert captured_until(captures, write=99, first_use=200, first_touch=None) == 180
    assert captured_until(captures, write=99, first_use=200, first_touch=170) == 140
    assert captured_until(captures, write=99, first_use=200, first_touch=101) == -1
    assert captured_until(captures, write=120, first_use=200, first_touch=None) == 180
    assert captured_until(captures, write=190, first_use=200, first_touch=None) == -1
    assert captured_until(captures, write=99, first_use=200, first_touch=SHOWN) == -1
