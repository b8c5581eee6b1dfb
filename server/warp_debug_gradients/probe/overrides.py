"""Module constants replaced while a file is compiled: `{"train.NUM_STEPS": 10}`.

A key is a module's name (the script's stem, `__main__`, or the dotted name of a module of the workspace)
and the constant's name in it; class attributes, dataclass defaults and what `__init__` sets on `self` too
(`train.Config.steps`), the default of a function's parameter (`train.solve.sweeps`), and the number in a function's only loop
`for _ in range(12)` (`train.solve.range`). The source on disk stays as it is, line numbers stay, and no `.pyc` of changed code is
read or written.
`Overrides` decides which files get it; `replacer.py` does the work on the syntax tree, `constant_values.py` on the values.
"""

from __future__ import annotations

import ast
import difflib
import importlib.machinery
import os
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any, Iterable, Mapping

from .replacer import OverrideError, Replacer


def _split_key(key: str) -> list[str]:
    parts = key.split(".")
    if len(parts) < 2 or not all(parts):
        raise OverrideError("override_syntax", f"override {key!r} should read MODULE.CONSTANT, such as train.NUM_STEPS")
    return parts


class Overrides:
    """All overrides of one job: applied as files are compiled, accounted for at the end."""

    def __init__(self, values: Mapping[str, Any], workspace: str) -> None:
        for key in values:
            _split_key(key)
        self.values = dict(values)
        self.workspace = os.path.realpath(workspace)
        self.errors = []  # kept, since the user's program may swallow the exception
        self._applied = []
        self._main_names = {"__main__"}
        self._main_file = None

    # -- before and while the program runs ------------------------------------------------------------

    def install(self, script: str | None = None, module: str | None = None) -> None:
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

    def main_module(self, spec: ModuleSpec) -> ModuleSpec:
        """The spec of the module that `-m` runs, loaded with the overrides of `__main__` and of its last name."""
        self._main_names |= {spec.name, spec.name.rpartition(".")[2]}
        if not self._keys_for(self._main_names):
            return spec
        return self._with_overrides(spec, named=True)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not self._keys_for([name]):
            return None
        spec = find_spec_after(self, name, path, target)
        return self._with_overrides(spec) if spec is not None else None

    def _with_overrides(self, spec: ModuleSpec, named: bool = False) -> ModuleSpec:
        """named: the user asked for this very module, wherever it is installed."""
        from_source = isinstance(spec.loader, importlib.machinery.SourceFileLoader)
        if from_source and (named or self._is_users(spec.origin)):
            self._rewrite_in(spec.loader)
        return spec

    def _rewrite_in(self, loader: Any) -> None:
        """Has this one loader object compile its file with the overrides; its type stays (type checkers bring theirs).

        The bytecode cache is left alone: a loader without file statistics neither reads nor writes it.
        """
        if "source_to_code" in vars(loader):  # done when the module was looked for
            return
        translate = loader.source_to_code

        def source_to_code(data: bytes, path: str, **options: Any) -> Any:
            return translate(self._rewritten_module(data, path, loader.name), path, **options)

        def path_stats(path: str) -> Any:
            raise OSError(f"overrides apply to {path}: no bytecode")

        loader.source_to_code, loader.path_stats = source_to_code, path_stats

    def compile_main(self, source: bytes, filename: str) -> types.CodeType:
        """The code object of the main script."""
        return compile(self._rewritten(source, filename, self._main_names, ""), filename, "exec", dont_inherit=True)

    def _rewritten_module(self, source: bytes, filename: str, name: str) -> bytes | ast.Module:
        package = os.path.basename(filename) == "__init__.py"
        is_main = name in self._main_names or (self._main_file and os.path.realpath(filename) == self._main_file)
        return self._rewritten(
            source,
            filename,
            self._main_names | {name} if is_main else {name},
            name if package else name.rpartition(".")[0],
        )

    def _rewritten(self, source: bytes, filename: str, names: set[str], package: str) -> bytes | ast.Module:
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

    def _keys_for(self, names: Iterable[str]) -> dict[str, list[str]]:
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

    def describe(self) -> list[dict[str, Any]]:
        """What was replaced: `[{key, old (source text), new, file, line}]`, in the order of the files' loading."""
        unique = {(each["key"], each["file"], each["line"]): each for each in self._applied}
        return list(unique.values())

    def unapplied(self) -> list[OverrideError]:
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

    def _is_users(self, filename: str | None) -> bool:
        if not filename or not filename.endswith(".py"):
            return False
        filename = os.path.realpath(filename)
        inside = filename.startswith(os.path.join(self.workspace, ""))
        return inside and not {"site-packages", "dist-packages"} & set(filename.split(os.sep))

    def _check_modules(self) -> None:
        modules = None
        for key in self.values:
            if self._keys_for(self._main_names).get(key):
                continue
            if modules is None:
                modules = workspace_modules(self.workspace)
            head = _split_key(key)[0]
            if head not in modules:
                known = sorted({*self._main_names, *modules} - {"__main__"})
                near = difflib.get_close_matches(head, known, 3) or known[:10]
                error = OverrideError(
                    "override_unknown_module",
                    f"override {key!r}: the workspace has no module {head!r}; it has {', '.join(near) or 'none'}",
                    key,
                )
                self.errors.append(error)
                raise error


def find_spec_after(finder: Any, name: str, path: Any, target: Any) -> ModuleSpec | None:
    """What the finders behind `finder` on `sys.meta_path` say."""
    finders = list(sys.meta_path)
    for other in finders[finders.index(finder) + 1 :] if finder in finders else finders:
        find = getattr(other, "find_spec", None)
        spec = find(name, path, target) if find else None
        if spec is not None:
            return spec
    return None


def _means_submodule(filename: str, path: list[str]) -> bool:
    """`pkg.mod.N` seen from pkg/__init__.py: the constant of a submodule, not of a class `mod`."""
    if len(path) < 2 or os.path.basename(filename) != "__init__.py":
        return False
    child = os.path.join(os.path.dirname(filename), path[0])
    return os.path.isfile(child + ".py") or os.path.isdir(child)


def workspace_modules(workspace: str, limit: int = 20_000) -> set[str]:
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
