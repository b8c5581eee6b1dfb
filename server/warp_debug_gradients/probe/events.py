"""What a hook tells of: one outermost call of the program into Warp, numbered; and who is told.

`array.assign` calls `wp.copy`, which is one event, not two. The same program gives the same numbers every time, which is
how a later run finds the place again.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Protocol

COMMAND_ARGUMENTS = "_warp_debug_gradients_arguments"  # attribute on wp.Launch: what it launches with
FROM_HOST = "_warp_debug_gradients_from_host"  # attribute on wp.array: it was made with values (`data`)
NATIVE_FUNCTIONS = {  # functions of wp.utils that run in native code, on no tape -> the arguments that they write
    "array_scan": {"out_array"},
    "array_sum": {"out"},
    "array_inner": {"out"},
    "radix_sort_pairs": {"keys", "values"},
    "segmented_sort_pairs": {"keys", "values"},
    "runlength_encode": {"run_values", "run_lengths", "run_count"},
}


class Event:
    """One outermost call. `subject` is the array, tape or kernel it works on; of a graph, why it was not followed.

    tape: the tape that records it, or None. replay: the call of a captured graph that is made again here.
    function: Warp's own, behind the hook.
    """

    __slots__ = ("args", "function", "index", "kind", "kwargs", "replay", "result", "subject", "tape")

    def __init__(
        self,
        index: int,
        kind: str,
        subject: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tape: Any,
        replay: Any = None,
        function: Any = None,
    ):
        self.function = function
        self.tape = tape
        self.replay = replay
        self.index = index
        self.kind = kind
        self.subject = subject
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """One argument of the call, however it was passed. Position 0 of a method is `self`."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)

    @property
    def launch_arguments(self) -> tuple[Any, Any]:
        """The inputs and outputs of a launch, or those that a recorded command was made with."""
        if self.kind == "command":
            return self.args[0].__dict__.get(COMMAND_ARGUMENTS, ()), ()
        return self.argument(2, "inputs") or (), self.argument(3, "outputs") or ()

    @property
    def native_arguments(self) -> list[tuple[str, Any, bool]]:
        """(name, value, whether it is written) of the arguments of a native function of `wp.utils`."""
        written = NATIVE_FUNCTIONS.get(getattr(self.function, "__name__", ""))
        if written is None:
            return []
        given = inspect.signature(self.function).bind_partial(*self.args, **self.kwargs).arguments
        return [(name, value, name in written) for name, value in given.items()]


class Listener(Protocol):
    def before(self, event: Event) -> None: ...
    def after(self, event: Event) -> None: ...
    def created(self, array: Any) -> None: ...
    def recorded_function(self, tape: Any, function: Callable[..., Any], arrays: Any) -> None: ...
