"""The objective at perturbed parameters, by the user's own code.

A *request* says which perturbations to add, at which events, and how far to run; a *reply* says what the
objective was. `ForkEngine` answers requests from a frozen moment of the running program; a rerun answers one
request with one fresh process. Both use `Measurement`, so both measure the same thing.

request: {"kind": "evaluate" | "reference" | "suffix": the backward pass over what is recorded from "suffix_event" on,
          "perturb": [{"key", "serial", "event", "check_event", "delta": float64 array}],
          "until_call": last backward call, "until_event": where a reference ends,
          "calls": [...], "outputs": {call: [serials]}, "watch": bool,
          "objective": expression | None, "parameters": [{"key", "serial", "event"}]}
reply:   {"ok", "error", "reason": code of the error | None, "losses": {call: x}, "outputs": {call: array}, "seeds": {call: array}, "objective": x,
          "survived": bool, "wiped_at": event | None, "values": {key: array}, "consumed": {key: {...}},
          "contributions": {call: {key: array}}, "places": {...}, "seconds": how long it took by the clock, "forward_seconds": up to its backward call, of a fork}
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import threading
import time
from dataclasses import asdict
from typing import Any, Callable

import numpy as np

from . import forking, names, quarantine
from .arrays import first_scalar, host, is_array, overwrite, quiet, scalars
from .consumption import consumed, split_iterations
from .evaluator import Reply, Request, blank_reply
from .events import Event
from .hub import Hub
from .registry import Registry
from .trace import Watch

THREADS_REST = 0.1  # seconds for other threads to finish what they hold a lock for: a fork would keep it locked
OTHER_PROCESSES = "the program works with other processes (a pool, a server), which a forked evaluation would confuse"
OUTPUT_LIMIT = 8_000_000  # scalars of a seeded output that one reply may carry


class InChild(BaseException):
    """Unwinds a forked child from the engine back to the hook, and so into the user's code."""

    def __init__(self, measurement: Measurement):
        self.measurement = measurement


