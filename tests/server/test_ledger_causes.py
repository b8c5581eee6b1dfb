"""From hand-made ledgers to causes: one record for each kind of evidence, with a known answer."""

import pytest

from warp_debug_gradients.operations.constructs import Construct, find_constructs, imported_calls
from warp_debug_gradients.operations.host_places import (
    numpy_write,
    swap_line,
    tape_start,
    unrecorded_loop,
    unrecorded_writer,
    zeroing_line,
)
from warp_debug_gradients.operations.ledger import seed_against_stated, settings
from warp_debug_gradients.operations.ledger_causes import Context, ledger_causes
from warp_debug_gradients.operations.ledger_evidence import repairs
from warp_debug_gradients.operations.meant import as_meant

LAUNCH = {"file": "train.py", "line": 42}


def jump(kind="adjoint", **fields):
    return {"kind": kind, **LAUNCH, "function": "step", "kernel": "diffuse", "ops": 40, "first_op": 0, "value": 0.06,
            "share": 0.2, "noise": 0.001, "significant": True, "share_restored": None, "lost": [], "writers": [], **fields}  # fmt: skip


def overwrite(**fields):
    return {"variable": "self.now", "allocated": {"file": "train.py", "line": 8}, "argument": "u",
            "reader": {"kernel": "diffuse", **LAUNCH}, "writer": {"what": "kernel diffuse", "file": "train.py", "line": 50},
            "op": 3, "ops": 20, "change": {"max_abs": 0.3, "relative": 0.22}, "harmful": True, "how": "clobbered", **fields}  # fmt: skip


def what_if(before, after):
    return {"finite_difference": 1.0, "as_is": 1.2, "restored": 1.0, "relative_error_as_is": before,
            "relative_error_restored": after, "arrays": []}  # fmt: skip


def ledger(**fields):
    return {"seed": None, "stale": [], "truncated": [], "jumps": [], "overwrites": [], "observations": [],
            "what_if": None, "nonfinite": None, **fields}  # fmt: skip


def only(*args, **kwargs):
    (cause,) = ledger_causes(*args, **kwargs)
    return cause


def test_a_clean_ledger_has_no_cause():
    quiet = [jump(significant=False), jump("lost", significant=False)]
    harmless = [overwrite(harmful=False), overwrite(harmful=None)]
    term = {"variable": "x", "share": 0.01, "significant": False}
    assert ledger_causes(ledger(jumps=quiet, overwrites=harmless, seed=term, stale=[term], truncated=[term])) == []


def rough_ledger(sum_noise, **fields):
    alone = {"what": "launch", **LAUNCH, "kernel": "diffuse", "argument": "k", "verdict": "undecided", "reason": "round_off",
             "autodiff": 2.0, "finite_difference": 2.1, "error": 1e-3, "sum_noise": sum_noise}  # fmt: skip
    quiet = jump(share=0.02, noise=sum_noise / 3.0, significant=False)
    return ledger(jumps=[quiet], isolated=[alone], finite_difference=3.0, autodiff=3.06, **fields)


def test_a_jump_that_is_the_round_off_of_its_adjoints_sums_is_named_so():
    cause = only(rough_ledger(0.05), context=Context(verdict="disagree"))
    assert (cause.code, cause.confidence, cause.line, cause.variables) == ("precision_floor", "likely", 42, ["k"])
    assert "off by some 1.67% of the derivative" in cause.evidence[0]
    assert ledger_causes(rough_ledger(0.05), context=Context(verdict="agree")) == []
    assert ledger_causes(rough_ledger(0.001), context=Context(verdict="disagree")) == []  # far less than the jump


def test_a_race_is_the_reason_though_restoring_does_not_repair_it():
    """Threads have read what others wrote: no content restored beforehand makes the adjoint right."""
    row = overwrite(how="in_kernel", races=True, writer={"what": "kernel diffuse, the same launch", **LAUNCH})
    alone = {"what": "launch", **LAUNCH, "kernel": "diffuse", "argument": "u", "verdict": "wrong", "restored": "wrong",
             "autodiff": 2.0, "finite_difference": 3.0, "error": 1e-3}  # fmt: skip
    kept = ledger(jumps=[jump(share_restored=0.17)], overwrites=[row], what_if=what_if(0.2, 0.17), isolated=[alone])
    cause = only(kept)
    assert (cause.code, cause.confidence, cause.line) == ("overwrite", "proven", 42)
    assert "the order of the threads decides" in "; ".join(cause.evidence)
    linear = {
        **kept,
        "overwrites": [{**row, "harmful": False}],
    }  # no value enters the adjoint: the race does all the same
    assert only(linear).code == "overwrite"
    off = [{"kind": "backward_disabled", "message": "kernel diffuse has no backward pass", **LAUNCH}]
    assert [c.code for c in ledger_causes({**linear, "observations": off})] == ["backward_disabled"]
    loop = Construct("dynamic_loop", "train.py", 12, "while d > tolerance:")
    assert only(kept, lambda _: [loop]).confidence == "likely"  # that may be it as well
    assert {c.code for c in ledger_causes({**kept, "overwrites": [{**row, "races": False}]})} == {
        "overwrite",
        "warp_defect",
    }


