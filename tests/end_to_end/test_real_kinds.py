"""Library code on the tape, one small program a kind, through the real command: right ones agree, faults are placed."""

import pytest
from truths import PROGRAMS, answer_on_a_copy

KINDS = PROGRAMS / "kinds"
RIGHT = [
    "captured_alloc",  # arrays made during a capture: their gradients are zeroed at every launch of the graph
    "captured_while",  # what the device decides in a graph is decided by the same arrays when it is followed
    "generic",
    "hash_grid",
    "implicit_residual",  # its tape reads u = 0, and the adjoint is meant to read the solution
    "indexed",
    "implicit",
    "mesh_distance",
    "rebuilt",  # the parameter is a new array in each iteration
    "rigid",
    "solver_before",  # its iterations make more or fewer arrays at +h and at -h
    "struct_array",
    "struct_parameter",
    "tape_in_parts",  # one tape, two blocks, an untaped solve between them: its adjoint is recorded by hand
    "tiles",
    pytest.param("fem_field", marks=pytest.mark.slow),
]
BROKEN = {  # cause, and a text of the line that is named
    "commands": ("unrecorded_operation", "command.launch()"),
    "implicit_broken": ("custom_gradient", "tape.record_func("),
    "loose_copy": ("unrecorded_operation", "wp.copy(force, work)"),
    "mesh_shape": ("native_without_adjoint", "wp.mesh_eval_position("),  # Warp 1.19: the vertices get no adjoint
    "sparse_mv": ("backward_disabled", "bsr_mv(A"),  # in Warp 1.19 its kernel is built without a backward pass
    "utils_sum": ("unrecorded_operation", "wp.utils.array_inner("),
}


def bisect(name, folder):
    """(exit code, result) of bisect-steps on a copy of the program."""
    return answer_on_a_copy("bisect-steps", KINDS / f"{name}.py", folder)


@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_agree(name, tmp_path):
    code, result = bisect(name, tmp_path)
    assert (code, result["verdict"]) == (0, "agree"), result["message"]
    assert result["flat"] is (None if name == "implicit_residual" else True)
    assert result["causes"] == []
    lines = (KINDS / f"{name}.py").read_text().splitlines()
    end = result["horizon"]["end"]["line"]  # in a graph: where backward was captured, not where the graph is launched
    assert ".backward(" in lines[end - 1]
    if name.startswith("captured"):  # and it begins where the graph is launched: no evaluation captures again
        assert "wp.capture_launch(" in lines[result["horizon"]["start"]["line"] - 1]


def test_a_graph_that_cannot_be_followed_is_said_to_be_one(tmp_path):
    """A tape notes the body of a loop once, however often the device runs it: nothing to follow, and no verdict."""
    code, result = bisect("captured_tape_loop", tmp_path)
    assert (code, result["verdict"], result["reason"]) == (4, None, "graph_not_followed")
    assert "wp.capture_while is called while a tape records" in result["message"]


@pytest.mark.parametrize("name", BROKEN)
def test_faults_are_placed(name, tmp_path):
    cause, text = BROKEN[name]
    code, result = bisect(name, tmp_path)
    assert (code, result["verdict"]) == (1, "disagree"), result["message"]
    first = result["causes"][0]
    lines = (KINDS / f"{name}.py").read_text().splitlines()
    assert first["code"] == cause
    assert text in lines[first["line"] - 1]


def test_a_custom_gradient_is_judged_where_the_objectives_differences_are_dead(tmp_path):
    """float32: the objective's offset takes all the digits by which it would change."""
    code, result = bisect("dead_differences", tmp_path)
    assert (code, result["verdict"]) == (4, "inconclusive"), result["message"]
    first = result["causes"][0]
    lines = (KINDS / "dead_differences.py").read_text().splitlines()
    assert first["code"] == "custom_gradient"
    assert "wp.adjoint[t] +=" in lines[first["line"] - 1]
    assert "wrong by itself" in " ".join(first["evidence"])


