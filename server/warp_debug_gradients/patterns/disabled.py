"""The backward pass is disabled for a kernel, a module or everything."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.patterns.hits import STRONG, WEAK, Hit, Pattern, Spot, hit
from warp_debug_gradients.patterns.story import Story, active
from warp_debug_gradients.patterns.values import Array, TapeValue

DISABLED = Pattern(
    "backward disabled", "backward_disabled",
    "the kernel has no adjoint: derivatives through its outputs are zero",
    "nothing that the objective depends on goes through it (a meter, a picture)",
    "Remove enable_backward=False.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Recorded launches of kernels without an adjoint; the global switch."""
    read_later: dict[tuple[TapeValue, Array], int] = {}
    for event in story.events:
        if event.kind == "launch" and event.tape is not None:
            for touch in event.touches:
                if touch.loaded:
                    read_later[event.tape, touch.array.root] = event.order
    done: set[int] = set()
    for event in story.events:
        if event.kind != "launch" or event.tape is None or event.kernel is None or id(event.kernel.node) in done:
            continue
        option = event.kernel.source.option(event.kernel.node, "enable_backward")
        if option is None or option[0] is not False:
            continue
        through = [
            t for t in event.touches
            if t.written
            and active(t.from_arrays)
            and (t.array.requires_grad is True or read_later.get((event.tape, t.array.root), -1) > event.order)
        ]  # fmt: skip
        if not through:
            continue
        done.add(id(event.kernel.node))
        where = option[1]
        node = where.decorator_list[0] if isinstance(where, ast.FunctionDef) and where.decorator_list else where
        detail = (
            f"{event.kernel.name} writes {through[0].array.label}, which depends on {through[0].from_arrays[0].label}"
        )
        yield hit(
            DISABLED, WEAK if story.by_hand(event.tape) else STRONG, event.kernel.source, node, detail, function=event.kernel.name,
            related=[event.spot("launched under the tape"),
                     Spot(event.kernel.source.name, event.kernel.node.lineno, "the kernel")],
        )  # fmt: skip
    for source in story.program.sources:
        known = source.options.get("config.enable_backward")
        if known and isinstance(known[0], ast.Constant) and known[0].value is False and story.tapes:
            restored = sum(
                isinstance(n, ast.Assign) and any(source.warp_name(t) == "config.enable_backward" for t in n.targets)
                for n in source.nodes
            )
            yield hit(DISABLED, STRONG if restored < 2 else WEAK, source, known[1],
                      "for every module that is defined after this line")  # fmt: skip
