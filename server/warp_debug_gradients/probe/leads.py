"""Where an iteration begins: what ran between an update of the parameter and the next recording belongs to one of two.

After an update the program may still work for the iteration that ends (a moving average of the parameters, a log)
and then prepare the next one (reset buffers, run a part of the forward pass outside the tape). What also ran before
another iteration's recording, called from the same lines, is preparation; before it lies what ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .names import Origins

LONGEST = 2000  # events before a recording that are remembered; of a longer stretch nothing is concluded

Lead = list[tuple[int, int]]  # (event, site) in the order in which they happened; a site is a stack of source lines


class Leads:
    """Collects the events outside any tape since the last backward call."""

    def __init__(self, origins: Origins):
        self._origins = origins
        self._events: deque[tuple[int, int]] = deque(maxlen=LONGEST)

    def note(self, event: int) -> None:
        site, frame = 0, self._origins.frame(3)
        while frame is not None:
            if self._origins.is_user(frame.f_code):
                site = hash((site, frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        self._events.append((event, site))

    def take(self) -> Lead:
        """The events since the last call, which are then forgotten; empty where there were too many."""
        found = [] if len(self._events) == LONGEST else list(self._events)
        self._events.clear()
        return found


def beginning(lead: Lead, others: Iterable[Lead], write: int, first_use: int) -> int:
    """The event before which the iteration's own values of the parameter are in place.

    lead, others: the stretches before this iteration's first recording and before those of other iterations.
    write, first_use: events of the parameter's last write and of its first use on the tape (-1: none).
    """
    sites = {site for other in others for _, site in other}
    between = [(event, site) for event, site in lead if write < event <= first_use]
    begin = first_use
    for event, site in reversed(between):
        if site not in sites:
            # nothing in common: the iterations were not called from the same lines, and nothing is known
            return begin if begin != first_use else write + 1
        begin = event
    return write + 1


def captured_until(captures: Iterable[tuple[int, int]], write: int, first_use: int, first_touch: int | None) -> int:
    """Where the last capture of a graph ends before which nothing has read the parameter since its last write; or -1.

    A capture records and executes nothing: an iteration that begins behind it is the same, and need not capture again.
    captures: the events between which each recorded. first_touch: of the first read outside a tape, if any.
    """
    bound = first_use if first_touch is None else min(first_use, first_touch)
    return max((end for began, end in captures if write < began and end <= bound), default=-1)