@pytest.mark.parametrize(
    ("variant", "cause", "text"),
    [("warm", "double_count", "with tape:"), ("early", "stale_gradient", "wp.clone(k.grad)"), ("double", None, "")],
)
def test_a_step_that_is_captured_again(variant, cause, text, tmp_path):
    """A warm-up stays on the tape; the gradient is read before the launch; backward is seeded with two, which is right."""
    code, result = answer_on_a_copy("diagnose", KINDS / "captured_again.py", tmp_path, variant)
    first = result["causes"][0]
    if cause is None:
        assert (code, result["verdict"], first["code"]) == (0, "agree", "gradients_correct"), result["message"]
        assert result["horizon"]["full"], "the seed is no gradient that another tape left"
        assert "the objective is 2 times loss" in result["message"]
        return
    assert (code, result["verdict"], first["code"]) == (1, "disagree", cause), result["message"]
    assert text in (KINDS / "captured_again.py").read_text().splitlines()[first["line"] - 1]


def test_an_update_of_an_array_that_the_graph_does_not_read(tmp_path):
    """Its gradient is zero, which is right: the graph reads the array that there was when it was captured."""
    code, result = answer_on_a_copy("diagnose", KINDS / "captured_again.py", tmp_path, "new")
    made = next(
        k for k, text in enumerate((KINDS / "captured_again.py").read_text().splitlines(), 1) if "k.numpy()" in text
    )
    assert (code, result["verdict"]) == (0, "agree")
    assert (
        f"in iteration 1 the gradient that is read is that of an array, made at captured_again.py:{made}"
        in result["message"]
    )
    assert "the update has no effect" in result["message"]


@pytest.mark.parametrize("variant", ["late", "late first kept", "late log", "late swap carry"])
def test_the_gradient_of_the_array_before(variant, tmp_path):
    """The array is made anew, the update goes on with the old one's gradient; `log` prints the own one all the same."""
    code, result = answer_on_a_copy("diagnose", KINDS / "rebuilt.py", tmp_path, *variant.split())
    first = result["causes"][0]
    assert (code, result["verdict"], first["code"]) == (1, "disagree", "stale_gradient"), result["message"]
    assert result["iteration"] == (2 if "first" in variant else 1), "in the first with an update there is no other"
    if "log" not in variant:
        assert "used.numpy()" in (KINDS / "rebuilt.py").read_text().splitlines()[first["line"] - 1]


@pytest.mark.parametrize("variant", ["look", "look log", "look carry kept", "swap look"])
def test_reading_the_gradient_of_the_array_before_does_no_harm(variant, tmp_path):
    code, result = answer_on_a_copy("diagnose", KINDS / "rebuilt.py", tmp_path, *variant.split())
    assert (code, result["verdict"], result["causes"][0]["code"]) == (0, "agree", "gradients_correct"), result[
        "message"
    ]
    assert not any("which gradient the update uses" in spot for spot in result["blind_spots"])


@pytest.mark.parametrize("variant", ["", "wiped"])
def test_gradients_of_two_tapes_add_up(variant, tmp_path):
    """Zeroed between the two, it is the second loss's gradient: perhaps that is meant, and it is said."""
    code, result = answer_on_a_copy("diagnose", KINDS / "tapes_summed.py", tmp_path, *variant.split())
    (cause,) = result["causes"]
    assert (code, result["verdict"], cause["code"]) == (0, "agree", "gradients_correct"), result["message"]
    assert cause["confidence"] == ("possible" if variant else "proven")
    assert ("was zeroed before it is read" in result["message"]) == bool(variant)


@pytest.mark.parametrize("dropped", ["", "speed", "speed place"])
def test_checkpointing_in_the_trained_array_is_one_iteration(dropped, tmp_path):
    """Every segment starts in the parameter's own memory: the chain is one iteration, and what it drops shows."""
    code, result = answer_on_a_copy(
        "gradcheck-full-horizon", KINDS / "checkpoint_in_place.py", tmp_path, *dropped.split()
    )
    expected = {"": (0, "agree"), "speed": (1, "disagree"), "speed place": (1, "disagree")}
    assert (code, result["verdict"]) == expected[dropped], result["message"]
    assert (result["horizon"]["full"], result["horizon"]["windows"]) == (True, 3)


@pytest.mark.parametrize("handed", ["loss", "grads"])
def test_segments_with_running_costs_are_one_iteration(handed, tmp_path):
    """Each backward call starts from the adjoint behind it, and from a cost of its own."""
    code, result = answer_on_a_copy("gradcheck-full-horizon", KINDS / "running_cost.py", tmp_path, handed)
    assert (code, result["verdict"], result["parameter"]) == (0, "agree", "power"), result["message"]
    assert result["horizon"]["full"]


