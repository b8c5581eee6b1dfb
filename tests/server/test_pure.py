"""The pure parts: printed metrics, knobs, the choice of iterations, numbers that are not finite."""

import json
import math

import pytest

from warp_debug_gradients.errors import EngineUnavailable, UsageError
from warp_debug_gradients.metrics import printed_series, trend
from warp_debug_gradients.operations import explain
from warp_debug_gradients.operations.gradcheck import choose_engine, pick_headline
from warp_debug_gradients.operations.iterations import choose_iterations, first_rise
from warp_debug_gradients.schemas import GradcheckRequest, Gradient, RunReproResult, as_float
from warp_debug_gradients.shrink import find_knobs

# --- metrics


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["iter  0  kappa=0.61  err=0.0399 grad=+0.2", "iter  1  kappa=0.62  err=0.02 grad=-0.1"],
            ["kappa", "err", "grad"],
        ),
        (["step 5: loss 1.2e-3", "step 6: loss 1.1e-3"], ["loss"]),
        ([" 3 loss=0.5 |g|=0.25", " 4 loss=0.4 |g|=0.2"], ["loss", "|g|"]),
        (["Epoch 3/100, train loss: 3.4", "Epoch 4/100, train loss: 2.4"], ["train loss"]),
        (["loss: nan", "loss: 2.0"], ["loss"]),
        (["ply=[0.2 0.3]", "ply=[0.1 0.3]"], ["ply"]),
        (["Module a 1 load on device 'cpu' took 3.1 ms", "Module b 2 load on device 'cpu' took 2 ms"], []),
        (["loss=1.0"], []),  # one number is no series
        (["nothing here", ""], []),
    ],
)
def test_printed_series(lines, expected):
    assert [series.name for series in printed_series("\n".join(lines))] == expected


def test_series_values():
    (loss,) = printed_series("it 0 loss=4e-2\nit 1 loss=.01\nit 2 loss=1E-3")
    assert (loss.first, loss.last, loss.count, loss.trend) == (0.04, 0.001, 3, "decreasing")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 0.5], "decreasing"),
        ([1, 2], "increasing"),
        ([1, 5, 1.0000001], "stalled"),
        ([0, 0], "stalled"),
        ([1, math.nan], "nonfinite"),
        ([1, math.inf, 1], "nonfinite"),
    ],
)
def test_trend(values, expected):
    assert trend(values) == expected


# --- the check that the answer is about


@pytest.mark.parametrize(
    ("checks", "index"),
    [
        ([("agree", 1e-5), ("disagree", 0.2), ("disagree", 0.9)], 1),  # the first wrong one
        ([("disagree", 0.002), ("disagree", 0.3), ("disagree", 1.1)], 2),  # an error that hardly counts beside another
        ([("agree", 1e-5), ("disagree", 1.0), ("disagree", 40.0)], 1),  # the first that shows what is left over
        ([("disagree", 0.002), ("disagree", "nan"), ("disagree", None)], 0),
        ([("disagree", 0.2), ("disagree", "inf")], 1),
        ([("agree", 1e-5), ("inconclusive", 4.0), ("disagree", 0.2)], 2),
        ([("agree", 1e-5), ("inconclusive", 4.0), ("inconclusive", 9.0)], 1),
        ([("agree", 1e-5), ("agree", 1e-9)], 0),
    ],
)
def test_the_headline(checks, index):
    rows = [{"verdict": v, "gradient": {"relative_error": e}} for v, e in checks]
    assert pick_headline(rows) is rows[index]


# --- knobs

PROGRAM = """
import warp as wp
N = 64
STEPS, DT = 40, 0.2
HALF = N // 2
SMALL = 2
UNUSED = 500
TWICE = 9
TWICE = 10
x = wp.zeros(shape=N)
y = wp.zeros(HALF)
def run():
    for _ in range(STEPS):
        wp.launch(f, dim=N, inputs=[x])
    for _ in range(SMALL, TWICE):
        pass
"""


