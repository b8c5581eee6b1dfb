"""Patches Warp's public entry points and numbers what the user's program does with them.

An *event* is an outermost call: `array.assign` calls `wp.copy`, which is one event, not two. The same
program gives the same numbers every time, which is how a later run finds the place again.
A listener gets `before(event)`, `after(event)` and `created(array)`; this file decides nothing.
"""

from __future__ import annotations

import functools
import inspect
import sys
from threading import get_ident
from typing import Any, Callable, Iterable, NamedTuple, Protocol

from .arrays import IS_QUIET
from .graphs import Graphs

COMMAND_ARGUMENTS = "_warp_debug_gradients_arguments"  # attribute on wp.Launch: what it launches with
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
        args: tuple,
        kwargs: dict,
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


class Patch(NamedTuple):
    """An attribute of Warp's that a wrapper has taken the place of."""

    owner: Any
    name: str
    original: Any
    wrapper: Any


class Listener(Protocol):
    def before(self, event: Event) -> None: ...
    def after(self, event: Event) -> None: ...
    def created(self, array: Any) -> None: ...
    def recorded_function(self, tape: Any, function: Callable, arrays: Any) -> None: ...


class Hub:
    """Counts events and passes them on. Events of other threads and of the probe itself are not seen."""

    def __init__(self, listener: Listener, context: Any, place_of_caller: Callable[[], Any] = lambda: None):
        self.listener = listener
        self.context = context
        self.graphs = Graphs(context)
        self.place_of_caller = place_of_caller
        self.count = 0
        self.depth = 0
        self.compile_seconds = 0.0
        self._thread = get_ident()
        self._following = False
        self.idle_before = 0  # events below this number are only counted, but for backward: nobody waits for them
        self._patches: list[Patch] = []

    def patch(self, owner: Any, name: str, wrapper: Any) -> None:
        """Put `wrapper` in the place of an attribute of Warp's."""
        self._patches.append(Patch(owner, name, owner.__dict__.get(name, getattr(owner, name)), wrapper))
        setattr(owner, name, wrapper)

    def stand_down(self, creations: bool) -> None:
        """From here on only backward is waited for: Warp's own functions come back, and cost nothing.

        creations: the numbers of arrays still to be made are needed. Captures of graphs stay watched, since a
        backward may be called inside one; the first one has everything watched again.
        """
        if self.graphs.in_use:
            return
        self.idle_before = sys.maxsize  # for those that hold a wrapper under a name of their own
        for patch in self._patches:
            if patch.name not in _ALWAYS_PATCHED and not (creations and patch.name == "__init__"):
                setattr(patch.owner, patch.name, patch.original)

    def stand_up(self) -> None:
        """Undo `stand_down`, but for the events' numbers."""
        for patch in self._patches:
            setattr(patch.owner, patch.name, patch.wrapper)

    def follow_thread(self) -> None:
        """A tape is entered: the first thread that does so is the one that trains, and the one that is watched."""
        if not self._following and self.depth == 0:
            self._thread, self._following = get_ident(), True

    def unseen(self) -> bool:
        return self.depth > 0 or IS_QUIET[0] or get_ident() != self._thread

    def is_idle(self, kind: str) -> bool:
        return kind != "backward" and self.graphs.active is None

    def count_only(self, original: Callable, args: tuple, kwargs: dict) -> Any:
        """An event that nobody waits for: the fast path of evaluations."""
        self.count += 1
        self.depth += 1
        try:
            return original(*args, **kwargs)
        finally:
            self.depth -= 1

    def run(self, kind: str, subject: Any, original: Callable, args: tuple, kwargs: dict, replay: Any = None) -> Any:
        """Make a call as an event; during a capture, keep it for the launches of the graph instead."""
        if self.graphs.active is not None:
            self.count += 1
            self.depth += 1
            try:
                return self.graphs.record(kind, subject, original, args, kwargs, self.place_of_caller())
            finally:
                self.depth -= 1
        runtime = self.context.runtime
        if replay is not None:
            tape = replay.tape
        elif kind == "record_func":  # it may be called outside of the tape's `with`
            tape = subject
        else:
            tape = runtime.tape if runtime is not None else None
        function = replay.original if replay is not None else original
        event = Event(self.count, kind, subject, args, kwargs, tape, replay, function)
        self.count += 1
        self.listener.before(event)  # may fork; a child may end here
        self.depth += 1
        try:
            event.result = original(*args, **kwargs)
        finally:
            self.depth -= 1
        self.listener.after(event)
        return event.result

    def launch_graph(self, graph: Any, original: Callable, args: tuple, kwargs: dict) -> Any:
        """Make the calls of a captured graph again, each as an event."""
        capture = self.graphs.of(graph)
        if capture is None:
            return self.run("capture_launch", self.graphs.not_followed(graph), original, args, kwargs)
        self._make_again(capture.calls)
        return None

    def _make_again(self, calls: Iterable[Any]) -> None:
        for call in calls:
            if call.branches:
                for branch in self.graphs.chosen(call):
                    self._make_again(branch)
                continue
            with self.graphs.replaying(call) as function:
                self.run(call.kind, call.subject, function, call.args, call.kwargs, replay=call)


