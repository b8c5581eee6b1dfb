"""Products in place, and components assigned more than once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.patterns.bodies import Facts, root_name, statements
from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.story import Body, Story

IN_PLACE = Pattern(
    "array element multiplied or divided in place", "inplace_muldiv",
    "the adjoint of the factor uses the value after the product",
    "the factor does not depend on what is optimised; local scalars are fine",
    "Write the product to another array.",
)  # fmt: skip
COMPONENT = Pattern(
    "component of a local assigned again", "component_reassignment",
    "the adjoint of the earlier value is not cleared: the gradient of what was assigned before is too large",
    "the earlier value does not depend on anything; module option enable_vector_component_overwrites is on",
    "Build the vector once, with its constructor.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Both, in every kernel that matters and the functions it calls."""
    for body in story.bodies:
        facts = Facts(story, body)
        yield from _products(story, body, facts)
        option = body.source.option(body.kernel.node, "enable_vector_component_overwrites")
        if not (option and option[0] is True):
            yield from _components(story, body, facts)


def _products(story: Story, body: Body, facts: Facts) -> Iterator[Hit]:
    for node in statements(body.function):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Mult, ast.Div)):
            element = isinstance(node.target, (ast.Subscript, ast.Attribute)) and facts.is_array_access(node.target)
            if element and facts.depends(node.value):
                yield story.lead(IN_PLACE, body, node, strong=True, variable=root_name(node.target))
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            factors = _other_factors(node.value, ast.unparse(target))
            if facts.is_array_access(target) and factors and any(map(facts.depends, factors)):
                yield story.lead(IN_PLACE, body, node, strong=True, variable=root_name(target))


def _other_factors(value: ast.expr, target: str) -> list[ast.expr]:
    """What `target` is multiplied with or divided by, where the whole value is such a product."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        left, right = value.left, value.right
        if ast.unparse(left) == target:
            return [right]
        if ast.unparse(right) == target:
            return [left]
        inner = _other_factors(left, target)
        if inner:
            return [*inner, right]
        inner = _other_factors(right, target) if isinstance(value.op, ast.Mult) else []
        return [*inner, left] if inner else []
    return []


def _components(story: Story, body: Body, facts: Facts) -> Iterator[Hit]:
    """A component assignment after which an earlier value of that component, which depends on something, is lost."""
    valued: dict[str, ast.expr] = {}  # components by source text: what they hold
    whole: dict[str, ast.expr] = {}
    for node in statements(body.function):
        if isinstance(node, ast.Assign):
            pairs = [(t, node.value) for t in node.targets]
        elif isinstance(node, ast.AugAssign) and not isinstance(node.op, (ast.Add, ast.Sub)):
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:
            if isinstance(target, ast.Name) and isinstance(node, ast.Assign):
                whole[target.id] = value
                valued = {k: v for k, v in valued.items() if root_name(ast.parse(k, mode="eval").body) != target.id}
                continue
            name = root_name(target)
            single = isinstance(target, (ast.Subscript, ast.Attribute)) and isinstance(target.value, ast.Name)
            if not single or name is None or not facts.compound(name) or name in facts.arrays:
                continue
            key = ast.unparse(target)
            before = valued.get(key)
            if before is None and (name in whole or name in facts.annotations):
                before = _held(whole.get(name), target)
                given = name in facts.annotations and name not in whole
                if given or (before is not None and facts.depends(before)):
                    yield story.lead(COMPONENT, body, node, f"{key} has a value already", strong=True, variable=name)
            elif before is not None and facts.depends(before):
                yield story.lead(COMPONENT, body, node, f"{key} was assigned before", strong=True, variable=name)
            valued[key] = value


def _held(value: ast.expr | None, target: ast.AST) -> ast.expr | None:
    """What one component holds after `v = value`: the constructor's argument where that can be seen."""
    if isinstance(value, ast.Call) and isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        position = target.slice.value
        if not value.args:
            return None
        if isinstance(position, int) and 0 <= position < len(value.args):
            return value.args[position]
    if isinstance(value, ast.Call) and isinstance(target, ast.Attribute) and target.attr in "xyzw":
        position = "xyzw".index(target.attr)
        return value.args[position] if position < len(value.args) else None
    return value