class Measurement:
    """Listener of one evaluation: adds the perturbations, reads the objective, ends the process."""

    def __init__(
        self,
        request: Request,
        registry: Registry,
        origins: names.Origins,
        first_call: int,
        answer: Callable[[Reply], None],
        watch: Watch | None,
    ):
        self.request = request
        self.registry = registry
        self.origins = origins
        self.call = first_call
        self.answer = answer
        self.watch = watch  # only a reference keeps the full view
        self.reply = blank_reply()
        self.expected: dict[str, np.ndarray] = {}
        self._before_call: dict[str, np.ndarray] = {}
        self._suffix: tuple[Any, int] = (None, 0)  # the tape of a suffix, and how much of it came before
        self._done = False
        self._problem = ""
        registry.only_numbers = watch is None
        self._events = {p["event"] for p in request["perturb"]} | {p["check_event"] for p in request["perturb"]}
        self._events |= {x["event"] for x in (*request["early_losses"].values(), *request["loss_before"].values())}
        if request["suffix_event"] is not None:
            self._events.add(request["suffix_event"])
        self._idle = watch is None and not request.get("watch")
        self.forked_at: float | None = None
        self.recorder: Any = None  # follows a reference that is to bring back the shape of its tape
        self.hub: Hub | None = None  # told which event is waited for next

    # -- hook interface ------------------------------------------------------------------------

    def created(self, array: Any) -> None:
        (self.watch or self.registry).created(array)

    def recorded_function(self, tape: Any, function: Callable[..., Any], arrays: Any) -> None:
        if self.watch is not None:
            self.watch.recorded_function(tape, function, arrays)

    def learn_shape(self, plan: dict[str, Any]) -> None:
        """Bring back what the ledger has to know of a long tape to cut it, so that it needs no run for that."""
        from .ledger_passes import Unperturbed
        from .recording import Recorder

        assert self.watch is not None

        def at_target(recorder: Recorder, event: Event) -> None:
            if recorder.recording.tape is event.subject:
                parameter = plan["parameters"][0]
                found = Unperturbed(None, plan, parameter, recorder.target, 0.0, recorder, event)
                self.reply["shape"] = {"call": recorder.target, **asdict(recorder.shape(found.lasting()))}

        target = plan["backward_calls"][-1]
        self.recorder = Recorder(None, target, self.call, self.watch, None, at_target, lambda _: None, detailed=False)
        self.recorder.enter_open_tape()

    def before(self, event: Event) -> None:
        if self.recorder is not None:
            self.recorder.before(event)
        index = event.index
        if (
            self._idle
            and index < self.request["until_event"]
            and event.kind != "backward"
            and index not in self._events
        ):
            self._rest(index)
            return
        if self.watch is not None:
            self._begin_histories(index)
        for item in self.request["perturb"]:
            if item["event"] == index:
                self._perturb(item)
            elif item["key"] in self.expected and (self.request.get("watch") or item["check_event"] == index):
                self._check_survival(item, index)
        if self.watch is not None:
            for item in self.request["parameters"]:
                if item["event"] == index:
                    self._note_value(item)
            self.watch.before(event)
        self._note_losses("early_losses", "losses", index)  # the program reuses the loss array before it calls backward
        self._note_losses("loss_before", "before", index)  # links of a chain may all add to one loss
        if index == self.request["suffix_event"]:
            self._suffix = (event.tape, len(event.tape.launches) if event.tape is not None else 0)
        if event.kind == "backward":
            self._before_backward(event)
        at_end = index >= self.request["until_event"] and event.kind != "backward"
        if at_end and self.request.get("objective"):
            self._state_objective(required=True)
        if at_end and (self.watch is not None or self.request.get("objective")):
            self._finish()
        self._rest(index)

    def _note_losses(self, asked: str, noted: str, index: int) -> None:
        for call, loss in self.request[asked].items():
            array = self.registry.find(loss["serial"]) if loss["event"] == index else None
            if array is not None:
                self.reply[noted][int(call)] = first_scalar(array)

    def _rest(self, index: int) -> None:
        """Have the events up to the next one of interest only counted, or none seen but the calls of backward."""
        if not self._idle or self.hub is None:
            return
        following = [event for event in self._events if event > index]
        if following or self.request.get("objective"):
            self.hub.idle_before = min([self.request["until_event"], *following])
        else:
            self.hub.stand_down(creations=any(self.request["outputs"].values()))

    def _begin_histories(self, index: int) -> None:
        """A parameter's iteration begins after its own last write; what was before belongs to the previous one."""
        assert self.watch is not None
        if index == self.request["start_event"]:
            self.watch.keep = lambda values: values  # type: ignore[method-assign]
        for item in self.request["parameters"]:
            leaf = self.watch.leaves.get(item["key"])
            if item["event"] == index and leaf is not None:
                leaf.history.clear()
                leaf.follower.begin()

    def after(self, event: Event) -> None:
        if self.recorder is not None:
            self.recorder.after(event)
        if self.watch is not None:
            self.watch.after(event)
        if event.kind == "backward":
            if self.watch is not None or self.request["suffix_event"] is not None:
                self._contributions()
            if self.request["suffix_event"] is not None and self.call == self.request["until_call"]:
                self._finish()
            self.call += 1
        if event.index >= self.request["until_event"] and (self.watch is not None or self.request.get("objective")):
            self._finish()

    # -- perturbations -------------------------------------------------------------------------

    def _perturb(self, item: dict[str, Any]) -> None:
        array = self.registry.find(item["serial"])
        if array is None:
            self.fail(f"the parameter's array (number {item['serial']}) does not exist at event {item['event']}")
            return
        values = scalars(array)
        self.reply["values"][item["key"]] = values
        changed = (values.astype(np.float64) + item["delta"]).astype(values.dtype)
        overwrite(array, changed)
        self.expected[item["key"]] = changed
        self.reply["places"].setdefault("from", names.place(self.origins.frame(3)))

    def _check_survival(self, item: dict[str, Any], index: int) -> None:
        array = self.registry.find(item["serial"])
        if array is None or np.array_equal(scalars(array), self.expected[item["key"]], equal_nan=True):
            return
        self.reply["survived"] = False
        if self.reply["wiped_at"] is None:
            self.reply["wiped_at"] = index
        if self.request.get("watch"):
            self._finish()

    def _note_value(self, item: dict[str, Any]) -> None:
        array = self.registry.find(item["serial"])
        if array is not None:
            self.reply["values"][item["key"]] = scalars(array)
        self.reply["places"].setdefault("from", names.place(self.origins.frame(3)))

    # -- the objective -------------------------------------------------------------------------

    def _before_backward(self, event: Event) -> None:
        call, request = self.call, self.request
        self.reply["call_events"][call] = event.index
        loss = event.argument(1, "loss")
        grads = event.argument(2, "grads")
        if call in request["calls"]:
            self._read_objective(call, loss, grads)
        if self.watch is not None:
            self._before_call = self._gradients()
        if call != request["until_call"]:
            return
        if self.forked_at is not None:
            self.reply["forward_seconds"] = time.perf_counter() - self.forked_at
        if request["suffix_event"] is not None:
            self._leave_suffix(event.subject)
            return
        kept = event.replay.place if event.replay is not None else None  # a captured graph makes this call again
        self.reply["places"]["to"] = kept or names.place(self.origins.frame(3))
        if request.get("objective"):
            self._state_objective(required=request["until_event"] <= event.index)
        for item in request["perturb"]:
            if item["check_event"] < 0 and item["key"] in self.expected:  # no tape reads it: it must last until here
                self._check_survival(item, event.index)
        if self.watch is None and not request.get("objective"):
            self._finish()

    def _leave_suffix(self, tape: Any) -> None:
        """Leave on the tape what was recorded from the suffix's event on: the backward pass that follows is over that."""
        recording, before = self._suffix
        if recording is not tape:
            self.fail("the moment lies outside the tape")
            self._finish()
        tape.launches = tape.launches[before:]
        self.reply["suffix_ops"] = len(tape.launches)
        self._before_call = self._gradients()

    def _state_objective(self, required: bool) -> None:
        """Evaluate the user's expression: where the last backward is called and again, if it can still be
        said there, where the gradient is read (a mean over several windows is complete only then)."""
        value = self._expression(self.request["objective"])
        if value is not None:
            self.reply["objective"] = value
        elif required and self.reply["objective"] is None:
            self.fail(
                f"the objective {self.request['objective']!r} cannot be evaluated where backward is called: {self._problem}"
            )

    def _read_objective(self, call: int, loss: Any, grads: Any) -> None:
        if is_array(loss):
            self.reply["losses"].setdefault(call, first_scalar(loss))
            if not self.request["outputs"].get(call):
                return
        outputs, seeds = [], []
        for serial in self.request["outputs"].get(call, ()):
            array = self.registry.find(serial)
            if array is None:
                self.fail("an array that carries the backward seed is gone")
                return
            outputs.append(scalars(array).astype(np.float64))
            if self.watch is not None:
                seed = next((g for a, g in (grads or {}).items() if a is array), array._grad)
                seeds.append(self.watch.seeds.meant(seed, self.registry).astype(np.float64))
        values = np.concatenate(outputs) if outputs else np.zeros(0)
        if values.size > OUTPUT_LIMIT:
            self.fail(f"the seeded outputs hold {values.size} scalars; the limit is {OUTPUT_LIMIT}")
            return
        self.reply["outputs"][call] = values
        if self.watch is not None:
            self.reply["seeds"][call] = np.concatenate(seeds) if seeds else np.zeros(0)

    def _expression(self, text: str) -> float | None:
        problem = ""
        for frame in self.origins.frames(self.origins.frame(4)):
            try:
                with quiet():
                    value = eval(text, frame.f_globals, dict(frame.f_locals))
                    value = host(value) if is_array(value) else value
                return float(np.asarray(value, dtype=float).reshape(-1)[0])
            except NameError as error:
                problem = str(error)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
                break
        self._problem = problem
        return None

    # -- what a reference brings back ----------------------------------------------------------

    def _gradients(self) -> dict[str, np.ndarray]:
        found = {}
        for item in self.request["parameters"]:
            array = self.registry.find(item["serial"])
            if array is not None and array._grad is not None:
                found[item["key"]] = scalars(array._grad).astype(np.float64)
        return found

    def _contributions(self) -> None:
        """What this backward call added to each parameter's gradient."""
        now = self._gradients()
        with np.errstate(invalid="ignore"):
            self.reply["contributions"][self.call] = {
                k: g - self._before_call.get(k, np.zeros_like(g)) for k, g in now.items()
            }

    def _consumed(self) -> None:
        assert self.watch is not None
        for item in self.request["parameters"]:
            leaf = self.watch.leaves.get(item["key"])
            entries = leaf.history if leaf is not None else []
            if item.get("begins") and any(e.kind == "backward" for e in entries):
                entries = split_iterations(entries)[-1]  # of a chain the last link's
            history = [e for e in entries if e.kind != "write"]
            array = self.registry.find(item["serial"])
            if leaf is not None and any(e.kind == "backward" for e in history):
                result = asdict(consumed(history))
                result |= {"previous": leaf.follower.previous, "readings": leaf.follower.summed()}
                if result["gradient"] is None and array is not None and array._grad is None:
                    result["gradient"] = np.zeros(scalars(array).size)
                    result["when"] = "no_gradient"
                self.reply["consumed"][item["key"]] = result

    # -- the end -------------------------------------------------------------------------------

    def fail(self, message: str) -> None:
        self.reply.update(ok=False, error=self.reply["error"] or message)

    def _finish(self) -> None:
        if self._done:
            return
        self._done = True
        if self.watch is not None:
            self._consumed()
        self.answer(self.reply)

    def program_ended(self, message: str | None, reason: str | None = None) -> None:
        """The user's program ended before the evaluation did. A reference may end there; others failed."""
        self.reply["reason"] = reason
        if self.watch is None:
            self.fail(message or "the program ended before its backward call was reached")
        elif message:
            self.fail(message)
        self._finish()


