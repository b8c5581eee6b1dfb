"""The tables of a report: lists of a result's JSON as rows of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from warp_debug_gradients.records import part, parts
from warp_debug_gradients.render.text import moved_by, number, percent

ROWS = 12  # of one table; the rest is in result.json


@dataclass(frozen=True)
class Table:
    """A heading, and rows of text."""

    title: str
    head: list[str]
    rows: list[list[str]]


def place(item: JsonValue) -> str:
    """file:line of a JSON object."""
    if not isinstance(item, dict) or not item.get("file"):
        return ""
    return f"{item['file']}:{item['line']}" if item.get("line") else str(item["file"])


def measurements(r: dict[str, Any]) -> list[Table]:
    """Every table that the result has numbers for."""
    return [table for table in (build(r) for build in BUILDERS) if table is not None]


def before_and_after(r: dict[str, Any]) -> list[Table]:
    """verify_fix: the two sides, the checks, the ledger."""
    b, a = part(r, "before"), part(r, "after")
    along = f", along {b['direction']}" if b.get("direction") else ""
    rows = [
        ["AD", number(b.get("autodiff")), number(a.get("autodiff"))],
        ["FD", _pm(b.get("finite_difference"), b.get("error")), _pm(a.get("finite_difference"), a.get("error"))],
        ["AD / FD", number(b.get("ratio")), number(a.get("ratio"))],
        ["error over all directions", percent(b.get("whole_error")), percent(a.get("whole_error"))],
        ["verdict", _word(b), _word(a)],
        ["objective there", number(b.get("objective")), number(a.get("objective"))],
        ["backward calls, tape ops", _horizon(b), _horizon(a)],
    ]
    rows += _ledger_rows(part(r, "ledger_before"), part(r, "ledger_after"))
    found = [Table(f"Iteration {b.get('iteration')}{along}", ["", "before", "now"], rows)]
    points = {True: "the same", False: "another", None: "not compared"}
    rows = [
        [str(c["iteration"]), c["parameter"], f"{c.get('before') or 'not checked'} ({percent(c.get('before_relative_error'))})",
         f"{c['after']} ({percent(c.get('after_relative_error'))})", points[c.get("same_point")]]
        for c in parts(r, "checks")
    ]  # fmt: skip
    if rows:
        found.append(
            Table("All checks", ["iteration", "parameter", "before (error)", "now (error)", "parameter values"], rows)
        )
    return found


def files(r: dict[str, Any]) -> list[Table]:
    """The loaded files that differ."""
    rows = [[f["file"], f["status"].replace("_", " "), f"+{f['added']} −{f['removed']}"] for f in parts(r, "files")]
    return [Table("Loaded files", ["file", "", "lines"], rows)] if rows else []


def series(r: dict[str, Any]) -> list[Table]:
    """What the program printed."""
    flow = part(r, "workflow")
    rows = [
        [
            name,
            s["name"],
            number(s.get("first")),
            number(s.get("last")),
            str(s.get("count")),
            s.get("health") or "",
            _size(s),
        ]
        for name, s in (("before", flow.get("before")), ("now", flow.get("after")))
        if s
    ]
    if rows:
        return [Table("The loss over the run", ["", "series", "first", "last", "values", "it is", "run"], rows)]
    rows = [
        [s["name"], number(s["first"]), number(s["last"]), str(s["count"]), s["trend"]] for s in parts(r, "metrics")
    ]
    return [Table("Printed", ["series", "first", "last", "values", "trend"], rows)] if rows else []


def _directions(r: dict[str, Any]) -> Table | None:
    rows = [
        [d.get("label") or "", number(d.get("autodiff")), _pm(d.get("finite_difference"), d.get("error")),
         percent(d.get("relative_error")), d.get("verdict") or ""]
        for d in parts(part(r, "gradient"), "directions")
    ]  # fmt: skip
    return _table("Directional derivatives", ["direction", "AD", "FD", "relative error", ""], rows)


def _elements(r: dict[str, Any]) -> Table | None:
    rows = [
        [str(e.get("component") or e.get("index")), number(e.get("autodiff")), _pm(e.get("finite_difference"), e.get("error")),
         number(e.get("ratio")), e.get("verdict") or ""]
        for e in parts(part(r, "gradient"), "elements")
    ]  # fmt: skip
    return _table("Single elements", ["element", "AD", "FD", "AD / FD", ""], rows)


def _windows(r: dict[str, Any]) -> Table | None:
    rows = [
        [str(w.get("backward_call")), place(w), number(w.get("autodiff")), _pm(w.get("finite_difference"), w.get("error")), w.get("verdict") or ""]
        for w in parts(r, "windows")
    ]  # fmt: skip
    return _table("Each backward call by itself", ["call", "line", "AD", "FD", ""], rows)


def _jumps(r: dict[str, Any]) -> Table | None:
    jumps = parts(r, "jumps") or parts(part(r, "ledger_after"), "jumps")
    rows = [
        [f"{percent(j.get('share'))} ± {percent(j.get('noise'))}", place(j), j.get("kernel") or "", str(j.get("ops") or ""),
         percent(j["share_restored"]) if j.get("share_restored") is not None else "", "" if j.get("significant") else "within noise"]
        for j in jumps
    ]  # fmt: skip
    return _table(
        "The ledger: what each line puts into the derivative",
        ["part", "line", "kernel", "ops", "reads restored", ""],
        rows,
    )


def _overwrites(r: dict[str, Any]) -> Table | None:
    found = parts(r, "overwrites") or parts(part(r, "ledger_after"), "harmful_overwrites")
    words = {True: "harmful", False: "harmless", None: "undecided"}
    rows = [
        [str(o.get("variable")), place(o.get("reader")), f"{part(o, 'writer').get('what') or '?'} {place(o.get('writer'))}",
         moved_by(*(part(o, "change").get(k) for k in ("relative", "max_abs"))), words[o.get("harmful")]]
        for o in found
    ]  # fmt: skip
    return _table("Overwritten reads", ["variable", "read at", "written by", "moved by", ""], rows)


def _what_if(r: dict[str, Any]) -> Table | None:
    w = r.get("what_if")
    if not w:
        return None
    rows = [
        ["differences", number(w.get("finite_difference")), ""],
        ["autodiff as it is", number(w.get("as_is")), percent(w.get("relative_error_as_is"))],
        ["with the clobbered reads restored", number(w.get("restored")), percent(w.get("relative_error_restored"))],
    ]
    return _table("What if the overwritten values are restored", ["", "derivative", "relative error"], rows)


def _points(r: dict[str, Any]) -> Table | None:
    rows = [
        [str(p["value"]), number(p.get("autodiff")), _pm(p.get("finite_difference"), p.get("error")), percent(p.get("relative_error")), p.get("verdict") or p.get("reason") or ""]
        for p in parts(r, "points")
    ]  # fmt: skip
    return _table(f"Values of {r.get('knob')}", ["value", "AD", "FD", "relative error", ""], rows)


def _checks(r: dict[str, Any]) -> Table | None:
    if "outcome" in r:
        return None
    rows = [
        [str(c.get("iteration")), str(c.get("parameter")), number(c.get("autodiff")), _pm(c.get("finite_difference"), c.get("error")),
         percent(c.get("relative_error")), c.get("verdict") or ""]
        for c in parts(r, "checks")
    ]  # fmt: skip
    return (
        _table("All checks", ["iteration", "parameter", "AD", "FD", "relative error", ""], rows)
        if len(rows) > 1
        else None
    )


BUILDERS = (_directions, _elements, _windows, _jumps, _overwrites, _what_if, _points, _checks)


def _table(title: str, head: list[str], rows: list[list[str]]) -> Table | None:
    if not rows:
        return None
    shown = rows[:ROWS]
    if len(rows) > ROWS:
        shown = [*shown, [f"… {len(rows) - ROWS} more in result.json", *[""] * (len(head) - 1)]]
    return Table(title, head, shown)


def _pm(value: Any, error: Any) -> str:
    return number(value) + (f" ± {error:.2g}" if isinstance(error, (int, float)) else "")


def _word(side: dict[str, Any]) -> str:
    return f"{side.get('verdict') or '?'}{' [' + side['reason'] + ']' if side.get('reason') else ''}"


def _horizon(side: dict[str, Any]) -> str:
    h = part(side, "horizon")
    return f"{h.get('windows', '?')}, {h.get('ops', '?')}"


def _ledger_rows(before: dict[str, Any], after: dict[str, Any]) -> list[list[str]]:
    def lines(side: dict[str, Any]) -> str:
        if not side.get("run_id"):
            return side.get("message") or "not measured"
        found = "; ".join(f"{percent(j.get('share'))} {place(j)}" for j in parts(side, "jumps")[:3]) or "none"
        return found if side.get("iteration") is None else f"{found} (iteration {side['iteration']})"

    def overwritten(side: dict[str, Any]) -> str:
        if not side.get("run_id"):
            return "not measured"
        return f"{len(parts(side, 'harmful_overwrites'))} harmful, {side.get('harmless_overwrites') or 0} harmless"

    return [
        ["lines that put an error in", lines(before), lines(after)],
        ["overwritten reads", overwritten(before), overwritten(after)],
    ]


def _size(s: dict[str, Any]) -> str:
    return ("full size" if s.get("full_size") else "with overrides") + ("" if s.get("complete") else ", stopped early")