def test_an_overwrite_that_restoring_repairs_is_proven():
    cause = only(ledger(jumps=[jump(share_restored=1e-5)], overwrites=[overwrite()], what_if=what_if(0.2, 4e-5)))
    assert (cause.code, cause.confidence) == ("overwrite", "proven")
    assert (cause.file, cause.line) == ("train.py", 50)  # the writer's
    assert (cause.kernel, cause.function, cause.variables) == ("diffuse", "step", ["self.now"])
    text = "; ".join(cause.evidence)
    assert "changed by kernel diffuse at train.py:50" in text
    assert "moved by 22%" in text
    assert "20% of the derivative over 40 ops" in text
    assert "from 20% to 0.004%" in text
    assert "self.now" in cause.repair


def test_a_content_that_was_zero_is_moved_by_an_amount_not_by_inf():
    row = overwrite()
    row["change"] = {"max_abs": 0.125, "relative": "inf"}
    text = "; ".join(only(ledger(jumps=[jump()], overwrites=[row], what_if=what_if(0.2, 4e-5))).evidence)
    assert "moved by 0.125 from zero" in text
    assert "inf" not in text
    row["change"] = {"max_abs": "inf", "relative": "inf"}  # overwritten with infinities
    text = "; ".join(only(ledger(jumps=[jump()], overwrites=[row], what_if=what_if(0.2, 4e-5))).evidence)
    assert "moved by inf" in text


def test_an_overwrite_that_restoring_does_not_repair_is_not_proven():
    assert only(ledger(overwrites=[overwrite()], what_if=what_if(0.2, 0.15))).confidence == "likely"
    assert only(ledger(overwrites=[overwrite()])).confidence == "likely"


def test_a_restoration_too_small_for_the_differences_is_not_called_a_worse_error():
    """The gradient agrees within 0.9 %; what the overwrite does to it is 0.17 %, and may go either way."""
    small = {"finite_difference": -0.0954609, "as_is": -0.0963229, "restored": -0.0964889,
             "relative_error_as_is": 0.00903, "relative_error_restored": 0.01077, "arrays": []}  # fmt: skip
    cause = only(ledger(overwrites=[overwrite()], what_if=small))
    assert cause.confidence == "likely"
    assert "the derivative changes by 0.174%, less than what separates it from the differences" in cause.evidence[-1]
    halved = {**small, "restored": -0.0957, "relative_error_restored": 0.0025}
    assert "goes from 0.903% to 0.25%" in only(ledger(overwrites=[overwrite()], what_if=halved)).evidence[-1]


def test_two_victims_of_one_line_are_one_cause():
    rows = [overwrite(), overwrite(variable="self.then", change={"relative": 0.5})]
    cause = only(ledger(jumps=[jump()], overwrites=rows, what_if=what_if(0.2, 0.0)))
    assert cause.variables == ["self.then", "self.now"]


def test_a_kernel_that_overwrites_its_own_input():
    row = overwrite(how="in_kernel", argument="track", writer={"what": "the same launch", **LAUNCH})
    book = ledger(jumps=[jump()], overwrites=[row], what_if=what_if(0.5, 1e-6))
    assert only(book).code == "overwrite"
    scaled = Construct("inplace_muldiv", "train.py", 18, "track[i] *= gain[i]", "track")
    cause = only(book, lambda reader: [scaled])
    assert (cause.code, cause.confidence, cause.line) == ("inplace_muldiv", "proven", 18)
    other = Construct("inplace_muldiv", "train.py", 18, "out[i] *= gain[i]", "out")
    assert only(book, lambda reader: [other]).code == "overwrite"


@pytest.mark.parametrize(
    ("what", "lost", "code"),
    [
        ("zero_", [], "accumulator_reset"),
        ("fill_", [], "accumulator_reset"),
        ("assign", [], "accumulator_reset"),
        ("assign", [{"variable": "x"}], "host_round_trip"),
        ("numpy", [], "host_round_trip"),
        ("kernel blur", [], "unrecorded_operation"),
    ],
)
def test_writes_that_are_not_on_the_tape(what, lost, code):
    writer = {"what": what, "file": "train.py", "line": 60}
    cause = only(ledger(jumps=[jump("unrecorded", writers=[writer], lost=lost)]))
    assert (cause.code, cause.confidence, cause.line) == (code, "likely", 60)


def test_a_lost_chain():
    array = {"variable": "self.beams[]", "allocated": {"file": "train.py", "line": 38}}
    cause = only(ledger(jumps=[jump("lost", lost=[array])]))
    assert (cause.code, cause.file, cause.line) == ("missing_requires_grad", "train.py", 38)
    assert "requires_grad=True" in cause.repair
    host = only(ledger(jumps=[jump("lost", lost=[array], writers=[{"what": "numpy", "file": "train.py", "line": 7}])]))
    assert (host.code, host.line) == ("host_round_trip", 7)
    seen = {"kind": "backward_disabled", "message": "kernel diffuse has enable_backward=False", **LAUNCH}
    for kind in ("lost", "adjoint"):
        disabled = only(ledger(jumps=[jump(kind, lost=[array])], observations=[seen]))
        assert (disabled.code, disabled.line) == ("backward_disabled", 42)


READ = {"variable": "image", "how": "numpy", "file": "camera.py", "line": 40}


