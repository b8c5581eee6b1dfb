"""Gradients written by hand, counters that are counted again, native code without an adjoint."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.patterns.bodies import Facts, statements
from warp_debug_gradients.patterns.hits import STRONG, WEAK, Hit, Pattern, Spot, hit
from warp_debug_gradients.patterns.kernels import ATOMICS
from warp_debug_gradients.patterns.source import SourceFile
from warp_debug_gradients.patterns.story import Body, Story

ASSIGNS = Pattern(
    "custom gradient that assigns", "custom_gradient",
    "`=` overwrites what other uses of the argument have contributed",
    "the argument is used once, or nothing has contributed before (it depends on the order)",
    "Use `wp.adjoint[x] += ...`.",
)  # fmt: skip
EMPTY = Pattern(
    "custom gradient that gives nothing", "custom_gradient",
    "no adjoint is set: the derivative through this function is zero",
    "the function is meant to be a constant for the gradient", "Add the missing adjoints.",
)  # fmt: skip
BY_HAND = Pattern(
    "custom gradient", "custom_gradient",
    "a formula by hand: nothing in the source says whether it is the function's derivative",
    "it was checked against differences", "Check it by itself: compare with differences of the function.",
)  # fmt: skip
COUNTER = Pattern(
    "atomic counter used as an index", "replay_side_effect",
    "the backward pass cannot count again: inline the index is replayed as 0, in a @wp.func it counts on",
    "a @wp.func_replay returns what the forward pass got, or nothing differentiable is stored there",
    "Add a @wp.func_replay, or count in a kernel of its own and store the index.",
)  # fmt: skip
NATIVE = Pattern(
    "native snippet without an adjoint", "native_without_adjoint",
    "the derivative through it is zero, without a message", "nothing differentiable goes through it",
    "Give adj_snippet=..., or write it as a @wp.func.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """All of the above."""
    used = {(id(b.source), b.function.name): b for b in story.bodies}
    for source in story.program.sources:
        replayed = {c.of for c in source.compiled.values() if c.kind == "func_replay"}
        for node, compiled in source.compiled.items():
            if not isinstance(node, ast.FunctionDef):
                continue
            if compiled.kind == "func_grad":
                launched = any(b.launched for (_, name), b in used.items() if name == compiled.of)
                shared = _shared_arguments(story, compiled.of or "")
                yield from _by_hand(source, node, compiled.of or "?", launched, shared)
            elif compiled.kind == "func_native":
                body = used.get((id(source), node.name))
                has = "adj_snippet" in compiled.options or len(compiled.positional) > 1
                if body is not None and not has:
                    where = node.decorator_list[0] if node.decorator_list else node
                    strong = body.launched and _differentiated(story, body)
                    yield hit(
                        NATIVE, STRONG if strong else WEAK, source, where, f"{node.name} is called by {body.kernel.name}",
                        function=node.name, related=[Spot(source.name, node.lineno, "the function")],
                    )  # fmt: skip
        for body in story.bodies:
            if body.source is source and body.function.name not in replayed:
                yield from _counters(story, body)


def _calls(node: ast.AST, name: str) -> Iterator[ast.Call]:
    """The calls of a function of that name."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and ast.unparse(each.func).rsplit(".", 1)[-1] == name:
            yield each


def _differentiated(story: Story, body: Body) -> bool:
    """Whether any call hands the function something that depends on an array with gradients."""
    for other in story.bodies:
        facts = Facts(story, other)
        for call in _calls(other.function, body.function.name):
            if any(map(facts.depends, [*call.args, *(k.value for k in call.keywords)])):
                return True
    return False


def _shared_arguments(story: Story, of: str) -> bool:
    """Whether a call hands over a local that is used elsewhere too: then another contribution can be overwritten."""
    for body in story.bodies:
        names = [n.id for n in ast.walk(body.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        for call in _calls(body.function, of):
            if any(isinstance(a, ast.Name) and names.count(a.id) > 1 for a in call.args):
                return True
    return False


def _stores_by(story: Story, body: Body) -> bool:
    """Whether the kernel stores something differentiable at an index that this function returns."""
    kernel = Body(body.kernel, body.kernel.source, body.kernel.node, body.launched)
    facts = Facts(story, kernel)
    name = body.function.name

    def calls(node: ast.AST) -> bool:
        return any(_calls(node, name))

    returned = {n for n, values in facts.definitions.items() if any(map(calls, values))}
    for node in statements(kernel.function):
        if isinstance(node, (ast.Assign, ast.AugAssign)) and facts.depends(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                indices = [n.slice for n in ast.walk(target) if isinstance(n, ast.Subscript)]
                used = {n.id for i in indices for n in ast.walk(i) if isinstance(n, ast.Name)}
                if any(map(calls, indices)) or used & returned:
                    return True
    return False


def _by_hand(source: SourceFile, node: ast.FunctionDef, of: str, launched: bool, shared: bool) -> Iterator[Hit]:
    sets = [
        (s, t) for s in statements(node)
        for t in (s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AugAssign) else [])
        if isinstance(t, ast.Subscript) and source.warp_name(t.value) == "adjoint"
    ]  # fmt: skip
    strong = STRONG if launched else WEAK
    if not sets:
        handed = any(isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) for s in statements(node))
        yield hit(EMPTY, WEAK if handed else strong, source, node, f"of {of}", function=node.name)
        return
    assigned = [s for s, _ in sets if isinstance(s, ast.Assign) and not _adds_itself(s)]
    for statement in assigned:
        yield hit(ASSIGNS, strong if shared else WEAK, source, statement, f"the gradient of {of}", function=node.name)
    if not assigned:
        yield hit(BY_HAND, WEAK, source, sets[0][0], f"of {of}", function=node.name,
                  related=[Spot(source.name, node.lineno, "the gradient")])  # fmt: skip


def _adds_itself(statement: ast.Assign) -> bool:
    """`wp.adjoint[x] = wp.adjoint[x] + ...`."""
    text = ast.unparse(statement.targets[0])
    return any(ast.unparse(n) == text for n in ast.walk(statement.value) if isinstance(n, ast.Subscript))


def _counters(story: Story, body: Body) -> Iterator[Hit]:
    facts = Facts(story, body)
    counters: dict[str, ast.stmt] = {}
    for node in statements(body.function):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                continue
            for part in ast.walk(child):
                if isinstance(part, ast.Call) and facts.called(part) in ATOMICS:
                    if isinstance(node, ast.Return):
                        yield story.lead(COUNTER, body, node, "returned by a function without a replay",
                                         strong=_stores_by(story, body))  # fmt: skip
                    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                        counters[node.targets[0].id] = node
                    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                        yield story.lead(COUNTER, body, node, "its result is stored", strong=False)
    for name, node in counters.items():
        used = [
            part for part in ast.walk(body.function)
            if isinstance(part, ast.Subscript)
            and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(part.slice))
        ]  # fmt: skip
        differentiable = [
            s for s in statements(body.function)
            if isinstance(s, (ast.Assign, ast.AugAssign))
            and any(p in used for p in ast.walk(s))
            and facts.depends(s.value)
        ]  # fmt: skip
        if used:
            yield story.lead(
                COUNTER, body, node, f"{name} chooses the element", strong=bool(differentiable), variable=name
            )
