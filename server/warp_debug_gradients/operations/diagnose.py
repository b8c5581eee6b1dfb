"""diagnose: run, check, locate, and name the cause, in one call; it stops where the answer is clear."""

from __future__ import annotations

import time

from warp_debug_gradients.errors import DebugGradientsError
from warp_debug_gradients.operations import by_hand, gradcheck, next_calls, part_of_sum, settling, situations
from warp_debug_gradients.operations import ledger as ledgers
from warp_debug_gradients.operations.bisect_steps import build_result as located
from warp_debug_gradients.operations.constructs import difference_line
from warp_debug_gradients.operations.iterations import choose_iterations, plan_of
from warp_debug_gradients.operations.measurement import Measurement
from warp_debug_gradients.operations.reported import reported_otherwise
from warp_debug_gradients.operations.scan_leads import at_their_constructs, harmless, with_leads
from warp_debug_gradients.operations.scan_patterns import pattern_hit
from warp_debug_gradients.patterns import STRONG, Scan, examine
from warp_debug_gradients.records import Check, Trace, parts
from warp_debug_gradients.schemas import (
    BisectStepsResult,
    Cause,
    DiagnoseRequest,
    DiagnoseResult,
    GradcheckResult,
    NextCall,
    Stage,
)
from warp_debug_gradients.worker import OnProgress, ProbeOutcome
from warp_debug_gradients.workspace import Workspace

OPERATION = "diagnose"
CHECK_SHARE = 0.6  # of the time that the trace leaves: locating the fault needs the rest
SPARING_FROM_S = 4.0  # of an evaluation: a slower program is checked briefly, so that all takes some ten runs of it
OPTIONS = {"line": True, "elements": 8, "sparing_from": SPARING_FROM_S}
MOST_LEADS = 12
LEAST_S = 3.0  # with less time left a ledger is not begun


async def diagnose(
    request: DiagnoseRequest, workspace: Workspace, on_progress: OnProgress | None = None
) -> DiagnoseResult:
    """The whole diagnosis of one program."""
    measurement = Measurement(OPERATION, request, workspace, on_progress)
    return measurement.finish(await Diagnosis(measurement).run())


