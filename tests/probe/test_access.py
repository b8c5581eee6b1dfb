"""What kernels do to their arguments, against a table written by hand.

R read, W written, A accumulated, L loaded, S stored, E elementwise, in this order; `?` not certain.
"""

import pytest
import warp as wp

from warp_debug_gradients.probe import access

FLOATS = wp.array(dtype=float)
FLOATS2 = wp.array2d(dtype=float)


@wp.struct
class Inner:
    v: wp.array(dtype=float)


@wp.struct
class State:
    q: wp.array(dtype=wp.vec3)
    m: wp.array2d(dtype=float)
    inner: Inner
    n: int


@wp.struct
class Body:
    mass: float
    force: wp.vec3


@wp.func
def put(a: wp.array(dtype=float), i: int, v: float):
    a[i] = v


@wp.func
def put_through(a: wp.array(dtype=float), i: int, v: float):
    put(a, i, v)


@wp.func
def get(a: wp.array(dtype=float), i: int):
    return a[i]


@wp.func
def overloaded(a: wp.array(dtype=float), i: int):
    return a[i]


@wp.func
def overloaded(a: wp.array(dtype=wp.vec3), i: int):  # noqa: F811
    return a[i][0]


@wp.func
def push_state(s: State, i: int):
    v = s.inner.v
    v[i] = s.m[i, 0]


@wp.func
def first_of(s: State):
    return s.inner


@wp.func_native("a[i] = 0.0f;")
def native(a: wp.array(dtype=float), i: int): ...


@wp.func
def generic_get(a: wp.array(dtype=wp.float32), i: int, scale: float):
    return a[i] * scale


TABLE = []


def case(**expected):
    def note(function):
        TABLE.append((function, expected))
        return function

    return note


@case(x="RLE", y="WSE")
def plain(x: FLOATS, y: FLOATS):
    i = wp.tid()
    y[i] = x[i]


@case(x="RLE", y="WSE")
def left_operand(x: FLOATS, y: FLOATS):
    i = wp.tid()
    y[i] = x[i] * 0.5


@case(x="RL", y="WSE")
def neighbour(x: FLOATS, y: FLOATS):
    i = wp.tid()
    y[i] = x[i + 1] - x[i]


@case(x="RWLSE")
def in_place(x: FLOATS):
    i = wp.tid()
    x[i] = x[i] * 2.0


@case(x="RWAE")
def plus_equals(x: FLOATS):
    i = wp.tid()
    x[i] += 1.0


@case(x="RWAE", y="RLE")
def minus_equals(x: FLOATS, y: FLOATS):
    i = wp.tid()
    x[i] -= y[i]


@case(x="RWLSE", y="RWLSE")
def times_equals(x: FLOATS, y: FLOATS):
    i = wp.tid()
    x[i] *= 2.0
    y[i] /= 2.0


@case(x="RLE", loss="RWA")
def atomic(x: FLOATS, loss: FLOATS):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i])


@case(x="RWAE")
def own_atomic(x: FLOATS):
    i = wp.tid()
    wp.atomic_sub(x, i, 1.0)


@case(x="RWLS")
def atomic_maximum(x: FLOATS):
    i = wp.tid()
    wp.atomic_max(x, 0, float(i))


@case(counter="RWA", out="WS")
def slot(counter: wp.array(dtype=int), out: FLOATS):
    k = wp.atomic_add(counter, 0, 1)
    out[k] = 1.0


@case(x="", y="WSE")
def shape_only(x: FLOATS, y: FLOATS):
    i = wp.tid()
    if i < x.shape[0]:
        y[i] = float(x.shape[0] + len(x))


@case(x="", y="WSE")
def untouched(x: FLOATS, y: FLOATS, alpha: float):
    i = wp.tid()
    y[i] = alpha


@case(x="RLE", y="WSE")
def two_dimensional(x: FLOATS2, y: FLOATS2):
    i, j = wp.tid()
    y[i, j] = x[i, j]


@case(x="RL", y="WSE")
def transposed(x: FLOATS2, y: FLOATS2):
    i, j = wp.tid()
    y[i, j] = x[j, i]


@case(x="RL", y="WS")
def row_views(x: FLOATS2, y: FLOATS2):
    i = wp.tid()
    source = x[i]
    target = y[i]
    target[0] = source[1]


@case(x="", y="WSE")
def view_not_read(x: FLOATS2, y: FLOATS):
    i = wp.tid()
    row = x[i]
    y[i] = float(row.shape[0])


@case(x="WS")
def slice_view(x: FLOATS):
    part = x[2:4]
    part[0] = 1.0


