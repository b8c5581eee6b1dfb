"""What the measured numbers mean, in words: message, what is ruled out, blind spots, the next call. Pure."""

from __future__ import annotations

import math
import re

from warp_debug_gradients.operations import by_hand, next_calls
from warp_debug_gradients.operations.agreement import bound_in_words, judged_in_words
from warp_debug_gradients.operations.edited_gradient import edited_between, swept_again
from warp_debug_gradients.operations.iterations import first_rise, iteration_of, losses
from warp_debug_gradients.operations.segments import dropped_adjoints
from warp_debug_gradients.records import Check, GradientRead, Numbers, Place, Trace, part, parts
from warp_debug_gradients.schemas import Cause, GradcheckRequest, GradcheckResult, NextCall, as_float

# When the gradient is read, other than after backward: what that means, and what to do.
STALE = {
    "before": (
        "the gradient is read before backward has been called in this iteration",
        "Read the gradient after backward.",
    ),
    "zeroed": (
        "the gradient is zeroed after backward and before it is read",
        "Read the gradient first, then zero it (tape.zero() after the update).",
    ),
    "left_behind": (
        "the gradient that is used is that of an array which the variable held before: the variable was given a new array "
        "since, and the new one's gradient is read by nobody",
        "Keep one array and write into it (assign), or hand the optimizer the new array and its gradient.",
    ),
    "view_zeroed": (
        "the gradient is held as a live view (on the CPU .numpy() does not copy), and is zeroed before it is used",
        "Copy it: .numpy().copy(), or zero the gradient after the update.",
    ),
    "previous": (
        "the steps of the update follow the gradient of the iteration before (multiples of it, or what Adam makes of it), and not "
        "this iteration's own",
        "Use this iteration's gradient: read it after backward and before the update.",
    ),
    "readings": (
        "the gradient is read after each backward call while it adds up, and the steps of the update are multiples of the "
        "sum of these readings: the first calls count as often as they are read",
        "Read the gradient once, after the last backward call; or zero it after each reading.",
    ),
}
DOUBLE = "readings"  # of these, what counts a contribution more than once
SAME_SHARE = 0.02  # derivatives that differ by less than this part are the same stretch's
ANOTHER = 0.1  # of the error: what the update uses and backward did not leave, if the error is to be found there

NO_TIME = (
    "Time ran out before a single check was complete. Shrink the run (run_repro lists the knobs) or give it longer."
)
COMPILED = re.compile(r"^Module \S+ \S+ load on device .* took ([\d.]+) ms +\(compiled\)", re.MULTILINE)  # Warp's words
LONG_COMPILATION_S = 2.0

# Reasons of an inconclusive check: what the caller can do about it. Codes are those of probe/verdict.py.
ADVICE = {
    "not_reproducible": "Make the forward pass deterministic (fix seeds; avoid order-dependent float atomics), or name "
    "a less noisy objective.",
    "quantised": "The objective is too coarse in its dtype. Name a finer objective, or check an iteration where the "
    "loss is larger.",
    "kink": "The one-sided derivatives differ here, and autodiff may return either. Check another iteration, or a "
    "parameter value away from the kink.",
    "staircase": "Where the objective is meant to be piecewise constant (bins, casts), zero is its gradient, and training "
    "needs a smooth surrogate; where its digits are rounded away, take the large part out of the sum.",
    "unresolved": "The objective is too rough at every step that the parameter's dtype has: check a shorter horizon with "
    "an override.",
    "unsettled": "Differences do not settle at any step. Shorten the horizon with an override, or name a smoother "
    "objective.",
    "imprecise": "Name a smoother or finer objective, or shorten the horizon with an override.",
    "directions_differ": "A fault in few elements and a kink look alike here: check another iteration.",
    "unseeded": "Hand backward the loss, or the outputs' gradients (grads=, or their .grad before the call).",
    "nonfinite": "The objective itself is not finite nearby: find the first non-finite value in the forward pass first.",
    "unmeasured": "Give it longer (timeout_s), or shrink the run: run_repro lists the knobs.",
    "spans_updates": "Zero this parameter's gradient where the others are updated, or name one that is updated after "
    "every backward call (parameter=…).",
    "adjoint_in_loss": "Hand the adjoint to backward instead, as the seed of the segment's last state (grads=), and keep the loss the "
    "segment's own cost: the gradient is the same.",
    "scaled_objective": "If the program divides the gradient by that factor after reading it, it is right for the stated "
    "objective; if not, it is right up to that factor, which the learning rate takes up.",
    "forbidden_write": "Keep that file in memory for the check (':memory:'), write it after the iteration, or check an "
    "iteration that does not write.",
    "not_repeated": "Make the script repeat its own steps (seeds, no clocks or files that change).",
    "not_measured": "Make the script repeat its own steps (seeds, no clocks or files that change), or try engine=rerun.",
}