class Diagnosis:
    """One diagnosis in progress: its stages so far."""

    def __init__(self, measurement: Measurement[DiagnoseRequest]) -> None:
        self.measurement = measurement
        self.stages: list[Stage] = []
        self.began = time.monotonic()
        self.unlocated = ""  # why the place was not looked for

    async def run(self) -> DiagnoseResult:
        """Trace, check, and (where the gradient is wrong or undecided) the ledgers behind it."""
        try:
            trace = await ledgers.traced(self.measurement)
        except ledgers.Ended as ended:
            return self._ended(ended)
        seen = len(parts(trace, "iterations"))
        self._stage("run", f"it runs on Warp {trace.get('warp_version')}; {seen} optimizer iteration(s) seen")
        outcome, engine = await self._check(trace)
        check = gradcheck.build_result(self.measurement, trace, outcome, engine)
        checks = outcome.evaluation.get("checks") or []
        self._stage("check", f"{check.verdict or check.status}: {check.message}")
        first = gradcheck.pick_headline(checks) if checks else None
        planned = (
            first is not None and first.get("reason") == "time"
        )  # the check left off by itself: the ledger has its own part of the time
        if first is None or (check.status == "timeout" and not planned):
            return self._result(check, None, [])
        if check.verdict == "agree":
            return await self._right(check, checks, trace)
        found, located_causes = await self._locate(trace, checks, first)
        scan = self._scan(trace)
        isolated = found.isolated if found else []
        situation = situations.at_their_launches(situations.situations(first), first, isolated)
        situation = at_their_constructs(situation, first, isolated, scan.hits)
        self._at_their_differences(situation, trace)
        causes = with_leads(ranked(located_causes, situation), scan.hits, check.verdict == "disagree")
        result = self._result(check, found, causes)
        result.leads = [pattern_hit(h) for h in scan.hits[:MOST_LEADS]]
        return result

    async def _right(self, check: GradcheckResult, checks: list[Check], trace: Trace) -> DiagnoseResult:
        """The gradient of what ran is right; whether what ran had settled is another question."""
        scan = self._scan(trace)
        unsettled, ruled_out = await settling.unsettled(self.measurement, trace)
        if unsettled or ruled_out:
            self._stage("settle", unsettled[0].evidence[0] if unsettled else ruled_out[0])
        seed = by_hand.mismatch(checks, trace)
        part = part_of_sum.part_seeded(checks)
        suspected = [cause for cause in (part, seed) if cause is not None]
        result = self._result(check, None, [*unsettled, *suspected, situations.right(checks, trace)])
        other = by_hand.other_objective(checks)
        if other is not None:
            result.message += f" Backward is seeded by hand: its gradient is not that of {other}."
            stated = self.measurement.request.model_dump(exclude_defaults=True)
            why = f"The whole check against {other}, if that is what should fall."
            result.next = NextCall(tool="gradcheck_full_horizon", arguments={**stated, "objective": other}, why=why)
        if part is not None:
            result.message += f" But {part.evidence[0]}."
        result.ruled_out += [*ruled_out, *harmless(scan.hits)]
        reported = reported_otherwise(trace)
        if reported:
            result.message += f" But {reported}."
        for cause in unsettled[:1]:
            result.message += f" But the solver has not settled: {cause.evidence[0]}."
            same = self.measurement.request.model_dump(exclude_defaults=True, exclude={"engine"})
            result.next = NextCall(
                tool="bisect_steps",
                arguments={**same, "knob": cause.variables[0], "method": "sweep"},
                why="Objective and gradient over that count.",
            )
        return result

    def _scan(self, trace: Trace) -> Scan:
        """The known patterns in the files that the run loaded."""
        loaded = [self.measurement.workspace.root / f for f in trace.get("loaded_files") or []]
        scan = examine([f for f in loaded if f.suffix == ".py" and f.is_file()], self.measurement.workspace.root)
        strong = sum(h.likelihood == STRONG for h in scan.hits)
        self._stage("scan", f"{strong} strong and {len(scan.hits) - strong} weak leads in {len(scan.scanned)} file(s)")
        return scan

    def _at_their_differences(self, situation: list[Cause], trace: Trace) -> None:
        """Digits that a launch loses, placed at the line of its kernel that takes the difference, where it is found."""
        root = self.measurement.workspace.root
        for cause in (c for c in situation if c.code == "precision_floor" and c.variables):
            kernel = (cause.kernel or "").rpartition(".")[2]
            for file in (root / f for f in trace.get("loaded_files") or []):
                source = file.read_text(errors="replace") if file.suffix == ".py" and file.is_file() else ""
                line = difference_line(source, kernel, cause.variables[0])
                if line is not None:
                    cause.file, cause.line = self.measurement.workspace.relative(file), line
                    break

    async def _check(self, trace: Trace) -> tuple[ProbeOutcome, str]:
        request = self.measurement.request
        plan = plan_of(trace, choose_iterations(trace, request.iteration))
        engine = gradcheck.choose_engine(request.engine, trace)
        outcome = await gradcheck.evaluate(self.measurement, trace, plan, engine, share=CHECK_SHARE, options=OPTIONS)
        return outcome, engine

    async def _locate(
        self, trace: Trace, checks: list[Check], first: Check
    ) -> tuple[BisectStepsResult | None, list[Cause]]:
        """The ledger of the headline's iteration, and that of another iteration that is wrong: one fault can hide another."""
        wrong = [c for c in checks if c["verdict"] == "disagree" and c is not first]
        later = [c for c in wrong if c["parameter"]["key"] == first["parameter"]["key"]][:1]
        found: BisectStepsResult | None = None
        causes: list[Cause] = []
        for check in [first, *later]:
            try:
                ledgers.require_fork(trace)
                if self.measurement.remaining < LEAST_S:
                    self.unlocated = "No time was left for the ledger."
                    self._stage("locate", self.unlocated)
                    break
                name = "ledger" if check is first else f"ledger.{check['iteration']}"
                kept, _ = await ledgers.keep_ledger(
                    self.measurement, trace, check["iteration"], check=check, isolate=check is first, name=name
                )
            except ledgers.Ended as ended:
                self._stage("locate", str(ended))
                self.unlocated = str(ended)
                break
            except DebugGradientsError as error:
                self._stage("locate", f"not measured: {error.message}")
                break
            located_here = located(self.measurement, trace, check, kept)
            self._stage("locate", located_here.message)
            found = found or located_here
            causes += new_causes(causes, located_here.causes)
        return found, causes

    def _ended(self, ended: ledgers.Ended) -> DiagnoseResult:
        result = DiagnoseResult(**self.measurement.base(), **ended.fields)
        if result.status == "completed":
            result.verdict = "inconclusive"
        if result.error:
            result.causes = [situations.blocked(result.error)]
        self._stage("run", result.message)
        result.stages = self.stages
        result.next = ledgers.ended_next(result, self.measurement.request, OPERATION)
        return result

    def _result(self, check: GradcheckResult, found: BisectStepsResult | None, causes: list[Cause]) -> DiagnoseResult:
        """The check's answer, with what locating it added."""
        fields = check.model_dump(exclude={"operation"})
        if found is not None:
            own = found.model_dump(exclude_unset=True)
            fields = {**own, **{k: v for k, v in fields.items() if v is not None}}
            fields["ruled_out"] = list(dict.fromkeys([*check.ruled_out, *found.ruled_out]))
            fields["blind_spots"] = [
                *check.blind_spots,
                *(b for b in found.blind_spots if not b.startswith("iterations")),
            ]
            fields["notes"] = list(dict.fromkeys([*check.notes, *found.notes]))
        fields.update(operation=OPERATION, causes=[c.model_dump() for c in causes], stages=self.stages)
        result = DiagnoseResult.model_validate(fields)
        if found is not None and check.verdict == "disagree":
            result.message = f"{check.message} {found.message}"
        elif found is None and self.unlocated:
            result.blind_spots.append(
                f"where on the tape it goes wrong: {self.unlocated[0].lower()}{self.unlocated[1:]}"
            )
        result.next = next_call(result, self.measurement.request)
        return result

    def _stage(self, name: str, said: str) -> None:
        now = time.monotonic()
        self.stages.append(Stage(name=name, said=said, seconds=round(now - self.began, 2)))
        self.began = now