def test_knobs():
    knobs = {knob.name: knob for knob in find_knobs(PROGRAM, "src/train.py", "train")}
    assert set(knobs) == {"train.N", "train.STEPS"}
    assert (knobs["train.STEPS"].value, knobs["train.STEPS"].line, knobs["train.STEPS"].file) == (40, 4, "src/train.py")
    assert knobs["train.STEPS"].bounds == "loop iterations"
    assert knobs["train.N"].bounds == "array size, launch dimension (threads)"
    assert all(2 <= knob.suggested < knob.value for knob in knobs.values())


def test_knobs_that_init_sets_on_self():
    source = """
class Example:
    def __init__(self):
        self.steps, self.rate = 60, 50
        self.total = self.steps * 16
        self.seen = 40
    def forward(self):
        for step in range(self.total):
            wp.launch(move, dim=8, inputs=[self.rate])
"""
    (knob,) = find_knobs(source, "train.py", "train")
    assert (knob.name, knob.value, knob.line) == ("train.Example.steps", 60, 4)


def test_a_file_that_does_not_parse_has_no_knobs():
    assert find_knobs("def (:", "x.py", "x") == []


# --- the choice of iterations


def trace(losses, nonfinite=None, first=0):
    iterations = [{"index": first + k, "losses": [loss]} for k, loss in enumerate(losses)]
    return {"status": "completed", "iterations": iterations, "nonfinite": nonfinite}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (trace([1.0]), [0]),
        (trace([3.0, 2.0, 1.0]), [0, 1]),
        (trace([3.0, 2.0, 1.0, 5.0]), [0, 1, 2]),  # the update of iteration 2 made the loss rise
        (trace([1.0, 2.0]), [0, 1]),
        (trace([1.0, 0.9, 0.8, "nan"], {"iteration": 3, "what": "loss"}), [0, 1, 2]),
        (trace([1.0, 0.9, 0.8, 0.7], {"iteration": 3, "what": "gradient"}), [0, 1, 3]),
        (trace([None, None, None]), [0, 1]),  # seeded: no scalar loss
        (trace([1.0, 1.01, 1.0]), [0, 1]),  # noise is no turn
    ],
)
def test_choice(seen, expected):
    assert choose_iterations(seen, None) == expected


def built(*kinds):
    """Iterations by (lines of their backward calls, operations)."""
    iterations = [
        {
            "index": k,
            "losses": [1.0 / (k + 1)],
            "ops": ops,
            "parameter_keys": ["theta"],
            "plan": {"call_places": {str(10 * k + i): {"file": "a.py", "line": line} for i, line in enumerate(lines)}},
        }
        for k, (lines, ops) in enumerate(kinds)
    ]
    return {"status": "completed", "iterations": iterations}


ONE, REPORT = ([7], 20), ([7, 31], 40)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([ONE] * 9, [0, 1]),
        ([ONE, ONE, REPORT] * 3, [0, 1, 2]),  # a second backward call in every third iteration
        ([REPORT, ONE, ONE] * 3, [0, 1]),  # both kinds are looked at anyway
        ([ONE] * 4 + [([7], 21)] + [ONE] * 4 + [REPORT], [0, 1, 9]),  # other calls come before other lengths
        ([ONE] * 4 + [([7], 21)] + [ONE] * 4, [0, 1, 4]),  # a launch that is made now and then
        ([([7], 20 + k) for k in range(9)], [0, 1]),  # a length that varies
        ([ONE, ONE, REPORT, ([7, 50], 40)], [0, 1, 2]),  # one more, whatever else there is
    ],
)
def test_an_iteration_that_is_built_otherwise_is_looked_at(kinds, expected):
    assert choose_iterations(built(*kinds), None) == expected


