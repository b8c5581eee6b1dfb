"""The whole check of an iteration, driven by an engine that evaluates plain NumPy functions."""

from types import SimpleNamespace

import numpy as np
import pytest

from warp_debug_gradients.probe import check as checking
from warp_debug_gradients.probe.check import check_iteration, stated_once
from warp_debug_gradients.probe.elements import choose_elements, component
from warp_debug_gradients.probe.evaluator import Options, objective, typical_size

RNG = np.random.default_rng(7)
X0 = RNG.uniform(0.3, 1.2, 9).astype(np.float32)
KEY = "train.py:3:theta#0"


class Program:
    """An iteration with `len(losses)` backward calls; `gradients[k]` is what call k adds to the buffer.

    losses: functions of the parameter, float64 (n,) -> float. when, used: which calls the update's gradient
    holds. wiped: the program writes the parameter anew at this event, unseen by any hook.
    """

    def __init__(self, losses, gradients, used=None, x0=X0, noise=0.0, dtype=np.float32, wiped=-1, **parameter):
        self.losses, self.gradients, self.x0, self.dtype = losses, gradients, x0, dtype
        self.used = list(range(len(losses))) if used is None else used
        self.noise, self.wiped, self.evaluations = noise, wiped, 0
        self.rng = np.random.default_rng(1)
        self.parameter = parameter
        self.stated = None  # a factor: the stated objective is that many times the sum of the losses
        self.kind = "loss"

    def plan(self):
        calls = list(range(len(self.losses)))
        described = {"key": KEY, "name": "theta", "shape": [self.x0.size], "scalars": self.x0.size, "dtype": "float32"}
        uses = {str(c): {"first_use": 20 + 10 * c} for c in calls}
        return {
            "iteration": 0,
            "pause": 5,
            "objective_calls": None,
            "mixed_calls": [],
            "repeated_calls": [],
            "backward_calls": calls,
            "call_events": {str(c): 25 + 10 * c for c in calls},
            "call_places": {str(c): {"file": "train.py", "line": 9} for c in calls},
            "until_event": 100,
            "outputs": {},
            "early_losses": {},
            "loss_before": {},
            "objective": None if self.stated is None else "mean",
            "objective_name": "loss",
            "objective_kind": self.kind,
            "objective_dtype": np.dtype(self.dtype).name,
            "ops": 3,
            "parameters": [
                {**described, "serial": 1, "event": 5, "check_event": 20, "uses": uses, **self.parameter},
            ],
        }

    def reply(self, request):
        self.evaluations += 1
        x, survived = self.x0.astype(np.float64), True
        for item in request["perturb"]:
            if item["event"] > self.wiped:
                x = x + item["delta"]
            else:
                survived = False
        stated = None if request["objective"] is None else self.stated * sum(loss(x) for loss in self.losses)
        losses = {}
        for call in request["calls"]:
            begun = not request["perturb"] or request["perturb"][0]["event"] <= 20 + 10 * call
            value = self.losses[call](x if begun else self.x0.astype(np.float64))
            losses[call] = float(self.dtype(value)) + self.noise * self.rng.standard_normal()
        reply = {
            "ok": True,
            "error": None,
            "reason": None,
            "losses": losses,
            "outputs": {},
            "seeds": {},
            "before": {},
            "objective": stated,
            "survived": survived,
            "wiped_at": None if survived else self.wiped + 1,
            "values": {},
            "consumed": {},
            "contributions": {},
            "places": {},
            "call_events": {},
        }
        if request["kind"] == "reference":
            total = np.sum([self.gradients[c] for c in self.used], axis=0)
            unread = [c for c in range(len(self.losses)) if c not in self.used]
            used = {
                "gradient": total,
                "norm": 0.0,
                "when": "after",
                "calls": self.used,
                "discarded": unread,
                "parts": 1,
            }
            reply["values"] = {KEY: self.x0}
            reply["consumed"] = {KEY: {**used, "read": None, "edited": False}}
            reply["contributions"] = {c: {KEY: g} for c, g in enumerate(self.gradients)}
            reply["call_events"] = {c: 25 + 10 * c for c in range(len(self.losses))}
        return reply

    def check(self, **options):
        generator = check_iteration(self.plan(), Options(**options))
        requests = next(generator)
        while True:
            try:
                requests = generator.send([self.reply(r) for r in requests])
            except StopIteration as finished:
                (result,) = finished.value
                return result


def smooth(x):
    return float(np.sum(np.sin(x) * x) + 0.3 * np.prod(x[:3]))


