"""Inside a kernel or `@wp.func`: which expressions depend on arrays, and what kind of thing a local is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warp_debug_gradients.patterns.kernels import BUILDERS, PIECEWISE, PLAIN, array_dtype, is_array, is_integer
from warp_debug_gradients.patterns.source import SourceFile
from warp_debug_gradients.patterns.story import Body, Story

COMPOUND = re.compile(r"^(vec|mat|quat|transform|spatial_)")


class Facts:
    """What is known about the names of one function body."""

    def __init__(self, story: Story, body: Body) -> None:
        self.passive = story.passive.get(id(body.kernel.node), set()) if body.is_kernel else set[str]()
        self.source: SourceFile = body.source
        self.function = body.function
        every = [*body.function.args.posonlyargs, *body.function.args.args]
        self.annotations = {a.arg: a.annotation for a in every}
        self.arrays = {n for n, a in self.annotations.items() if is_array(a)}
        self.integers = {n for n in self.arrays if is_integer(array_dtype(self.annotations[n]))}
        self.structs = {n for n, a in self.annotations.items() if n not in self.arrays and self._unknown(a)}
        self.definitions: dict[str, list[ast.expr]] = {}
        for node in ast.walk(body.function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.definitions.setdefault(target.id, []).append(node.value)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.definitions.setdefault(node.target.id, []).append(node.value)
        self.dependent: set[str] = set()
        if not body.is_kernel:  # what a function is given may depend on anything
            self.dependent = {n for n, a in self.annotations.items() if not self._integer(a) and n not in self.arrays}
        for _ in range(6):
            before = len(self.dependent)
            self.dependent |= {n for n, values in self.definitions.items() if any(map(self.depends, values))}
            if len(self.dependent) == before:
                break

    def _unknown(self, annotation: ast.expr | None) -> bool:
        name = ast.unparse(annotation).rsplit(".", 1)[-1] if annotation is not None else ""
        return not (self._integer(annotation) or name.startswith("float") or COMPOUND.match(name))

    @staticmethod
    def _integer(annotation: ast.expr | None) -> bool:
        return annotation is not None and is_integer(ast.unparse(annotation).rsplit(".", 1)[-1])

    def depends(self, node: ast.AST | None) -> bool:
        """Whether a value depends, differentiably, on the contents of arrays (or on what a function was given)."""
        if node is None:
            return False
        if isinstance(node, ast.Name):
            return node.id in self.dependent
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            root = root_name(node)
            if root in self.passive or self._path(node) in self.passive:
                return False  # nobody asks for that derivative
            if root in self.arrays:
                return root not in self.integers and any(isinstance(n, ast.Subscript) for n in chain(node))
            if root in self.structs:
                return any(isinstance(n, ast.Subscript) for n in chain(node))
            return root in self.dependent
        if isinstance(node, (ast.Compare, ast.BoolOp)):
            return False
        if isinstance(node, ast.Call):
            name = self.called(node)
            if name in PIECEWISE or name in PLAIN:
                return False
            return any(self.depends(a) for a in [*node.args, *(k.value for k in node.keywords)])
        if isinstance(node, ast.IfExp):
            return self.depends(node.body) or self.depends(node.orelse)
        return any(self.depends(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))

    @staticmethod
    def _path(node: ast.AST) -> str:
        """`s.q` of `s.q[i].x`."""
        found = ""
        for part in chain(node):
            if isinstance(part, ast.Subscript):
                found = ast.unparse(part.value)
        return found

    def called(self, node: ast.Call) -> str:
        """The last part of what a call calls, where it is Warp's or Python's; "" for a function of the user's."""
        name = self.source.warp_name(node.func)
        if name is not None:
            return name.rsplit(".", 1)[-1]
        return (
            node.func.id if isinstance(node.func, ast.Name) and node.func.id in ("int", "float", "len", "abs") else ""
        )

    def compound(self, name: str) -> bool:
        """Whether a local is a vector, matrix, quaternion or transform."""
        annotation = self.annotations.get(name)
        if annotation is not None and name not in self.arrays:
            return bool(COMPOUND.match(ast.unparse(annotation).rsplit(".", 1)[-1]))
        return any(self._builds(value, 0) for value in self.definitions.get(name, []))

    def _builds(self, value: ast.expr, depth: int) -> bool:
        if depth > 4:
            return False
        if isinstance(value, ast.Call):
            name = self.called(value)
            return bool(name) and (name.startswith(BUILDERS) or name in ("normalize", "cross", "quat_rotate"))
        if isinstance(value, ast.Subscript):
            return bool(COMPOUND.match(array_dtype(self.annotations.get(root_name(value) or ""))))
        if isinstance(value, ast.BinOp):
            return self._builds(value.left, depth + 1) or self._builds(value.right, depth + 1)
        if isinstance(value, ast.UnaryOp):
            return self._builds(value.operand, depth + 1)
        if not isinstance(value, ast.Name):
            return False
        if value.id in self.annotations:  # a copy of an argument
            return value.id not in self.arrays and self.compound(value.id)
        return any(self._builds(v, depth + 1) for v in self.definitions.get(value.id, []) if v is not value)

    def is_array_access(self, node: ast.AST) -> bool:
        """Whether a target is an element of an array argument (or a component of one)."""
        root = root_name(node)
        return (root in self.arrays or root in self.structs) and any(isinstance(n, ast.Subscript) for n in chain(node))

    def expanded(self, node: ast.expr, depth: int = 2) -> Iterator[ast.AST]:
        """The parts of an expression, with the definitions of its locals."""
        for part in ast.walk(node):
            yield part
            if isinstance(part, ast.Name) and depth and part.id not in self.annotations:
                for value in self.definitions.get(part.id, [])[:4]:
                    yield from self.expanded(value, depth - 1)


def chain(node: ast.AST) -> Iterator[ast.AST]:
    """The subscripts and attributes of an access expression, outermost first."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        yield node
        node = node.value


def root_name(node: ast.AST) -> str | None:
    """The name that an access expression starts from."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def statements(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Every statement of a function, in source order."""
    queue: list[ast.stmt] = list(function.body)
    while queue:
        node = queue.pop(0)
        yield node
        inner = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.stmt)]
        queue = inner + queue
