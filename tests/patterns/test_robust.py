"""Whatever parses is scanned: no module makes the scan crash, and ten files take well under a second."""

import ast
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snippets import FOUND, HARMLESS

from warp_debug_gradients.patterns import examine, scan

TEXTS = [text for table in (FOUND, HARMLESS) for texts in table.values() for text in texts]
NAMES = ["wp", "x", "y", "loss", "tape", "k", "self", "np", "states", "N"]
HERE = Path(__file__).parents[2]


def names():
    return st.sampled_from(NAMES).map(lambda n: ast.Name(n, ast.Load()))


def expressions():
    constants = st.one_of(
        st.integers(-3, 9), st.floats(allow_nan=False, allow_infinity=False), st.none(), st.booleans()
    )
    attributes = [
        "launch",
        "Tape",
        "zeros",
        "grad",
        "numpy",
        "backward",
        "zero",
        "copy",
        "append",
        "shape",
        "array",
        "q",
    ]
    return st.recursive(
        st.one_of(names(), constants.map(ast.Constant)),
        lambda inner: st.one_of(
            st.builds(lambda v, a: ast.Attribute(v, a, ast.Load()), inner, st.sampled_from(attributes)),
            st.builds(lambda v, i: ast.Subscript(v, i, ast.Load()), inner, inner),
            st.builds(
                lambda a, o, b: ast.BinOp(a, o, b), inner, st.sampled_from([ast.Add(), ast.Mult(), ast.Pow()]), inner
            ),
            st.builds(lambda f, a: ast.Call(f, a, []), inner, st.lists(inner, max_size=4)),
            st.builds(lambda a: ast.List(a, ast.Load()), st.lists(inner, max_size=3)),
            st.builds(lambda a, b, c: ast.IfExp(a, b, c), inner, inner, inner),
            st.builds(lambda k, v: ast.Dict([k], [v]), inner, inner),
            st.builds(
                lambda e, i: ast.ListComp(e, [ast.comprehension(ast.Name("x", ast.Store()), i, [], 0)]), inner, inner
            ),
            st.builds(lambda a, b: ast.Slice(a, b), inner, inner).map(
                lambda s: ast.Subscript(ast.Name("states", ast.Load()), s, ast.Load())
            ),
        ),
        max_leaves=8,
    )


def targets():
    stored = st.sampled_from(NAMES).map(lambda n: ast.Name(n, ast.Store()))
    return st.one_of(
        stored,
        st.builds(lambda v, i: ast.Subscript(v, i, ast.Store()), names(), expressions()),
        st.builds(lambda v: ast.Attribute(v, "q", ast.Store()), names()),
        st.builds(lambda a, b: ast.Tuple([a, b], ast.Store()), stored, stored),
    )