def smooth_gradient(x):
    x = np.asarray(x, float)
    g = np.cos(x) * x + np.sin(x)
    for k in range(3):
        g[k] += 0.3 * np.prod(np.delete(x[:3], k))
    return g


RIGHT = smooth_gradient(X0)


def test_a_right_gradient_agrees_in_few_evaluations():
    program = Program([smooth], [RIGHT])
    result = program.check()
    assert result["verdict"] == "agree"
    assert result["gradient"]["relative_error"] < 1e-3
    assert [row["verdict"] for row in result["gradient"]["elements"]] == ["agree"] * X0.size
    assert all(row["evaluations"] <= 15 for row in result["gradient"]["directions"])
    assert result["contributed"] == pytest.approx(result["gradient"]["directions"][0]["autodiff"], rel=1e-9)
    assert result["evaluations"] == program.evaluations


@pytest.mark.parametrize(
    ("wrong", "kind", "factor"),
    [
        (1.01 * RIGHT, "factor", 1.01),
        (2.0 * RIGHT, "factor", 2.0),
        (-RIGHT, "sign", -1.0),
        (0.0 * RIGHT, "zero", 0.0),
        (RIGHT * np.where(np.arange(9) == 4, 0.0, 1.0), "sparse", 0.0),
        (RIGHT * np.linspace(0.7, 1.6, 9), "subtle", None),
        (RIGHT + np.where(np.arange(9) == 2, np.nan, 0.0), "nonfinite", None),
    ],
)
def test_planted_errors_are_found_and_described(wrong, kind, factor):
    result = Program([smooth], [wrong]).check()
    assert result["verdict"] == "disagree"
    assert result["signature"]["kind"] == kind
    assert result["signature"]["factor"] == (pytest.approx(factor, rel=0.01) if factor is not None else None)


def test_noise_is_neither_agreement_nor_a_fault():
    for wrong in (RIGHT, 1.3 * RIGHT):
        result = Program([smooth], [wrong], noise=2.0).check()
        assert result["verdict"] == "inconclusive"
        assert result["reason"] == "not_reproducible"


def test_a_step_function_accuses_nobody():
    result = Program([lambda x: float(np.sum(np.floor(20.0 * x)))], [0.0 * RIGHT]).check()
    assert result["verdict"] == "inconclusive"


def test_many_small_edges_are_no_slope():
    """Rounded pixels: at the ladder's steps they add up to a slope, and its scatter looks like noise."""
    scene = np.random.default_rng(1).uniform(0.1, 0.9, (9, 16))

    def picture(x):
        grey = np.round(255.0 * x[:, None] * scene).mean(1)
        return float(np.sum((grey / 128.0 - 1.0) ** 2))

    result = Program([picture], [0.0 * RIGHT]).check()
    assert result["verdict"] == "inconclusive"
    assert result["reason"] == "staircase"


def chaos(x):
    return 80.0 + 60.0 * float(np.sum(np.sin(3e6 * x * np.arange(1, 10))))


def test_a_right_gradient_that_holds_for_tiny_steps_only_is_not_accused():
    x = X0.astype(np.float64)
    right = 60.0 * np.cos(3e6 * x * np.arange(1, 10)) * 3e6 * np.arange(1, 10)
    result = Program([chaos], [right], x0=x, dtype=np.float64).check()
    assert result["verdict"] == "inconclusive"
    wrong = Program([chaos], [2.0 * right], x0=x, dtype=np.float64).check()
    assert wrong["verdict"] != "agree"


def test_one_wrong_scalar_of_a_large_parameter_is_found():
    x0 = RNG.uniform(0.5, 1.5, 2000).astype(np.float32)
    wrong = 2.0 * x0.astype(float)
    wrong[1234] = 0.0
    assert Program([lambda x: float(np.sum(x * x))], [wrong], x0=x0).check()["verdict"] == "disagree"


def test_a_large_parameter_is_also_measured_along_its_gradient():
    n = 200_000
    x0 = np.full(n, 0.5, np.float32)

    def mean(x):  # in float32 a random direction moves it by less than it rounds
        return 3.0e4 + float(np.mean(x * x))

    for factor, verdict in ((1.0, "agree"), (2.0, "disagree")):
        result = Program([mean], [factor * 2.0 * x0.astype(float) / n], x0=x0).check(elements=4)
        assert result["gradient"]["directions"][-1]["label"] == "along the gradient"
        assert result["verdict"] == verdict
    assert any("own" in text for text in Program([mean], [x0 * 2.0 / n], x0=x0).check()["not_covered"])


