"""A check that repeats an earlier one: the same parameters, iterations, directions and elements. Pure."""

from __future__ import annotations

import copy
from typing import Any

from warp_debug_gradients.records import Check, Trace, part, parts


def find_parameters(checks: list[Check], before: Trace, trace: Trace) -> dict[str, str]:
    """Name of each checked parameter -> its name now; those that are gone are left out.

    By name; else it was renamed, if its old name is gone and one new name has its shape and type.
    """
    old_names, new_names = (
        {leaf["name"] for kind in ("parameters", "leaves") for leaf in parts(t, kind)} for t in (before, trace)
    )
    now = {p["name"]: p for p in parts(trace, "parameters")}
    then = {c["parameter"]["name"]: c["parameter"] for c in checks}
    found = {name: name for name in then if name in now}
    for name, parameter in then.items():
        if name in found or name in new_names:
            continue
        kind = (parameter.get("shape"), parameter.get("dtype"))
        alike = [n for n, p in now.items() if n not in old_names and (p.get("shape"), p.get("dtype")) == kind]
        if len(alike) == 1:
            found[name] = alike[0]
    return found


def iterations_to_check(trace: Trace, checks: list[Check]) -> list[int]:
    """The iterations of the earlier check, and one after the first that disagreed: a repair is not believed on one."""
    there = [item["index"] for item in parts(trace, "iterations")]
    wanted = [i for i in dict.fromkeys(c["iteration"] for c in checks) if i in there]
    first = next(c["iteration"] for c in checks if c["verdict"] == "disagree")
    later = [i for i in there if i > first]
    if later and not any(i in later for i in wanted):
        wanted.append(later[0])
    wanted.sort(key=lambda i: (i != first, i))
    return wanted


def pinned_plans(
    trace: Trace, checks: list[Check], names: dict[str, str], iterations: list[int]
) -> list[dict[str, Any]]:
    """The plans of these iterations, with the earlier check's directions and elements. The trace gets them, too."""
    earlier = {now: then for then, now in names.items()}
    plans: list[dict[str, Any]] = []
    for item in trace.get("iterations") or []:
        if item["index"] not in iterations:
            continue
        plan = copy.deepcopy(item["plan"])
        for parameter in parts(plan, "parameters"):
            named = [c for c in checks if c["parameter"]["name"] == earlier.get(parameter["name"])]
            if not named:
                continue
            check = next((c for c in named if c["iteration"] == item["index"]), named[0])
            parameter["direction_key"] = check["parameter"].get("key")
            parameter["elements"] = [row["index"] for row in parts(part(check, "gradient"), "elements")]
        item["plan"] = plan
        plans.append(plan)
    return plans
