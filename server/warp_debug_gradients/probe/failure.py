"""An exception of the user's program -> the `error` object of trace.json."""

import os
import types

PROBE_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


def is_probe_file(filename):
    return os.path.abspath(filename).startswith(PROBE_FOLDER)


def trim_exception(error, _seen=None):
    """Takes the probe's own frames out of an exception's traceback and those of its causes, in place."""
    seen = _seen if _seen is not None else set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = trim_traceback(error.__traceback__)
        for member in getattr(error, "exceptions", None) or ():
            if isinstance(member, BaseException):
                trim_exception(member, seen)
        trim_exception(error.__cause__, seen)
        error = error.__context__


def trim_traceback(traceback):
    """The same traceback without the probe's frames.

    Python hides its import machinery (`<frozen importlib...>`) from tracebacks, but not where a frame of
    the probe stands in between: those go too.
    """
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    hidden = [is_probe_file(each.tb_frame.f_code.co_filename) for each in entries]
    if any(hidden):
        for order in (range(1, len(entries)), range(len(entries) - 2, -1, -1)):
            step = -1 if order.step == 1 else 1
            for i in order:
                frozen = entries[i].tb_frame.f_code.co_filename.startswith("<frozen importlib")
                hidden[i] = hidden[i] or (frozen and hidden[i + step])
    kept = None
    for entry, hide in zip(reversed(entries), reversed(hidden), strict=True):
        if not hide:
            kept = types.TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept
