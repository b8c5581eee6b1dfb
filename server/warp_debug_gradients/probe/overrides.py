"""Module constants replaced while a file is compiled: `{"train.NUM_STEPS": 10}`.

A key is a module's name (the script's stem, `__main__`, or the dotted name of a module of the workspace)
and the constant's name in it; class attributes, dataclass defaults and what `__init__` sets on `self` too
(`train.Config.steps`), the default of a function's parameter (`train.solve.sweeps`), and the number in a function's only loop
`for _ in range(12)` (`train.solve.range`). The source on disk stays as it is, line numbers stay, and no `.pyc` of changed code is
read or written.
`Replacer` does the work on the syntax tree; `Overrides` decides which files get it.
"""

import ast
import difflib
import importlib.machinery
import importlib.util
import math
import os
import sys


class OverrideError(Exception):
    """An override that cannot be applied as asked. `code` is stable, the message says what to change."""

    def __init__(self, code, message, key=None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.key = key


def parse_set(text):
    """`'train.NUM_STEPS=10'` -> `('train.NUM_STEPS', 10)`; what is no Python literal is a string."""
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    _split_key(key)
    if not equals:
        raise OverrideError("override_syntax", f"{text!r} should read MODULE.CONSTANT=VALUE")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return key, {"true": True, "false": False, "null": None}.get(value, value)


def _split_key(key):
    parts = key.split(".")
    if len(parts) < 2 or not all(parts):
        raise OverrideError("override_syntax", f"override {key!r} should read MODULE.CONSTANT, such as train.NUM_STEPS")
    return parts


class Overrides:
    """All overrides of one job: applied as files are compiled, accounted for at the end."""

    def __init__(self, values, workspace):
        for key in values:
            _split_key(key)
        self.values = dict(values)
        self.workspace = os.path.realpath(workspace)
        self.errors = []  # kept, since the user's program may swallow the exception
        self._applied = []
        self._main_names = {"__main__"}
        self._main_file = None

    # -- before and while the program runs ------------------------------------------------------------

    def install(self, script=None, module=None):
        """Takes its place in the import system; refuses modules that are nowhere in the workspace."""
        if not self.values:
            return
        if module:
            self._main_names |= {module, module.rpartition(".")[2]}
        if script:
            self._main_names.add(os.path.splitext(os.path.basename(script))[0])
            self._main_file = os.path.realpath(script)
        self._check_modules()
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def main_module(self, spec):
        """The spec of the module that `-m` runs, loaded with the overrides of `__main__` and of its last name."""
        self._main_names |= {spec.name, spec.name.rpartition(".")[2]}
        if not self._keys_for(self._main_names):
            return spec
        return self._with_overrides(spec, named=True)

    def find_spec(self, name, path=None, target=None):
        if not self._keys_for([name]):
            return None
        return self._with_overrides(find_spec_after(self, name, path, target))

    def _with_overrides(self, spec, named=False):
        """named: the user asked for this very module, wherever it is installed."""
        from_source = spec and isinstance(spec.loader, importlib.machinery.SourceFileLoader)
        if from_source and (named or self._is_users(spec.origin)):
            self._rewrite_in(spec.loader)
        return spec

    def _rewrite_in(self, loader):
        """Has this one loader object compile its file with the overrides; its type stays (type checkers bring theirs).

        The bytecode cache is left alone: a loader without file statistics neither reads nor writes it.
        """
        if "source_to_code" in vars(loader):  # done when the module was looked for
            return
        translate = loader.source_to_code

        def source_to_code(data, path, **options):
            return translate(self._rewritten_module(data, path, loader.name), path, **options)

        def path_stats(path):
            raise OSError(f"overrides apply to {path}: no bytecode")

        loader.source_to_code, loader.path_stats = source_to_code, path_stats

    def compile_main(self, source, filename):
        """The code object of the main script."""
        return compile(self._rewritten(source, filename, self._main_names, ""), filename, "exec", dont_inherit=True)

    def _rewritten_module(self, source, filename, name):
        package = os.path.basename(filename) == "__init__.py"
        is_main = name in self._main_names or (self._main_file and os.path.realpath(filename) == self._main_file)
        return self._rewritten(
            source,
            filename,
            self._main_names | {name} if is_main else {name},
            name if package else name.rpartition(".")[0],
        )

    def _rewritten(self, source, filename, names, package):
        """The syntax tree with the overrides, or the source where there are none."""
        wanted = self._keys_for(names)
        if not wanted:
            return source
        replacer = Replacer(source, filename, package)
        for key, path in wanted.items():
            if _means_submodule(filename, path):
                continue
            try:
                self._applied += replacer.replace(key, path, self.values[key])
            except OverrideError as error:
                error.key = key
                self.errors.append(error)
                raise
        return ast.fix_missing_locations(replacer.tree)

    def _keys_for(self, names):
        """key -> path inside the module, for the keys that may mean a module of one of these names."""
        found = {}
        for key in self.values:
            for name in names:
                if key.startswith(name + "."):
                    path = key[len(name) + 1 :].split(".")
                    if key not in found or len(path) < len(found[key]):
                        found[key] = path
        return found

    # -- what was done ----------------------------------------------------------------------------------

    def describe(self):
        """What was replaced: `[{key, old (source text), new, file, line}]`, in the order of the files' loading."""
        unique = {(each["key"], each["file"], each["line"]): each for each in self._applied}
        return list(unique.values())

    def unapplied(self):
        """One error for each override whose file was never loaded; asked when the program has ended."""
        done = {each["key"] for each in self._applied}
        reported = {error.key for error in self.errors}
        return [
            OverrideError(
                "override_not_loaded",
                f"override {key!r} had no effect: the program never loaded a module "
                f"{key.rpartition('.')[0]!r} from a file of the workspace",
                key,
            )
            for key in self.values
            if key not in done and key not in reported
        ]

    # -- which files are the user's ---------------------------------------------------------------------

    def _is_users(self, filename):
        if not filename or not filename.endswith(".py"):
            return False
        filename = os.path.realpath(filename)
        inside = filename.startswith(os.path.join(self.workspace, ""))
        return inside and not {"site-packages", "dist-packages"} & set(filename.split(os.sep))

    def _check_modules(self):
        modules = None
        for key in self.values:
            if self._keys_for(self._main_names).get(key):
                continue
            if modules is None:
                modules = workspace_modules(self.workspace)
            head = _split_key(key)[0]
            if head not in modules:
                known = sorted(self._main_names - {"__main__"}) + sorted(modules)
                near = difflib.get_close_matches(head, known, 3) or known[:10]
                error = OverrideError(
                    "override_unknown_module",
                    f"override {key!r}: the workspace has no module {head!r}; it has {', '.join(near) or 'none'}",
                    key,
                )
                self.errors.append(error)
                raise error


def find_spec_after(finder, name, path, target):
    """What the finders behind `finder` on `sys.meta_path` say."""
    finders = list(sys.meta_path)
    for other in finders[finders.index(finder) + 1 :] if finder in finders else finders:
        find = getattr(other, "find_spec", None)
        spec = find(name, path, target) if find else None
        if spec is not None:
            return spec
    return None


def _means_submodule(filename, path):
    """`pkg.mod.N` seen from pkg/__init__.py: the constant of a submodule, not of a class `mod`."""
    if len(path) < 2 or os.path.basename(filename) != "__init__.py":
        return False
    child = os.path.join(os.path.dirname(filename), path[0])
    return os.path.isfile(child + ".py") or os.path.isdir(child)


def workspace_modules(workspace, limit=20_000):
    """Names of all modules and packages in a workspace, wherever they lie (`sys.path` may yet change)."""
    names, seen = set(), 0
    for folder, folders, files in os.walk(workspace):
        skipped = {"site-packages", "dist-packages", "node_modules", "__pycache__"}
        folders[:] = [d for d in folders if d not in skipped and not d.startswith(".")]
        names.update(f[:-3] for f in files if f.endswith(".py"))
        if any(f.endswith(".py") for f in files):
            names.add(os.path.basename(folder))
        seen += len(files)
        if seen > limit:
            break
    return names - {"__init__", "__main__"}


class Replacer:
    """Finds the assignments of constants in one module's syntax tree and replaces their values."""

    def __init__(self, source, filename, package=""):
        self.filename = filename
        self.package = package
        self.text = importlib.util.decode_source(source) if isinstance(source, bytes) else source
        self.tree = ast.parse(source, filename)

    def replace(self, key, path, value):
        """Replaces one constant; returns what changed, one description an assignment, or raises OverrideError."""
        scopes = [self.tree]
        for part in path[:-1]:
            scopes = [
                n for scope in scopes for n in _statements(scope) if isinstance(n, ast.ClassDef) and n.name == part
            ]
        kinds = {}
        for scope in scopes:
            for statement in _statements(scope):
                for name, kind in _defined(statement):
                    kinds.setdefault(name, []).append((kind, statement))
        mine = kinds.get(path[-1], [])
        change = _Change(self, key, path[-1], value)
        if any(kind == "value" for kind, _ in mine):
            for scope in scopes:
                change.rewrite(scope)
        else:
            for method in filter(None, map(_initializer, scopes)):
                change.name = f"{method.args.args[0].arg}.{path[-1]}"
                change.rewrite(method)
        if not change.places and len(path) > 1:
            change.name = path[-1]
            self._functions(path[:-1], change)
        if not change.places:
            raise self._refusal(key, path, mine, scopes)
        return change.places

    def _functions(self, path, change):
        """The default of a function's parameter: `train.solve.sweeps`, `train.Solver.solve.sweeps`; or `train.solve.range`."""
        scopes = [self.tree]
        for part in path[:-1]:
            scopes = [n for s in scopes for n in _statements(s) if isinstance(n, ast.ClassDef) and n.name == part]
        for function in [n for s in scopes for n in _statements(s)]:
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name == path[-1]:
                change.rewrite_default(function)
                if change.name == "range" and not change.places:
                    change.rewrite_range(function)

    def source_of(self, node):
        return " ".join((ast.get_source_segment(self.text, node) or "").split())[:200]

    def constants(self):
        """Dotted names of everything this module assigns at its top level or in its classes."""
        return [*_constant_names(self.tree)]

    def _refusal(self, key, path, mine, scopes):
        name, where = path[-1], os.path.basename(self.filename)
        kinds = {kind for kind, _ in mine}
        for kind, statement in mine:
            if kind == "import":
                return OverrideError(
                    "override_imported_name", f"override {key!r}: {self._import_advice(name, statement)}"
                )
        if "augmented" in kinds:
            text = self.source_of(mine[0][1])
            return OverrideError(
                "override_augmented_only",
                f"override {key!r}: {where} never assigns {name}, it only changes it ({text})",
            )
        if "bare" in kinds:
            return OverrideError(
                "override_no_value", f"override {key!r}: {where} declares {name} without a value to replace"
            )
        known = self.constants()
        near = difflib.get_close_matches(".".join(path), known, 3)
        message = f"override {key!r}: {where} has no constant {'.'.join(path)}"
        if kinds:
            message += f" ({name} is a {'/'.join(sorted(kinds))})"
        if near:
            message += f"; did you mean {' or '.join(near)}?"
        message += f"{'' if near else '.'} Constants there: {', '.join(known[:30]) or 'none'}"
        stars = [
            s
            for scope in scopes
            for s in _statements(scope)
            if isinstance(s, ast.ImportFrom) and s.names[0].name == "*"
        ]
        if stars:
            message += f"; it may come from {', '.join(self._imported_module(s) for s in stars)} (import *)"
        return OverrideError("override_unknown_name", message)

    def _import_advice(self, name, statement):
        origin = next(a.name for a in statement.names if (a.asname or a.name.partition(".")[0]) == name)
        if isinstance(statement, ast.Import):
            return f"{name} is the imported module {origin}, not a constant"
        module = self._imported_module(statement)
        return f"{name} is only imported here; set {module}.{origin} instead"

    def _imported_module(self, statement):
        if not statement.level:
            return statement.module or ""
        parts = self.package.split(".") if self.package else []
        parts = parts[: len(parts) - (statement.level - 1)]
        return ".".join([*parts, statement.module] if statement.module else parts)


class _Change:
    """One constant getting its new value, at every assignment of a scope. `name`: `STEPS`, or `self.steps`."""

    def __init__(self, replacer, key, name, value):
        self.replacer, self.key, self.name, self.value = replacer, key, name, value
        self.places = []

    def rewrite(self, scope):
        for block in _blocks(scope):
            block[:] = [new for old in block for new in self._statement(old)]
            for statement in block:
                if not isinstance(statement, _SCOPES):
                    self.rewrite(statement)

    def rewrite_default(self, function):
        """The default of the parameter of this name."""
        arguments = function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        first = len(positional) - len(arguments.defaults)
        for argument, defaults, index in [
            *((a, arguments.defaults, k) for k, a in enumerate(positional[first:])),
            *((a, arguments.kw_defaults, k) for k, a in enumerate(arguments.kwonlyargs)),
        ]:
            if argument.arg == self.name and defaults[index] is not None:
                defaults[index] = self._replaced(defaults[index], function, argument.annotation)

    def rewrite_range(self, function):
        """The number in `for _ in range(12)`, where the function has one such loop."""
        calls = [n.iter for n in ast.walk(function) if isinstance(n, ast.For) and isinstance(n.iter, ast.Call)]
        counted = [c for c in calls if _called(c) == "range" and len(c.args) == 1 and _kind(c.args[0]) == "int"]
        if len(counted) == 1:
            counted[0].args[0] = self._replaced(counted[0].args[0], counted[0])

    def _statement(self, node):
        if isinstance(node, ast.Assign):
            return self._assign(node)
        if isinstance(node, ast.AnnAssign) and self._is_name(node.target) and node.value is not None:
            node.value = self._replaced(node.value, node, node.annotation)
        elif isinstance(node, ast.AugAssign) and self._is_name(node.target):
            return [self._assignment(node, None)]
        elif any(name == self.name and kind == "import" for name, kind in _defined(node)):
            return [node, self._assignment(node, None)]  # `try: from fast import N / except ImportError: N = 1`
        return [node]

    def _assign(self, node):
        direct = [target for target in node.targets if self._is_name(target)]
        unpacked = [t for t in node.targets if isinstance(t, (ast.Tuple, ast.List)) and any(map(self._is_name, t.elts))]
        if direct and len(node.targets) == 1:
            node.value = self._replaced(node.value, node)
        elif direct:  # `A = B = 5`: B keeps its value
            own = self._assignment(node, node.value)
            node.targets = [target for target in node.targets if target not in direct]
            return [node, own]
        elif unpacked and len(node.targets) == 1 and _same_length(unpacked[0], node.value):
            for position, target in enumerate(unpacked[0].elts):
                if self._is_name(target):
                    node.value.elts[position] = self._replaced(node.value.elts[position], node)
        elif unpacked:  # `NX, NY = shape()`
            return [node, self._assignment(node, None)]
        return [node]

    def _is_name(self, node):
        return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == self.name

    def _assignment(self, statement, old):
        """A new `NAME = value` in the place of a statement; `old` is what the constant's type follows from."""
        target = ast.parse(self.name, mode="eval").body
        target.ctx = ast.Store()
        target = ast.copy_location(target, statement)
        value = self._replaced(old, statement)
        return ast.copy_location(ast.Assign([target], value, lineno=statement.lineno), statement)

    def _replaced(self, old, statement, annotation=None):
        try:
            new = fitted(old, self.value, _annotated_kind(annotation))
        except TypeError as error:
            where = f"{os.path.basename(self.replacer.filename)}:{statement.lineno}"
            raise OverrideError("override_type", f"override {self.key!r} at {where}: {error}") from None
        self.places.append(
            {
                "key": self.key,
                "old": self.replacer.source_of(old if old is not None else statement),
                "new": self.value,
                "file": self.replacer.filename,
                "line": statement.lineno,
            }
        )
        return ast.copy_location(new, old if old is not None else statement)


# -- statements ---------------------------------------------------------------------------------------------

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _blocks(node):
    """The statement lists directly under a node: body, orelse, handlers, match cases."""
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list) and value:
            if isinstance(value[0], ast.stmt):
                yield value
            elif isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
                for part in value:
                    yield part.body


