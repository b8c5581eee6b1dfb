"""One table of functions, dtypes and tolerances; then what a ladder must refuse to settle."""

import inspect
import math
import zlib

import numpy as np
import pytest
import quality
from hypothesis import given, settings
from hypothesis import strategies as st

from warp_debug_gradients.probe.differences import directional_derivative, refine

EPS = {np.float16: 9.77e-4, np.float32: 1.19e-7, np.float64: 2.22e-16}


def line(function, at, dtype):
    """t -> (effective step, value) of a scalar function evaluated in its dtype."""

    def evaluate(t):
        moved = dtype(at + t)
        with np.errstate(all="ignore"):
            return float(moved) - float(dtype(at)), float(function(moved))

    return evaluate


def estimate(function, at=1.0, dtype=np.float32, scale=None, repeats=(), **options):
    evaluate, eps = line(function, at, dtype), EPS[dtype]
    generator = directional_derivative(evaluate(0.0)[1], repeats, scale or abs(at) or 1.0, eps, eps, **options)
    return quality.drive(generator, evaluate)


# name, function, point, derivative, tolerance in float32, tolerance in float64 (relative)
SMOOTH = [
    ("sine", np.sin, 1.0, math.cos(1.0), 1e-3, 1e-6),
    ("quadratic", lambda x: x * x, 3.0, 6.0, 1e-3, 1e-8),
    ("cubic", lambda x: x**3, -2.0, 12.0, 1e-3, 1e-6),
    ("exponential", lambda x: np.exp(3 * x), 1.0, 3 * math.exp(3.0), 2e-3, 1e-6),
    ("stiff", lambda x: np.exp(-50 * (x - x.dtype.type(0.9)) ** 2), 1.0, -10 * math.exp(-0.5), 2e-3, 1e-6),
    ("oscillating", lambda x: np.sin(40 * x), 1.0, 40 * math.cos(40.0), 2e-3, 1e-6),
    ("tiny point", lambda x: (x * x.dtype.type(1e6)) ** 2, 1e-6, 2e6, 1e-3, 1e-8),
    ("huge point", lambda x: np.sqrt(x), 1e4, 0.005, 1e-3, 1e-6),
    ("offset", lambda x: x.dtype.type(10.0) + np.sin(x), 1.0, math.cos(1.0), 5e-3, 1e-6),
    ("near a kink", lambda x: abs(x - x.dtype.type(1.01)), 1.0, -1.0, 1e-3, 1e-8),
    ("penalty contact", lambda x: np.maximum(x.dtype.type(0), x - x.dtype.type(0.98)) ** 2, 1.0, 0.04, 1e-3, 1e-6),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "function", "at", "exact", "single", "double"), SMOOTH, ids=[row[0] for row in SMOOTH]
)
def test_derivatives_settle_within_tolerance_and_their_own_error(dtype, name, function, at, exact, single, double):
    found = estimate(function, at, dtype)
    assert found.status == "settled"
    assert abs(found.value - exact) <= (single if dtype is np.float32 else double) * abs(exact)
    # The point itself is rounded, which float32 derivatives near 0.98 or 0.9 feel.
    assert abs(found.value - exact) <= 3 * found.error + EPS[dtype] * 100 * abs(exact)
    assert found.error >= 0.5 * EPS[dtype] * abs(line(function, at, dtype)(0.0)[1]) / found.step
    assert found.evaluations <= 15


def test_a_sum_of_ten_thousand_terms_in_float32_is_honest_about_its_noise():
    targets = np.random.default_rng(1).standard_normal(10_000).astype(np.float32)

    def serial(x):
        return np.add.accumulate(np.tanh(x - targets) ** 2 / np.float32(1e4))[-1]

    found = estimate(serial, 0.4)
    z = np.tanh(0.4 - targets.astype(float))
    exact = float(np.mean(2 * z * (1 - z * z)))
    assert found.status == "settled"
    assert abs(found.value - exact) <= 3 * found.error <= 0.1 * abs(exact)