@pytest.mark.parametrize(("what", "inside", "read", "code", "line"), [
    ("wp.array()", True, READ, "host_round_trip", 45),
    ("wp.array()", True, None, "host_round_trip", 45),  # values that follow the parameter were read somewhere
    ("wp.array()", False, READ, "host_round_trip", 45),
    ("wp.array()", False, None, "truncation", 30),  # of what was read before the tape
    ("wp.array()", None, None, "truncation", 30),
    ("fill_()", True, READ, "host_round_trip", 45),
    ("kernel blur", True, None, "unrecorded_operation", 45),
])  # fmt: skip
def test_an_array_that_the_host_has_made(what, inside, read, code, line):
    made = {"file": "camera.py", "line": 45}
    term = {"variable": "gain", "allocated": made, "share": -0.3, "significant": True,
            "writer": {"what": what, **made, "read": read}}  # fmt: skip
    context = Context(tape={"file": "train.py", "line": 30}, inside=inside)
    cause = only(ledger(truncated=[term]), context=context)
    assert (cause.code, cause.line, cause.variables) == (code, line, ["gain"])
    assert ("the host reads image at camera.py:40" in " ".join(cause.evidence)) == bool(read)


def test_the_state_of_a_segment_that_is_loaded_from_the_host_is_truncation():
    made = {"file": "train.py", "line": 45}
    term = {"variable": "state", "allocated": made, "share": -0.3, "significant": True,
            "writer": {"what": "wp.array()", **made, "read": None}}  # fmt: skip
    tape = {"file": "train.py", "line": 30}
    cause = only(ledger(truncated=[term]), context=Context(tape=tape, windows=3, parted=True, inside=True))
    assert cause.code == "truncation"


@pytest.mark.parametrize("alone", ["right", "wrong", None])
def test_a_number_that_follows_the_parameter(alone):
    """Where the kernel's own adjoint is wrong as well, both are said."""
    given = {"argument": "level", "plus": 2.0, "minus": 1.9, "read": READ}
    rows = [{"what": "launch", **LAUNCH, "kernel": "diffuse", "argument": "u", "verdict": alone}] if alone else []
    causes = ledger_causes(ledger(jumps=[jump(host_values=[given])], isolated=rows))
    assert [c.code for c in causes] == ["host_round_trip", *(["warp_defect"] if alone == "wrong" else [])]
    assert (causes[0].line, causes[0].variables) == (40, ["level"])
    assert "2 and 1.9" in " ".join(causes[0].evidence)


def test_a_lost_array_of_host_values():
    made = {"what": "wp.array()", "file": "camera.py", "line": 45, "read": READ}
    array = {"variable": "gain", "allocated": {"file": "camera.py", "line": 45}, "off_tape": True, "writer": made}
    cause = only(ledger(jumps=[jump("lost", lost=[array])]))
    assert (cause.code, cause.confidence, cause.line) == ("host_round_trip", "likely", 45)


def test_terms_that_no_launch_puts_in():
    term = {"variable": "w", "allocated": {"file": "train.py", "line": 5}, "share": -0.9, "significant": True}
    at = Context(tape={"file": "train.py", "line": 30}, backward={"file": "train.py", "line": 33})

    seed = only(ledger(seed=term), context=at)
    assert (seed.code, seed.line) == ("seed_mismatch", 33)
    stale = only(ledger(stale=[term, {**term, "variable": "v"}]), context=at)
    assert (stale.code, stale.line, stale.variables) == ("stale_gradient", 33, ["w", "v"])
    assert only(ledger(stale=[term])).line == 5
    cut = only(ledger(truncated=[term]), context=at)
    assert (cut.code, cut.line) == ("truncation", 30)
    assert "90%" in cut.evidence[0]


def test_a_contribution_counted_twice():
    seen = {"kind": "duplicate_launch", "message": "diffuse is launched twice", **LAUNCH}
    assert only(ledger(jumps=[jump()], observations=[seen])).code == "double_count"
    assert ledger_causes(ledger(observations=[seen])) == []  # seen, but no jump shows that it matters


def test_a_jump_with_intact_inputs_is_the_kernels_own():
    loop = Construct("dynamic_loop", "train.py", 11, "for k in range(n):")
    branch = Construct("where_overflow", "train.py", 12, "wp.where(...)")
    cause = only(ledger(jumps=[jump()]), lambda found: [loop, branch])
    assert (cause.code, cause.confidence, cause.line, cause.kernel) == ("dynamic_loop", "likely", 11, "diffuse")
    assert "intact" in "; ".join(cause.evidence)

    scaled = Construct("inplace_muldiv", "train.py", 13, "q *= 2.0")
    both = ledger_causes(ledger(jumps=[jump()]), lambda found: [loop, scaled])
    assert [(c.code, c.confidence) for c in both] == [("dynamic_loop", "possible"), ("inplace_muldiv", "possible")]
    assert only(ledger(jumps=[jump()]), lambda found: []).code == "warp_defect"
    assert only(ledger(jumps=[jump()])).confidence == "possible"


def test_a_jump_that_stays_with_the_reads_restored_is_not_explained_by_them():
    book = ledger(jumps=[jump(share_restored=0.19, writers=[{"what": "copy"}])], overwrites=[overwrite()])
    assert {c.code for c in ledger_causes(book)} == {"overwrite", "warp_defect"}


def test_where_a_nonfinite_value_is_born():
    born = {"op": 3, "kernel": "spring", **LAUNCH, "variable": "pos", "elements": [4], "inputs": {"pos": [0.0]}}
    cause = only(ledger(nonfinite=born, jumps=[jump(share="nan")]))
    assert (cause.code, cause.confidence, cause.line) == ("singular_point", "likely", 42)
    branch = Construct("where_overflow", "train.py", 12, "wp.where(x > 0.0, wp.sqrt(x), 0.0)")
    assert only(ledger(nonfinite=born), lambda found: [branch]).code == "where_overflow"
    unread = only(ledger(nonfinite=born), context=Context(verdict="agree"))  # of a gradient that is right all the same
    assert unread.confidence == "possible"


