"""How tapes are used: entered twice, run backward twice, one a step, with work that is not the forward pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.patterns.events import Event
from warp_debug_gradients.patterns.hits import Hit, Pattern, hit
from warp_debug_gradients.patterns.story import Story, carries, made, meet, writes
from warp_debug_gradients.patterns.values import Array, TapeValue

REENTERED = Pattern(
    "tape entered again without reset", "double_count",
    "what was recorded before is still on the tape: backward goes through it once more",
    "the two blocks belong to one forward pass, or every array that is written is new in each pass", "Call tape.reset() before the `with`, or make a new Tape.",
)  # fmt: skip
BACKWARD_TWICE = Pattern(
    "backward twice on one recording", "double_count",
    "seeds and adjoints of the first call are still there and are propagated again",
    "the gradients of the tape's own arrays are zeroed in between", "Add the losses up, or zero in between.",
)  # fmt: skip
RETAINED = Pattern(
    "retain_grad on an array that is written more than once", "double_count",
    "a store consumes the adjoint of what it writes, unless the array retains it: then each store passes it on",
    "the launches write different elements", "Drop retain_grad, or write each array once.",
)  # fmt: skip
AFTER_LOSS = Pattern(
    "work after the loss inside the tape", "tape_scope",
    "it is recorded, so backward starts with its adjoint", "it writes nothing that the forward pass read",
    "Move it behind the `with` block.",
)  # fmt: skip
TAPE_A_STEP = Pattern(
    "a tape a step, with state carried on", "truncation",
    "each backward sees its own window: how the state at its start depends on the parameter is lost",
    "the cut is meant (truncated backpropagation), or the adjoint of the state is carried by hand",
    "One tape around all steps.",
)  # fmt: skip
PARTIAL = Pattern(
    "part of the forward pass before the tape", "truncation",
    "the state that comes in depends on a parameter through launches that are not on the tape",
    "the warm-up is not meant to be differentiated, or its adjoint is carried by hand",
    "Record all of it.",
)  # fmt: skip

EMPTIED = Pattern(
    "tape emptied while it records", "truncation",
    "what was recorded before is gone: backward sees only what follows the reset",
    "nothing was recorded before, or the cut is meant (truncated backpropagation)", "Reset the tape before the `with` block.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """All of the above."""
    yield from _twice(story)
    yield from _retained(story)
    yield from _after_loss(story)
    yield from _windows(story)
    yield from _emptied(story)


def _twice(story: Story) -> Iterator[Hit]:
    entered: dict[TapeValue, Event] = {}
    ran: dict[TapeValue, Event] = {}
    cleared: set[TapeValue] = set()
    again: dict[TapeValue, Event] = {}
    written: dict[TapeValue, list[set[Array]]] = {}  # what each recording on the tape writes
    for event in story.events:
        if event.kind in ("launch", "copy") and event.tape in written:
            written[event.tape][-1].update(a.root for a, _ in writes(event))
        tape = event.subject
        if event.kind == "grad_zero" and event.array is not None:  # by hand: somebody knows
            cleared |= {t for t in ran if any(a.root is event.array.root for a in ran[t].arrays)}
        if tape is None:
            continue
        if event.kind == "tape_enter":
            if tape in entered and tape in ran:
                again[tape] = event
            written.setdefault(tape, []).append(set())
            entered[tape] = event
            cleared.add(tape)
        elif event.kind == "tape_reset":
            for book in (entered, ran, written):
                book.pop(tape, None)
        elif event.kind == "tape_zero":
            cleared.add(tape)
        elif event.kind == "backward":
            if tape in again:
                last, before = written[tape][-1], set[Array]().union(*written[tape][:-1])
                yield story.report(REENTERED, again.pop(tape), f"{tape.name} still holds the recording of the pass before",
                                   strong=bool(last & before), related=[event.spot("backward")])  # fmt: skip
            either = event.conditional or (tape in ran and ran[tape].conditional)  # one of two branches
            if tape in ran and tape not in cleared and not either:
                yield story.report(BACKWARD_TWICE, event, f"{tape.name} ran backward in line {ran[tape].line} already",
                                   strong=True, array=event.array, related=[ran[tape].spot("first backward")])  # fmt: skip
            ran[tape] = event
            cleared.discard(tape)


def _retained(story: Story) -> Iterator[Hit]:
    stored: dict[tuple[TapeValue, Array], list[Event]] = {}
    said: set[Array] = set()
    for event in story.events:
        if event.kind != "launch" or event.tape is None:
            continue
        for touch in event.touches:
            array = touch.array
            if not array.root.retain_grad or not touch.stored or array.root in said:
                continue
            known = stored.setdefault((event.tape, array.root), [])
            slots = touch.store_slots
            if any(meet(s, slots) for e in known for t in e.touches if t.array is array for s in [t.store_slots]):
                said.add(array.root)
                yield hit(
                    RETAINED, "strong", array.root.source, array.root.node, f"{array.label} is stored to by two launches",
                    variable=array.name or None, related=[known[-1].spot("stored here"), event.spot("and here"),
                                                          *reversed(event.stack), *reversed(known[-1].stack)],
                )  # fmt: skip
            known.append(event)


def _after_loss(story: Story) -> Iterator[Hit]:
    for number, event in enumerate(story.events):
        if event.kind != "backward" or event.subject is None or event.array is None or event.tape is event.subject:
            continue
        on_tape = [
            e for e in story.events[:number]
            if e.kind == "launch" and e.tape is event.subject and e.order > _start(story, event)
        ]  # fmt: skip
        last = [e for e in on_tape if any(t.written and t.array.root is event.array.root for t in e.touches)]
        if not last:
            continue
        read = {t.array.root for e in on_tape if e.order <= last[-1].order for t in e.touches if t.loaded}
        for each in on_tape:
            if each.order > last[-1].order:
                victims = [t for t in each.touches if t.written and t.array.root in read]
                if victims:
                    yield story.report(AFTER_LOSS, each, f"{each.what} writes {victims[0].array.label}, which was read before",
                                       strong=bool(each.grads), array=victims[0].array)  # fmt: skip


def _start(story: Story, backward: Event) -> int:
    found = [
        e.order for e in story.events[: backward.order] if e.kind == "tape_enter" and e.subject is backward.subject
    ]
    return found[-1] if found else -1


def _windows(story: Story) -> Iterator[Hit]:
    """State that was computed under an earlier tape, or under none, and goes into this one."""
    origin: dict[Array, tuple[Event, TapeValue | None, list[tuple[object, ...]]]] = {}
    finished: set[TapeValue] = set()
    entered: dict[TapeValue, Event] = {}
    read_gradients = {
        a.root for e in story.events if e.kind == "host_read" and e.of_grad and e.array for a in [e.array]
    }
    read_gradients |= {a.root for e in story.events if e.kind in ("step", "launch") for a in e.grads}
    seeded = {e.source.name: True for e in story.events if e.kind == "backward" and (e.seeds or e.what == "seeded")}
    said: set[tuple[int, str]] = set()
    # By launches, from nothing that is optimised: storage for a gradient makes no parameter.
    computed: set[Array] = set()
    updating = {loop for e in story.events if _updates(e) for loop in e.loops}
    for event in story.events:
        if event.kind == "tape_enter" and event.subject:
            entered[event.subject] = event
            finished.discard(event.subject)
        elif event.kind == "backward" and event.subject:
            finished.add(event.subject)
        if _updates(event):
            origin = {}
        if event.kind == "launch":
            tape = event.tape if event.recorded else None
            if tape is not None and tape not in finished:
                for touch in event.touches:
                    known = origin.get(touch.array.root)
                    if known is None or not touch.loaded or not meet(touch.load_slots, known[2]):
                        continue
                    writer, before, _ = known
                    if before is tape or (before is not None and before not in finished):
                        continue
                    pattern = PARTIAL if before is None else TAPE_A_STEP
                    where = entered.get(tape, event)
                    key = (id(where.node), pattern.name)
                    if key in said or touch.array.root in read_gradients or _parted(writer, event, updating):
                        continue
                    said.add(key)
                    yield story.report(
                        pattern, where, f"{touch.array.label} comes in from {writer.what} in line {writer.line}",
                        strong=not (seeded.get(event.source.name, False) or story.by_hand(tape)), array=touch.array,
                        related=[writer.spot("computed here"), event.spot("goes in here"), made(touch.array),
                                 *reversed(writer.stack)],
                    )  # fmt: skip
            for touch in event.touches:
                root = touch.array.root
                depends = [
                    a for a in touch.from_arrays
                    if a.root is not root
                    and (a.root in origin or (a.requires_grad is True and a.root not in computed))
                ]  # fmt: skip
                if touch.written and depends and (tape is None or tape not in finished) and not event.grads:
                    origin[root] = (event, tape, touch.store_slots)
                elif touch.stored and not depends:
                    origin.pop(root, None)
                if touch.written and not depends and touch.from_arrays and root not in read_gradients:
                    computed.add(root)
                elif touch.written and depends:
                    computed.discard(root)
        elif event.kind == "copy" and event.array is not None:
            known = origin.get(event.other.root) if event.other is not None else None
            if known is None or event.tape is not None:
                origin.pop(event.array.root, None)
            else:
                origin[event.array.root] = (event, known[1], [])
        elif event.kind in ("reset", "host_write") and event.array is not None and not event.arrays:
            origin.pop(event.array.root, None)


def _parted(first: Event, second: Event, updating: set[int]) -> bool:
    """Whether two events lie in different passes of a loop that updates the parameters: in two iterations."""
    passed = dict(zip(first.loops, first.visit))
    return any(loop in updating and passed.get(loop, visit) != visit for loop, visit in zip(second.loops, second.visit))


def _updates(event: Event) -> bool:
    """Whether gradients flow into an array here: the optimizer's update."""
    if event.kind == "step":
        return True
    return event.kind in ("alloc", "reset", "host_write", "launch") and bool(event.grads) and event.tape is None


def _emptied(story: Story) -> Iterator[Hit]:
    """`tape.reset()` under the tape itself, after launches, or every so many passes."""
    opened: set[TapeValue] = set()
    recorded: set[TapeValue] = set()
    said: set[int] = set()
    for event in story.events:
        if event.kind == "tape_enter" and event.subject is not None:
            opened.add(event.subject)
            recorded.discard(event.subject)
        elif event.kind == "tape_exit" and event.subject is not None:
            opened.discard(event.subject)
        elif event.kind == "launch" and event.tape is not None and event.recorded and carries(event):
            recorded.add(event.tape)
        elif event.kind == "tape_reset" and event.subject in opened:
            if (event.subject in recorded or _periodic(event)) and id(event.node) not in said:
                said.add(id(event.node))
                yield story.report(EMPTIED, event, f"{event.subject.name} is recording", strong=True)
            recorded.discard(event.subject)


def _periodic(event: Event) -> bool:
    """Whether it stands under a condition such as `k % 10 == 0`."""
    return any(
        isinstance(node, ast.If)
        and any(isinstance(n, ast.Mod) for n in ast.walk(node.test))
        and any(n is event.node for n in ast.walk(node))
        for node in event.source.nodes
    )