class ForkEngine:
    """Answers requests from this very moment of the program: one forked child each, several at once."""

    name = "fork"

    def __init__(self, hub: Hub, watch: Watch, limit_s: float, workers: int):
        self.hub = hub
        self.watch = watch
        self.limit_s = limit_s
        self.workers = workers
        self.shape_of: dict[str, Any] | None = None  # the plan of an iteration with a long tape
        self.seconds: dict[str, list[float]] = {"evaluate": [], "reference": []}
        self.others = quarantine.other_processes()  # a forked child would take their answers from the program
        self.threads = threading.active_count() - 1
        if self.threads:
            time.sleep(THREADS_REST)

    def evaluate(self, requests: list[Request]) -> list[Reply]:
        """Replies in the order of the requests. A child that dies or hangs gives a reply that is not ok."""
        if self.others:
            return [blank_reply(f"{OTHER_PROCESSES}: use engine=rerun") for _ in requests]
        replies: list[Reply | None] = [None] * len(requests)
        waiting = list(range(len(requests)))[::-1]
        running: dict[int, tuple[int, int, float, bytearray]] = {}  # descriptor -> index, pid, started, data
        selector = selectors.DefaultSelector()
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    index = waiting.pop()
                    descriptor, pid = self._fork(requests[index], running)
                    running[descriptor] = (index, pid, time.perf_counter(), bytearray())
                    selector.register(descriptor, selectors.EVENT_READ)
                ready = [key.fd for key, _ in selector.select(timeout=0.2)]
                for descriptor in [*running]:
                    index, pid, started, data = running[descriptor]
                    late = time.perf_counter() - started > self.limit_s
                    chunk = os.read(descriptor, 1 << 20) if descriptor in ready else None
                    if chunk:
                        data += chunk
                    elif chunk == b"" or late:
                        selector.unregister(descriptor)
                        os.close(descriptor)
                        if late and chunk is None:
                            os.kill(pid, signal.SIGKILL)
                        _, status = os.waitpid(pid, 0)
                        del running[descriptor]
                        self.seconds.setdefault(requests[index]["kind"], []).append(time.perf_counter() - started)
                        reply = self._decode(bytes(data), status, late)
                        reply["seconds"] = self.seconds[requests[index]["kind"]][-1]
                        replies[index] = reply
        finally:
            for descriptor, (_, pid, _, _) in running.items():
                os.close(descriptor)
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            selector.close()
        return [r if r is not None else blank_reply("not evaluated") for r in replies]

    def _fork(self, request: Request, siblings: dict[int, Any]) -> tuple[int, int]:
        read_end, write_end = os.pipe()
        pid = forking.fork()
        if pid:
            os.close(write_end)
            return read_end, pid
        gc.freeze()  # collecting what the parent made would copy its pages
        try:
            for descriptor in (read_end, *siblings):
                os.close(descriptor)
            siblings.clear()  # they are the parent's to wait for and to end
            quarantine.enter(keep={write_end})
        except BaseException:
            os._exit(70)

        measurement = Measurement(
            request,
            self.watch.registry,
            self.watch.origins,
            len(self.watch.backwards),
            lambda reply: forking.send(write_end, reply),
            self.watch if request["kind"] == "reference" else None,
        )
        if request["kind"] == "reference" and self.shape_of is not None:
            measurement.learn_shape(self.shape_of)
        measurement.forked_at = time.perf_counter()
        raise InChild(measurement)

    def _decode(self, data: bytes, status: int, late: bool) -> Reply:
        if data:
            try:
                return pickle.loads(data)
            except Exception:
                return blank_reply("the evaluation's reply was cut off")
        if late:
            waits = (
                "; it has other threads, which a forked process lacks, and may wait for them" if self.threads else ""
            )
            return blank_reply(f"the evaluation took far longer than the unperturbed program and was stopped{waits}")
        if os.WIFSIGNALED(status):
            return blank_reply(f"the program was killed by signal {os.WTERMSIG(status)} in a perturbed run")
        return blank_reply(f"the program left with exit code {os.WEXITSTATUS(status)} in a perturbed run")