def test_the_largest_and_best_supported_comes_first():
    small, large = jump("lost", share=-0.1, line=1), jump("unrecorded", share="inf", line=2)
    found = ledger_causes(ledger(jumps=[small, large], overwrites=[overwrite()], what_if=what_if(0.3, 0.0)))
    assert [c.code for c in found] == ["overwrite", "unrecorded_operation", "missing_requires_grad"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(0.2, 1e-4, True), (0.2, 0.1, False), ("nan", 1e-4, True), (0.01, 0.0015, True), (0.2, "nan", False),
     (0.001, 0.0015, False), (None, None, False)],
)  # fmt: skip
def test_what_counts_as_repaired(before, after, expected):
    assert repairs({"relative_error_as_is": before, "relative_error_restored": after}) is expected


# --- constructs

KERNELS = """
import warp as wp

@wp.func
def drag(v: float):
    return v * v

@wp.func_grad(drag)
def drag_grad(v: float, out: float):
    wp.adjoint[v] = out

@wp.func_native("return x;")
def raw(x: float) -> float: ...

@wp.kernel
def fall(x: wp.array(dtype=float), n: int):
    i = wp.tid()
    v = drag(x[i])
    x[i] = v

@wp.kernel
def gain(track: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    track[i] *= g[0]

@wp.kernel
def turn(q: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    v = q[i]
    v[0] = 1.0
    v[0] = v[1]

@wp.kernel
def slot(count: wp.array(dtype=int), out: wp.array(dtype=float)):
    k = wp.atomic_add(count, 0, 1)
    out[k] = raw(1.0)

@wp.kernel
def layers(n: int, out: wp.array(dtype=float)):
    r = float(0.0)
    for k in range(n):
        r = r * 0.5 + 1.0
    out[0] = r

@wp.kernel
def fixed(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    r = float(0.0)
    for k in range(4):
        r += x[k]
    out[0] = r

@wp.kernel
def guarded(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wp.where(x[i] > 0.0, wp.sqrt(x[i]), 0.0)
"""


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("fall", {"custom_gradient": 10}),
        ("gain", {"inplace_muldiv": 24}),
        ("turn", {"component_reassignment": 31}),
        ("slot", {"replay_side_effect": 35, "native_without_adjoint": 13}),
        ("layers", {"dynamic_loop": 41}),
        ("fixed", {}),
        ("guarded", {"where_overflow": 55, "singular_point": 55}),
        ("absent", {}),
    ],
)
def test_constructs(kernel, expected):
    assert {c.code: c.line for c in find_constructs(KERNELS, "k.py", kernel)} == expected


@pytest.mark.parametrize(
    ("body", "carries"),
    [
        ("half = t * a[k]; e += half; t = half * a[k]", True),  # by way of another local
        ("t = t * a[k]; e += t", True),
        ("if k > 2: e += t\n        t = wp.exp(-t)", True),
        ("half = a[k] * a[k]; e += half", False),  # each pass makes it anew
        ("half = a[k]; half = half * half; e += half", False),
        ("if k > 2: half = a[k]\n        half = half * a[k]; e += half", True),  # in the first passes it does
        ("e += t * a[k]", False),
    ],
)
def test_a_loop_that_carries_a_local_on(body, carries):
    source = (
        "@wp.func\ndef along(a: wp.array(dtype=float), n: int):\n    t = float(1.0)\n    e = float(0.0)\n"
        f"    for k in range(n):\n        {body}\n    return e\n\n"
        "@wp.kernel\ndef sum_up(a: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):\n    out[0] = along(a, n)\n"
    )
    assert [(c.code, c.line) for c in find_constructs(source, "k.py", "sum_up")] == [("dynamic_loop", 5)] * carries


def test_source_that_does_not_parse_has_no_constructs():
    assert find_constructs("def (", "k.py", "f") == []
    assert tape_start("def (", 1) is None


TRAIN = """
def one():
    tape = wp.Tape()
    with tape:
        forward()
    with other:
        pass
    tape.backward(loss)

with wp.Tape() as first:
    forward()
with open("log") as log:
    first.backward(loss=loss)
"""


@pytest.mark.parametrize(("backward", "start"), [(8, 4), (13, 10), (2, None)])
def test_where_the_tape_starts(backward, start):
    assert tape_start(TRAIN, backward) == start


# --- evidence from the source beside the ledger


def test_a_derivative_that_appears_inside_the_tape_is_not_truncation():
    term = {"variable": "total", "allocated": {"file": "train.py", "line": 20}, "share": 1.1, "significant": True}
    tape, backward = {"file": "train.py", "line": 30}, {"file": "train.py", "line": 40}
    written = {"total": {"file": "train.py", "line": 35, "host": False}}
    summed = only(ledger(truncated=[term]), context=Context(tape, backward, True, written.get))
    assert (summed.code, summed.line) == ("unrecorded_operation", 35)
    written["total"]["host"] = True
    assert only(ledger(truncated=[term]), context=Context(tape, backward, True, written.get)).code == "host_round_trip"
    made = {**term, "allocated": {"file": "train.py", "line": 33}}
    assert only(ledger(truncated=[made]), context=Context(tape, backward, True)).line == 33
    assert only(ledger(truncated=[term]), context=Context(tape, backward, False)).code == "truncation"
    assert only(ledger(truncated=[term]), context=Context(tape, backward)).code == "truncation"


