"""What Warp itself differentiates wrongly, as measured on 1.13 to 1.19."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.patterns.bodies import Facts, statements
from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.story import Story

FRAC = Pattern(
    "wp.frac", "warp_defect",
    "its derivative is 1, its adjoint in Warp is 0 (measured on 1.13 to 1.19)",
    "no slope is wanted through it", "Write x - wp.floor(x).",
)  # fmt: skip
TERNARY = Pattern(
    "conditional expression on array elements", "warp_defect",
    "before Warp 1.17 the gradient of `x[i] if c else y[i]` is 0",
    "the installed Warp is 1.17 or newer", "Upgrade Warp, or use wp.where or an if statement.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Both, in every kernel that matters."""
    for body in story.bodies:
        facts = Facts(story, body)
        for node in statements(body.function):
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.expr):
                    continue
                for part in ast.walk(child):
                    if (
                        isinstance(part, ast.Call)
                        and facts.called(part) == "frac"
                        and any(map(facts.depends, part.args))
                    ):
                        yield story.lead(FRAC, body, part, strong=True)
                    elif isinstance(part, ast.IfExp):
                        elements = [p for p in (part.body, part.orelse) if isinstance(p, ast.Subscript)]
                        if any(map(facts.depends, elements)):
                            yield story.lead(TERNARY, body, part, strong=False)