def _statements(scope):
    """All statements of a module or class, those in its if/try/with/for blocks too, not of inner scopes."""
    for block in _blocks(scope):
        for statement in block:
            yield statement
            if not isinstance(statement, _SCOPES):
                yield from _statements(statement)


def _defined(statement):
    """(name, kind) for each name that a statement binds."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(each, ast.Name):
                    yield each.id, "value"
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id, "bare" if statement.value is None else "value"
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id, "augmented"
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0], "import"
    elif isinstance(statement, ast.ClassDef):
        yield statement.name, "class"
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield statement.name, "function"
    elif isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
        yield statement.target.id, "loop variable"


def _initializer(scope):
    """The `__init__` of a class, where it takes `self`."""
    if not isinstance(scope, ast.ClassDef):
        return None
    methods = [s for s in _statements(scope) if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
    return methods[-1] if methods and methods[-1].args.args else None


def _own_attributes(method):
    """The attributes that an `__init__` sets on its object, such as `steps` of `self.steps = 10`."""
    for statement in _statements(method):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == method.args.args[0].arg:
                yield target.attr


def _constant_names(scope, prefix=""):
    found = {}
    method = _initializer(scope)
    if method is not None:
        found.update({prefix + name: None for name in _own_attributes(method)})
    for statement in _statements(scope):
        if isinstance(statement, ast.ClassDef):
            found.update(dict.fromkeys(_constant_names(statement, f"{prefix}{statement.name}.")))
        found.update({prefix + name: None for name, kind in _defined(statement) if kind == "value"})
    return found


def _same_length(targets, value):
    return (
        isinstance(value, (ast.Tuple, ast.List))
        and len(value.elts) == len(targets.elts)
        and not any(isinstance(e, ast.Starred) for e in [*targets.elts, *value.elts])
    )


# -- values ---------------------------------------------------------------------------------------------------

_INTS = {"int", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))}
_FLOATS = {"float", "float16", "float32", "float64", "bfloat16"}
_NUMBERS_BY_NAME = {"pi", "tau", "inf", "nan", "PI", "TAU", "INF", "NAN"}
# One-argument calls that give a constant its type and are therefore kept around the new value.
_WRAPPER_KINDS = {
    **dict.fromkeys(_INTS, "int"),
    **dict.fromkeys(_FLOATS, "float"),
    **dict.fromkeys(("bool", "bool_"), "bool"),
    **dict.fromkeys(("str", "Path", "PurePath"), "str"),
    **dict.fromkeys(("constant", "array", "asarray", "tuple", "list", "set", "frozenset"), None),
}


def fitted(old, value, kind=None):
    """The syntax node for `value` in the place of `old` (a node, or None); TypeError if the types clash."""
    if value is None:
        return ast.Constant(None)
    if isinstance(old, ast.Call):
        kept = _fitted_call(old, value, kind)
        if kept is not None:
            return kept
    return _literal(_checked(kind or _kind(old), value, old))


def _fitted_call(call, value, kind):
    """The same call around the new value, where the call is a type or a `field(default=...)`; else None."""
    name = _called(call)
    keywords = {each.arg: each for each in call.keywords}
    if name == "field" and "default" in keywords:
        keywords["default"].value = fitted(keywords["default"].value, value, kind)
        return call
    if name == "field" and "default_factory" in keywords:
        made = keywords["default_factory"].value
        made = made.body if isinstance(made, ast.Lambda) else None
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        keywords["default_factory"].value = ast.Lambda(nothing, fitted(made, value))
        return call
    if call.keywords or not call.args or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    several = isinstance(value, (list, tuple))
    if several and (len(call.args) == len(value) > 1 or _is_vector_type(name)):  # wp.vec3(0.0, -9.8, 0.0)
        olds = call.args if len(call.args) == len(value) else [call.args[0]] * len(value)
        return ast.Call(call.func, [fitted(*pair) for pair in zip(olds, value, strict=True)], [])
    if len(call.args) == 1 and name in _WRAPPER_KINDS:
        return ast.Call(call.func, [fitted(call.args[0], value, _WRAPPER_KINDS[name])], [])
    return None


def _is_vector_type(name):
    return name.rstrip("0123456789fdhiublsc").startswith(("vec", "quat", "mat", "transform"))


def _called(call):
    return getattr(call.func, "attr", None) or getattr(call.func, "id", "")


def _checked(kind, value, old):
    """`value` as the kind of constant it replaces; TypeError where Python would compute something else."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "bool" and not isinstance(value, bool):
        raise TypeError(f"a bool cannot become {value!r}")
    if kind == "int":
        if not number or not math.isfinite(value) or value != int(value):
            raise TypeError(f"an int cannot become {value!r}")
        return int(value)
    if kind == "float":
        if value in ("nan", "inf", "-inf"):
            return float(value)
        if not number:
            raise TypeError(f"a float cannot become {value!r}")
        return float(value)
    if kind == "str" and not isinstance(value, str):
        raise TypeError(f"a str cannot become {value!r}")
    if kind == "dict" and not isinstance(value, dict):
        raise TypeError(f"a dict cannot become {value!r}")
    if kind in ("list", "tuple", "set"):
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"a {kind} cannot become {value!r}")
        inner = {_kind(each) for each in old.elts} if isinstance(old, (ast.List, ast.Tuple, ast.Set)) else set()
        if inner == {"float"}:
            value = [_checked("float", each, None) for each in value]
        return {"list": list, "tuple": tuple, "set": set}[kind](value)
    return value


