"""Who is told of which call, on a stand-in for Warp: while everything is watched, and after standing down."""

from types import SimpleNamespace

import pytest

from warp_debug_gradients.probe import hooks


class Seen:
    """A listener that keeps the kinds of the events, and how many arrays were made."""

    def __init__(self):
        self.kinds, self.arrays = [], 0

    def before(self, event):
        self.kinds.append(event.kind)

    def after(self, event):
        pass

    def created(self, array):
        self.arrays += 1

    def recorded_function(self, tape, function, arrays):
        pass


def stand_in():
    """The names of Warp that the hooks patch, doing nothing."""

    class Array:
        ptr = 1

        def __init__(self):
            pass

        def zero_(self):
            return "zeroed"

        fill_ = assign = numpy = zero_

    class Tape:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def backward(self, loss=None):
            return "backward"

        def record_func(self, backward, arrays):
            pass

        zero = reset = backward

    class Launch:
        kernel = "k"

        def launch(self):
            return "launched"

    runtime = SimpleNamespace(tape=None)
    context = SimpleNamespace(runtime=runtime, launch=None)
    wp = SimpleNamespace(
        _src=SimpleNamespace(context=context),
        array=Array,
        Tape=Tape,
        Launch=Launch,
        utils=SimpleNamespace(array_sum=lambda values: 3.0),
        launch=lambda kernel: "launched",
        copy=lambda dest, src: None,
        capture_begin=lambda: None,
        capture_end=lambda: "graph",
        capture_launch=lambda graph: None,
    )
    context.launch = wp.launch
    return wp


@pytest.fixture
def watched():
    wp, seen = stand_in(), Seen()
    originals = {"launch": wp.launch, "copy": wp.copy, "zero_": wp.array.zero_, "__init__": wp.array.__init__}
    return wp, hooks.install(wp, seen), seen, originals


def use_everything(wp):
    """One call of each kind, as a training script makes them."""
    array, tape = wp.array(), wp.Tape()
    with tape:
        wp.launch("k")
        wp.copy(array, array)
        wp.Launch().launch()
    tape.backward()
    array.zero_()
    wp.utils.array_sum(array)


def test_everything_is_watched(watched):
    wp, hub, seen, _ = watched
    use_everything(wp)
    wanted = ["create", "tape_enter", "launch", "copy", "command", "tape_exit", "backward", "zero_", "native"]
    assert seen.kinds == wanted
    assert hub.count == len(wanted)
    assert seen.arrays == 1


def test_after_standing_down_warp_has_its_own_functions_and_only_backward_is_told(watched):
    wp, hub, seen, originals = watched
    alias = wp.launch  # `from warp import launch`: the wrapper stays under the user's own name
    hub.stand_down(creations=False)
    assert wp.launch is originals["launch"]
    assert wp._src.context.launch is originals["launch"]
    assert wp.copy is originals["copy"]
    assert wp.array.zero_ is originals["zero_"]
    assert wp.array.__init__ is originals["__init__"]
    use_everything(wp)
    assert alias("k") == "launched"
    assert seen.kinds == ["backward"]
    assert seen.arrays == 0


def test_arrays_are_numbered_on_where_an_output_is_still_to_come(watched):
    wp, hub, seen, _ = watched
    hub.stand_down(creations=True)
    use_everything(wp)
    assert seen.kinds == ["backward"]
    assert seen.arrays == 1


def test_a_tape_entered_in_another_thread_is_followed_after_standing_down(watched):
    import threading

    wp, hub, seen, _ = watched
    hub.stand_down(creations=False)
    worker = threading.Thread(target=use_everything, args=(wp,))
    worker.start()
    worker.join()
    assert seen.kinds == ["backward"]


def test_a_backward_inside_a_graph_is_told_when_the_graph_is_launched(watched):
    """During the capture nothing runs: an evaluation that ended there would read a loss of before."""
    wp, hub, seen, _ = watched
    hub.stand_down(creations=False)
    tape = wp.Tape()
    wp.capture_begin()
    wp.launch("k")
    tape.launches = []
    tape.backward()
    graph = wp.capture_end()
    assert seen.kinds == []
    wp.capture_launch(graph)
    assert (seen.kinds, hub.count) == (["backward"], 4)  # nobody waits for the launch: it is made again and counted


def test_nothing_stands_down_once_a_graph_was_captured(watched):
    wp, hub, seen, originals = watched
    wp.capture_begin()
    wp.launch("k")
    wp.capture_end()
    hub.stand_down(creations=False)
    assert wp.launch is not originals["launch"]
    use_everything(wp)
    assert "launch" in seen.kinds
