"""Patches Warp's public entry points, so that each outermost call of the program becomes an event of the hub."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Callable

from .arrays import IS_QUIET
from .events import COMMAND_ARGUMENTS, FROM_HOST, NATIVE_FUNCTIONS, Listener
from .hub import CAPTURES, Hub


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str) -> Any:
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
        elif hub.passes_over_creation():
            hub.count_only(original_init, (self, *args), kwargs)
        else:
            hub.run("create", self, original_init, (self, *args), kwargs)
        if _argument(args, kwargs, 0, "data") is not None:
            self.__dict__[FROM_HOST] = True
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


def _wrapped_function(
    original: Callable[..., Any], kind: str, position: int, argument: str, hub: Hub
) -> Callable[..., Any]:
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
    names = CAPTURES[:3]
    if not all(hasattr(wp, name) for name in names):
        return
    begin, end, launch = (getattr(wp, name) for name in names)

    @functools.wraps(begin)
    def capture_begin(*args: Any, **kwargs: Any) -> Any:
        result = begin(*args, **kwargs)
        if not hub.unseen():
            hub.stand_up()
            hub.graphs.begin(hub.count)
        return result

    @functools.wraps(end)
    def capture_end(*args: Any, **kwargs: Any) -> Any:
        graph = end(*args, **kwargs)
        if not hub.unseen():
            hub.graphs.end(graph, hub.count)
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


def _conditional(original: Callable[..., Any], name: str, bodies: tuple[str, ...], hub: Hub) -> Callable[..., Any]:
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
