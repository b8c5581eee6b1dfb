"""What `wp.autograd.gradcheck_tape` itself says about a tape, and what it looked at. Runs in a forked child."""

from __future__ import annotations

from typing import Any

MOST_LAUNCHES = 2000  # launches and adjoints that its Jacobians may take; beyond, it is not asked


def gradcheck_tape(wp: Any, tape: Any) -> dict[str, Any]:
    """Its answer with its own defaults: {"passed": bool | None, "message", "looked_at", "skipped"}.

    Of long tapes one launch of each kernel is handed over: it looks at every launch by itself, from single elements.
    """
    launches = [entry for entry in tape.launches if isinstance(entry, (list, tuple))]
    skipped = [f"{e[0].key}: backward disabled" for e in launches if is_disabled(e[0])]
    others = len(tape.launches) - len(launches)
    skipped += [f"{others} copies and recorded functions"] if others else []
    checked = [e for e in launches if not is_disabled(e[0])]
    if _cost(wp, checked) > MOST_LAUNCHES:
        checked = list({e[0].key: e for e in checked}.values())
    cost = _cost(wp, checked)
    looked_at = f"{len(checked)} of {len(launches)} launches ({', '.join(dict.fromkeys(e[0].key for e in checked))})"
    answer: dict[str, Any] = {"passed": None, "looked_at": looked_at, "skipped": list(dict.fromkeys(skipped))}
    if cost > MOST_LAUNCHES:
        return {**answer, "message": f"not asked: its Jacobians would take about {cost} launches"}
    tape.launches = checked
    try:
        import warp.autograd

        passed = warp.autograd.gradcheck_tape(tape, raise_exception=False, show_summary=False)
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        return {**answer, "message": f"it raised {text}"}
    if not any(_scalars(wp, e[3]) and _scalars(wp, e[4]) for e in checked):
        return {
            **answer,
            "passed": bool(passed),
            "message": "it compared nothing: no array with a gradient on both sides",
        }
    said = "the adjoints of single launches agree with differences at its defaults (eps=1e-4)"
    other = "a launch failed at its defaults (eps=1e-4), which also fail right float32 kernels of ordinary magnitude"
    return {**answer, "passed": bool(passed), "message": said if passed else other}


def is_disabled(kernel: Any) -> bool:
    """Whether the kernel was built without a backward pass."""
    option = kernel.options.get("enable_backward")
    if option is None:
        option = kernel.module.options.get("enable_backward")
    return option is False


def _cost(wp: Any, launches: list[Any]) -> int:
    """Launches that its Jacobians take: two an input scalar, one an output scalar."""
    return sum(2 * _scalars(wp, e[3]) + _scalars(wp, e[4]) for e in launches)


def _scalars(wp: Any, arguments: Any) -> int:
    """Scalars of the arrays that it would difference: plain arrays with a gradient."""
    arrays = [a for a in arguments or () if isinstance(a, wp.array) and a.requires_grad]
    return sum(int(a.size) * max(1, getattr(a.dtype, "_length_", 1)) for a in arrays)