@pytest.mark.parametrize(
    ("trained", "expected"),
    [
        (["left", "right", "left", "right"], [0, 1]),
        (["left", "right", "left right"], [0, 1]),  # nothing new
        (["left", "right", "left", "middle"], [0, 1, 3]),  # three parameters in turns
    ],
)
def test_a_parameter_that_no_chosen_iteration_has_is_looked_at(trained, expected):
    seen = built(*[ONE] * len(trained))
    for item, keys in zip(seen["iterations"], trained, strict=True):
        item["parameter_keys"] = keys.split()
    assert choose_iterations(seen, None) == expected


@pytest.mark.parametrize(("pause", "expected"), [(35, [0, 1, 3]), (28, [0, 1])])
def test_a_report_after_the_update_is_no_iteration_of_its_own(pause, expected):
    """It sweeps the tape of the iteration that ended: the two cannot be told apart."""
    seen = built(ONE, ONE, ONE, ([31, 7], 40), ONE)
    for k, item in enumerate(seen["iterations"]):
        item["plan"] |= {"pause": 10 * k + 5, "call_events": {str(k): 10 * k + 9}}
    seen["iterations"][3]["plan"]["pause"] = pause
    assert choose_iterations(seen, None) == expected


@pytest.mark.parametrize(("at", "expected"), [(1, [0, 1]), (3, [0, 1, 3])])
def test_the_first_iteration_that_used_another_arrays_gradient_is_looked_at(at, expected):
    seen = trace([1.0, 0.9, 0.8, 0.7, 0.6])
    for item in seen["iterations"]:
        item["gradient_read"] = {"when": "left_behind" if item["index"] >= at else "after"}
    assert choose_iterations(seen, None) == expected


def test_a_requested_iteration_goes_by_its_index():
    assert choose_iterations(trace([1.0, 0.9], first=7), 8) == [1]
    with pytest.raises(UsageError, match="no iteration 5: the traced run has 2"):
        choose_iterations(trace([1.0, 0.9]), 5)


def test_first_rise_skips_unknown_losses():
    assert first_rise([1.0, None, 2.0]) is None


# --- numbers that are not finite


def test_nonfinite_numbers_survive_json():
    gradient = Gradient(autodiff=math.nan, finite_difference=-math.inf, error=math.inf, relative_error=0.5)
    stored = json.loads(gradient.model_dump_json())
    assert (stored["autodiff"], stored["finite_difference"], stored["error"]) == ("nan", "-inf", "inf")
    assert Gradient.model_validate(stored).finite_difference == "-inf"
    assert gradient.model_dump(mode="json")["autodiff"] == "nan"
    assert math.isnan(as_float("nan"))
    assert as_float("-inf") == -math.inf


def test_the_schema_says_how_nonfinite_numbers_look():
    schema = Gradient.model_json_schema()["properties"]["autodiff"]
    assert {"enum": ["nan", "inf", "-inf"], "type": "string"} in schema["anyOf"]


def test_unknown_settings_are_errors():
    with pytest.raises(ValueError, match="itertion"):
        GradcheckRequest(script="x.py", itertion=1)


@pytest.mark.parametrize(
    ("status", "verdict", "code"),
    [
        ("completed", "agree", 0),
        ("completed", None, 0),
        ("completed", "disagree", 1),
        ("completed", "inconclusive", 4),
        ("blocked", None, 3),
        ("timeout", None, 5),
        ("timeout", "agree", 5),
        ("failed", None, 70),
    ],
)
def test_exit_codes(status, verdict, code):
    result = RunReproResult(run_id="r", operation="o", status=status, verdict=verdict, message="", evidence="e")
    assert result.exit_code == code


def test_a_nonfinite_value_is_a_measured_fault():
    result = RunReproResult(
        run_id="r", operation="o", status="completed", message="", evidence="e", nonfinite={"iteration": 2}
    )
    assert result.exit_code == 1


# --- engines and advice