def test_a_loss_that_is_not_on_the_tape():
    book = ledger(seed={"share": 1.0, "significant": True}, objective={"name": "J"})
    written = {"J": {"file": "train.py", "line": 44, "host": False}}
    cause = only(book, context=Context(unrecorded=written.get))
    assert (cause.code, cause.line, cause.variables) == ("unrecorded_operation", 44, ["J"])


def test_a_loss_that_something_else_writes_is_that_operations_fault():
    writer = {"what": "kernel ridge", "file": "train.py", "line": 30}
    cause = only(ledger(seed={"share": 0.4, "significant": True, "writer": writer}, objective={"name": "J"}))
    assert (cause.code, cause.line, cause.variables) == ("unrecorded_operation", 30, ["J"])
    assert "J is written by kernel ridge at train.py:30" in "; ".join(cause.evidence)


def test_a_spent_seed_and_a_tape_that_is_entered_again():
    backward, tape = {"file": "train.py", "line": 40}, {"file": "train.py", "line": 30}
    spent = only(
        ledger(observations=[{"kind": "seed_spent", "message": "emptied"}]), context=Context(backward=backward)
    )
    assert (spent.code, spent.line) == ("seed_mismatch", 40)
    again = {"kind": "tape_reentered", "message": "the tape already held 2 operations", "file": None, "line": None}
    old = jump(file=None, line=None, kernel="operations of an earlier recording", first_op=-1)
    cause = only(ledger(jumps=[old], observations=[again]), context=Context(tape=tape))
    assert (cause.code, cause.line) == ("double_count", 30)


UNRECORDED = """
for month in range(8):
    total = wp.zeros(1)
    with wp.Tape() as tape:
        wp.launch(dissolve, N, inputs=[rate], outputs=[brine])
        wp.utils.array_sum(brine, out=total)
        wp.launch(objective, 1, inputs=[total], outputs=[obj])
        pumped = wp.array(np.sort(brine.numpy()))
    wp.launch(schedule, N, inputs=[J])
    print(obj.numpy())
    tape.backward(obj)
    tape.zero()
    step = rate.grad.numpy()
"""


@pytest.mark.parametrize(
    ("variable", "expected"),
    [("total", (6, False)), ("pumped", (8, True)), ("J", (9, False)), ("obj", None), ("rate", None)],
)
def test_statements_that_no_tape_records(variable, expected):
    assert unrecorded_writer(UNRECORDED, 4, 11, variable) == expected


FUNCTIONS = """
def week(theta, w):
    return day(theta, 7 * w)

def day(theta, d):
    wp.launch(drain, N, inputs=[theta, d], outputs=[nxt])
    return nxt

def levelled(heights):
    return wp.array(np.sort(heights.numpy()))

for epoch in range(8):
    with wp.Tape() as tape:
        theta = week(theta, np.float32(epoch))
        heights = levelled(heights)
        basin = model.filled(basin)
        mean = week(wp.array(mean.numpy()), 1)
    tape.backward(obj)
"""


@pytest.mark.parametrize(
    ("variable", "line"),
    [("theta", None), ("heights", 15), ("basin", None), ("mean", 17)],
    ids=["launches through others", "does not launch", "of another module: not known", "goes through NumPy before"],
)
def test_a_function_of_the_users_records_what_it_launches(variable, line):
    found = unrecorded_writer(FUNCTIONS, 13, 18, variable)
    assert (found and found[0]) == line


def test_where_a_gradient_is_zeroed():
    assert zeroing_line(UNRECORDED, 11, 13) == 12
    assert zeroing_line(UNRECORDED, 12, 13) is None


def test_where_a_numpy_view_is_written():
    source = "view = mid.numpy()\ncopy = top.numpy().copy()\ncopy[0] = 1\nfor t in s:\n    view[t, 0] = 3.0\nlow.numpy()[0] += 1\n"
    assert [numpy_write(source, name) for name in ("mid", "top", "low", "none")] == [5, None, 6, None]


# --- one adjoint alone


def alone(verdict, **fields):
    return {"what": "launch", "kernel": "diffuse", **LAUNCH, "op": 7, "argument": "gain", "autodiff": 1.5,
            "finite_difference": 1.0, "error": 1e-4, "verdict": verdict, "reason": None, "restored": None, **fields}  # fmt: skip


def custom(verdict, name="drag"):
    return {"what": "function", "kernel": name, "file": "train.py", "line": 5, "op": None, "argument": None, "autodiff": 2.0,
            "finite_difference": 1.0, "error": 1e-4, "verdict": verdict, "reason": None, "samples": 64, "wrong": 60}  # fmt: skip


LOOP = Construct("dynamic_loop", "train.py", 11, "for k in range(n):")
FORMULA = Construct("custom_gradient", "train.py", 17, "custom gradient of drag: wp.adjoint[v] += adj_ret")


def test_a_kernel_that_is_wrong_by_itself_proves_the_only_construct_in_it():
    cause = only(ledger(jumps=[jump()], isolated=[alone("wrong")]), lambda j: [LOOP])
    assert (cause.code, cause.confidence) == ("dynamic_loop", "proven")
    assert "wrong by itself for gain, on the inputs it read: AD = 1.5, FD = 1 ± 0.0001" in "; ".join(cause.evidence)
    bare = only(ledger(jumps=[jump()], isolated=[alone("wrong")]))
    assert (bare.code, bare.confidence) == ("warp_defect", "likely")


