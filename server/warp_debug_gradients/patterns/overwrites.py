"""Write after read: something changes a value between the launch that read it and the adjoint that reads it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warp_debug_gradients.patterns.events import Event, Touch
from warp_debug_gradients.patterns.hits import Hit, Pattern, Spot
from warp_debug_gradients.patterns.kernels import Access, Kernel
from warp_debug_gradients.patterns.story import Body, Story, carries, made, meet, writes
from warp_debug_gradients.patterns.values import Array, TapeValue

HARMLESS = "the value written is the old one, the adjoint that needs it is not used, or that read is linear"
REPAIR = "Write to another array (one a step), or run backward before the write."

WRITE_AFTER_READ = Pattern(
    "write after read", "overwrite",
    "the adjoint of the reading launch is evaluated later, with the new value", HARMLESS, REPAIR,
)  # fmt: skip
LATE_WRITE = Pattern(
    "write between tape and backward", "overwrite",
    "backward reads this array again, and finds what was written after the tape was closed", HARMLESS, REPAIR,
)  # fmt: skip
HOST_WRITE = Pattern(
    "NumPy write into a recorded array", "overwrite",
    "the tape does not know about it: adjoints flow through the old value's history, and read the new value",
    "nothing on the tape has touched these elements yet", "Write with a kernel on the tape.",
)  # fmt: skip
ALIASED_STATES = Pattern(
    "two states become one", "overwrite",
    "both names mean one array from here on: the step that writes the one overwrites what the other was read as",
    "no tape holds both, or the list is filled anew before the next step", "Copy the contents (wp.copy) instead.",
)  # fmt: skip
SELF_OVERWRITE = Pattern(
    "read and overwritten in one kernel", "overwrite",
    "the adjoint of this kernel reads the element again and finds the new value",
    "the read is linear, or another thread's elements are meant", "Store to another array.",
)  # fmt: skip


OWN_INPUT = Pattern(
    "a launch onto its own input", "overwrite",
    "what the adjoint reads is the result by then; and where a thread reads another's element, the forward values "
    "depend on the order of the threads",
    "no element is both read and written, or the adjoint of that read is not used",
    "Give the launch another array for its output ([make() for _ in range(n)], not [make()] * n).",
)  # fmt: skip


@dataclass
class Read:
    """A recorded read whose value an adjoint needs."""

    event: Event
    touch: Touch
    sure: bool  # somebody certainly asks for that adjoint


def check(story: Story) -> Iterator[Hit]:
    """Overwrites along the host code, and inside kernels."""
    yield from _along_the_tape(story)
    yield from _in_kernels(story)


def _along_the_tape(story: Story) -> Iterator[Hit]:
    pending: dict[TapeValue, list[Read]] = {}
    touched: dict[TapeValue, set[Array]] = {}
    done: set[TapeValue] = set()
    said: set[tuple[int, int]] = set()
    clones: dict[Array, Array] = {}  # whose values they hold
    for event in story.events:
        if event.kind == "backward" and event.subject:
            pending.pop(event.subject, None)
            done.add(event.subject)
        elif event.kind in ("tape_reset", "tape_enter") and event.subject:
            if event.kind == "tape_reset":
                pending.pop(event.subject, None)
            done.discard(event.subject)
        for array, touch in writes(event):
            if event.other is not None and clones.get(event.other) is array.root:
                continue  # its own values
            for clone in [c for c, source in clones.items() if array.root in (source, c.root)]:
                del clones[clone]
            late = (
                event.kind == "host_write"
                and event.tape is not None
                and event.tape not in done
                and array.root in touched.get(event.tape, set())
                and array.requires_grad is not False
            )
            if late and (id(event.node), 0) not in said:
                said.add((id(event.node), 0))
                yield story.report(HOST_WRITE, event, f"{array.label} is on the tape", strong=True, array=array,
                                   related=[made(array)])  # fmt: skip
                continue
            for reads in list(pending.values()):
                for read in reads:
                    if read.touch.array.root is not array.root or read.event is event:
                        continue
                    if touch is not None and not meet(read.touch.load_slots, touch.store_slots):
                        continue
                    key = (id(event.node), id(read.event.node))
                    if key not in said:
                        said.add(key)
                        yield _overwrite(story, event, read, array)
        if event.kind == "copy" and event.what == "clone" and event.array is not None and event.other is not None:
            clones[event.array] = event.other.root
        if event.kind == "rebind" and any(e.kind == "tape_enter" for e in story.events) and event.arrays:
            yield story.report(ALIASED_STATES, event, f"an element of {event.what} is bound to another one",
                               strong=bool(event.loops or event.tape))  # fmt: skip
        if event.tape is not None and event.recorded and event.kind in ("launch", "copy"):
            known = touched.setdefault(event.tape, set())
            known.update(t.array.root for t in event.touches)
            known.update(a.root for a in (event.array, event.other) if a is not None)
            if event.tape not in done and event.kind == "launch" and carries(event):
                if id(event.node) not in {node for node, _ in said}:
                    yield from _onto_its_input(story, event, said)
                for touch in event.touches:
                    asked = [a.requires_grad for a in touch.needed_for]
                    if touch.loaded and any(flag is not False for flag in asked):
                        pending.setdefault(event.tape, []).append(Read(event, touch, True in asked))


def _onto_its_input(story: Story, event: Event, said: set[tuple[int, int]]) -> Iterator[Hit]:
    """One array as two arguments of a launch, the one read and the other written."""
    for read in event.touches:
        for write in event.touches:
            if write is read or not read.loaded or not (write.stored or write.updated) or not read.needed_for:
                continue
            if write.array is not read.array or not meet(read.load_slots, write.store_slots):  # views may be disjoint
                continue
            said.add((id(event.node), id(event.node)))
            array = read.array
            detail = f"{array.label} is read as {read.path} and written as {write.path} by {event.what}"
            strong = True in [a.requires_grad for a in read.needed_for] and not event.conditional
            yield story.report(OWN_INPUT, event, detail, strong=strong, array=array, related=[made(array.root)])
            return


def _overwrite(story: Story, event: Event, read: Read, array: Array) -> Hit:
    pattern = WRITE_AFTER_READ if event.tape is not None else LATE_WRITE
    writer = event.what or event.kind
    detail = f"{array.label}: read by {read.event.what} (line {read.event.line}), written by {writer}"
    strong = read.sure and not event.conditional
    related = [
        read.event.spot("read here"),
        *([made(array)] if array.root is array else [made(array), made(array.root)]),
    ]
    return story.report(pattern, event, detail, strong=strong, array=array, related=related)


def _in_kernels(story: Story) -> Iterator[Hit]:
    asked: dict[int, bool] = {}
    for event in story.events:
        if event.kind == "launch" and event.kernel is not None and event.tape is not None:
            for touch in event.touches:
                if touch.written and touch.needed_for:
                    key = id(event.kernel.node)
                    asked[key] = asked.get(key, False) or any(a.requires_grad is True for a in touch.needed_for)
    for body in story.bodies:
        if not body.is_kernel:
            continue
        kernel = body.kernel

        def needed(load: Access, kernel: Kernel = kernel) -> bool:
            return (load.path, load.order) in kernel.needed

        for store in kernel.stores:
            if not kernel.needs.get(store.path) or store.how == "update":
                continue
            for load in kernel.loads:
                separate = any(a is not None and b is not None and a != b for a, b in zip(load.coords, store.coords))
                if load.path != store.path or load.order > store.order or separate or not needed(load):
                    continue
                same = load.text == store.text or store.how == "accumulate"
                yield _self_overwrite(story, body, store, same and asked.get(id(kernel.node), False))
                break


def _self_overwrite(story: Story, body: Body, store: Access, strong: bool) -> Hit:
    found = story.lead(SELF_OVERWRITE, body, store.node, f"{store.path} is read before it is written", strong=strong,
                       variable=store.path)  # fmt: skip
    found.file = store.source.name
    found.construct = store.source.row(found.line)
    found.related = [Spot(body.source.name, body.function.lineno, f"kernel {body.kernel.name}")]
    return found
