"""What the watching run learned, as `trace.json`: parameters, objectives, iterations and the plan to check each."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any

from .consumption import Consumed, Entry, consumed, spans_updates, split_iterations, update_events, zeroed_under_view
from .evaluate import OTHER_PROCESSES
from .host_values import changing
from .leads import beginning, captured_until
from .trace import Backward, Leaf, Watch

LISTED_ITERATIONS = 400  # the first and the last ones of a long training are listed
LISTED_LEAVES = 30
BEGINNINGS = 8  # moments at which an iteration may begin that are tried


def candidates(watch: Watch) -> list[Leaf]:
    """The leaves that can be parameters: a loss that is added to counts as read, and is none."""
    losses = {b.loss_serial for b in watch.backwards}
    return [
        leaf
        for leaf in watch.leaves.values()
        if leaf.serial not in losses and (leaf.stands_for is None or leaf.read_itself)
    ]


def choose(watch: Watch) -> tuple[list[Leaf], str]:
    """The parameters and how they were found: named, read, changing, only; or none."""
    leaves = candidates(watch)
    if watch.parameter_expression is not None:
        named = [leaf for leaf in leaves if any(u["serial"] in watch.named for u in leaf.uses)]
        if named:
            return named, "named"
        text = watch.parameter_expression
        tails = [
            leaf for leaf in leaves if any(n == text or n.endswith("." + text) for n in [leaf.name, *leaf.aliases])
        ]
        return tails, "named"
    read = [leaf for leaf in leaves if any(e.kind == "read" for e in leaf.history)]
    links, calls = {b.call for b in watch.backwards if b.linked}, len(watch.backwards)
    kept = [leaf for leaf in read if not (leaf.carrier or leaf.begins_segments(calls) or made_anew(leaf, links))]
    read = kept or read
    if links:
        read = [leaf for leaf in read if read_at_the_end(leaf, watch.backwards)] or read
    if read:
        return read, "read"
    changing = [leaf for leaf in leaves if len(split_iterations(leaf.history)) > 1]
    if changing:
        return changing, "changing"
    return (leaves, "only") if len(leaves) == 1 else ([], "none")


def read_at_the_end(leaf: Leaf, backwards: list[Backward]) -> bool:
    """Whether its gradient is read after the last link of a chain of tapes, too, and not only handed on between links."""
    last = {b.call for b, following in pairwise([*backwards, None]) if b and not (following and following.linked)}
    return any(
        e.kind == "read" and last & {b.call for b in history[:k] if b.kind == "backward"}
        for history in split_iterations(leaf.history)
        for k, e in enumerate(history)
    )


def made_anew(leaf: Leaf, links: set[int]) -> bool:
    """Whether it is another array in the links of a chain of tapes: a window's initial state. A parameter is the same."""
    return any(
        later["call"] in links and later["call"] == earlier["call"] + 1 and later["serial"] != earlier["serial"]
        for earlier, later in pairwise(leaf.uses)
    )


def describe(leaf: Leaf) -> dict[str, Any]:
    """A leaf as it stands in trace.json."""
    read = next((e for e in leaf.history if e.kind == "read"), None)
    return {
        "key": leaf.key,
        "name": leaf.name,
        "aliases": leaf.aliases,
        "shape": leaf.shape,
        "dtype": leaf.dtype,
        "scalars": leaf.scalars,
        "fields": leaf.fields,
        "device": leaf.device,
        "allocated": leaf.allocated,
        "gradient_read": {**(read.place or {}), "how": read.how} if read is not None else None,
    }


def iterations(watch: Watch, chosen: list[Leaf], objective: str | None) -> list[dict[str, Any]]:
    """Groups of parameters that share their backward calls, in the order of those calls."""
    groups: dict[tuple[int, ...], list[Member]] = {}
    for leaf in chosen:
        updates = sorted({u for other in chosen if other is not leaf for u in update_events(other.history)})
        pieces = split_iterations(leaf.history, updates)
        for history, following in zip_longest(pieces, pieces[1:]):
            if following is not None and following[0].borrowed and not any(e.kind == "read" for e in history):
                continue  # this gradient was zeroed unread while another parameter had its turn
            calls = tuple(e.call for e in history if e.kind == "backward")
            groups.setdefault(calls, []).append(Member(leaf, history, spans_updates(history, updates)))
        join_links(watch, leaf, groups)
    ordered = sorted(groups)
    starts = [watch.backwards[calls[0]] for calls in ordered]
    own: dict[frozenset[str], list[Backward]] = {}  # by the parameters: what is prepared for others is another matter
    for calls, start in zip(ordered, starts, strict=True):
        own.setdefault(_keys(groups[calls]), []).append(start)
    found: list[dict[str, Any]] = []
    for index, calls in enumerate(ordered):
        alike = own[_keys(groups[calls])]
        found.append(_iteration(watch, index, calls, groups[calls], alike if len(alike) > 1 else starts, objective))
    return found


