"""Overwritten reads, from small records: no Warp."""

from types import SimpleNamespace

import pytest

from warp_debug_gradients.probe.clobbered import Clobbered
from warp_debug_gradients.probe.recorded import Access, Operation

WHOLE = SimpleNamespace(is_contiguous=True)
COLUMN = SimpleNamespace(is_contiguous=False)


def touches(label, number=0, low=0, high=40, array=WHOLE, **how):
    usage = tuple(how.get(name, False) for name in ("read", "written", "accumulated", "neighbours"))
    return Access(label, array, usage, base=None, number=number, low=low, high=high)


READ = touches("u", read=True, neighbours=True)


@pytest.mark.parametrize(
    ("read", "other", "races"),
    [
        (READ, touches("v", written=True), True),
        (READ, touches("v", written=True, number=1), False),  # another array
        (READ, touches("v", written=True, low=40, high=80), False),  # another part of it
        (READ, touches("v", written=True, accumulated=True), False),  # additions commute
        (READ, touches("v", written=True, array=COLUMN), False),  # perhaps no element in common
        (touches("u", read=True), touches("v", written=True), False),  # each thread its own element
        (touches("u", read=True, written=True, neighbours=True), touches("v", number=1, written=True), True),
    ],
)
def test_threads_that_read_what_others_write(read, other, races):
    operation = Operation(3, "crawl", None, [read, other])
    assert Clobbered(operation, read, 1.0, 1.0, read.written, None, None).races is races