def test_another_gradient_that_is_read_besides_is_not_covered():
    place = {"file": "/w/train.py", "line": 7}
    gradient = 2.0 * X0.astype(float)
    result = Program([lambda x: float(x @ x)], [gradient], undecided=place).check()
    assert result["verdict"] == "agree"
    assert any("held before is read too at train.py:7" in said for said in result["not_covered"])


def test_windows_that_agree_by_themselves_show_a_truncation():
    def first(x):
        return smooth(x)

    def second(x):  # depends on the parameter through the first window's state, which its tape does not hold
        return smooth(x) * 1.5

    program = Program([first, second], [RIGHT, 0.6 * 1.5 * RIGHT])
    result = program.check()
    assert result["verdict"] == "disagree"
    assert [row["verdict"] for row in result["windows"]] == ["agree", "disagree"]


@pytest.mark.parametrize("factor", [0.5, -1.0, 1 / 7.3])
def test_a_factor_against_a_stated_objective_accuses_nobody_where_the_own_loss_agrees(factor):
    """`mean_loss` is what is reported, and the program divides the gradient in NumPy, which nobody sees."""
    program = Program([smooth, smooth], [RIGHT, RIGHT])
    program.stated = factor
    result = program.check()
    assert (result["verdict"], result["reason"]) == ("inconclusive", "scaled_objective")
    assert f"{1 / factor:.4g} times the derivative of the stated objective mean" in result["message"]
    assert "own loss agrees" in result["message"]
    assert result["signature"]["factor"] == pytest.approx(1 / factor, rel=0.01)
    assert {row["verdict"] for row in result["gradient"]["elements"]} == {"inconclusive"}
    assert result["evaluations"] == program.evaluations


def test_one_scalar_is_told_from_a_missing_term_by_a_whole_factor():
    """One ratio is always constant: only a whole one is taken for a scaling."""
    x0 = np.array([0.8], np.float32)
    for factor, verdict in ((0.5, "inconclusive"), (1 / 7.3, "disagree")):
        program = Program([lambda x: float(np.sin(x[0]))], [np.cos(x0.astype(float))], x0=x0)
        program.stated = factor
        assert program.check()["verdict"] == verdict


def test_a_gradient_that_its_own_loss_refutes_is_wrong_against_any_objective():
    program = Program([smooth], [2.0 * RIGHT])
    program.stated = 0.5
    result = program.check()
    assert (result["verdict"], result["signature"]["factor"]) == ("disagree", 4.0)


def test_a_stated_objective_that_differs_by_no_factor_is_disagreed_with():
    program = Program([smooth], [RIGHT * np.linspace(0.7, 1.6, 9)])
    program.stated = 0.5
    assert program.check()["verdict"] == "disagree"


def test_a_seed_of_the_users_own_is_a_statement_too():
    """It is the gradient of the objective, written by hand: a factor there is a wrong seed."""
    program = Program([smooth], [RIGHT])
    program.stated, program.kind = 0.5, "seeded"
    assert program.check()["verdict"] == "disagree"


def test_only_the_calls_that_the_update_used_state_the_objective():
    other = np.full(9, 100.0)
    result = Program([lambda x: float(other @ x), smooth], [other, RIGHT], used=[1]).check()
    assert result["verdict"] == "agree"
    assert result["consumed"]["discarded"] == [0]


def test_a_sum_across_updates_of_other_parameters_is_the_gradient_of_no_objective():
    result = Program([smooth, smooth], [RIGHT, 1.2 * RIGHT], spans_updates=True).check()
    assert (result["verdict"], result["reason"]) == ("inconclusive", "spans_updates")


def test_the_perturbation_moves_behind_a_write_that_no_hook_saw():
    result = Program([smooth], [RIGHT], wiped=11).check()
    assert result["verdict"] == "agree"


def test_a_failed_reference_measures_nothing():
    program = Program([smooth], [RIGHT])
    answer = program.reply
    program.reply = lambda request: {**answer(request), "ok": False, "error": "the program ended"}
    result = program.check()
    assert (result["verdict"], result["reason"], result["message"]) == (
        "inconclusive",
        "not_measured",
        "the program ended",
    )


def test_which_elements_are_measured():
    gradient = np.zeros(1000)
    gradient[[3, 500]] = [5.0, -7.0]
    gradient[77] = np.nan
    chosen = choose_elements(gradient, 16)
    assert {3, 500, 77} <= set(chosen)
    assert len(chosen) <= 16
    assert choose_elements(np.ones(5), 16) == [0, 1, 2, 3, 4]