def test_the_engine_follows_what_the_trace_saw():
    pool = {"unforkable": "the program works with other processes"}
    assert choose_engine("auto", {}) == "fork"
    assert choose_engine("auto", {"uses_cuda": True}) == "rerun"
    assert choose_engine("auto", pool) == "rerun"
    assert choose_engine("rerun", {}) == "rerun"
    with pytest.raises(EngineUnavailable, match="other processes. Use --engine rerun"):
        choose_engine("fork", pool)


@pytest.mark.parametrize("reason", ["spans_updates", "scaled_objective", "forbidden_write", "not_measured", "kink"])
def test_every_reason_comes_with_advice(reason):
    check = {"verdict": "inconclusive", "reason": reason, "message": "Said so.", "iteration": 0}
    message = explain.headline_message({**check, "parameter": {"name": "theta"}}, [], {})
    assert message.startswith("Not decided for theta in iteration 0: Said so. ")
    assert len(message) > len("Not decided for theta in iteration 0: Said so. ") + 20


def right_check(iteration, **more):
    return {
        "verdict": "agree",
        "iteration": iteration,
        "parameter": {"name": "theta"},
        "horizon": {"full": True},
        **more,
    }


def test_a_program_without_backward_is_told_why_it_has_nothing_to_check():
    reason, message = explain.nothing_to_check({"backward_calls": 0})
    assert reason == "no_backward"
    assert "JAX" not in message
    assert "jax.test_util.check_grads" in explain.nothing_to_check({"uses_jax": True})[1]
    reason, message = explain.nothing_to_check({"unfollowed": ["it holds wp.capture_while"], "uses_jax": True})
    assert reason == "graph_not_followed"
    assert "it holds wp.capture_while" in message


def test_a_right_gradient_of_zero_has_its_reason_in_the_forward_pass():
    check = {"verdict": "agree", "iteration": 0, "parameter": {"name": "k"}, "horizon": {"full": True}}
    zero = {"autodiff": 0.0, "finite_difference": 0.0}
    assert "the objective does not change with this parameter" in explain.headline_message(
        {**check, "gradient": zero}, [], {}
    )
    moved = {"autodiff": 0.0, "finite_difference": 1e-9}
    assert "does not change" not in explain.headline_message({**check, "gradient": moved}, [], {})


def test_a_backward_before_the_loop_is_told():
    """Its gradient, never zeroed, makes the first update twice as large; the sum of both losses agrees with it."""
    trace = {"iterations": [{"index": k, "backward_calls": calls} for k, calls in enumerate([[0, 1], [2], [3]])]}
    assert "sums 2 backward calls, every other 1" in explain.headline_message(right_check(0), [], trace)
    assert "sums" not in explain.headline_message(right_check(1), [], trace)
    even = {"iterations": [{"index": k, "backward_calls": [2 * k, 2 * k + 1]} for k in range(3)]}
    assert "sums" not in explain.headline_message(right_check(0), [], even)


def test_a_sum_on_the_host_is_taken_for_granted_and_said():
    spots = explain.blind_spots(
        [right_check(0, consumed={"parts": 2}), right_check(1, consumed={"parts": 2})], {}, False
    )
    assert len([text for text in spots if "read 2 times, zeroed in between" in text]) == 1
    assert not any("in between" in text for text in explain.blind_spots([right_check(0)], {}, False))


def test_a_first_run_that_compiled_kernels_says_that_the_next_gets_further():
    assert "compiling" not in explain.no_iteration_in_time({"seconds": {"compile": 0.5}}, "")
    assert "12 s of it went into compiling" in explain.no_iteration_in_time({"seconds": {"compile": 12.0}}, "")
    printed = "Module newton.x 8f load on device 'cpu' took 9100.5 ms  (compiled)\nModule y 1 load on device 'cpu' took 3 ms  (cached)\n"
    assert "9 s of it went into compiling" in explain.no_iteration_in_time({}, printed)