def truncated(file, folder, *options):
    """The variables of the cut that `diagnose` names, at the backward call that is handed nothing."""
    code, result = answer_on_a_copy("diagnose", file, folder, *options)
    assert (code, result["verdict"]) == (1, "disagree"), result["message"]
    assert result["horizon"]["full"]
    first, *others = result["causes"]
    assert (first["code"], first["confidence"], others) == ("truncation", "likely", [])
    return first, file.read_text().splitlines()[first["line"] - 1]


@pytest.mark.parametrize("handed", ["loss", "grads"])
def test_an_adjoint_dropped_between_segments_with_running_costs_is_named(handed, tmp_path):
    first, line = truncated(KINDS / "running_cost.py", tmp_path, handed, "dropped")
    assert ("tape.backward(cost, grads=" if handed == "loss" else "tape.backward(grads=") in line
    assert first["variables"] == ["begin"]


@pytest.mark.parametrize(
    "options",
    [
        "price=step drop=all",
        "price=step drop=1 how=leave states=clone segments=4",
        "price=end drop=0 states=buffer dtype=float64",
        "price=segment seed=assign drop=1 states=clone dtype=float64 n=3",  # the other boundary's seed is no stale gradient
        "price=step seed=inner drop=all how=leave n=1 length=3",
    ],
)
def test_an_adjoint_that_is_dropped_at_some_boundary_is_named(options, tmp_path):
    """Both states' adjoints, in lists, rows or copies; handed on at the other boundaries, or nowhere."""
    first, line = truncated(KINDS / "segments.py", tmp_path, *options.split())
    assert "tape.backward(" in line
    assert first["variables"] == (["begin[0]", "begin[1]"] if "clone" in options else ["rows[0][0]", "rows[0][1]"])


@pytest.mark.parametrize(
    "options",
    ["price=step", "price=end states=clone segments=4 n=1", "price=segment seed=assign states=buffer dtype=float64"],
)
def test_segments_that_hand_their_adjoints_on_agree(options, tmp_path):
    code, result = answer_on_a_copy("diagnose", KINDS / "segments.py", tmp_path, *options.split())
    assert (code, result["verdict"], result["parameter"]) == (0, "agree", "motors"), result["message"]
    assert result["horizon"]["full"]


def test_an_adjoint_that_is_a_factor_of_a_segments_loss_is_no_disagreement(tmp_path):
    """Its losses are no terms of one objective; the gradient is right, and nobody is accused."""
    code, result = answer_on_a_copy("diagnose", KINDS / "segments.py", tmp_path, "seed=inner", "states=clone")
    assert (code, result["reason"], result["causes"]) == (4, "adjoint_in_loss", []), result["message"]


@pytest.mark.parametrize("variant", ["right", "shooting", "shooting_back"])
def test_segments_over_one_list_of_states(variant, tmp_path):
    """The buffers hand the adjoints on; and initial states that are trained are parameters, where a rollout gives the first."""
    code, result = answer_on_a_copy("diagnose", KINDS / "segments_shared.py", tmp_path, variant)
    assert (code, result["verdict"], result["causes"][0]["code"]) == (0, "agree", "gradients_correct"), result[
        "message"
    ]
    assert ("nodes" in result["parameter"]) == variant.startswith("shooting")


@pytest.mark.parametrize("variant", ["wiped", "nograd"])
def test_an_adjoint_that_is_cleared_or_never_made_between_segments(variant, tmp_path):
    first, line = truncated(KINDS / "segments_shared.py", tmp_path, variant)
    assert ("tape.backward(c)" if variant == "wiped" else "with wp.Tape()") in line
    assert first["variables"] == (["states[4]", "states[8]"] if variant == "wiped" else [])


@pytest.mark.parametrize(("variant", "expected"), [("", (0, "agree")), ("early", (1, "disagree"))])
def test_batches_are_added_up_and_clipped_before_one_update(variant, expected, tmp_path):
    """An edit after the last backward call is the program's own business; one between them spoils the sum."""
    file = KINDS / "accumulate_and_clip.py"
    code, result = answer_on_a_copy("gradcheck-full-horizon", file, tmp_path, *variant.split())
    assert (code, result["verdict"]) == expected, result["message"]
    assert result["horizon"]["windows"] == 4