def test_a_kernel_that_is_right_by_itself_is_hardly_blamed():
    causes = ledger_causes(ledger(jumps=[jump()], isolated=[alone("right"), custom("wrong")]), lambda j: [LOOP])
    assert [(c.code, c.confidence) for c in causes] == [("dynamic_loop", "possible"), ("custom_gradient", "possible")]


def test_a_custom_gradient_that_is_wrong_by_itself_is_the_cause_whatever_else_is_in_the_kernel():
    book = ledger(jumps=[jump()], isolated=[alone("wrong"), custom("wrong")])
    cause = only(book, lambda j: [LOOP, FORMULA])
    assert (cause.code, cause.confidence, cause.line) == ("custom_gradient", "proven", 17)
    other = ledger(jumps=[jump()], isolated=[alone("wrong"), custom("wrong", "lift")])
    assert [c.code for c in ledger_causes(other, lambda j: [LOOP, FORMULA])] == ["dynamic_loop", "custom_gradient"]


@pytest.mark.parametrize(("verdict", "sure"), [(None, "likely"), ("undecided", "likely"), ("wrong", "proven")])
def test_a_custom_gradient_that_is_right_by_itself_comes_last(verdict, sure):
    launch = [alone(verdict)] if verdict else []
    causes = ledger_causes(ledger(jumps=[jump()], isolated=[*launch, custom("right")]), lambda j: [FORMULA, LOOP])
    assert [(c.code, c.confidence) for c in causes] == [("dynamic_loop", sure), ("custom_gradient", "possible")]
    assert "the custom gradient of drag is right by itself at 64 sampled arguments" in causes[0].evidence
    nothing_else = only(ledger(jumps=[jump()], isolated=[*launch, custom("right")]), lambda j: [FORMULA])
    assert (nothing_else.code, nothing_else.confidence) == ("custom_gradient", sure), "arguments that were not sampled"
    other = ledger(jumps=[jump()], isolated=[*launch, custom("right", "lift")])
    assert ledger_causes(other, lambda j: [FORMULA, LOOP])[0].code == "custom_gradient", "another function's"


def test_a_custom_gradient_counts_where_nothing_jumps_but_not_where_the_gradient_agrees():
    book = ledger(isolated=[custom("wrong")])
    assert only(book, None, Context(verdict="inconclusive")).confidence == "possible"
    assert ledger_causes(book, None, Context(verdict="agree")) == []
    assert ledger_causes(ledger(isolated=[custom("undecided")]), None, Context(verdict="inconclusive")) == []


def test_a_kernel_that_spoils_its_own_input_is_proven_by_its_adjoint_on_restored_inputs():
    row = overwrite(how="in_kernel", argument="track", writer={"what": "the same launch", **LAUNCH})
    shown = ledger(jumps=[jump()], overwrites=[row], isolated=[alone("wrong", restored="right")])
    assert only(shown).confidence == "proven"
    assert (
        only(ledger(jumps=[jump()], overwrites=[row], isolated=[alone("wrong", restored="wrong")])).confidence
        == "likely"
    )


# --- which lines call, and what is on the tape


def test_a_write_off_the_tape_by_a_line_that_is_on_it_too_is_told_by_its_caller():
    writer = {"what": "kernel relax", "file": "train.py", "line": 41, "off_tape": {"file": "train.py", "line": 63}}
    cause = only(ledger(jumps=[jump()], overwrites=[overwrite(writer=writer)]))
    assert cause.line == 63
    assert "changed by kernel relax at train.py:41 (called from train.py:63)" in cause.evidence[0]


def test_a_launch_in_a_library_names_the_users_own_line():
    called = {"file": "train.py", "line": 7}
    book = ledger(jumps=[jump(file="/lib/site-packages/newton/solver.py", line=900, via=called)])
    cause = only(book)
    assert (cause.line, cause.via.line) == (900, 7)
    assert "solver.py:900 (called from train.py:7)" in cause.evidence[0]


def numpy_write_jump(carried, replaced):
    writer = {"what": "a write to temp through a NumPy view", **LAUNCH}
    return jump("unrecorded", kernel=writer["what"], writers=[writer], carried=carried, replaced=replaced)


def test_a_numpy_write_is_an_overwrite_where_what_it_replaces_counts_for_more_than_what_it_brings():
    assert only(ledger(jumps=[numpy_write_jump(0.001, 0.4)])).code == "overwrite"
    assert only(ledger(jumps=[numpy_write_jump(-0.4, 0.001)])).code == "host_round_trip"


def seen(kind, **where):
    return {"kind": kind, "message": f"{kind} was seen", "file": None, "line": None, "variable": None, **where}


def test_work_on_the_tape_that_is_not_the_forward_pass():
    inside = Context(tape={"file": "train.py", "line": 30})
    late = only(ledger(jumps=[jump()], observations=[seen("after_loss", **LAUNCH)]), None, inside)
    assert (late.code, late.line) == ("tape_scope", 42)
    term = {"variable": "loss", "share": 1.0, "noise": 0.0, "significant": True, "allocated": None}
    causes = ledger_causes(ledger(stale=[term], observations=[seen("tape_left_open")]), None, inside)
    assert [c.code for c in causes] == ["tape_scope", "stale_gradient"]
    assert causes[0].line == 30