def _keys(members: list[Member]) -> frozenset[str]:
    return frozenset(member.leaf.key for member in members)


def join_links(watch: Watch, leaf: Leaf, groups: dict[tuple[int, ...], list[Member]]) -> None:
    """One iteration of the links of a chain of tapes, where they look like several: the array that is trained holds the
    start of every segment (checkpointing in place). Its forward pass ran before, outside any tape."""
    array = leaf.array()
    if array is None:
        return
    own = [(calls, m) for calls in sorted(groups) for m in groups[calls] if m.leaf is leaf]
    end, chain = -1, []
    for k, (calls, member) in enumerate(own):
        chain.append(calls)
        following = own[k + 1][0] if k + 1 < len(own) else None
        if following is not None and following[0] == calls[-1] + 1 and watch.backwards[following[0]].linked:
            continue
        first = watch.backwards[chain[0][0]].event
        begins = tuple(t for t in watch.tapes.touches_of(array) if end < t < first)[:BEGINNINGS]
        if len(chain) > 1 and begins and any(e.kind == "read" for e in member.history):
            for link in chain:
                groups[link] = [m for m in groups[link] if m.leaf is not leaf]
                if not groups[link]:
                    del groups[link]
            joined = tuple(c for link in chain for c in link)
            groups.setdefault(joined, []).append(Member(leaf, member.history, False, begins))
        end, chain = max(e.event for e in member.history), []


@dataclass(frozen=True)
class Member:
    """A parameter's part in one iteration. spans_updates: others were updated between its backward calls.

    begins: where the parameter of a joined chain may first be read, outside any tape; empty where it is no such chain.
    """

    leaf: Leaf
    history: list[Entry]
    spans_updates: bool
    begins: tuple[int, ...] = ()


def _iteration(
    watch: Watch,
    index: int,
    calls: tuple[int, ...],
    members: list[Member],
    starts: list[Backward],
    objective: str | None,
) -> dict[str, Any]:
    backwards = [watch.backwards[c] for c in calls]
    uses = [consumed(member.history) for member in members]
    used = {c for u in uses for c in u.calls} | {c for member in members if member.begins for c in calls}
    reads = [u.read for u in uses if u.read is not None]
    read = reads[0] if reads else None
    previous = watch.backwards[calls[0] - 1].launches_before if calls[0] > 0 else 0
    return {
        "index": index,
        "parameter_keys": [member.leaf.key for member in members],
        "backward_calls": list(calls),
        "ops": sum(b.ops for b in backwards),
        "tapes": len({b.tape_event if b.tape_event >= 0 else -1 - b.call for b in backwards}),
        "tape_emptied": next((b.emptied for b in backwards if b.emptied), None),
        "launches": backwards[-1].launches_before - previous,
        "losses": [b.loss for b in backwards if b.call in used or not used],
        "gradient_norm": math.sqrt(sum(u.norm**2 for u in uses)),
        "gradient_read": {**(read.place or {}), "how": read.how, "when": uses[0].when} if read is not None else None,
        "gradient_edited": next(
            (edit for b in backwards[1:] for key, edit in b.edits.items() if key in {m.leaf.key for m in members}), None
        ),
        "handed": _handed(watch, backwards),
        "dropped": [
            {"call": b.call, "variable": joint.leaf.name, "norm": joint.norm, **(b.place or {})}
            for b in backwards[1:]
            for joint in b.joints
            if joint.how == "dropped"
        ],
        "discarded": sorted({c for u in uses for c in u.discarded}),
        "plan": _plan(watch, index, calls, members, uses, starts, objective),
    }


def _handed(watch: Watch, backwards: list[Backward]) -> list[dict[str, Any]]:
    """Where the arrays were made that a backward call finds seeded with the adjoint of the state behind its segment."""
    places = [
        (b.call, watch.registry.allocated[serial])
        for b in backwards[1:]
        for joint in b.joints
        if joint.how == "seed"
        for serial in joint.ends
        if serial in watch.registry.allocated
    ]
    return [{"call": call, "file": file, "line": line} for call, (file, line) in dict.fromkeys(places)]