@case(x="WSE", y="RLE")
def vector_component(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    x[i][1] = y[i].x


@case(x="RWAE", y="RLE")
def component_plus_equals(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    x[i].y += y[i][2]


@case(x="RLE")
def local_copy_of_element(x: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    v = x[i]
    v[0] = 1.0
    v *= 2.0


@case(bodies="WSE")
def struct_element_store(bodies: wp.array(dtype=Body)):
    i = wp.tid()
    bodies[i].mass = 1.0


@case(bodies="RLE", out="WSE")
def struct_element_load(bodies: wp.array(dtype=Body), out: FLOATS):
    i = wp.tid()
    b = bodies[i]
    out[i] = b.mass + b.force[0]


@case(x="RLE", y="WSE")
def through_functions(x: FLOATS, y: FLOATS):
    i = wp.tid()
    put_through(y, i, get(x, i))


@case(x="RLE", y="RLE", out="WSE")
def through_overloads(x: FLOATS, y: wp.array(dtype=wp.vec3), out: FLOATS):
    i = wp.tid()
    out[i] = overloaded(x, i) + overloaded(y, i)


@case(x="RLE", y="WSE")
def through_keywords(x: FLOATS, y: FLOATS):
    i = wp.tid()
    y[i] = generic_get(x, scale=2.0, i=i)


@case(x="RWLS?", y="")
def through_native(x: FLOATS, y: FLOATS):
    i = wp.tid()
    native(x, i)


@case(**{"s": "RWLSE", "s.q": "RLE", "s.m": "", "s.inner": "", "s.inner.v": "WSE", "s.n": ""})
def struct_fields(s: State):
    i = wp.tid()
    s.inner.v[i] = s.q[i].x


@case(**{"s.q": "", "s.m": "RL", "s.inner.v": "WSE"})
def struct_to_function(s: State):
    i = wp.tid()
    push_state(s, i)


@case(**{"s.q": "RWAE", "s.inner.v": ""})
def struct_alias(s: State):
    i = wp.tid()
    t = s
    q = t.q
    q[i] += wp.vec3(1.0)


@case(**{"s.inner.v": "WSE", "s.q": ""})
def struct_returned(s: State):
    i = wp.tid()
    inner = first_of(s)
    inner.v[i] = 0.0


@case(x="WSE", y="RLE")
def local_struct(x: FLOATS, y: FLOATS):
    i = wp.tid()
    a = Inner()
    a.v = x
    b = Inner()
    b.v = y
    put(a.v, i, get(b.v, i))


@case(**{"s.inner.v": "", "x": "WSE"})
def field_redirected(x: FLOATS, s: State):
    i = wp.tid()
    t = s.inner
    t.v = x
    x[i] = 1.0


@case(x="RLE", y="RLE", out="WSE")
def chosen(x: FLOATS, y: FLOATS, out: FLOATS):
    i = wp.tid()
    out[i] = wp.where(i > 2, x[i], y[i]) + (x[i] if i > 1 else 0.0)


@case(x="RL", index="RLE", y="WS")
def gathered(x: FLOATS, index: wp.array(dtype=int), y: FLOATS):
    i = wp.tid()
    y[index[i]] = x[index[i]]


@case(x="RL", y="WSE")
def looped(x: FLOATS, y: FLOATS):
    i = wp.tid()
    total = 0.0
    for j in range(4):
        total += x[j]
    while total > 100.0:
        total -= x[0]
    y[i] = total


@case(x="WS")
def moved_index(x: FLOATS):
    i = wp.tid()
    i = i + 1
    x[i] = 0.0


@case(x="RL", out="WSE")
def unknown_builtin(x: FLOATS, out: FLOATS):
    i = wp.tid()
    out[i] = float(wp.lower_bound(x, 0.5))


@case(x="RL", y="WS", z="RWA")
def tiles(x: FLOATS2, y: FLOATS2, z: FLOATS2):
    i, j = wp.tid()
    t = wp.tile_load(x, shape=(4, 4), offset=(i, j))
    wp.tile_store(y, t, offset=(i, j))
    wp.tile_atomic_add(z, t, offset=(i, j))


@case(index="RLE", y="RWA")
def atomic_on_a_gathered_row(index: wp.array(dtype=int), y: FLOATS2):
    i = wp.tid()
    wp.atomic_add(y[index[i]], 0, 1.0)


@case(a="RL", b="WS")
def rows_swapped(a: FLOATS2, b: FLOATS2):
    i = wp.tid()
    (p, q) = a[i], b[i]
    q[0] = p[0]


@case(x="", mesh="", out="WSE")
def mesh_query(x: FLOATS, mesh: wp.uint64, out: FLOATS):
    i = wp.tid()
    q = wp.mesh_query_point(mesh, wp.vec3(0.0), 1.0)
    out[i] = q.u


def letters(how):
    names = {"read": "R", "written": "W", "accumulated": "A", "loaded": "L", "stored": "S", "elementwise": "E"}
    return "".join(letter for name, letter in names.items() if getattr(how, name)) + ("" if how.certain else "?")


@pytest.mark.parametrize(("function", "expected"), TABLE, ids=[f.__name__ for f, _ in TABLE])
def test_table(function, expected):
    kernel = wp.Kernel(function, key=f"access_{function.__name__}")
    found = access.argument_access(kernel)
    assert {name: letters(found[name]) for name in expected} == expected
    assert access.argument_access(kernel) is found


def test_arguments_that_are_not_listed_in_the_source_are_all_described():
    kernel = wp.Kernel(struct_fields, key="all_described")
    assert set(access.argument_access(kernel)) == {"s", "s.q", "s.m", "s.inner", "s.inner.v", "s.n"}


def test_a_source_that_cannot_be_followed_counts_as_read_and_written():
    class Argument:
        label, type = "x", FLOATS

    class Adjoint:
        args, tree, func = [Argument()], None, None

    class Kernel:
        adj = Adjoint()

    how = access.argument_access(Kernel())["x"]
    assert how.read
    assert how.written
    assert not how.certain


def test_reference_parameters_are_stored_through():
    if not hasattr(wp, "ref"):
        pytest.skip("wp.ref is newer")

    @wp.func
    def bump(value: wp.ref[float]):
        value += 1.0

    def by_reference(x: FLOATS):
        i = wp.tid()
        bump(x[i])

    assert access.argument_access(wp.Kernel(by_reference, key="by_reference"))["x"].written