def test_work_after_the_loss_that_puts_nothing_in_is_harmless():
    book = ledger(jumps=[jump(significant=False)], observations=[seen("after_loss", **LAUNCH), seen("tape_left_open")])
    assert ledger_causes(book) == []
    clobbering = ledger(
        jumps=[jump(share_restored=0.0)], overwrites=[overwrite()], observations=[seen("after_loss", **LAUNCH)]
    )
    assert [c.code for c in ledger_causes(clobbering)] == ["overwrite"]


def test_a_saved_state_that_a_segment_copies_in_is_truncation_where_there_are_several_segments():
    term = {
        "variable": "string.place", "value": 0.6, "share": 0.6, "significant": True,
        "allocated": {"file": "train.py", "line": 9}, "writer": {"what": "wp.copy", "file": "train.py", "line": 57},
    }  # fmt: skip
    several = Context(tape={"file": "train.py", "line": 94}, inside=True, windows=7)
    (cause,) = ledger_causes({"truncated": [term]}, None, several)
    assert (cause.code, cause.line) == ("truncation", 94)
    (cause,) = ledger_causes({"truncated": [term]}, None, Context(tape={"file": "train.py", "line": 94}, inside=True))
    assert (cause.code, cause.line) == ("unrecorded_operation", 57)


@pytest.mark.parametrize(("warp", "confidence"), [("1.16.0", "likely"), ("1.17.0", "possible"), (None, "possible")])
def test_a_copy_that_jumps_is_a_defect_of_warp_known_of_some_versions(warp, confidence):
    cause = only(ledger(jumps=[jump(kernel="array copy")]), None, Context(warp=warp))
    assert (cause.code, cause.confidence, cause.line) == ("warp_defect", confidence, 42)
    assert ("last consumer (from 1.17 on" in "; ".join(cause.evidence)) == (warp == "1.16.0")
    assert "kernel instead of this copy" in cause.repair


def test_a_kernel_without_a_suspect_names_the_defects_of_its_version():
    for warp, known in (("1.13.0", 3), ("1.16.0", 1), ("1.19.0", 0)):
        cause = only(ledger(jumps=[jump()]), lambda _: [], Context(warp=warp))
        assert sum(said.startswith(f"Warp {warp}: ") for said in cause.evidence) == known


SWAPPED = """
def run(self, n):
    old, new = self.old, self.new
    for _ in range(n):
        wp.launch(step, 8, inputs=[old], outputs=[new])
        wp.launch(other, 8, inputs=[self.third])
        {}
    return old
"""


def test_the_swap_by_which_arrays_take_turns():
    assert swap_line(SWAPPED.format("old, new = new, old"), 5) == 7
    assert swap_line(SWAPPED.format("old, new = new, old"), 6) is None  # of other arrays
    assert swap_line(SWAPPED.format("old, new = new, wp.zeros(8)"), 5) is None  # a fresh one each time
    assert swap_line(SWAPPED.format("pass"), 5) is None
    assert swap_line("wp.launch(step, 8, inputs=[a])\n", 1) is None


def test_the_place_of_an_overwrite_by_turns_is_the_swap():
    swap = {"file": "train.py", "line": 51}
    cause = only(ledger(overwrites=[overwrite()], what_if=what_if(0.2, 1e-4)), context=Context(swap=lambda place: swap))
    assert (cause.code, cause.file, cause.line) == ("overwrite", "train.py", 51)
    assert any("train.py:50" in said for said in cause.evidence)


BEFORE_THE_TAPE = """
def gradient(run):
    for k in range(4):
        run.{}(k)
    tape = wp.Tape()
    with tape:
        for k in range(4, 8):
            run.step(k)
    tape.backward(run.loss)
"""


def test_the_loop_before_the_tape_that_it_should_have_recorded():
    assert unrecorded_loop(BEFORE_THE_TAPE.format("step"), 6) == 3
    assert unrecorded_loop(BEFORE_THE_TAPE.format("clear"), 6) is None
    assert unrecorded_loop(BEFORE_THE_TAPE.format("step"), 5) is None


def seeded_check(stated=-30.0, kind="expression", autodiff=70.0):
    direction = {"autodiff": autodiff, "finite_difference": stated, "error": 1e-3, "verdict": "disagree", "step": 1e-3}
    return {
        "objective": {"kind": kind},
        "gradient": {"directions": [direction]},
        "windows": [],
        "horizon": {"windows": 1},
    }


@pytest.mark.parametrize(
    ("check", "share"),
    [
        (seeded_check(), 100 / 30),
        (seeded_check(stated=69.9), None),  # the seed is right
        (seeded_check(kind="loss"), None),  # nothing else was stated
        (seeded_check(autodiff=50.0), None),  # another direction
    ],
)
def test_a_seed_is_held_to_the_stated_objective(check, share):
    book = ledger(finite_difference=70.0, autodiff=70.0)
    seed_against_stated(book, check)
    if share is None:
        assert book["seed"] is None
    else:
        assert book["seed"]["share"] == pytest.approx(share)
        cause = only(book, context=Context(backward={"file": "train.py", "line": 33}))
        assert (cause.code, cause.line) == ("seed_mismatch", 33)


