"""A rehearsal of the host code: its statements are followed in order, with arrays and tapes as abstract objects.

Nothing is run. Loops are passed a few times (the first two passes and the last), calls of the user's functions are
followed, both branches of an unknown `if` are taken. What comes out is the list of events that checkers look at:
which launch reads and writes which array under which tape, when gradients are read and zeroed. Objects that cannot
be known are symbols with no claims attached; a program can always be too clever for this, so a rehearsal only ever
yields leads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import partial
from typing import Any

from warp_debug_gradients.patterns import effects
from warp_debug_gradients.patterns.events import Event
from warp_debug_gradients.patterns.hits import Spot
from warp_debug_gradients.patterns.iteration import elements, passes
from warp_debug_gradients.patterns.kernel_reader import read_kernel
from warp_debug_gradients.patterns.kernels import Kernel
from warp_debug_gradients.patterns.program import Program
from warp_debug_gradients.patterns.source import SourceFile, arithmetic
from warp_debug_gradients.patterns.values import (
    Array,
    Class,
    Const,
    Env,
    Function,
    GradOf,
    Host,
    Instance,
    KernelValue,
    Library,
    Mapping,
    Module,
    Sequence,
    Symbol,
    TapeValue,
    Warp,
    arrays_in,
    host_sources,
)

BUDGET = 60_000  # statements and expressions; a rehearsal of an ordinary script takes a few thousand
DEEPEST = 20
RETURN, BREAK, CONTINUE = "return", "break", "continue"
Signal = tuple[str, Any] | None


class OutOfBudget(Exception):
    """The program is too large to be followed to its end."""


class Rehearsal:
    """Follows a program; `events` is what it did."""

    def __init__(self, program: Program, budget: int = BUDGET, strict: bool = False) -> None:
        self.program = program
        self.strict = strict  # let our own errors out
        self.budget = budget
        self.events: list[Event] = []
        self.notes: list[str] = []
        self.modules: dict[int, Module] = {}
        self.kernels: dict[int, Kernel] = {}
        self.entered: set[int] = set()
        self._returns: dict[int, bool] = {}  # by function: whether a branch of it returns something
        self.made: dict[int, Instance] = {}  # by class: an object for the methods that nothing calls
        self.tape: TapeValue | None = None
        self.stack: list[Spot] = []
        self.active: list[int] = []  # nodes of the functions being followed
        self.functions: list[str] = []
        self.loops: list[int] = []
        self.visit: list[int] = []
        self.branches = 0  # unknown conditions around
        self.zeroings: dict[Array, int] = {}
        self.on_tape: dict[TapeValue, list[Array]] = {}
        self.gradients_of: set[TapeValue] = set()  # tapes whose backward ran: only those can zero
        self.source: SourceFile | None = None
        self.rebound: list[tuple[Any, Any, str]] = []  # element assignments of the statement being followed

    # -- the whole program ----------------------------------------------------------------------------

    def run(self) -> None:
        """Every module, then every function that nothing called."""
        imported = {id(b.source) for s in self.program.sources for b in self.program.bindings[id(s)].values()}
        roots = [s for s in self.program.sources if id(s) not in imported]
        for source in [*roots, *self.program.sources]:
            self._guarded(source.name, partial(self.module, source, source in roots))
        for drivers in (True, False):  # those that train first: they call the others
            for source in self.program.sources:
                for node, owner in _functions(source):
                    if id(node) not in self.entered and (not drivers or source.mentions(node, ("backward", "Tape"))):
                        self._guarded(f"{source.name}:{node.name}", partial(self._uncalled, source, node, owner))

    def _guarded(self, what: str, work: Any) -> None:
        saved = (self.tape, self.source)
        try:
            work()
        except OutOfBudget:
            self.notes.append(f"{what}: too long to be followed to its end")
        except RecursionError:
            self.notes.append(f"{what}: nested too deeply to be followed")
        except Exception as error:
            if self.strict:
                raise
            self.notes.append(f"{what}: could not be followed ({type(error).__name__}: {error})")
        self.tape, self.source = saved
        self.stack, self.active, self.functions, self.loops, self.visit, self.branches = [], [], [], [], [], 0

    def _uncalled(self, source: SourceFile, node: ast.FunctionDef, owner: ast.ClassDef | None) -> None:
        self.budget = max(self.budget, BUDGET // 20)
        module = self.module(source)
        self.source = source
        if owner is None:
            known = module.env.get(node.name)
            function = known if isinstance(known, Function) else Function(source, node, module.env)
        else:
            cls = module.env.get(owner.name)
            if not isinstance(cls, Class):
                return
            instance = self._object_of(cls, node)
            static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
            function = Function(source, node, cls.env, None if static else instance)
        self.call(function, [], {}, node, unknown=True)

    def _object_of(self, cls: Class, node: ast.AST) -> Instance:
        """An object as the class makes it, whatever an earlier method has done with its own."""
        if id(cls) not in self.made:
            self.made[id(cls)] = self.construct(cls, [], {}, node, unknown=True)
        made = self.made[id(cls)]
        return Instance(cls, made.name, dict(made.attrs))

    def module(self, source: SourceFile, main: bool = False) -> Module:
        """A module, followed once."""
        known = self.modules.get(id(source))
        if known is not None or source.tree is None:
            return known or Module(source, Env({}))
        env = Env({"__name__": Const("__main__" if main else source.path.stem), "__file__": Host()})
        module = self.modules[id(source)] = Module(source, env)
        outer, self.source = self.source, source
        self.block(source.tree.body, env)
        self.source = outer
        return module

    # -- events ---------------------------------------------------------------------------------------

    def emit(self, kind: str, node: ast.AST, **fields: Any) -> Event:
        """Notes an event at `node` of the file being followed."""
        assert self.source is not None
        event = Event(
            kind,
            self.source,
            node,
            len(self.events),
            tape=fields.pop("tape", self.tape),
            stack=tuple(self.stack),
            visit=tuple(self.visit),
            loops=tuple(self.loops),
            function=self.functions[-1] if self.functions else None,
            conditional=self.branches > 0,
            **fields,
        )
        self.events.append(event)
        if event.tape is not None and event.recorded and kind in ("launch", "copy"):
            known = self.on_tape.setdefault(event.tape, [])
            known += [t.array for t in event.touches]
            known += [a for a in (event.array, event.other) if a is not None]
        return event

    def new_array(self, node: ast.AST, grads: Iterable[Array] = (), reads: Iterable[int] = (), **fields: Any) -> Array:
        """A fresh array made at `node`; `grads` are in the numbers that it is made of, read by the events `reads`."""
        assert self.source is not None
        array = Array("", self.source, node, visit=tuple(self.visit), **fields)
        self.emit("alloc", node, array=array, grads=list(grads), reads=sorted(reads))
        return array

    def symbol(self, name: str, node: ast.AST) -> Symbol:
        """An object of which nothing is known."""
        assert self.source is not None
        return Symbol(name, self.source, node)

    def kernel(self, value: Any) -> Kernel | None:
        """The model of a kernel."""
        if not isinstance(value, KernelValue):
            return None
        if id(value.node) not in self.kernels:
            self.kernels[id(value.node)] = read_kernel(self.program, value.source, value.node)
        return self.kernels[id(value.node)]

    def spend(self) -> None:
        """One step of the budget."""
        self.budget -= 1
        if self.budget < 0:
            raise OutOfBudget

    # -- statements -----------------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt], env: Env) -> Signal:
        """Follows statements until one leaves the block."""
        for statement in statements:
            self.spend()
            signal = self.statement(statement, env)
            if signal is not None:
                return signal
        return None

    def statement(self, node: ast.stmt, env: Env) -> Signal:
        """Follows one statement."""
        if isinstance(node, ast.Expr):
            self.value(node.value, env)
        elif isinstance(node, ast.Assign):
            value = self.value(node.value, env)
            self.summed(node, env)
            for target in node.targets:
                self.assign(target, value, env, node)
            for container, element, text in self.rebound:  # after the whole statement: a swap is none
                if sum(each is element for each in effects.held(container)) > 1:
                    self.emit("rebind", node, arrays=arrays_in(element), what=text)
            self.rebound = []
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.value(node.value, env), env, node)
        elif isinstance(node, ast.AugAssign):
            self.augment(node, env)
        elif isinstance(node, ast.Return):
            return RETURN, self.value(node.value, env)
        elif isinstance(node, ast.If):
            return self.condition(node, env)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return self.loop(node, env)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            return self.enter(node, env)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            env.set(node.name, self.define(node, env))
        elif isinstance(node, ast.ClassDef):
            env.set(node.name, self.define_class(node, env))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imported(node, env)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            env.outer |= set(node.names)
        elif isinstance(node, ast.Break):
            return BREAK, None
        elif isinstance(node, ast.Continue):
            return CONTINUE, None
        elif isinstance(node, ast.Match):
            self.branches += 1
            for case in node.cases:
                self.block(case.body, env)
            self.branches -= 1
        elif hasattr(node, "handlers"):  # try
            signal = self.block(getattr(node, "body", []), env)
            after = self.block([*getattr(node, "orelse", []), *getattr(node, "finalbody", [])], env)
            return signal or after
        return None

    def condition(self, node: ast.If, env: Env) -> Signal:
        test = self.truth(self.value(node.test, env))
        if test is not None:
            return self.block(node.body if test else node.orelse, env)
        self.branches += 1
        first = self.block(node.body, env)
        second = self.block(node.orelse, env)
        self.branches -= 1
        return first if first and second else None

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, env: Env) -> Signal:
        if isinstance(node, ast.While):
            self.value(node.test, env)
            given: list[Any] = [None, None]
        else:
            given = elements(self, self.value(node.iter, env), node)
        self.loops.append(id(node))
        result: Signal = None
        for number, each in enumerate(given):
            self.visit.append(number)
            if not isinstance(node, ast.While):
                self.assign(node.target, each, env, node)
            signal = self.block(node.body, env)
            self.visit.pop()
            if signal and signal[0] in (RETURN, BREAK):
                result = signal if signal[0] == RETURN else None
                break
        self.loops.pop()
        return result or self.block(node.orelse, env)

    def enter(self, node: ast.With | ast.AsyncWith, env: Env) -> Signal:
        outer, entered = self.tape, None
        for item in node.items:
            value = self.value(item.context_expr, env)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, env, node)
            if isinstance(value, TapeValue):
                entered = value
                self.emit("tape_enter", node, subject=value, tape=None)
                self.tape = value
        signal = self.block(node.body, env)
        if entered is not None:
            self.emit("tape_exit", node, subject=entered, tape=None)
        self.tape = outer
        return signal

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> Any:
        assert self.source is not None
        compiled = self.source.compiled.get(node)
        if compiled and isinstance(node, ast.FunctionDef):
            return KernelValue(self.source, node) if compiled.kind == "kernel" else Library(f"wp.func {node.name}")
        return Function(self.source, node, env)

    def define_class(self, node: ast.ClassDef, env: Env) -> Class:
        assert self.source is not None
        inner = Env({}, env)
        compiled = self.source.compiled.get(node)
        self.block([s for s in node.body if not isinstance(s, ast.Expr)], inner)
        bases = [self.value(b, env) for b in node.bases]
        struct = compiled is not None and compiled.kind == "struct"
        return Class(node.name, self.source, node, env, bases, inner.names, struct)

    def imported(self, node: ast.Import | ast.ImportFrom, env: Env) -> None:
        assert self.source is not None
        bindings = self.program.bindings[id(self.source)]
        for name in node.names:
            local = name.asname or (name.name if isinstance(node, ast.ImportFrom) else name.name.partition(".")[0])
            bound = bindings.get(local)
            if name.name == "*" and isinstance(node, ast.ImportFrom):
                source = self.program.module(self.source, node.level, node.module or "")
                for key, value in (self.module(source).env.names if source else {}).items():
                    if not key.startswith("_"):
                        env.set(key, value)
            elif local in self.source.aliases and (local != "wp" or bound is None):
                env.set(local, Warp(self.source.aliases[local]))
            elif bound is not None:
                module = self.module(bound.source)
                value = module.env.get(bound.name) if bound.name else module
                env.set(local, value if value is not None else Host(text=local))
            else:
                prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                env.set(local, Library(prefix + (name.name if prefix or name.asname else local)))

    # -- binding --------------------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Any, env: Env, node: ast.AST) -> None:
        """Binds a target."""
        if isinstance(target, ast.Starred):
            target = target.value
        if isinstance(target, (ast.Tuple, ast.List)):
            for position, each in enumerate(target.elts):
                part = self.index(value, Const(position), node) if not isinstance(value, Host) else value
                self.assign(each, part, env, node)
        elif isinstance(target, ast.Name):
            self.christen(value, target.id)
            env.set(target.id, value)
        elif isinstance(target, ast.Attribute):
            effects.set_attribute(self, self.value(target.value, env), target, value, node)
        elif isinstance(target, ast.Subscript):
            owner = self.value(target.value, env)
            effects.set_item(self, owner, self.value(target.slice, env), target, value, node)

    def christen(self, value: Any, name: str) -> None:
        """Gives an object the name of the variable that it is first bound to."""
        if isinstance(value, (Array, Instance, TapeValue)) and value.name in ("", "tape"):
            value.name = name
        elif isinstance(value, Sequence):
            for position, each in enumerate(value.items[:8]):
                self.christen(each, f"{name}[{position}]")

    def augment(self, node: ast.AugAssign, env: Env) -> None:
        known = self.value(node.target, env)
        value = self.value(node.value, env)
        if isinstance(known, Host) and known.view is not None:
            self.emit("host_write", node, array=known.view, of_grad=known.of_grad, **host_sources([value]).listed())
            return
        if isinstance(node.op, ast.Add):
            self.added(node, known, value)
        if isinstance(known, Sequence) and isinstance(node.op, ast.Add):
            effects.extend(known, value)
            return
        self.assign(node.target, self.combine(node.op, known, value), env, node)

    def summed(self, node: ast.Assign, env: Env) -> None:
        """`x = x + g`, as `x += g`."""
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            known = env.get(target.id)
            sides = [s for s in (value.left, value.right) if not (isinstance(s, ast.Name) and s.id == target.id)]
            if isinstance(known, Host) and len(sides) == 1 and isinstance(sides[0], ast.Name):
                self.added(node, known, self.value(sides[0], env))

    def added(self, node: ast.AST, known: Any, value: Any) -> None:
        """A gradient is added to a number on the host that holds an earlier reading of the same one."""
        added = host_sources([value])
        both = {a.root for a in host_sources([known]).grads} & {a.root for a in added.grads}
        if both:
            self.emit("host_add", node, arrays=list(both), reads=sorted(added.reads))

    # -- expressions ----------------------------------------------------------------------------------

    def value(self, node: ast.AST | None, env: Env) -> Any:
        """What an expression is; its effects happen on the way."""
        self.spend()
        if node is None:
            return Const(None)
        if isinstance(node, ast.Constant):
            return Const(node.value)
        if isinstance(node, ast.Name):
            return self.name(node, env)
        if isinstance(node, ast.Attribute):
            return effects.attribute(self, self.value(node.value, env), node.attr, node)
        if isinstance(node, ast.Subscript):
            return self.index(self.value(node.value, env), self.value(node.slice, env), node)
        if isinstance(node, ast.Call):
            return effects.call(self, node, env)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            found = Sequence([])
            for each in node.elts:
                if isinstance(each, ast.Starred):
                    effects.extend(found, self.value(each.value, env))
                else:
                    found.items.append(self.value(each, env))
            return found
        if isinstance(node, ast.Dict):
            return Mapping(
                {self.key(self.value(k, env)): self.value(v, env) for k, v in zip(node.keys, node.values) if k}
            )
        if isinstance(node, ast.BinOp):
            return self.combine(node.op, self.value(node.left, env), self.value(node.right, env))
        if isinstance(node, ast.UnaryOp):
            inner = self.value(node.operand, env)
            if isinstance(node.op, ast.Not):
                truth = self.truth(inner)
                return Host() if truth is None else Const(not truth)
            if isinstance(inner, Const) and isinstance(inner.value, (int, float)) and isinstance(node.op, ast.USub):
                return Const(-inner.value)
            return self.mix([inner])
        if isinstance(node, ast.IfExp):
            truth = self.truth(self.value(node.test, env))
            if truth is not None:
                return self.value(node.body if truth else node.orelse, env)
            first, second = self.value(node.body, env), self.value(node.orelse, env)
            return first if not isinstance(first, (Const, Host)) else second
        if isinstance(node, ast.Compare):
            return self.compare(node, env)
        if isinstance(node, ast.BoolOp):
            return self.boolean(node, env)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return self.comprehension(node.elt, node.generators, env)
        if isinstance(node, ast.DictComp):
            self.comprehension(node.value, node.generators, env)
            return Host()
        if isinstance(node, ast.Lambda):
            assert self.source is not None
            return Function(self.source, node, env)
        if isinstance(node, ast.NamedExpr):
            value = self.value(node.value, env)
            self.assign(node.target, value, env, node)
            return value
        if isinstance(node, ast.Slice):
            return Sequence([self.value(p, env) for p in (node.lower, node.upper, node.step)])
        if isinstance(node, (ast.Await, ast.YieldFrom, ast.Yield, ast.Starred)):
            return self.value(node.value, env)
        return self.mix([self.value(c, env) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)])

    def name(self, node: ast.Name, env: Env) -> Any:
        value = env.get(node.id)
        if value is None:
            assert self.source is not None
            warp = self.source.warp_name(node)
            return Library(f"builtins.{node.id}") if warp is None else Warp(warp)
        if isinstance(value, Host) and value.of_grad and value.view is not None:
            stale = self.zeroings.get(value.view.root, 0) != value.stamp
            self.emit("host_use", node, array=value.view, of_grad=True, what="zeroed" if stale else "")
        return value

    def index(self, owner: Any, key: Any, node: ast.AST) -> Any:
        """`owner[key]`."""
        if isinstance(owner, Sequence):
            if isinstance(key, Const) and isinstance(key.value, int):
                found = owner.get(key.value)
                return self.symbol("an element", node) if found is None else found
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
                return effects.slice_of(owner, key)
            return self.symbol("an element", node)
        if isinstance(owner, Mapping):
            return owner.items.get(self.key(key)) or Host()
        if isinstance(owner, Symbol):
            if isinstance(key, Const) and isinstance(key.value, (int, str)):
                return owner.child(key.value)
            return self.symbol(f"{owner.name}[...]", node)
        if isinstance(owner, Array):
            return effects.view_of(self, owner, node)
        if isinstance(owner, Host):
            scalar = isinstance(key, Const) and isinstance(key.value, int)
            view = None if scalar else owner.view
            return Host(owner.arrays, owner.grads, view, owner.of_grad, owner.stamp, reads=owner.reads)
        if isinstance(owner, GradOf):
            return owner
        return Host()

    def key(self, value: Any) -> object:
        """A dict key, where it is known."""
        known = value.value if isinstance(value, Const) else None
        return known if isinstance(known, (int, str, float)) else id(value)

    def truth(self, value: Any) -> bool | None:
        """Whether a condition holds, where that is known."""
        if isinstance(value, Const):
            return bool(value.value)
        if isinstance(value, (Array, Instance, TapeValue, Function)) and not isinstance(value, Symbol):
            return True
        return None

    def combine(self, op: ast.operator, left: Any, right: Any) -> Any:
        """A binary operation."""
        if isinstance(left, Const) and isinstance(right, Const):
            if isinstance(left.value, (int, float)) and isinstance(right.value, (int, float)):
                number = arithmetic(op, left.value, right.value)
                return Host() if number is None else Const(number)
            return Host()
        if isinstance(op, ast.Add) and isinstance(left, Sequence) and isinstance(right, Sequence):
            both = Sequence(list(left.items), left.template, left.open, left.made, left.length)
            effects.extend(both, right)
            return both
        if isinstance(op, ast.Mult) and isinstance(left, Sequence):
            known = len(left.items) == 1 and left.template is None
            return Sequence(left.items * 3, None, True) if known else Sequence(list(left.items), left.template, True)
        return self.mix([left, right])

    def mix(self, values: list[Any]) -> Host:
        """A host value computed from others."""
        sources = host_sources(values)
        clock = any(isinstance(v, Host) and v.text == "clock" for v in values)
        return Host(sources.arrays, sources.grads, text="clock" if clock else "", reads=sources.reads)

    def compare(self, node: ast.Compare, env: Env) -> Any:
        left = self.value(node.left, env)
        rights = [self.value(c, env) for c in node.comparators]
        if len(rights) == 1:
            right, op = rights[0], node.ops[0]
            if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, Const) and right.value is None:
                known = not isinstance(left, (Host, Symbol, Library))
                if known:
                    none = isinstance(left, Const) and left.value is None
                    return Const(none if isinstance(op, ast.Is) else not none)
            if isinstance(left, Const) and isinstance(right, Const):
                return effects.compared(op, left.value, right.value)
        return self.mix([left, *rights])

    def boolean(self, node: ast.BoolOp, env: Env) -> Any:
        unknown = False
        value: Any = Host()
        for each in node.values:
            value = self.value(each, env)
            truth = self.truth(value)
            if truth is None:
                unknown = True
            elif truth is isinstance(node.op, ast.Or):
                return value if not unknown or isinstance(node.op, ast.And) else Host()
        return Host() if unknown else value

    def comprehension(self, element: ast.expr, generators: list[ast.comprehension], env: Env) -> Any:
        """A list with known elements, or one that makes each element when it is asked for."""
        first = generators[0]
        over = self.value(first.iter, env)
        indices, length = passes(over)
        shown = Env(dict(env.names), env.parent, env.outer)  # later assignments must not change what is made

        def make(index: object) -> Any:
            scope = Env({}, shown)
            each = elements(self, over, first, [index])
            self.assign(first.target, each[0] if each else Host(), scope, first)
            if len(generators) > 1:
                return self.comprehension(element, generators[1:], scope)
            made = self.value(element, scope)
            return made

        if len(generators) > 1:
            inner = [make(i) for i in indices]
            return Sequence([x for s in inner if isinstance(s, Sequence) for x in s.items], open=True)
        if first.ifs or (length is not None and length <= 4):
            return Sequence([make(i) for i in indices], open=bool(first.ifs))
        return Sequence([], make, length=length)

    # -- calls ----------------------------------------------------------------------------------------

    def call(
        self, function: Any, args: list[Any], keywords: dict[str, Any], node: ast.AST, unknown: bool = False
    ) -> Any:
        """Follows a call of a user's function."""
        inner = function.node
        self.entered.add(id(inner))
        if self.active.count(id(inner)) > 1 or len(self.active) >= DEEPEST:
            return Host()
        env = Env({}, function.env)
        effects.bind(self, function, args, keywords, env, unknown)
        assert self.source is not None
        outer, spot = self.source, Spot(self.source.name, getattr(node, "lineno", 1), "called here")
        if not unknown:
            self.stack.append(spot)
        self.active.append(id(inner))
        self.functions.append(getattr(inner, "name", "lambda"))
        self.source = function.source
        if isinstance(inner, ast.Lambda):
            result: Any = self.value(inner.body, env)
        else:
            signal = self.block(inner.body, env)
            result = signal[1] if signal and signal[0] == RETURN else self._possible_return(inner, env)
        self.source = outer
        self.functions.pop()
        self.active.pop()
        if not unknown:
            self.stack.pop()
        return result

    def _possible_return(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> Any:
        """None, or something unknown where a branch that is not certain returns."""
        if id(node) not in self._returns:
            self._returns[id(node)] = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node))
        return Host() if self._returns[id(node)] else Const(None)

    def construct(
        self, cls: Class, args: list[Any], keywords: dict[str, Any], node: ast.AST, unknown: bool = False
    ) -> Instance:
        """An instance of a user's class; its `__init__` is followed."""
        instance = Instance(cls)
        init = cls.lookup("__init__")
        if isinstance(init, Function):
            self.call(Function(init.source, init.node, init.env, instance), args, keywords, node, unknown)
        else:
            fields = [s for s in cls.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
            names = [s.target.id for s in fields if isinstance(s.target, ast.Name)]
            instance.attrs.update({**dict(zip(names, args)), **keywords})
        return instance


def _functions(source: SourceFile) -> list[tuple[ast.FunctionDef, ast.ClassDef | None]]:
    """Module-level functions and methods that Warp does not compile."""
    found: list[tuple[ast.FunctionDef, ast.ClassDef | None]] = []
    for node in source.tree.body if source.tree else []:
        if isinstance(node, ast.FunctionDef):
            found.append((node, None))
        elif isinstance(node, ast.ClassDef):
            found += [(m, node) for m in node.body if isinstance(m, ast.FunctionDef)]
    return [(n, owner) for n, owner in found if n not in source.compiled]