# What a run that waits for nothing but backward goes on watching (see Hub.stand_down).
_CAPTURES = ("capture_begin", "capture_end", "capture_launch", "capture_if", "capture_while")
_ALWAYS_PATCHED = frozenset({"backward", "__enter__", *_CAPTURES})  # a tape may be entered in another thread


def _argument(args: tuple, kwargs: dict, position: int, name: str) -> Any:
    return args[position] if len(args) > position else kwargs.get(name)


def install(wp: Any, listener: Listener, place_of_caller: Callable[[], Any] = lambda: None) -> Hub:
    """Patch the imported `warp` module; returns the hub whose `count` numbers the events.

    place_of_caller: the user's own line behind a call (for calls that are made again later).
    """
    context = wp._src.context
    hub = Hub(listener, context, place_of_caller)
    _patch_launch(wp, context, hub)
    _patch_array(wp, hub)
    _patch_tape(wp, hub)
    _patch_functions(wp, hub)
    _patch_native(wp, hub)
    _patch_capture(wp, hub)
    _time_compilation(context, hub)
    return hub


def _patch_launch(wp: Any, context: Any, hub: Hub) -> None:
    original = wp.launch
    runtime_of = context

    @functools.wraps(original)
    def launch(*args: Any, **kwargs: Any) -> Any:
        if hub.unseen():
            return original(*args, **kwargs)
        if kwargs.get("record_cmd"):  # nothing runs yet; Launch.launch is the event
            command = original(*args, **kwargs)
            inputs, outputs = (_argument(args, kwargs, k, name) or () for k, name in ((2, "inputs"), (3, "outputs")))
            command.__dict__[COMMAND_ARGUMENTS] = [*inputs, *outputs]
            return command
        if hub.count < hub.idle_before and hub.is_idle("launch"):
            return hub.count_only(original, args, kwargs)
        tape = runtime_of.runtime.tape if runtime_of.runtime is not None else None
        recorded = len(tape.launches) if tape is not None else 0
        result = hub.run("launch", _argument(args, kwargs, 0, "kernel"), original, args, kwargs)
        if tape is not None and len(tape.launches) > recorded:
            _restore_caller(tape.launches[-1], sys._getframe(1))
        return result

    # wp.launch_tiled calls the name inside context; everything else calls the attribute of the package
    if context.launch is original:
        hub.patch(context, "launch", launch)
    hub.patch(wp, "launch", launch)

    command = getattr(wp, "Launch", None) or context.Launch
    original_command = command.launch

    @functools.wraps(original_command)
    def launch_command(self: Any, *args: Any, **kwargs: Any) -> Any:
        if hub.unseen():
            return original_command(self, *args, **kwargs)
        if hub.count < hub.idle_before and hub.is_idle("command"):
            return hub.count_only(original_command, (self, *args), kwargs)
        return hub.run("command", self.kernel, original_command, (self, *args), kwargs)

    hub.patch(command, "launch", launch_command)
    if hasattr(command, "set_param_at_index"):
        _follow_parameters(command, hub)


