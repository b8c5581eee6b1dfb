"""Which arguments a kernel only adds to what it writes."""

import ast

import pytest

from warp_debug_gradients.probe.addends import addition
from warp_debug_gradients.probe.host_values import proportion


@pytest.mark.parametrize(
    ("body", "factors"),
    [
        ("out[0] = a[0] + b[0]", set()),
        ("out[0] = w * a[0] + b[0] / n", {"w"}),
        ("out[0] = (2.0 * a[0] + b[0]) / n", {"n"}),
        ("s = a[0] + w * b[0]\n    out[0] = s / 2.0", set()),
        ("out[0] = b[0] / (1.0 + a[0])", None),
        ("out[0] = b[0] - (w - a[0])", set()),
        ("out[0] = wp.where(a[0] > 1.0, b[0], 0.0)", None),
        ("s = a[0]\n    out[0] = b[0] + s * v[1]", {"v"}),
        ("s = a[0] + b[0]\n    out[0] = s", set()),
        ("s = w * a[0]\n    wp.atomic_add(out, 0, s)", {"w"}),
        ("out[0] += wp.float64(a[0])", {"wp"}),
        ("out[0] = b[0] - a[0]", None),
        ("out[0] = wp.sqrt(a[0]) + b[0]", None),
        ("out[0] = a[0] / (1.0 + b[0])", {"b"}),  # whether b asks for a gradient, the caller knows
        ("out[0] = b[0] / a[0]", None),
        ("out[0] = a[0] * a[0]", None),
        ("if a[0] > 1.0:\n        out[0] = a[0]", None),  # it decides something, too
        ("out[0] = b[0]", None),
        ("for i in range(n):\n        s = s + a[0]\n    out[0] = s", None),  # a loop is not followed
        ("for i in range(n):\n        s = q\n        q = s + a[0]\n    out[0] = q", None),
        ("for i in range(n):\n        s = q\n        q = s * a[0] + s\n    out[0] = q", None),
        ("other[0] = a[0]\n    out[0] = b[0]", None),
    ],
)
def test_addition(body, factors):
    function = ast.parse(f"def k(a, b, v, w, n, out):\n    {body}\n").body[0]
    found = addition(function, "a", "out")
    assert (found is None) == (factors is None)
    assert factors is None or found - {"wp"} == factors - {"wp"}


@pytest.mark.parametrize(
    ("pairs", "proportional"),
    [
        ([(1.0, 2.0, 1e-4), (-3.0, -6.0, 1e-4), (1e-5, 2.0e-3, 1e-6)], True),  # the last is AD's round-off
        ([(1.0, 2.0, 1e-4), (-3.0, 6.0, 1e-4)], False),
        ([(1.0, 2.0, 1e-4), (1.0, 2.018, 1e-4)], None),  # too near to tell
        ([(1.0, 2.0, 1e-4), (1.0, 2.018, 1e-4), (1.0, -2.0, 1e-4)], False),  # one that tells is enough
        ([(1.0, 2.0, 1e-4), (float("nan"), 2.0, 1e-4)], None),
    ],
)
def test_proportion_over_several_parameters(pairs, proportional):
    row = proportion(pairs)
    assert (row["proportional"] if row else None) is proportional