def ranked(located: list[Cause], situation: list[Cause]) -> list[Cause]:
    """What was shown, then what the undecided check amounts to, then what is merely possible.

    One code is said once: the ledger of an undecided check may name the same situation at a launch.
    """
    shown = [c for c in located if c.confidence != "possible"]
    known = {c.code for c in [*shown, *situation]}
    return [*shown, *situation, *(c for c in located if c.confidence == "possible" and c.code not in known)]


def new_causes(known: list[Cause], found: list[Cause]) -> list[Cause]:
    """Those that say something new: another code at another place than any that is known."""
    codes, places = {c.code for c in known}, {(c.file, c.line) for c in known if c.file}
    return [c for c in found if not known or (c.code not in codes and (c.file, c.line) not in places)]


def next_call(result: DiagnoseResult, request: DiagnoseRequest) -> NextCall | None:
    """After the repair its proof; more time, or another look, where nothing was found."""
    arguments = request.model_dump(exclude_defaults=True)
    if result.status == "timeout":
        return next_calls.with_more_time(OPERATION, arguments, request.timeout_s)
    if result.verdict == "agree":
        return None
    if result.verdict == "disagree":
        why = f"After the repair ({result.causes[0].code})" if result.causes else "After a repair"
        return NextCall(tool="verify_fix", arguments={"baseline": result.run_id}, why=f"{why}: the proof.")
    return next_calls.choose_another(arguments)
