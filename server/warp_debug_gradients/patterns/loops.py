"""Loops whose passes are not replayed in the backward pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.patterns.bodies import Facts, statements
from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.story import Body, Story

UNROLLED = 16  # Warp unrolls constant ranges up to this length

CARRIED = Pattern(
    "value carried through a dynamic loop", "dynamic_loop",
    "the backward pass does not replay the passes: the adjoint is evaluated with the value of another pass",
    "the value is only added up and only used linearly",
    "Give the loop a constant bound (up to max_unroll), or one launch a pass.",
)  # fmt: skip
WHILE = Pattern(
    "while loop over array elements", "dynamic_loop",
    "the index is shifted by one pass in the backward pass, even where the loop only adds",
    "nothing in the loop depends on what is optimised", "Use `for ... in range(...)`.",
)  # fmt: skip
BREAK = Pattern(
    "break in a differentiated loop", "dynamic_loop",
    "where the break is taken, the adjoint of the loop is wrong (often exactly zero)",
    "it is never taken", "Replace it by a condition around the loop's body, or return early.",
)  # fmt: skip
CONTINUE = Pattern(
    "continue in a dynamic loop", "dynamic_loop",
    "a pass that is skipped must be skipped in the backward pass too",
    "measured right on Warp 1.13 to 1.19 where nothing is carried", "Use an `if` around the rest of the body.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Every loop of the kernels that matter."""
    for body in story.bodies:
        facts = Facts(story, body)
        for node in statements(body.function):
            if isinstance(node, (ast.For, ast.While)):
                yield from _loop(story, body, facts, node)


def _loop(story: Story, body: Body, facts: Facts, node: ast.For | ast.While) -> Iterator[Hit]:
    inner = [n for s in node.body for n in ast.walk(s)]
    differentiated = [
        n for n in inner
        if (isinstance(n, (ast.Assign, ast.AugAssign)) and facts.depends(n.value))
        or (isinstance(n, ast.Call) and facts.called(n).startswith("atomic_") and any(map(facts.depends, n.args[1:])))
    ]  # fmt: skip
    if not differentiated:
        return
    dynamic = isinstance(node, ast.While) or not _static(node, body, facts)
    if any(isinstance(n, ast.Break) for n in _own(node)):
        found = next(n for n in _own(node) if isinstance(n, ast.Break))
        yield story.lead(BREAK, body, found, f"in the loop of line {node.lineno}", strong=True)
    if isinstance(node, ast.While):
        yield story.lead(WHILE, body, node, strong=True)
        return
    if not dynamic:
        return
    name, why = _carried(body, facts, node, inner)
    if name:
        yield story.lead(CARRIED, body, node, f"{name} {why}", strong=True, variable=name)
        for each in _own(node):
            if isinstance(each, ast.Continue):
                yield story.lead(CONTINUE, body, each, f"in the loop of line {node.lineno}", strong=False)


def _own(loop: ast.For | ast.While) -> Iterator[ast.AST]:
    """The parts of a loop's body that are not inside another loop or function."""
    queue: list[ast.AST] = list(loop.body)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, (ast.For, ast.While, ast.FunctionDef)):
            queue += list(ast.iter_child_nodes(node))


def _static(node: ast.For, body: Body, facts: Facts) -> bool:
    """Whether Warp unrolls the loop: `range` of few constants (or `wp.static`)."""
    call = node.iter
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "range":
        return False
    if any(isinstance(a, ast.Call) and facts.called(a) == "static" for a in call.args):
        return True
    shadowed = set(facts.definitions) | set(facts.annotations)
    numbers = [
        None if {n.id for n in ast.walk(a) if isinstance(n, ast.Name)} & shadowed else body.source.number(a)
        for a in call.args
    ]  # fmt: skip
    if any(n is None or not isinstance(n, int) for n in numbers):
        imported = [a for a in call.args if isinstance(a, (ast.Name, ast.Attribute))]
        return bool(imported) and all(
            n is not None or (isinstance(a, ast.Name) and a.id not in shadowed and a.id not in body.source.constants)
            for n, a in zip(numbers, call.args)
        )  # a constant of another module: not known, so nothing is claimed
    try:
        length = len(range(*[int(n) for n in numbers if n is not None]))
    except (TypeError, ValueError):
        return False
    option = body.source.option(body.kernel.node, "max_unroll")
    most = option[0] if option and isinstance(option[0], int) else UNROLLED
    return length <= most


