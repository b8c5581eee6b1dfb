"""Points where a derivative does not exist, and branches of `wp.where` that are evaluated although not selected."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.patterns.bodies import Facts, statements
from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.story import Body, Story

ROOTS = {"sqrt", "cbrt"}
LENGTHS = {"length", "length_sq", "norm_l2", "distance"}
GUARDED = {"normalize", "length", "norm_l2", "acos", "asin", "atan2"}  # measured: finite at their singular points
LIMITS = {"max", "clamp", "min", "abs"}
POISON = {"exp", "sqrt", "log", "log2", "log10", "pow", "acos", "asin", "cosh", "sinh", "cbrt"}

SINGULAR = Pattern(
    "derivative at a singular point", "singular_point",
    "the derivative is infinite or undefined there: inf or nan spreads to every gradient behind it",
    "the argument stays away from that point",
    "Add a small constant inside, or treat the point in a branch of its own.",
)  # fmt: skip
WHERE = Pattern(
    "wp.where with a branch that can overflow", "where_overflow",
    "both branches are evaluated and differentiated: 0 * inf of the one not selected is nan",
    "neither branch overflows for the values that occur",
    "Clamp the argument before the function, or use an if.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Both, in every kernel that matters."""
    for body in story.bodies:
        facts = Facts(story, body)
        for node in statements(body.function):
            for part in _expressions(node):
                if isinstance(part, ast.Call) and facts.called(part) in ("where", "select"):
                    yield from _where(story, body, facts, part)
                yield from _singular(story, body, facts, part)


def _expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without the statements inside it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from ast.walk(child)


def _singular(story: Story, body: Body, facts: Facts, node: ast.AST) -> Iterator[Hit]:
    if isinstance(node, ast.Call):
        name = facts.called(node)
        argument = node.args[0] if node.args else None
        if argument is None or not facts.depends(argument):
            return
        if name in ROOTS or (name == "pow" and len(node.args) > 1 and _fraction(body, node.args[1])):
            if not _kept_away(body, facts, argument) and not _guarded(body, node, argument):
                zero = _sum_of_squares(facts, argument)
                why = "the argument is 0 where the vector is" if zero else "at 0"
                yield story.lead(SINGULAR, body, node, f"{name}: {why}", strong=zero)
        elif name in ("log", "log2", "log10") and isinstance(argument, ast.Subscript):
            return  # of an array's element: its range is the data's
        elif name in ("acos", "asin"):
            if not any(isinstance(n, ast.Call) and facts.called(n) in LIMITS for n in ast.walk(argument)):
                yield story.lead(SINGULAR, body, node, f"{name} at 1 and -1 (Warp's adjoint is 0 there)", strong=False)
        elif name in ("normalize", "length") and _difference(facts, argument) and not _guarded(body, node, argument):
            return  # measured finite on every version: no lead
    elif isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and _fraction(body, node.right) and facts.depends(node.left):
            if not _kept_away(body, facts, node.left) and not _guarded(body, node, node.left):
                yield story.lead(
                    SINGULAR, body, node, "a fractional power at 0", strong=_sum_of_squares(facts, node.left)
                )
        elif isinstance(node.op, ast.Div) and facts.depends(node.right):
            divisor = _resolved(facts, node.right)
            risky = _difference(facts, divisor) or (isinstance(divisor, ast.Call) and facts.called(divisor) in LENGTHS)
            if risky and not _guarded(body, node, node.right):
                yield story.lead(SINGULAR, body, node, f"division by {ast.unparse(node.right)[:40]}", strong=False)


def _fraction(body: Body, node: ast.expr) -> bool:
    number = body.source.number(node)
    if number is None and isinstance(node, ast.Call) and node.args:
        number = body.source.number(node.args[0])
    return number is not None and 0 < number < 1


def _resolved(facts: Facts, node: ast.expr) -> ast.expr:
    """An expression, or the one definition of the local that it names."""
    for _ in range(3):
        if isinstance(node, ast.Name) and len(facts.definitions.get(node.id, [])) == 1:
            node = facts.definitions[node.id][0]
    return node


