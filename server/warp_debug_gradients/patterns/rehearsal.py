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

from warp_debug_gradients.patterns import effects, expressions, statements
from warp_debug_gradients.patterns.events import Event
from warp_debug_gradients.patterns.hits import Spot
from warp_debug_gradients.patterns.kernel_reader import read_kernel
from warp_debug_gradients.patterns.kernels import Kernel
from warp_debug_gradients.patterns.program import Program
from warp_debug_gradients.patterns.source import SourceFile
from warp_debug_gradients.patterns.statements import RETURN, Signal
from warp_debug_gradients.patterns.values import (
    Array,
    Class,
    Const,
    Env,
    Function,
    Host,
    Instance,
    KernelValue,
    Module,
    Symbol,
    TapeValue,
)

BUDGET = 60_000  # statements and expressions; a rehearsal of an ordinary script takes a few thousand
DEEPEST = 20


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

    # -- statements and expressions -------------------------------------------------------------------

    def block(self, body: list[ast.stmt], env: Env) -> Signal:
        """Follows statements until one leaves the block."""
        return statements.block(self, body, env)

    def assign(self, target: ast.expr, value: Any, env: Env, node: ast.AST) -> None:
        """Binds a target."""
        statements.assign(self, target, value, env, node)

    def value(self, node: ast.AST | None, env: Env) -> Any:
        """What an expression is; its effects happen on the way."""
        return expressions.evaluate(self, node, env)

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