@pytest.mark.parametrize("variant", ["", "tape"])
def test_recorded_commands_with_arguments_set_anew(variant, tmp_path):
    """The update by a `wp.Launch` is the program's own business; a step of the rollout by one is not on the tape."""
    file = KINDS / "launch_objects.py"
    code, result = answer_on_a_copy("bisect-steps", file, tmp_path, *variant.split())
    if not variant:
        assert (code, result["verdict"], result["flat"], result["causes"]) == (0, "agree", True, [])
        return
    assert (code, result["verdict"]) == (1, "disagree"), result["message"]
    first = result["causes"][0]
    assert first["code"] == "unrecorded_operation"
    assert "again.launch()" in file.read_text().splitlines()[first["line"] - 1]


def test_values_that_the_adjoint_is_meant_to_read_are_no_harmful_overwrite(tmp_path):
    """With the recorded values restored the gradient would be zero: as it is, it is right."""
    code, result = answer_on_a_copy("enable-tracker", KINDS / "implicit_residual.py", tmp_path)
    assert (code, result["causes"]) == (0, []), result["message"]
    assert [row["harmful"] for row in result["overwrites"]] == [False]
    assert "is differentiated so, at its solution" in result["message"]


def test_a_surrogate_loss_is_not_what_backward_is_blamed_for(tmp_path):
    """The gradient is the compliance's, not the derivative of the loss that backward was handed: nothing above possible."""
    code, result = answer_on_a_copy("bisect-steps", KINDS / "surrogate.py", tmp_path)
    assert (code, result["verdict"]) == (1, "disagree"), result["message"]
    assert {cause["confidence"] for cause in result["causes"]} == {"possible"}
    assert "a surrogate loss does that on purpose" in " ".join(result["causes"][0]["evidence"])


@pytest.mark.parametrize("broken", [False, True])
def test_weights_in_half_precision(broken, tmp_path):
    code, result = answer_on_a_copy("gradcheck-full-horizon", KINDS / "half_weights.py", tmp_path, *["broken"] * broken)
    expected = {(1, "disagree")} if broken else {(0, "agree"), (4, "inconclusive")}
    assert (code, result["verdict"]) in expected, result["message"]


def test_a_right_formula_that_meets_a_wrong_argument_is_not_blamed(tmp_path):
    """In the backward pass the sum of a loop that is not unrolled is not what it was: the function alone is right."""
    code, result = answer_on_a_copy("bisect-steps", KINDS / "half_weights.py", tmp_path, "dynamic")
    first = result["causes"][0]
    lines = (KINDS / "half_weights.py").read_text().splitlines()
    assert (code, first["code"]) == (1, "dynamic_loop"), result["message"]
    assert "for j in range(x.shape[0])" in lines[first["line"] - 1]
    assert {c["confidence"] for c in result["causes"] if c["code"] == "custom_gradient"} <= {"possible"}


def test_an_indexed_array_inside_the_tape_is_the_programs_own_error(tmp_path):
    """Warp 1.19 cannot go back through it: the error is the program's, at its own line."""
    file = KINDS / "indexed.py"
    code, result = answer_on_a_copy("run-repro", file, tmp_path, "taped")
    assert (code, result["status"]) == (3, "blocked"), result["message"]
    assert "'indexedarray' object has no attribute 'grad'" in result["message"]
    line = next(k for k, text in enumerate(file.read_text().splitlines(), 1) if "tape.backward(" in text)
    assert (result["error"]["file"], result["error"]["line"]) == ("indexed.py", line)


def test_a_sum_clipped_too_early_is_placed_at_the_clipping(tmp_path):
    code, result = answer_on_a_copy("diagnose", KINDS / "accumulate_and_clip.py", tmp_path, "early")
    first = result["causes"][0]
    lines = (KINDS / "accumulate_and_clip.py").read_text().splitlines()
    assert (code, first["code"], first["confidence"]) == (1, "stale_gradient", "likely"), result["message"]
    assert "wp.launch(clip" in lines[first["line"] - 1]


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("array", "return wp.array([trace.numpy().mean()]"),
        ("from_numpy", "return wp.from_numpy(values"),
        ("full", "return wp.full(1, float(trace.numpy()"),
        ("item", "level[0:1].fill_("),
        ("scalar", "wp.launch(divide_by"),
        ("double", "return wp.array([trace.numpy().mean()]"),
        ("struct", "held.value = wp.array("),
        ("parameter", "return wp.array([(self.strength.numpy()"),
        ("plain", "return wp.array([trace.numpy().mean()]"),
    ],
)
def test_values_that_leave_the_tape_by_the_host(how, text, tmp_path):
    """A level computed from what the tape has made, in an array or as a plain number: no adjoint goes through the host."""
    file = KINDS / "metered.py"
    code, result = answer_on_a_copy("bisect-steps", file, tmp_path, how)
    assert (code, result["verdict"]) == (1, "disagree"), result["message"]
    (first,) = result["causes"]
    assert (first["code"], first["confidence"]) == ("host_round_trip", "likely")
    assert text in file.read_text().splitlines()[first["line"] - 1]
    assert first["variables"] == [{"struct": "held.value"}.get(how, "level")]
    assert "the host reads" in " ".join(first["evidence"])