def _carried(body: Body, facts: Facts, node: ast.For, inner: list[ast.AST]) -> tuple[str, str]:
    """A local that a later pass needs and that is used nonlinearly: (its name, how)."""
    sums: set[str] = set()
    starts = _assigned_before(body, node)
    for each in inner:
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and each.target.id in starts:
            name = each.target.id
            if isinstance(each.op, (ast.Add, ast.Sub)):
                if _mentions(each.value, name) and facts.depends(each.value):
                    return name, "feeds back into itself from pass to pass"
                if facts.depends(each.value):
                    sums.add(name)
            elif isinstance(each.op, (ast.Mult, ast.Div)) and facts.depends(each.value):
                return name, "is multiplied from pass to pass"
        elif isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name):
            name = each.targets[0].id
            if name not in starts or not facts.depends(each.value):
                continue
            if _mentions(each.value, name):
                if not _adds(each.value, name):
                    return name, "feeds back into itself from pass to pass"
                sums.add(name)
            elif _read_before(node, name, each):
                return name, "is read in the next pass"
    for name in sorted(sums):
        use = _nonlinear_use(body, facts, node, name)
        if use is not None:
            return name, f"is added up here and used nonlinearly in line {use}"
    return "", ""


def _assigned_before(body: Body, loop: ast.For) -> set[str]:
    """Locals that have a value when the loop starts."""
    found: set[str] = {a.arg for a in body.function.args.args}
    for node in statements(body.function):
        if node.lineno >= loop.lineno:
            break
        targets = node.targets if isinstance(node, ast.Assign) else []
        found |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return found


def _mentions(value: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value))


def _adds(value: ast.expr, name: str) -> bool:
    """`name + ...` where the rest does not mention the name."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if isinstance(one, ast.Name) and one.id == name:
                return not _mentions(other, name)
        return (_adds(value.left, name) and not _mentions(value.right, name)) or (
            _adds(value.right, name) and not _mentions(value.left, name)
        )
    return False


def _read_before(loop: ast.For, name: str, assignment: ast.AST) -> bool:
    """Whether a pass reads the name before it assigns it."""
    line = getattr(assignment, "lineno", 0)
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and n.lineno < line
        for s in loop.body
        for n in ast.walk(s)
    )


def _nonlinear_use(body: Body, facts: Facts, loop: ast.For, name: str) -> int | None:
    """A line in or after the loop where the sum is a factor, a divisor or an argument of a function."""
    end = loop.end_lineno or loop.lineno
    aliases = {name}
    for node in statements(body.function):
        if node.lineno < loop.lineno:
            continue
        inside = node.lineno <= end
        for part in ast.walk(node) if not isinstance(node, (ast.For, ast.While, ast.If)) else ():
            if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Mult, ast.Div, ast.Pow)):
                left, right = _any(part.left, aliases), _any(part.right, aliases)
                if (left and right) or (right and isinstance(part.op, (ast.Div, ast.Pow))):
                    return part.lineno
                if left and isinstance(part.op, ast.Pow):
                    return part.lineno
                other = part.right if left else part.left
                if (left or right) and not inside and facts.depends(other):
                    return part.lineno
            if isinstance(part, ast.Call) and not inside and any(_any(a, aliases) for a in part.args):
                called = facts.called(part)
                if (
                    called
                    and not called.startswith(("atomic_", "vec", "mat", "float"))
                    and called not in ("print", "dot")
                ):
                    return part.lineno
        if isinstance(node, ast.Assign) and not inside and _any(node.value, aliases):
            aliases |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return None


def _any(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))