def _difference(facts: Facts, node: ast.expr) -> bool:
    node = _resolved(facts, node)
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and facts.depends(node.left)
        and facts.depends(node.right)
    )


def _kept_away(body: Body, facts: Facts, node: ast.expr) -> bool:
    """Whether a positive constant is added, or the value is limited from below."""
    node = _resolved(facts, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for side in (node.left, node.right):
            if not facts.depends(side) or _kept_away(body, facts, side):
                return True
    if isinstance(node, ast.Call):
        name = facts.called(node)
        if name in ("max", "clamp", "exp", "cosh"):
            return name in ("exp", "cosh") or any(body.source.number(a) != 0 for a in node.args if not facts.depends(a))
    return False


def _sum_of_squares(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """`dot(d, d)`, `x * x + y * y`, `length_sq(d)`: zero is reached where the vector is zero."""
    node = _resolved(facts, node)
    if isinstance(node, ast.Call):
        name = facts.called(node)
        same = len(node.args) == 2 and ast.unparse(node.args[0]) == ast.unparse(node.args[1])
        return name == "length_sq" or (name == "dot" and same)
    if isinstance(node, ast.BinOp) and depth < 4:
        if isinstance(node.op, ast.Mult):
            return ast.unparse(node.left) == ast.unparse(node.right)
        if isinstance(node.op, ast.Pow):
            return isinstance(node.right, ast.Constant) and node.right.value in (2, 2.0)
        if isinstance(node.op, ast.Add):
            return _sum_of_squares(facts, node.left, depth + 1) and _sum_of_squares(facts, node.right, depth + 1)
    return False


def _guarded(body: Body, node: ast.AST, argument: ast.expr) -> bool:
    """Whether an `if` (or a return before) that mentions a name of the argument stands around or before it."""
    names = {n.id for n in ast.walk(argument) if isinstance(n, ast.Name)} - {"wp", "warp"}
    line = getattr(node, "lineno", 0)
    for statement in statements(body.function):
        if not isinstance(statement, (ast.If, ast.While)) or statement.lineno > line:
            continue
        inside = statement.lineno <= line <= (statement.end_lineno or 0)
        leaves = any(isinstance(n, (ast.Return, ast.Continue)) for s in statement.body for n in ast.walk(s))
        compares = any(
            isinstance(n, (ast.Gt, ast.Lt, ast.GtE, ast.LtE, ast.Eq, ast.NotEq)) for n in ast.walk(statement.test)
        )
        mentioned = {n.id for n in ast.walk(statement.test) if isinstance(n, ast.Name)}
        if compares and (inside or leaves) and names & mentioned:
            return True
    return False


def _where(story: Story, body: Body, facts: Facts, node: ast.Call) -> Iterator[Hit]:
    if len(node.args) != 3:
        return
    asked = {n.id for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)}
    for branch in node.args[1:]:
        for part in facts.expanded(branch):
            risky: ast.expr | None = None
            if isinstance(part, ast.Call) and facts.called(part) in POISON and part.args:
                risky = part.args[0]
            elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
                risky = part.right
            if risky is None or not facts.depends(risky):
                continue
            if _kept_away(body, facts, risky) and not (isinstance(part, ast.Call) and facts.called(part) == "exp"):
                continue
            limited = any(isinstance(n, ast.Call) and facts.called(n) in LIMITS for n in facts.expanded(risky))
            if limited or _negative(risky):
                continue
            related = {n.id for n in ast.walk(risky) if isinstance(n, ast.Name)} & asked - {"wp", "warp"}
            yield story.lead(
                WHERE, body, node, f"{ast.unparse(part)[:50]} is evaluated in any case", strong=bool(related)
            )
            return


def _negative(node: ast.expr) -> bool:
    """`-d * d`, `-0.5 * x**2`: an exponent that cannot overflow."""
    text = ast.unparse(node).replace(" ", "")
    if not text.startswith("-"):
        return False
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return any(
        (
            isinstance(n, ast.BinOp)
            and isinstance(n.op, ast.Mult)
            and ast.unparse(n.left).lstrip("-") == ast.unparse(n.right)
        )
        or (isinstance(n, ast.Call) and "abs" in ast.unparse(n.func))
        for n in ast.walk(inner)
    )