SEGMENT = (
    "what was checked is one tape of a chain (each backward hands its gradient on to the next), not the program's whole "
    "iteration"
)


def no_iteration_in_time(trace: Trace, output: str) -> str:
    """The program did not get far enough; the second run of one that compiles many kernels gets further."""
    said = "Time ran out before the program finished its first optimizer iteration."
    printed = sum(float(ms) for ms in COMPILED.findall(output)) / 1e3  # all there is of a run that had to be killed
    seconds = part(trace, "seconds").get("compile") or printed
    if seconds >= LONG_COMPILATION_S:
        return (
            f"{said} {seconds:.0f} s of it went into compiling kernels, which Warp keeps in its cache: the same call "
            "once more gets further. Else shrink it or give it longer."
        )
    return f"{said} Shrink it or give it longer."


def nothing_to_check(trace: Trace) -> tuple[str, str]:
    """(reason, message) where the program runs but has no gradient that is read."""
    unfollowed = trace.get("unfollowed") or []
    if unfollowed and not trace.get("backward_calls"):
        return "graph_not_followed", (
            f"The program trains inside a captured graph that cannot be followed ({'; '.join(unfollowed)}), so its "
            "backward pass is not seen. Run the same steps without the capture: the gradients are the same."
        )
    if not trace.get("backward_calls"):
        jax = (
            " Kernels that JAX differentiates itself (jax_kernel with enable_backward=True) are on no tape and are not "
            "measured here: hand the function to jax.test_util.check_grads, or write the loss on a tape."
        )
        return "no_backward", (
            "The program runs, but Tape.backward was never called, so there is no gradient to check. "
            "Name the script (and arguments) that trains, or a loss function with forward= and inputs=."
            f"{jax if trace.get('uses_jax') else ''}"
        )
    leaves = [leaf["name"] for leaf in trace.get("leaves") or []]
    offered = f" Leaves with gradients: {', '.join(leaves[:8])}." if leaves else " No leaf of the tape has a gradient."
    return "no_parameter", (
        f"Backward was called {trace.get('backward_calls')} times, but nobody reads a gradient, so the trained parameter "
        f"is not known.{offered} Name it with `parameter`."
    )


def headline_message(check: Check, checks: list[Check], trace: Trace) -> str:
    """The answer: the signature for a wrong gradient, what was verified for a right one."""
    parameter = (check.get("parameter") or {}).get("name", "the parameter")
    where = f"in iteration {check.get('iteration')}"
    said = str(check.get("message") or "").strip().rstrip(".")
    if check["verdict"] == "disagree":
        signature = str((check.get("signature") or {}).get("message") or "").strip().rstrip(".")
        return (
            f"The gradient of {parameter} is wrong {where}: {signature or said}."
            f"{_seeded(check)}{_scaled(check)}{_between(check)}{_history(check, checks)}"
        )
    if check["verdict"] == "inconclusive":
        return f"Not decided for {parameter} {where}: {said}. {ADVICE.get(check.get('reason') or '', '')}".strip()
    whole = "over the full horizon" if (check.get("horizon") or {}).get("full", True) else "over PART of the horizon"
    more = (
        wiped(check) or more_windows_than_others(check, trace) or ("" if whole == "over the full horizon" else SEGMENT)
    )
    judged = judged_in_words(check.get("gradient") or {})
    differs = f" Along the direction that tells most AD and FD differ by {judged}." if judged else ""
    return (
        f"The gradient of {parameter} is right {where}, {whole}.{differs}{_seeded(check)}{is_zero(check)}{f' But {more}.' if more else ''}"
        f"{off_the_tape(checks)}{other_reason(trace)}"
    )


def _seeded(check: Check) -> str:
    """What the gradient is of, where backward is seeded with something else than one."""
    objective = part(check, "objective")
    seed, count = objective.get("seed"), objective.get("outputs") or 0
    if objective.get("kind") != "seeded" or seed is None or as_float(seed) == 1.0:
        return ""
    whole = f"the sum of {objective.get('name')} ({count} values)" if count > 1 else objective.get("name")
    return f" Backward is seeded with {as_float(seed):.6g}: the objective is {as_float(seed):.6g} times {whole}."