def test_what_fills_a_new_array_tells_more_than_its_clearing():
    cleared = {"what": "zero_()", "file": "sea.py", "line": 34}
    filled = {"what": "kernel limit", "file": "sea.py", "line": 35}
    found = only(ledger(jumps=[jump("unrecorded", writers=[cleared, filled], carried=-0.2, replaced=0.0)]))
    assert (found.code, found.line) == ("unrecorded_operation", 35)
    reset = only(ledger(jumps=[jump("unrecorded", writers=[cleared, filled], carried=0.0, replaced=0.2)]))
    assert (reset.code, reset.line) == ("accumulator_reset", 34)


IMPORTING = """
import warp as wp
import optics as light
from optics import polish as shine
from warp.optim import Adam

@wp.func
def twice(x: float):
    return shine(x) + wp.sin(x)

@wp.kernel
def lit(x: wp.array(dtype=float)):
    x[0] = twice(x[0]) + light.fringe(x[0])

@wp.kernel
def other(x: wp.array(dtype=float)):
    x[0] = light.dark(x[0])
"""


def test_functions_that_a_kernel_calls_from_other_files():
    assert imported_calls(IMPORTING, "lit") == {"polish", "fringe"}
    assert imported_calls(IMPORTING, "nothing") == set()
    assert imported_calls("def (", "lit") == set()


def summation(restored):
    """A gradient 4 % off, whose long sums in float64 would give `restored`. The derivative is 1."""
    return {"finite_difference": 1.0, "as_is": 1.04, "restored": restored, "relative_error_as_is": 0.04,
            "relative_error_restored": abs(restored - 1.0), "arrays": [{"variable": "rate", "allocated": LAUNCH}],
            "readers": [{"kernel": "diffuse", **LAUNCH}]}  # fmt: skip


def test_a_gradient_that_is_a_long_sum_is_a_matter_of_its_dtype_and_no_defect():
    cause = only(ledger(jumps=[jump(share=0.04)], summation=summation(1.0001)))
    assert (cause.code, cause.confidence, cause.line) == ("precision_floor", "proven", 42)
    assert cause.variables == ["rate"]
    assert "4% to 0.01%" in cause.evidence[0]


def test_sums_that_explain_a_part_leave_the_rest_to_other_causes():
    lost = jump(
        "lost", line=7, kernel="score", lost=[{"variable": "flow", "allocated": {"file": "train.py", "line": 4}}]
    )
    codes = {c.code: c.confidence for c in ledger_causes(ledger(jumps=[lost], summation=summation(1.03)))}
    assert codes == {"missing_requires_grad": "likely", "precision_floor": "likely"}
    larger = jump(share=0.2)  # than the sums can put in
    assert {c.code for c in ledger_causes(ledger(jumps=[larger], summation=summation(1.03)))} == {
        "precision_floor",
        "warp_defect",
    }


@pytest.mark.parametrize("found", [None, summation(1.0399)])
def test_sums_that_change_nothing_are_not_mentioned(found):
    lost = jump("lost", lost=[{"variable": "flow", "allocated": {"file": "train.py", "line": 4}}])
    assert [c.code for c in ledger_causes(ledger(jumps=[lost], summation=found))] == ["missing_requires_grad"]


@pytest.mark.parametrize(
    ("before", "after", "meant"),
    [(1e-4, 2.9, True), (0.015, 0.2, True), (1e-4, float("nan"), True), (1e-4, 0.05, False), (0.2, 3.0, False), (0.2, 1e-4, False)],
)  # fmt: skip
def test_restored_values_that_spoil_a_right_gradient_are_no_proof_against_it(before, after, meant):
    kept = ledger(jumps=[jump()], overwrites=[overwrite()], what_if=what_if(before, after), flat=False)
    as_meant(kept)
    assert bool(kept.get("meant")) is meant
    assert (ledger_causes(kept) == []) is meant


@pytest.mark.parametrize(("off_tape", "confidence"), [(True, "possible"), (False, "likely")])
def test_values_made_while_no_tape_records_may_be_held_on_purpose(off_tape, confidence):
    lost = {
        "variable": "energy",
        "allocated": {"file": "train.py", "line": 7},
        **({"off_tape": True} if off_tape else {}),
    }
    cause = only(ledger(jumps=[jump("lost", lost=[lost])]))
    assert (cause.code, cause.confidence) == ("missing_requires_grad", confidence)
    both = [lost, {"variable": "mass", "allocated": None}]
    assert only(ledger(jumps=[jump("lost", lost=both)])).confidence == "likely"


@pytest.mark.parametrize(
    ("windows", "error", "named"), [(2, 0.014, False), (2, 0.6, True), (1, 0.014, True), (2, None, True)]
)
def test_what_enters_one_tape_of_several_and_exceeds_the_whole_error_is_handed_on(windows, error, named):
    term = {"variable": "state", "share": -0.59, "noise": 0.01, "significant": True, "allocated": None}
    found = ledger_causes(ledger(truncated=[term]), context=Context(verdict="disagree", windows=windows, error=error))
    assert [c.code for c in found] == (["truncation"] if named else [])


@pytest.mark.parametrize(("verdict", "one_step"), [("disagree", False), ("inconclusive", False), ("agree", True)])
def test_one_step_does_where_the_gradient_is_known_to_be_right(verdict, one_step):
    """A jump that the noise of one step hides is looked for at others, also where the check could not decide."""
    assert settings({"verdict": verdict, "gradient": {"directions": []}})["one_step"] is one_step


def test_one_step_does_where_no_wrong_gradient_is_looked_for():
    assert settings(None)["one_step"] is True