@pytest.mark.parametrize("how", ["kernel", "logged"])
def test_what_is_only_printed_while_a_tape_records_is_no_fault(how, tmp_path):
    code, result = answer_on_a_copy("bisect-steps", KINDS / "metered.py", tmp_path, how)
    assert (code, result["verdict"], result["flat"], result["causes"]) == (0, "agree", True, []), result["message"]


def test_coordinates_far_from_their_origin_leave_no_digits(tmp_path):
    file = KINDS / "far_origin.py"
    code, result = answer_on_a_copy("diagnose", file, tmp_path, "far")
    assert (code, result["verdict"]) == (4, "inconclusive"), result["message"]
    first = result["causes"][0]
    assert (first["code"], first["confidence"], first["kernel"]) == ("precision_floor", "likely", "misses")
    assert "way = stake[s] - fixed[f]" in file.read_text().splitlines()[first["line"] - 1]
    assert "neighbouring numbers are 0.5 apart" in " ".join(first["evidence"])


@pytest.mark.parametrize("how", ["near", "double", "clock"])
def test_differences_that_keep_their_digits(how, tmp_path):
    """Off their origin, or in float64; and exact ones, of which only the update is rounded away."""
    code, result = answer_on_a_copy("diagnose", KINDS / "far_origin.py", tmp_path, how)
    (cause,) = result["causes"]
    assert (code, result["verdict"], cause["code"]) == (0, "agree", "gradients_correct"), result["message"]
    assert ("rounded away" in " ".join(cause["evidence"])) == (how == "clock")


def test_a_kink_at_differences_of_zero_is_a_kink(tmp_path):
    code, result = answer_on_a_copy("diagnose", KINDS / "far_origin.py", tmp_path, "folded")
    assert (code, result["causes"][0]["code"]) == (4, "nonsmooth_choice"), result["message"]


@pytest.mark.parametrize(
    ("how", "cause", "text"),
    [
        ("twice", "double_count", "tape.backward(cost)  # again"),
        ("thrice", "double_count", "tape.backward(cost)  # again"),
        ("seeded", "double_count", "wp.clone(seed)})  # again"),
        ("apart", "double_count", "tape.backward(second)"),  # the first cost still holds its seed
        ("summand", "unrecorded_operation", "wp.launch(power"),
        ("held", "missing_requires_grad", "return wp.array(np.linspace"),
        ("mixed", "overwrite", "wp.launch(spread"),  # linear, in place: no value enters its adjoint
    ],
)
def test_what_a_recording_is_asked_for(how, cause, text, tmp_path):
    file = KINDS / "one_recording.py"
    code, result = answer_on_a_copy("bisect-steps", file, tmp_path, how)
    assert (code, result["verdict"]) == (1, "disagree"), result["message"]
    first = result["causes"][0]
    assert first["code"] == cause
    assert first["confidence"] == ("proven" if cause == "overwrite" else "likely")
    assert text in file.read_text().splitlines()[first["line"] - 1]
    assert not [c for c in result["causes"] if c["code"] == "warp_defect"]


@pytest.mark.parametrize("how", ["zeroed", "batches"])
def test_what_a_recording_may_be_asked_for(how, tmp_path):
    """Backward twice, zeroed in between; batches that are seeded alike, which hand nothing on to each other."""
    code, result = answer_on_a_copy("bisect-steps", KINDS / "one_recording.py", tmp_path, how)
    assert (code, result["verdict"], result["causes"]) == (0, "agree", []), result["message"]
    assert result["horizon"]["full"]