def _kind(node):
    """What type an expression has, as far as its text alone says; None where it does not."""
    if isinstance(node, ast.Constant):
        return {bool: "bool", int: "int", float: "float", str: "str"}.get(type(node.value))
    if isinstance(node, ast.UnaryOp):
        return "bool" if isinstance(node.op, ast.Not) else _kind(node.operand)
    if isinstance(node, ast.BinOp):
        kinds = {_kind(node.left), _kind(node.right)}
        if kinds <= {"int", "float"}:
            return "float" if isinstance(node.op, ast.Div) or "float" in kinds else "int"
        return None
    if isinstance(node, ast.Attribute):
        return "float" if node.attr in _NUMBERS_BY_NAME else None
    if isinstance(node, ast.Call):
        return _WRAPPER_KINDS.get(_called(node))
    by_node = {ast.JoinedStr: "str", ast.Compare: "bool", ast.List: "list", ast.Tuple: "tuple"}
    return {**by_node, ast.Set: "set", ast.Dict: "dict"}.get(type(node))


def _annotated_kind(annotation):
    if isinstance(annotation, ast.Subscript) and _last_name(annotation.value) in ("Final", "ClassVar"):
        annotation = annotation.slice
    return _WRAPPER_KINDS.get(_last_name(annotation))


def _last_name(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.rpartition(".")[2]
    return getattr(node, "attr", None) or getattr(node, "id", "")


def _literal(value):
    """The syntax node of a JSON value (tuples and sets too)."""
    if isinstance(value, (list, tuple)):
        return (ast.List if isinstance(value, list) else ast.Tuple)([_literal(v) for v in value], ast.Load())
    if isinstance(value, (set, frozenset)):
        return ast.Set([_literal(v) for v in value])
    if isinstance(value, dict):
        return ast.Dict([_literal(k) for k in value], [_literal(v) for v in value.values()])
    return ast.Constant(value)