def statements():
    simple = st.one_of(
        st.builds(lambda t, v: ast.Assign([t], v), targets(), expressions()),
        st.builds(
            lambda n, v: ast.AugAssign(ast.Name(n, ast.Store()), ast.Mult(), v), st.sampled_from(NAMES), expressions()
        ),
        expressions().map(ast.Expr),
        st.just(ast.Return(None)).map(lambda _: ast.Pass()),
    )
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.builds(
                lambda t, i, b: ast.For(t, i, b, []), targets(), expressions(), st.lists(inner, min_size=1, max_size=3)
            ),
            st.builds(
                lambda t, b, o: ast.If(t, b, o), expressions(), st.lists(inner, min_size=1, max_size=2), st.just([])
            ),
            st.builds(
                lambda e, t, b: ast.With([ast.withitem(e, t)], b),
                expressions(),
                targets(),
                st.lists(inner, min_size=1, max_size=3),
            ),
            st.builds(lambda t, b: ast.While(t, b, []), expressions(), st.lists(inner, min_size=1, max_size=2)),
        ),
        max_leaves=6,
    )


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(
    body=st.lists(statements(), min_size=1, max_size=6),
    where=st.sampled_from(["module", "function", "kernel", "class"]),
)
def test_no_module_crashes_it(tmp_path, body, where):
    inside = "\n".join(ast.unparse(ast.fix_missing_locations(ast.Module([s], []))) for s in body)
    indented = "\n".join(f"        {line}" for line in inside.splitlines())
    text = {
        "module": f"import warp as wp\nimport numpy as np\n{inside}\n",
        "function": f"import warp as wp\ndef f(x, y=1, *states, **k):\n    if x:\n{indented}\nf(1)\n",
        "kernel": "import warp as wp\n@wp.kernel\ndef k(x: wp.array(dtype=float), y: wp.vec3, N: int):\n    if N > 1:\n"
        f"{indented}\nx = wp.zeros(3, requires_grad=True)\nwith wp.Tape() as tape:\n    wp.launch(k, 3, [x, x, 2])\ntape.backward()\n",
        "class": f"import warp as wp\nclass A:\n    def run(self, x):\n{indented}\n",
    }[where]
    file = tmp_path / "random_module.py"
    file.write_text(text)
    found = examine([file], strict=True)
    assert found.scanned or "cannot be parsed" in found.skipped[0][1]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_cut_and_mixed_programs(tmp_path, data):
    """Real programs with lines left out or moved: odd orders of tapes, launches and reads."""
    text = data.draw(st.sampled_from(TEXTS)).splitlines()
    left_out = data.draw(st.sets(st.integers(0, len(text) - 1), max_size=4))
    file = tmp_path / "cut.py"
    file.write_text("\n".join(row for n, row in enumerate(text) if n not in left_out) + "\n")
    examine([file], strict=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = " + "(" * 60 + "1" + ")" * 60,
        "a = " + "+".join(["1"] * 100),
        "def f():\n    return f()\nf()\n",
        "def f(n):\n    return g(n)\ndef g(n):\n    return f(n)\nf(1)\n",
        "class A(A): pass\nA().x.y.z()\n",
        "import warp as wp\nx = [x for x in range(10**9)]\nfor i in range(10**12):\n    for j in range(10**12):\n        pass\n",
        "from . import nothing\nfrom .. import more\nimport warp as wp\nwp.launch()\nwp.copy()\nwp.Tape().backward(grads=3)\n",
        "import warp as wp\n@wp.kernel\ndef k(): pass\nwp.launch(k, dim=0)\n@wp.func_grad()\ndef g(): pass\n",
        "kernel = kernel\n@kernel\ndef f(): pass\n",
    ],
)
def test_odd_files(tmp_path, text):
    file = tmp_path / "odd.py"
    file.write_text(text)
    assert len(examine([file], strict=True).scanned) == 1


def test_not_text_and_not_there(tmp_path):
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe\x00import warp\n")
    found = examine([tmp_path / "bytes.py", tmp_path / "nowhere.py"], tmp_path, strict=True)
    assert {name for name, _ in found.skipped} == {"bytes.py", "nowhere.py"}
    assert scan([]) == []


@pytest.mark.parametrize("depth", [400, 900, 5000])
@pytest.mark.parametrize("inside", [False, True])
def test_nested_beyond_measure(tmp_path, depth, inside):
    """Said, never a crash: how deep an expression may be depends on Python."""
    row = "a = " + "+".join(["x[0]"] * depth)
    kernel = "import warp as wp\n@wp.kernel\ndef k(x: wp.array(dtype=float)):\n    " + row
    launch = "\nx = wp.zeros(3)\nwith wp.Tape() as t:\n    wp.launch(k, 3, inputs=[x])\n"
    file = tmp_path / "deep.py"
    file.write_text(kernel + launch if inside else row + "\n")
    found = examine([file])
    assert found.scanned or found.skipped


def test_ten_files_are_quick():
    files = sorted((HERE / "tests" / "programs" / "unseen").glob("*/main.py"))[:10]
    examine(files)  # warm
    started = time.process_time()
    examine(files)
    assert time.process_time() - started < 1.5  # 0.3 s on a machine of its own