def test_elements_are_named_by_index_and_component():
    assert component(7, [2, 5], 10) == "[1, 2]"
    assert component(4, [3], 9) == "[1].y"
    assert component(5, [2], 8) == "[1].y"
    assert component(10, [2], 18) == "[1](1)"
    fields = [("k", 1), ("frame.at", 3), ("inertia", 9)]  # of an array of structs: field by field
    assert [component(i, [2], 26, fields) for i in (0, 1, 2, 6, 8, 25)] == [
        "[0].k",
        "[1].k",
        "[0].frame.at.x",
        "[1].frame.at.y",
        "[0].inertia(0)",
        "[1].inertia(8)",
    ]


def test_the_scale_of_a_parameter():
    assert typical_size(np.array([3.0, -3.0])) == 3.0
    assert typical_size(np.array([np.nan, 2.0])) == 2.0
    assert typical_size(np.zeros(4)) == 1.0


class SlowProgram(Program):
    """Every evaluation takes a second, by a clock of its own; `left` are there for the whole check."""

    def __init__(self, left, gradient, monkeypatch):
        super().__init__([smooth], [gradient])
        self.now, self.left = 0.0, left
        monkeypatch.setattr(checking, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def reply(self, request):
        self.now += 1.0
        return super().reply(request)

    def check(self, **options):
        return super().check(remaining=lambda: self.left - self.now, iteration_seconds=1.0, **options)


@pytest.mark.parametrize("left", [9.0, 12.0, 18.0, 32.0, 44.0])
def test_a_slow_program_is_measured_within_its_time_and_what_is_left_out_is_said(left, monkeypatch):
    for gradient, verdict in ((RIGHT, "agree"), (2.0 * RIGHT, "disagree"), (0.0 * RIGHT, "disagree")):
        program = SlowProgram(left, gradient, monkeypatch)
        result = program.check(line=True)
        assert result["verdict"] == verdict
        assert program.now <= left
        assert any("random directions, for lack of time" in said for said in result["not_covered"])
        brief = any("step sizes" in said for said in result["not_covered"])
        assert brief == (left < 20.0)


def test_a_program_too_slow_for_any_answer_says_by_how_much(monkeypatch):
    program = SlowProgram(5.0, 2.0 * RIGHT, monkeypatch)
    result = program.check()
    assert (result["verdict"], result["reason"]) == ("inconclusive", "time")
    assert "takes 1 s" in result["message"]
    assert program.evaluations == 2  # nothing was begun that could not be finished


def test_kinks_that_show_in_some_directions_only_accuse_nobody():
    """At 0 AD is the slope on one side of each kink. Along the gradient the gaps cancel, and AD is twice the difference."""
    n = 40_000
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)

    def clipped(x):
        return 1.0 + float(np.sum(signs * np.maximum(x, 0.0)))

    result = Program([clipped], [signs], x0=np.zeros(n), dtype=np.float64).check(elements=4)
    along = result["gradient"]["directions"][-1]
    assert (along["label"], along["status"]) == ("along the gradient", "settled")
    assert along["autodiff"] == pytest.approx(2.0 * along["finite_difference"], rel=0.02)
    assert (along["verdict"], along["reason"]) == ("inconclusive", "kink")
    assert (result["verdict"], result["reason"]) == ("inconclusive", "kink")


def test_a_wrong_gradient_is_found_beside_small_kinks():
    signs = np.where(np.arange(128) % 2, 1.0, -1.0)

    def nearly_smooth(x):
        return 1.0 + float(np.sum(signs * x) + 0.05 * np.sum(np.tile([1.0, 1.0, -1.0, -1.0], 32) * np.abs(x)))

    result = Program([nearly_smooth], [2.0 * signs], x0=np.zeros(128), dtype=np.float64).check()
    assert result["verdict"] == "disagree"


@pytest.mark.parametrize(
    ("calls", "repeated", "once"),
    [
        ([0, 1], [], [0, 1]),
        ([0, 1, 2], [1, 2], [0]),
        ([4, 5, 6, 7], [5, 7], [4, 6]),
        ([1], [1], [1]),  # what the call before it had added was zeroed
    ],
)
def test_a_repeated_call_states_no_objective(calls, repeated, once):
    assert stated_once(calls, repeated) == once


def test_links_of_a_chain_that_add_to_one_loss_count_their_own_share():
    reply = {"ok": True, "losses": {0: 3.0, 1: 4.5}, "before": {0: 1.0, 1: 3.0}, "outputs": {}}
    assert objective(reply, {}, [0, 1], {}) == 2.0 + 1.5