def _follow_parameters(command: Any, hub: Hub) -> None:
    """Keep what a recorded command is launched with, when the program sets another argument."""
    original = command.set_param_at_index

    @functools.wraps(original)
    def set_param_at_index(self: Any, index: int, value: Any, *args: Any, **kwargs: Any) -> Any:
        known = self.__dict__.get(COMMAND_ARGUMENTS)
        if known is not None and index < len(known):
            known[index] = value
        return original(self, index, value, *args, **kwargs)

    hub.patch(command, "set_param_at_index", set_param_at_index)


def _restore_caller(entry: Any, frame: Any) -> None:
    """Warp notes the frame above wp.launch, which is now ours: put the true one back."""
    metadata = entry[7] if isinstance(entry, list) and len(entry) > 7 else None
    if isinstance(metadata, dict) and isinstance(metadata.get("caller"), dict):
        metadata["caller"].update(file=frame.f_code.co_filename, lineno=frame.f_lineno, func=frame.f_code.co_name)


def _patch_array(wp: Any, hub: Hub) -> None:
    array = wp.array
    original_init = array.__init__

    @functools.wraps(original_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if IS_QUIET[0]:
            original_init(self, *args, **kwargs)
            return
        if hub.unseen():
            original_init(self, *args, **kwargs)
        elif hub.count < hub.idle_before and hub.is_idle("create"):
            hub.count_only(original_init, (self, *args), kwargs)
        else:
            hub.run("create", self, original_init, (self, *args), kwargs)
        if self.ptr is not None:
            hub.listener.created(self)

    hub.patch(array, "__init__", init)
    for name in ("zero_", "fill_", "assign", "numpy"):
        _patch_method(array, name, name, hub)
    exposed = array.__dict__.get("__array_interface__")
    if isinstance(exposed, property) and exposed.fget is not None:  # np.asarray(array.grad)
        getter = exposed.fget

        def interface(self: Any) -> Any:
            if hub.unseen():
                return getter(self)
            return hub.run("numpy", self, getter, (self,), {})

        hub.patch(array, "__array_interface__", property(interface, doc=exposed.__doc__))


def _patch_tape(wp: Any, hub: Hub) -> None:
    for name, kind in (
        ("__enter__", "tape_enter"),
        ("__exit__", "tape_exit"),
        ("backward", "backward"),
        ("zero", "tape_zero"),
        ("reset", "tape_reset"),
    ):
        _patch_method(wp.Tape, name, kind, hub)
    original = wp.Tape.record_func

    @functools.wraps(original)
    def record_func(self: Any, backward: Any, arrays: Any) -> Any:
        if not IS_QUIET[0]:
            hub.listener.recorded_function(self, backward, arrays)
        if hub.unseen():  # a part of wp.copy
            return original(self, backward, arrays)
        if hub.count < hub.idle_before and hub.is_idle("record_func"):
            return hub.count_only(original, (self, backward, arrays), {})
        return hub.run("record_func", self, original, (self, backward, arrays), {})

    hub.patch(wp.Tape, "record_func", record_func)


def _patch_method(owner: Any, name: str, kind: str, hub: Hub) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kind == "tape_enter":
            hub.follow_thread()
        if hub.unseen():
            return original(self, *args, **kwargs)
        if hub.count < hub.idle_before and hub.is_idle(kind):
            return hub.count_only(original, (self, *args), kwargs)
        return hub.run(kind, self, original, (self, *args), kwargs)

    hub.patch(owner, name, method)


# module attribute -> (kind of event, position and name of the argument it works on)
_FUNCTIONS = {
    "copy": ("copy", 0, "dest"),
    "to_torch": ("bridge", 0, "a"),
    "to_jax": ("bridge", 0, "a"),
    "to_paddle": ("bridge", 0, "a"),
    "to_dlpack": ("bridge", 0, "wp_array"),
}


def _patch_functions(wp: Any, hub: Hub) -> None:
    for name, (kind, position, argument) in _FUNCTIONS.items():
        original = getattr(wp, name, None)
        if original is not None:
            hub.patch(wp, name, _wrapped_function(original, kind, position, argument, hub))


def _wrapped_function(original: Callable, kind: str, position: int, argument: str, hub: Hub) -> Callable:
    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if hub.unseen():
            return original(*args, **kwargs)
        if hub.count < hub.idle_before and hub.is_idle(kind):
            return hub.count_only(original, args, kwargs)
        return hub.run(kind, _argument(args, kwargs, position, argument), original, args, kwargs)

    return function


# Methods that Warp runs in native code, on no tape: a captured graph holds them, and needs them.
_NATIVE_METHODS = (("HashGrid", "build"), ("Mesh", "refit"), ("Bvh", "refit"), ("Bvh", "rebuild"))


def _patch_native(wp: Any, hub: Hub) -> None:
    for owner_name, name in _NATIVE_METHODS:
        owner = getattr(wp, owner_name, None)
        if owner is not None and hasattr(owner, name):
            _patch_method(owner, name, "native", hub)
    for name in NATIVE_FUNCTIONS:
        original = getattr(wp.utils, name, None)
        if original is not None:
            hub.patch(wp.utils, name, _wrapped_function(original, "native", 0, "array", hub))


def _patch_capture(wp: Any, hub: Hub) -> None:
    names = _CAPTURES[:3]
    if not all(hasattr(wp, name) for name in names):
        return
    begin, end, launch = (getattr(wp, name) for name in names)

    @functools.wraps(begin)
    def capture_begin(*args: Any, **kwargs: Any) -> Any:
        result = begin(*args, **kwargs)
        if not hub.unseen():
            hub.stand_up()
            hub.graphs.begin()
        return result

    @functools.wraps(end)
    def capture_end(*args: Any, **kwargs: Any) -> Any:
        graph = end(*args, **kwargs)
        if not hub.unseen():
            hub.graphs.end(graph)
        return graph

    @functools.wraps(launch)
    def capture_launch(*args: Any, **kwargs: Any) -> Any:
        if hub.unseen():
            return launch(*args, **kwargs)
        return hub.launch_graph(_argument(args, kwargs, 0, "graph"), launch, args, kwargs)

    for name, wrapper in zip(names, (capture_begin, capture_end, capture_launch), strict=True):
        hub.patch(wp, name, wrapper)
    for name, bodies in (("capture_if", ("on_true", "on_false")), ("capture_while", ("while_body",))):
        original = getattr(wp, name, None)
        if original is not None:
            hub.patch(wp, name, _conditional(original, name, bodies, hub))


def _conditional(original: Callable, name: str, bodies: tuple[str, ...], hub: Hub) -> Callable:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if hub.graphs.active is None or hub.unseen():
            return original(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        with hub.graphs.condition(name, given.arguments["condition"], hub.place_of_caller()) as kept:
            for body in bodies:
                given.arguments[body] = kept(given.arguments.get(body))
            return original(*given.args, **given.kwargs)

    return function


def _time_compilation(context: Any, hub: Hub) -> None:
    """Add up the time that Module.load takes (code generation, compilation, loading), nested loads once."""
    import time

    module: Any = getattr(context, "Module", None)
    original: Any = getattr(module, "load", None)
    if original is None:
        return
    nested = [0]

    @functools.wraps(original)
    def load(self: Any, *args: Any, **kwargs: Any) -> Any:
        if nested[0]:
            return original(self, *args, **kwargs)
        nested[0] += 1
        started = time.perf_counter()
        try:
            return original(self, *args, **kwargs)
        finally:
            nested[0] -= 1
            hub.compile_seconds += time.perf_counter() - started

    module.load = load