def is_zero(check: Check) -> str:
    """A right gradient of zero has a reason in the forward pass."""
    gradient = check.get("gradient") or {}
    if gradient.get("autodiff") == 0.0 and gradient.get("finite_difference") == 0.0:
        return " It is zero: the objective does not change with this parameter, in the forward pass already."
    return ""


def wiped(check: Check) -> str:
    """What backward calls of the iteration left, and the program zeroed before the gradient was read."""
    lost = parts(part(check, "consumed"), "discarded")
    if not lost:
        return ""
    what = "a backward call" if len(lost) == 1 else f"{len(lost)} backward calls"
    return (
        f"what {what} of this iteration added to it was zeroed before it is read: it is the gradient of the other "
        "losses alone, which is wrong if they are meant to be summed"
    )


def off_the_tape(checks: list[Check]) -> str:
    """Where an iteration trains an array that its forward pass does not read: a right gradient of zero, and no training."""
    for check in checks:
        parameter = part(check, "parameter")
        if check["verdict"] == "agree" and parameter.get("orphan") and is_zero(check):
            made = part(parameter, "allocated")
            at = f", made at {made.get('file')}:{made.get('line')}," if made.get("file") else ""
            return (
                f" But in iteration {check.get('iteration')} the gradient that is read is that of an array{at} which no "
                "operation of that iteration reads: it is zero, and so is the derivative; the update has no effect. Write "
                "into the array that the tape or the captured graph reads (assign), or capture again."
            )
    return ""


def more_windows_than_others(check: Check, trace: Trace) -> str:
    """An iteration that sums more backward calls than all others do: one of them may be left over."""
    calls = {
        item.get("index", k): len(item.get("backward_calls") or [])
        for k, item in enumerate(trace.get("iterations") or [])
    }
    own = calls.pop(check.get("iteration"), 0)
    usual = set(calls.values())
    if len(calls) < 2 or len(usual) != 1 or own <= (n := usual.pop()):
        return ""
    return (
        f"iteration {check.get('iteration')} sums {own} backward calls, every other {n}: where a backward pass before the "
        "loop left its gradient behind, the first update has it on top, and it counts as part of the objective here"
    )


def is_truncated(check: Check) -> bool:
    """Whether each backward call is right for its own stretch, and the stretches miss a part of the derivative.

    Not so where the consumed gradient is not what the backward calls gave (it is stale, accumulated, edited, or another
    buffer): then what they gave differs from it, or the stretches' own derivatives add up to the whole.
    """
    windows = check.get("windows") or []
    if check["verdict"] != "disagree" or not windows or any(w.get("verdict") != "agree" for w in windows):
        return False
    if uses_another_gradient(check):
        return False
    directions = (check.get("gradient") or {}).get("directions") or []
    if len(windows) < ((check.get("horizon") or {}).get("windows") or 1) or not directions:
        return len(windows) > 1
    whole, own = (
        as_float(directions[0].get("finite_difference")),
        [as_float(w.get("finite_difference")) for w in windows],
    )
    if not all(map(math.isfinite, [whole, *own])):
        return len(windows) > 1
    errors = [abs(as_float(item.get("error"))) for item in [directions[0], *windows] if item.get("error") is not None]
    return abs(whole - math.fsum(own)) > 3 * sum(errors) + SAME_SHARE * abs(whole)


def uses_another_gradient(check: Check) -> bool:
    """Whether the gradient that the update uses is not what the iteration's backward calls added, by a part of the error."""
    directions = (check.get("gradient") or {}).get("directions") or []
    if not directions or check.get("contributed") is None:
        return False
    used, right = (as_float(directions[0].get(name)) for name in ("autodiff", "finite_difference"))
    return abs(used - as_float(check.get("contributed"))) > ANOTHER * abs(used - right)


def _between(check: Check) -> str:
    """Where every backward call is right by itself, the chain is cut between them, or before the only one."""
    if not is_truncated(check):
        return ""
    windows = check.get("windows") or []
    if len(windows) == 1:
        return f" Truncation: the tape's own window agrees ({_pair(windows[0])}) but the gradient misses what happens before it."
    return (
        f" Truncation: each of the {len(windows)} checked backward calls is right for its own loss: "
        "the chain is cut between them."
    )


def _pair(item: Numbers) -> str:
    return f"AD = {as_float(item.get('autodiff')):.6g}, FD = {as_float(item.get('finite_difference')):.6g}"