def _plan(
    watch: Watch,
    index: int,
    calls: tuple[int, ...],
    members: list[Member],
    uses: list[Consumed],
    starts: list[Backward],
    objective: str | None,
) -> dict[str, Any]:
    """Everything that a later run needs to find this iteration again."""
    backwards = [watch.backwards[c] for c in calls]
    others = [b.lead for b in starts if b.call != calls[0] and b.place == backwards[0].place][:1]
    parameters = []
    for member in members:
        leaf = member.leaf
        by_call = {u["call"]: u for u in leaf.uses}
        first = by_call[calls[0]]
        begin = next((e for e in member.history if e.kind == "write"), None)
        write = begin.event if begin is not None else first["last_write"]
        if 0 <= first["first_use"] <= write:
            write = first["first_use"] - 1 if begin is not None and begin.borrowed else first["last_write"]
        if member.begins:
            parameters.append(_chained(member, by_call, calls))
            continue
        captured = captured_until(watch.captures, write, first["first_use"], first["first_touch"])
        event = max(beginning(backwards[0].lead, others, write, first["first_use"]), captured)
        parameters.append(
            {
                **describe(leaf),
                "orphan": leaf.orphan,
                "serial": first["serial"],
                "event": event,
                "check_event": first["first_use"],
                "zeroed_under_view": zeroed_under_view(leaf.history),
                "followed": leaf.follower.answer(seen=any(e.left_behind for e in leaf.history)),
                "undecided": undecided(member),
                "spans_updates": member.spans_updates,
                "uses": {str(c): {"first_use": by_call[c]["first_use"]} for c in calls if c in by_call},
            }
        )
    pause = min(p["event"] for p in parameters)
    objective_calls = _chain_objective(watch, pause, backwards)
    span = [b for b in watch.backwards if b in backwards or pause <= b.event <= backwards[-1].event]
    stated = [watch.backwards[c] for c in objective_calls] if objective_calls else backwards
    return {
        "iteration": index,
        "pause": pause,
        "objective_calls": objective_calls,
        "products": any(joint.how == "product" for b in backwards[1:] for joint in b.joints),
        "repeated_calls": [b.call for b in span if b.repeats],
        "mixed_calls": [b.call for b in backwards if b.mixed],
        "segment": _is_segment(watch, calls, objective_calls is not None),
        "backward_calls": list(calls),
        "call_events": {str(b.call): b.event for b in backwards},
        "call_places": {str(b.call): b.place for b in span},
        "until_event": max(u.end_event for u in uses),
        "outputs": {str(b.call): b.outputs for b in stated if b.outputs},
        "early_losses": {
            str(b.call): {"event": b.loss_event, "serial": b.loss_serial} for b in stated if b.loss_event >= 0
        },
        "loss_before": {
            str(b.call): {"event": b.loss_use, "serial": b.loss_serial}
            for b in (stated if objective_calls else ())
            if b.loss_use >= 0
        },
        "losses_seen": {str(b.call): b.loss for b in stated if b.loss is not None and not b.outputs},
        "seeds_consumed": [b.call for b in stated if b.seeds_consumed],
        "objective": objective,
        "objective_name": " + ".join(dict.fromkeys(b.loss_name or "seeded outputs" for b in stated)),
        "objective_kind": "seeded" if any(b.outputs for b in stated) else "loss",
        "host_scalars": changing(b.scalars for b in watch.backwards if b.scalars and b.place == stated[-1].place),
        "reported": _reported(watch, backwards) if objective is None else None,
        "objective_dtype": stated[-1].loss_dtype if stated[-1].loss_dtype in ("float64", "float16") else "float32",
        "ops": sum(b.ops for b in backwards),
        "parameters": parameters,
    }


def _reported(watch: Watch, backwards: list[Backward]) -> dict[str, Any] | None:
    """The scalar on the tape that the host reads and of which the loss, which nobody reads, is one summand.

    Only where every backward call of the run begins at that same summand: parts that take turns cover the whole.
    """
    if len(backwards) != 1 or len(watch.sum_kinds) != 1:
        return None
    loss, sums = backwards[0].loss_serial, [s for s in backwards[0].sums if s.serial in watch.scalars_read]
    if not sums or loss in watch.scalars_read or loss in watch.scalars_used:
        return None
    last = sums[-1]
    name = watch.sum_names.get(last.serial) or next(iter(watch.sum_names.values()), "the sum")
    return {"serial": last.serial, "name": name, "summed": last.place, "read": watch.scalars_read[last.serial]}


def _chained(member: Member, by_call: dict[int, dict[str, Any]], calls: tuple[int, ...]) -> dict[str, Any]:
    """The parameter whose memory holds the start of every segment: the last link restores what the iteration began with."""
    return {
        **describe(member.leaf),
        "serial": by_call[calls[-1]]["serial"],
        "event": member.begins[0],
        "begins": list(member.begins),
        "check_event": by_call[calls[-1]]["first_use"],
        "zeroed_under_view": False,
        "followed": None,
        "undecided": None,
        "spans_updates": False,
        "uses": {str(c): {"first_use": by_call[c]["first_use"]} for c in calls if c in by_call},
    }


