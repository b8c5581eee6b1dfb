"""A kernel whose generated code does not compile: the compiler's own words, out of the program's output.

Warp's exception says only that the build failed; the compiler (Clang inside Warp, NVRTC) has printed the rest.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from warp_debug_gradients.operations.constructs import parsed
from warp_debug_gradients.schemas import Location, ScriptError

TEXT_LIMIT = 2_000  # characters of the compiler's text that the answer carries; all of it is in the output
_BUILD_FAILED = re.compile(r"build failed|[Ff]ailed to build|nvrtc", re.IGNORECASE)
_DIAGNOSTIC = re.compile(
    r"^(?P<file>\S.*?\.(?:cpp|cu))(?::(?P<line>\d+):(?P<column>\d+)|\((?P<cuda_line>\d+)\)): error: "
)
_END = re.compile(r"^\d+ errors? (?:generated|detected)")
# What Warp calls the parts of a kernel in the code that it generates: NAME_HASH_cpu_kernel_forward, wp_args_NAME_HASH.
_KERNEL = re.compile(
    r"\b(?:wp_args_(\w+?)(?:_[0-9a-f]{8})?\s*\{|(\w+?)(?:_[0-9a-f]{8})?_(?:cpu|cuda)_kernel_(?:forward|backward)\b)"
)
# Words of C++ that are good names in Python.
_WORDS_OF_CPP = """
    alignas auto bool case catch char class const constexpr default delete do double enum explicit export
    extern float friend goto inline int long mutable namespace new operator private protected public register
    short signed sizeof static struct switch template this throw typedef typename union unsigned using virtual
    void volatile
"""


def add_compiler_text(error: ScriptError, output: str, files: Iterable[Path] = ()) -> ScriptError:
    """The error with the compiler's message, the kernel, and what to change; as it was where none is in the output.

    files: of the program, in which the name is looked up that has to be changed.
    """
    lines = output.splitlines()
    first = next((k for k, line in enumerate(lines) if _DIAGNOSTIC.match(line)), None)
    if first is None or not _BUILD_FAILED.search(error.message):
        return error
    found = _DIAGNOSTIC.match(lines[first])
    assert found is not None
    last = next((k for k in range(first, len(lines)) if _END.match(lines[k])), len(lines) - 1)
    text = "\n".join(lines[first : last + 1]).replace(found["file"], Path(found["file"]).name)
    kernel = kernel_at(found["file"], int(found["line"] or found["cuda_line"])) or error.kernel
    word = _reserved_word(lines[first : first + 2], found["column"])
    if word:
        advice = (
            f"{word} is a word of C++, and Warp puts the names of a kernel into the C++ that it generates as they are: "
            f"rename it in {kernel or 'the kernel'}."
        )
    else:
        advice = (
            f"The C++ that Warp generated for {kernel or 'a kernel'} does not compile (compiler_message): look for the name or "
            "type of yours that the compiler complains about."
        )
    shortened = text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + " …"
    named = place_of(word, kernel, files) if word and kernel else None
    return error.model_copy(update={"compiler_message": shortened, "kernel": kernel, "advice": advice, "named": named})


def place_of(word: str, kernel: str, files: Iterable[Path]) -> Location | None:
    """Where a name first stands in the one function that is called as the kernel is; None where there are more, or none."""
    found: list[Location] = []
    for file in files:
        try:
            tree = parsed(file.read_text(errors="replace"))
        except OSError:
            continue
        for function in ast.walk(tree or ast.Module([], [])):
            if isinstance(function, ast.FunctionDef) and function.name == kernel:
                lines = [
                    n.lineno
                    for n in ast.walk(function)
                    if (isinstance(n, ast.Name) and n.id == word) or (isinstance(n, ast.arg) and n.arg == word)
                ]
                found += [Location(file=str(file), line=min(lines))] if lines else []
    return found[0] if len(found) == 1 else None


def kernel_at(file: str, line: int) -> str | None:
    """The kernel to which a line of generated code belongs, if the file is still there."""
    try:
        above = Path(file).read_text(errors="replace").splitlines()[:line]
    except OSError:
        return None
    for text in reversed(above):
        named = _KERNEL.search(text)
        if named:
            return named[1] or named[2]
    return None


def _reserved_word(diagnostic: list[str], column: str | None) -> str | None:
    """The word under the compiler's mark, if Python has it as a name and C++ does not."""
    if column is None or len(diagnostic) < 2:
        return None
    source = diagnostic[1].partition("|")[2][1:]  # '   24 |     wp::array_t<wp::float32> switch;'
    word = re.match(r"\w+", source[int(column) - 1 :])
    return word[0] if word and word[0] in _WORDS_OF_CPP.split() else None