def test_a_plateau_of_one_decade_is_found():
    """Round-off below, another branch of the motion above."""

    def narrow(x):
        bump = np.sin(x * np.float32(300.0)) * (abs(x - 1) > np.float32(0.02))
        return np.float32(30.0) + x + bump

    found = estimate(narrow, 1.0)
    assert found.status == "settled"
    assert abs(found.value - 1.0) <= 3 * found.error <= 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kink_at_the_point_is_named_with_both_slopes(dtype):
    found = estimate(lambda x: 2 * abs(x - 1) + x, 1.0, dtype)
    assert found.status == "kink"
    assert (found.left, found.right) == (pytest.approx(-1.0, rel=1e-2), pytest.approx(3.0, rel=1e-2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_staircase_is_named(dtype):
    assert estimate(lambda x: np.floor(10 * x + x.dtype.type(0.5)), 1.0, dtype).status == "staircase"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_smooth_minimum_is_no_staircase(dtype):
    found = estimate(lambda x: 1 + x * x, 0.0, dtype, scale=1.0)
    assert found.status == "settled"
    assert abs(found.value) <= 3 * found.error <= 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_objective_has_derivative_zero(dtype):
    found = estimate(lambda x: dtype(3.0), 1.0, dtype)
    assert (found.status, found.value) == ("settled", 0.0)
    assert 0.0 < found.error < 1e-6


def test_an_objective_too_coarse_for_its_dtype_is_quantised():
    found = estimate(lambda x: np.float32(1000.0) + np.float32(1e-5) * x, 1.0)
    assert found.status == "quantised"


def test_float16_is_survived():
    found = estimate(lambda x: x * x, 1.0, np.float16)
    assert found.status == "settled"
    assert abs(found.value - 2.0) <= 3 * found.error + 0.04


def test_repeats_that_differ_end_the_ladder_before_it_starts():
    found = estimate(np.sin, 1.0, repeats=[0.84, 0.85])
    assert (found.status, found.evaluations) == ("not_reproducible", 0)
    assert "0.84" in found.message


def test_repeats_that_differ_by_reordered_sums_are_noise():
    base = float(np.sin(np.float32(1.0)))
    found = estimate(np.sin, 1.0, repeats=[base * (1 + 1e-6), base * (1 - 1e-6)])
    assert found.status == "settled"
    assert found.noise >= 1e-6 * base


def test_large_steps_that_fail_leave_the_small_ones():
    found = estimate(lambda x: np.sin(x) if abs(x - 1) < 0.01 else math.nan, 1.0)
    assert found.status == "settled"
    assert found.value == pytest.approx(math.cos(1.0), rel=5e-3)


@pytest.mark.parametrize("function", [lambda x: math.nan, lambda x: math.inf, lambda x: 1.0 if x == 1 else math.nan])
def test_an_objective_that_is_never_finite_beside_the_point_is_nonfinite(function):
    assert estimate(function, 1.0).status == "nonfinite"


def test_chaos_settles_on_nothing_it_cannot_prove():
    """The logistic map after 200 steps: in float32 every usable step is on another branch."""

    def chaotic(x):
        for _ in range(200):
            x = x.dtype.type(3.99) * x * (1 - x)
        return x

    found = estimate(chaotic, 0.3, np.float32)
    assert found.status != "settled" or 3 * found.error > 0.05 * abs(found.value)


@pytest.mark.parametrize("relative", [1e-6, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_widens_the_error_and_never_hides_in_it(relative, dtype):
    for seed in range(10):

        def noisy(x, seed=seed):
            u = zlib.crc32(x.tobytes() + bytes([seed])) / 2.0**31 - 1.0
            return dtype(np.sin(x) * dtype(1.0 + relative * u))

        found = estimate(noisy, 1.0, dtype)
        if found.status == "settled":
            assert abs(found.value - math.cos(1.0)) <= 4 * found.error
            assert found.error >= 0.05 * relative / found.step


def test_steps_are_signed_powers_of_two_asked_for_in_few_batches():
    generator = directional_derivative(1.0, [1.0], 0.7, 1.19e-7, 1.19e-7)
    assert inspect.isgenerator(generator)
    asked, replies = [], None
    while True:
        try:
            steps = generator.send(replies)
        except StopIteration as stop:
            found = stop.value
            break
        asked.append(steps)
        replies = [1.0 + math.sin(t) for t in steps]
    flat = [t for batch in asked for t in batch]
    assert len(flat) == len(set(flat)) == found.evaluations <= 15
    assert len(asked) <= 4
    assert all(math.frexp(abs(t))[0] == 0.5 for t in flat)
    assert {-t for t in flat} == set(flat)
    assert [set(row) for row in found.rungs] == [{"step", "central", "forward", "backward", "difference"}] * len(
        found.rungs
    )


def test_effective_steps_replace_the_steps_that_were_asked_for():
    """An uneven, rounded step: the reply's own step counts."""

    def rounded(t):
        moved = math.copysign(abs(t) * (1.3 if t > 0 else 0.9), t)
        return moved, 2.0 + moved**2 + 5.0 * moved

    found = quality.drive(directional_derivative(2.0, [], 1.0, 2.22e-16, 2.22e-16), rounded)
    assert found.value == pytest.approx(5.0, rel=1e-9)


def test_steps_that_vanish_in_the_parameter_are_no_rungs():
    found = quality.drive(directional_derivative(2.0, [], 1.0, 1.19e-7, 1.19e-7), lambda t: (0.0, 2.0))
    assert found.status == "quantised"


def test_a_wrong_number_of_replies_is_an_error():
    generator = directional_derivative(1.0, [], 1.0, 1.19e-7, 1.19e-7)
    next(generator)
    with pytest.raises(ValueError, match="values came back"):
        generator.send([1.0])


@pytest.mark.parametrize("budget", [4, 6, 8, 15])
def test_the_budget_is_kept(budget):
    assert estimate(lambda x: np.float32(50.0) + np.sin(x), 1.0, max_evaluations=budget).evaluations <= budget


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_refining_one_element_costs_six_and_is_honest(dtype):
    good = estimate(np.sin, 1.0, dtype)
    evaluate = line(lambda x: 0.1 * np.cos(x) + x.dtype.type(1.0), 1.0, dtype)
    found = quality.drive(refine(evaluate(0.0)[1], good.step, good.noise, EPS[dtype]), evaluate)
    assert found.evaluations <= 6
    assert abs(found.value + 0.1 * math.sin(1.0)) <= 3 * found.error <= 0.01


def test_refining_across_a_jump_does_not_settle_precisely():
    evaluate = line(lambda x: x + (x > np.float32(1.0)), 1.0, np.float32)
    found = quality.drive(refine(evaluate(0.0)[1], 0.01, 1e-7, 1.19e-7), evaluate)
    assert found.status != "settled" or 3 * found.error > 0.05 * abs(found.value)


@settings(max_examples=60, deadline=None)
@given(
    slope=st.floats(-1e3, 1e3).filter(lambda a: abs(a) > 1e-3),
    bend=st.floats(-10.0, 10.0),
    third=st.floats(-10.0, 10.0),
    exponent=st.integers(-20, 14),
)
def test_cubics_of_any_scale_are_within_three_errors(slope, bend, third, exponent):
    scale = 2.0**exponent

    def cubic(t):
        s = t / scale
        return np.float32(slope * s + bend * s**2 + third * s**3)

    found = quality.drive(directional_derivative(0.0, [], scale, 1.19e-7, 1.19e-7), lambda t: float(cubic(t)))
    assert found.status in ("settled", "kink", "unsettled")
    if found.status == "settled":
        assert abs(found.value * scale - slope) <= 3 * found.error * scale + 2e-4 * abs(slope)