def _scaled(check: Check) -> str:
    """An exact factor against an objective that the *user* stated need not be a fault."""
    signature = check.get("signature") or {}
    factor = signature.get("factor")
    if (check.get("objective") or {}).get("kind") != "expression" or signature.get("kind") not in ("factor", "sign"):
        return ""
    by = f" by {1 / as_float(factor):.4g}" if factor is not None and as_float(factor) else ""
    return (
        f" This is measured against the objective that was stated: the gradient is right if the program scales it{by} "
        "afterwards, or if the stated objective lacks that factor."
    )


def _history(check: Check, checks: list[Check]) -> str:
    """Where an earlier iteration of the same program is right, the fault needs a history."""
    name = (check.get("parameter") or {}).get("name")
    earlier = [
        c["iteration"]
        for c in checks
        if c["verdict"] == "agree"
        and (c.get("parameter") or {}).get("name") == name
        and c["iteration"] < check["iteration"]
    ]
    if not earlier:
        return ""
    return (
        f" It is right in iteration {max(earlier)}: something left over from earlier iterations takes part, such as a "
        "gradient buffer that is never zeroed; or the fault acts only at the values that training has reached."
    )


def other_reason(trace: Trace) -> str:
    """Where the gradient is right and training goes wrong all the same: say so, with the numbers."""
    indices = [item.get("index", k) for k, item in enumerate(trace.get("iterations") or [])]
    values = losses(trace)
    known = [v for v in values if v is not None]
    bad = next((k for k, v in enumerate(values) if v is not None and not math.isfinite(v)), None)
    if bad is not None:
        return (
            f" The loss turns non-finite in iteration {indices[bad]} (it starts at {known[0]:.4g}): the gradient is not "
            "the reason. Look at the step size, the time step, or an overflow in the forward pass."
        )
    if len(known) < 2:
        return ""
    rise = first_rise(values)
    if rise is None or known[-1] <= known[0]:
        return (
            f" The loss goes from {known[0]:.4g} to {known[-1]:.4g} in the traced run. If training still disappoints, look "
            "at the learning rate, the loss's scale, and the model itself."
        )
    return (
        f" The loss nevertheless rises, {values[rise - 1]:.4g} -> {values[rise]:.4g} from iteration {indices[rise - 1]} "
        f"to {indices[rise]} (first {known[0]:.4g}, last {known[-1]:.4g}): the gradient is not the reason. Look at the "
        "learning rate, momentum or clipping, or noise in the objective."
    )


def proven_causes(
    check: Check,
    trace: Trace,
    cut: Place | None = None,
    zeroed: Place | None = None,
) -> list[Cause]:
    """Causes that follow from the check alone; finding the others takes more measurements.

    `cut` is the place where the chain is cut if it is, `zeroed` where the gradient is zeroed, if known.
    """
    parted = is_truncated(check)
    cut_off = dropped_adjoints(check, trace, parted)
    if check["verdict"] != "disagree":
        return cut_off
    if again := swept_again(check):
        return again
    windows = check.get("windows") or []
    calls = (check.get("horizon") or {}).get("windows") or 1
    if parted:
        gradient = check.get("gradient") or {}
        single = len(windows) == 1
        measured = f" looked at (of {calls})" if calls > len(windows) else ""
        truncated = [
            Cause(
                code="truncation",
                confidence="likely",
                file=(cut or windows[0]).get("file"),
                line=(cut or windows[0]).get("line"),
                evidence=[
                    f"the tape's own window agrees: {_pair(windows[0])}"
                    if single
                    else f"each of the {len(windows)} backward calls{measured} agrees with differences of its own loss",
                    f"{'it' if single else 'the sum of all'} disagrees with differences of the objective over the whole "
                    f"iteration: {_pair(gradient)}",
                ],
                repair="Let one tape span the whole iteration, or hand the adjoint of each window's initial state to the "
                "window before it.",
            )
        ]
        for cause in cut_off:
            cause.evidence += truncated[0].evidence
        return cut_off or truncated
    consumed = check.get("consumed") or {}
    read = iteration_of(trace, check["iteration"]).get("gradient_read") or {}
    when = consumed.get("when") or read.get("when")
    if when not in STALE:
        return [*edited_between(check, trace), *cut_off]
    reads = [consumed.get("read") or {}, read, *(i.get("gradient_read") or {} for i in trace.get("iterations") or [])]
    nowhere: GradientRead = {}
    place = next((r for r in reads if r.get("file")), nowhere)
    said, repair = STALE[when]
    evidence = [said]
    if place and place is not read:
        evidence.append(f"it is read at {place.get('file')}:{place.get('line')} ({place.get('how')})")
    made: Place = (check.get("parameter") or {}).get("allocated") or {}
    if when == "left_behind" and made.get("file"):
        evidence.append(f"the new one is made at {made.get('file')}:{made.get('line')}")
    where: Place = zeroed or place if when == "zeroed" else place
    return [
        Cause(
            code="double_count" if when == DOUBLE else "stale_gradient",
            confidence="likely",
            file=where.get("file"),
            line=where.get("line"),
            evidence=evidence,
            repair=repair,
        )
    ]