def undecided(member: Member) -> dict[str, Any] | None:
    """Where the gradient of an earlier array is read besides this one's, if the steps do not tell which one they follow."""
    other = next((e for e in member.history if e.left_behind), None)
    if other is None or member.leaf.follower.own or consumed(member.history).when == "left_behind":
        return None
    return {**(other.place or {}), "how": other.how}


def _is_segment(watch: Watch, calls: tuple[int, ...], headed: bool) -> bool:
    """Whether a chain of tapes goes on beyond these calls: the first takes over a gradient, or the next one does.

    headed: the chain's head, which has the loss and may not read the parameter, is differenced along with them.
    """
    following = watch.backwards[calls[-1] + 1 : calls[-1] + 2]
    return (watch.backwards[calls[0]].carried and not headed) or any(b.carried for b in following)


def _chain_objective(watch: Watch, pause: int, backwards: list[Backward]) -> list[int] | None:
    """The calls that state the objective, where tapes are chained by hand: those with a loss or a running cost, not the mere links."""
    if not any(b.linked for b in backwards):
        return None
    end = backwards[-1].event
    heads = [b.call for b in watch.backwards if pause <= b.event <= end and states_a_term(b) and not b.repeats]
    return heads or None


def states_a_term(b: Backward) -> bool:
    """Whether the call has a loss or a running cost, and not the adjoint of another alone, or nothing."""
    unseeded = bool(b.joints) and b.kind == "seeded" and not b.outputs
    return b.mixed or not (b.carried or unseeded)


def objectives(watch: Watch) -> list[dict[str, Any]]:
    """The distinct objectives, with the line that hands each to backward."""
    found: dict[Any, dict[str, Any]] = {}
    for b in watch.backwards:
        place = b.place or {}
        key = (b.loss_name, place.get("file"), place.get("line"))
        found.setdefault(
            key,
            {
                "name": b.loss_name,
                "dtype": b.loss_dtype,
                "kind": b.kind,
                "file": place.get("file"),
                "line": place.get("line"),
            },
        )
    return list(found.values())


def nonfinite(found: list[dict[str, Any]], watch: Watch) -> dict[str, Any] | None:
    """The first iteration whose loss or gradient is not a number."""
    for iteration in found:
        place = watch.backwards[iteration["backward_calls"][-1]].place or {}
        where = {"file": place.get("file"), "line": place.get("line")}
        if any(x is not None and not math.isfinite(x) for x in iteration["losses"]):
            return {
                "iteration": iteration["index"],
                "what": "loss",
                "name": watch.backwards[iteration["backward_calls"][-1]].loss_name,
                **where,
            }
        if not math.isfinite(iteration["gradient_norm"]):
            return {
                "iteration": iteration["index"],
                "what": "gradient",
                "name": iteration["parameter_keys"][0].rsplit(":", 1)[-1].rsplit("#", 1)[0],
                **where,
            }
    return None


def summary(watch: Watch, objective: str | None) -> dict[str, Any]:
    """The part of trace.json that comes from watching."""
    chosen, how = choose(watch)
    found = iterations(watch, chosen, objective)
    notes = []
    notes += [
        f"a captured graph was not followed ({reason}): what it executes is not seen" for reason in watch.unfollowed
    ]
    if how == "changing":
        notes.append("no read of a gradient was seen; the parameters are the leaves that change between iterations")
    if watch.parameter_expression is not None and not chosen:
        notes.append(watch.parameter_error or f"no leaf of a tape is called {watch.parameter_expression!r}")
    listed = (
        found if len(found) <= LISTED_ITERATIONS else found[: LISTED_ITERATIONS // 2] + found[-LISTED_ITERATIONS // 2 :]
    )
    last = watch.backwards[-1] if watch.backwards else None
    return {
        "parameters": [describe(leaf) for leaf in chosen],
        "chosen_by": how,
        "leaves": [describe(leaf) for leaf in candidates(watch) if leaf not in chosen][:LISTED_LEAVES],
        "objectives": objectives(watch),
        "iterations": listed,
        "iterations_seen": len(found),
        "backward_calls": len(watch.backwards),
        "structure": {
            "launches_per_iteration": found[0]["launches"] if found else None,
            "kernels": last.kernels if last else {},
            "races": [{"kernel": kernel, **(place or {})} for kernel, place in watch.races.items()],
            "arrays": watch.registry.count,
        },
        "nonfinite": nonfinite(found, watch),
        "unfollowed": watch.unfollowed,
        "uses_jax": "jax" in sys.modules,
        "unforkable": OTHER_PROCESSES if watch.other_processes else None,
        "notes": notes,
    }
