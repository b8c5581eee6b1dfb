"""Parts of the forward pass that the tape does not see: unrecorded calls, launches outside, trips through NumPy."""

from __future__ import annotations

from collections.abc import Iterator

from warp_debug_gradients.patterns.events import Event
from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.story import Story, made
from warp_debug_gradients.patterns.values import Array, TapeValue

NOT_RECORDED = Pattern(
    "operation that no tape records", "unrecorded_operation",
    "Warp records launches and copies only: what this computes has derivative zero",
    "the objective does not depend on its result", "Write it as a kernel and launch it inside the tape.",
)  # fmt: skip
OUTSIDE = Pattern(
    "loss computed outside the tape", "unrecorded_operation",
    "backward starts from an array that this launch wrote after the tape was closed: its part has no adjoint",
    "the launch only reports", "Move the launch into the `with` block.",
)  # fmt: skip
NO_LOSS = Pattern(
    "loss not on the tape", "unrecorded_operation",
    "nothing recorded writes this array, so backward has nothing to start from: all gradients stay zero",
    "a function that is not in these files writes it", "Launch what computes the loss inside the `with` block.",
)  # fmt: skip
ROUND_TRIP = Pattern(
    "round trip through NumPy inside the tape", "host_round_trip",
    "the values leave Warp and come back as a new leaf: the chain of derivatives ends in between",
    "the numbers do not depend on what is optimised, or only steer (a seed, a step size)",
    "Compute it with a kernel, or differentiate the host part by hand and pass its adjoint on.",
)  # fmt: skip
BRIDGE = Pattern(
    "another framework inside the tape", "host_round_trip",
    "the tape ends where the array changes frameworks; the other one's autograd does not know Warp's",
    "a torch.autograd.Function (or the like) joins the two", "Join them with a custom autograd function.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """All of the above."""
    yield from _calls(story)
    yield from _loss(story)
    yield from _round_trips(story)


def _written_on(story: Story) -> dict[tuple[TapeValue, Array], Event]:
    found: dict[tuple[TapeValue, Array], Event] = {}
    for event in story.events:
        if event.tape is not None and event.recorded and event.kind in ("launch", "copy"):
            for array in [t.array for t in event.touches if t.written] + ([event.array] if event.array else []):
                found.setdefault((event.tape, array.root), event)
    return found


def _calls(story: Story) -> Iterator[Hit]:
    written = _written_on(story)
    finished: set[TapeValue] = set()
    for event in story.events:
        if event.kind == "backward" and event.subject:
            finished.add(event.subject)
        if event.kind != "unrecorded" or event.tape is None or event.tape in finished:
            continue
        touched = [t for t in event.touches if t.written and t.from_arrays]
        differentiable = any(t.array.requires_grad is True for t in touched)
        if event.array is not None:
            known = (event.tape, event.array.root) in written or event.array.requires_grad is True
            differentiable = known and event.array.requires_grad is not False and _wanted(story, event)
        yield story.report(
            NOT_RECORDED,
            event,
            f"{event.what} inside the tape",
            strong=differentiable and not story.by_hand(event.tape),
            array=event.array,
        )


def _wanted(story: Story, event: Event) -> bool:
    """Whether the result of an unrecorded call goes into the tape again, or into backward."""
    if event.other is None:
        return True
    for later in story.events[event.order + 1 :]:
        if later.kind == "launch" and later.tape is event.tape:
            if any(t.loaded and t.array.root is event.other.root for t in later.touches):
                return True
        elif later.kind == "backward" and later.subject is event.tape:
            return later.array is not None and later.array.root is event.other.root
    return False


def _loss(story: Story) -> Iterator[Hit]:
    """Launches that write the loss after the tape was closed; losses that nothing on the tape writes."""
    written = _written_on(story)
    closed: dict[TapeValue, int] = {}
    opaque = {e.tape for e in story.events if e.kind == "foreign" and e.tape is not None}
    launched = {e.tape for e in story.events if e.kind == "launch" and e.tape is not None}
    unknown = {e.tape for e in story.events if e.kind == "launch" and e.tape is not None and e.kernel is None}
    outside: list[Event] = []
    for event in story.events:
        if event.kind == "tape_exit" and event.subject:
            closed[event.subject] = event.order
        if event.kind == "launch" and event.tape is None:
            outside.append(event)
        if event.kind != "backward" or event.subject is None or event.array is None:
            continue
        root, tape = event.array.root, event.subject
        late = [
            e for e in outside
            if e.order > closed.get(tape, event.order)
            and any(t.written and t.array.root is root for t in e.touches)
        ]  # fmt: skip
        for each in late:
            yield story.report(OUTSIDE, each, f"{event.array.label} is written by {each.what} after the tape",
                               strong=True, array=event.array, related=[event.spot("backward")])  # fmt: skip
        missing = (tape, root) not in written and tape in launched and tape not in opaque | unknown
        if missing and not late and event.array.maker and not event.conditional:
            yield story.report(NO_LOSS, event, f"no recorded launch writes {event.array.label}", strong=True,
                               array=event.array, related=[made(event.array)])  # fmt: skip


def _round_trips(story: Story) -> Iterator[Hit]:
    written = _written_on(story)
    finished: set[TapeValue] = set()
    made_here: dict[Array, tuple[Event, list[Array]]] = {}
    for event in story.events:
        if event.kind == "backward" and event.subject:
            finished.add(event.subject)
        tape = event.tape
        if tape is None or tape in finished:
            continue

        def carried(arrays: list[Array], tape: TapeValue = tape) -> list[Array]:
            return [
                a for a in arrays
                if a.requires_grad is True and not a.integer and ((tape, a.root) in written or a.root is a)
            ]  # fmt: skip

        if event.kind == "alloc" and event.array is not None and event.array.made_from:
            made_here[event.array.root] = (event, list(event.array.made_from))
        elif event.kind == "reset" and event.array is not None and event.arrays:
            made_here[event.array.root] = (event, event.arrays)
        elif event.kind == "bridge" and event.arrays:
            yield story.report(BRIDGE, event, event.what, strong=False, array=event.arrays[0])
        elif event.kind == "launch":
            for touch in event.touches:
                known = made_here.pop(touch.array.root, None) if touch.from_arrays or touch.loaded else None
                if known and carried(known[1]):
                    source = carried(known[1])[0]
                    yield story.report(
                        ROUND_TRIP, known[0], f"{touch.array.label} is made from {source.label}.numpy()",
                        strong=(tape, source.root) in written, array=touch.array,
                        related=[event.spot(f"goes into {event.what}")],
                    )  # fmt: skip
            on_tape = [a for a in carried(event.arrays) if (tape, a.root) in written]
            if on_tape:
                yield story.report(ROUND_TRIP, event, f"a number read from {on_tape[0].label} is an argument of the launch",
                                   strong=False, array=on_tape[0])  # fmt: skip