def ruled_out(checks: list[Check], headline: Check, trace: Trace) -> list[str]:
    """What the measurement excludes, each with its reason."""
    out: list[str] = []
    repeats = headline.get("repeats") or {}
    if repeats.get("reproducible"):
        out.append(
            f"an unreproducible forward pass: {len(repeats.get('values') or []) or 'all'} repeats gave the same objective"
        )
    gradient = headline.get("gradient") or {}
    if headline["verdict"] == "agree":
        counted = f"{counted_in_words(gradient, 'direction')} and {counted_in_words(gradient, 'element')}"
        out.append(
            f"a wrong gradient of {(headline.get('parameter') or {}).get('name')}: {counted} agree with differences"
            f"{bound_in_words(gradient)}"
        )
    if headline["verdict"] == "disagree":
        out.append("a failure of the finite differences: autodiff is off by many times their own error")
        if is_truncated(headline):
            out.append("a wrong adjoint inside a window: each checked window agrees by itself")
        for check in checks:
            if check["verdict"] == "agree":
                name = (check.get("parameter") or {}).get("name")
                out.append(f"the same fault in {name} at iteration {check.get('iteration')}: it agrees there")
    if not trace.get("nonfinite"):
        out.append("non-finite losses or gradients in the traced iterations")
    return out


def counted_in_words(gradient: Numbers, what: str) -> str:
    """How many directions or elements were measured."""
    count = len(gradient.get(f"{what}s") or [])
    return f"{count} {what}{'' if count == 1 else 's'}"


def blind_spots(checks: list[Check], trace: Trace, unfinished: bool) -> list[str]:
    """What was not covered."""
    spots = [
        f"iterations other than {', '.join(str(k) for k in sorted({c.get('iteration') for c in checks}, key=str))}"
    ]
    for check in checks:
        parts = (check.get("consumed") or {}).get("parts") or 1
        read = f"whether the program adds up the gradients that it read {parts} times, zeroed in between (taken for granted)"
        found = [*(check.get("not_covered") or []), *([read] if parts > 1 else [])]
        spots += [text for text in found if text not in spots]
    if by_hand.taken_as_given(checks):
        spots.append(by_hand.GIVEN)
    leaves = [leaf["name"] for leaf in trace.get("leaves") or []]
    if leaves:
        spots.append(f"leaves whose gradient nobody reads: {', '.join(leaves[:6])}")
    if unfinished:
        spots.append("checks that the time did not allow")
    return spots


def next_call(result: GradcheckResult, request: GradcheckRequest, trace: Trace) -> NextCall | None:
    """The call that should follow."""
    arguments = request.model_dump(exclude_defaults=True)
    if result.status == "blocked":
        plain = {k: v for k, v in arguments.items() if k not in ("iteration", "engine")}
        return next_calls.does_it_run(plain)
    if result.status == "timeout":
        return next_calls.with_more_time("gradcheck_full_horizon", arguments, request.timeout_s)
    if result.verdict == "disagree":
        same = {k: v for k, v in arguments.items() if k not in ("engine", "objective")} | {
            "iteration": result.iteration
        }
        return NextCall(tool="bisect_steps", arguments=same, why="Which launch line puts the error in, and why.")
    if result.reason == "no_parameter":
        leaf = next((leaf["name"] for leaf in trace.get("leaves") or []), None)
        if leaf:
            named = {**arguments, "parameter": leaf}
            return NextCall(tool="gradcheck_full_horizon", arguments=named, why="With the trained array named.")
    if result.reason == "scaled_objective":
        own = {k: v for k, v in arguments.items() if k != "objective"} | {"iteration": result.iteration}
        return NextCall(
            tool="gradcheck_full_horizon", arguments=own, why="The whole check against the tape's own loss."
        )
    if result.verdict == "inconclusive":
        return next_calls.choose_another(arguments)
    return None
