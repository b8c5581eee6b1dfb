"""What each program of examples/ is about and where tests/make_truths.py looks. No measured number is written here."""

EXAMPLES = {}


def example(
    folder, cause, begin, got, *, lines, symptom, repair, first="broken", others=("repaired", "lookalike"), **more
):
    """A folder: `first` has the cause, the `others` are right.

    begin: the line before which an iteration begins, and its parameters: ("start of line", "name=array").
    got: the line after which their gradients are taken (before it, if it is written "<line").
    Either may be a dictionary of these by program; the programs that it does not name are as `first`.
    losses: more insertions for all programs, that say what the objective is.
    more: other entries for all programs of the folder, as make_truths.py reads them, or, by a program's name, for one.
    """
    losses = more.pop("losses", [])
    single = {name: more.pop(name, {}) for name in (first, *others)}
    for name in (first, *others):
        script, bad = f"{name}.py", name == first
        begins, gots = (t.get(name, t.get(first)) if isinstance(t, dict) else t for t in (begin, got))
        where = "before" if gots[0].startswith("<") else "after"
        EXAMPLES[f"{folder}/{name}"] = {
            "cause": cause if bad else "gradients_correct",
            "symptom": symptom if bad else "none",
            "repair": repair if bad else "none",
            "lines": [(script, text) for text in lines] if bad else [],
            "run": {"script": script},
            "inserts": {
                script: [
                    ("before", begins[0], f"begin_({begins[1]})"),
                    *losses,
                    (where, gots[0].lstrip("<"), f"got_({gots[1]})"),
                ]
            },
            **more,
            **single[name],
        }


example(
    "buffer_reuse",
    "overwrite",
    begin={
        "broken": ("dish.mismatch.zero_()", "rates=dish.rates"),
        "lookalike": ("dish.mismatch.zero_()", "drops=dish.drops"),
    },
    got={"broken": ("step = dish.rates.grad", "rates=step"), "lookalike": ("step = dish.drops.grad", "drops=step")},
    lines=["wp.launch(grow", "now, then = then, now"],
    symptom="the fit oscillates",
    repair="one array per step instead of two that are swapped",
)
example(
    "frame_truncation",
    "truncation",
    begin=("stiffness.grad.zero_()", "stiffness=stiffness"),
    got=("gradient = stiffness.grad", "stiffness=gradient"),
    lines=["with wp.Tape() as tape:"],
    steps=[0.1, 0.03],
    symptom="the fit creeps",
    repair="one tape around all frames",
)
example(
    "missing_requires_grad",
    "missing_requires_grad",
    begin=("cost.zero_()", "flow=flow"),
    got=("slope = flow.grad", "flow=slope"),
    lines=["temperature = wp.empty"],
    symptom="the loss rises in every iteration",
    repair="requires_grad=True for temperature",
)
example(
    "diverging_but_correct",
    "gradients_correct",
    begin=("self.loss.zero_()", "burn=self.burn"),
    got=("<self.burn.assign(", "burn=self.burn.grad"),
    lines=[],
    symptom="the loss grows in every iteration",
    repair="a smaller learning rate; the gradient is right",
    first="train",
    others=("repaired",),
)
example(
    "accumulator_reset",
    "accumulator_reset",
    begin=("loss = wp.zeros(", "stiffness=stiffness"),
    got=("slope = stiffness.grad", "stiffness=slope"),
    lines=["force.zero_()"],
    steps=[0.3, 0.1],
    symptom="the loss falls less steeply than the gradient promises",
    repair="a force array for each step",
)
example(
    "backward_disabled",
    "backward_disabled",
    begin=("loss = wp.zeros(", "leaves=leaves"),
    got=("change = leaves.grad", "leaves=change"),
    lines=["@wp.kernel(enable_backward=False)", "wp.launch(shade"],
    symptom="the crown only ever grows and the loss rises",
    repair="the backward pass of shade enabled",
)
example(
    "unrecorded_operation",
    "unrecorded_operation",
    begin=("loss = wp.zeros(", "dose=dose"),
    got=("worth = dose.grad", "dose=worth"),
    lines=["warp.utils.array_sum("],
    symptom="the penalty on the total is never felt, the loss rises",
    repair="a kernel that adds up",
)
example(
    "host_round_trip",
    "host_round_trip",
    begin=("loss = wp.zeros(", "burner=burner"),
    got=("slope = burner.grad", "burner=slope"),
    lines=["mixed = np.convolve(", "air.assign(mixed)"],
    symptom="the fit creeps",
    repair="the mixing as a kernel",
)
example(
    "inplace_muldiv",
    "inplace_muldiv",
    begin={"broken": ("loss = wp.zeros(", "tint=tint"), "lookalike": ("loss = wp.zeros(", "current=current")},
    got={"broken": ("slope = tint.grad", "tint=slope"), "lookalike": ("slope = current.grad", "current=slope")},
    lines=["light[c] *= tint", "wp.launch(through"],
    symptom="the first panes come out too dark",
    repair="the product in another array",
)
example(
    "component_reassignment",
    "component_reassignment",
    begin=("loss = wp.zeros(", "shape=shape"),
    got=("slope = shape.grad", "shape=slope"),
    lines=["push[0] = -shape", "push[2] = push[2] + shape", "push[2] = push[2] - shape", "wp.launch(glide"],
    steps=[0.001, 0.0003],
    symptom="Newton's method overshoots: the slope is up to twice what it should be",
    repair="the vector built once",
)
example(
    "dynamic_loop",
    "dynamic_loop",
    begin={"broken": ("loss = wp.zeros(", "survival=survival"), "lookalike": ("loss = wp.zeros(", "gain=gain")},
    got={"broken": ("slope = survival.grad", "survival=slope"), "lookalike": ("slope = gain.grad", "gain=slope")},
    lines=["for year in range(age[c]):", "left = left * survival[year]", "wp.launch(survivors"],
    symptom="a derivative by hand has other numbers",
    repair="a constant bound, which Warp unrolls",
)
example(
    "stale_gradient",
    "stale_gradient",
    begin={
        "broken": ("loss = wp.zeros(", "scale=scale, wetting=wetting"),
        "lookalike": ("scale.grad.zero_()", "scale=scale, wetting=wetting"),
    },
    got=("d_scale, d_wetting = ", "scale=d_scale, wetting=d_wetting"),
    lines=["tape.zero()", "tape.backward(loss)", "d_scale, d_wetting ="],
    iteration=1,
    symptom="the first update is right, then the fit swings",
    repair="tape.zero() after the update",
)
example(
    "singular_point",
    "singular_point",
    begin={"broken": ("loss = wp.zeros(", "start=start"), "lookalike": ("loss = wp.zeros(", "opening=opening")},
    got={"broken": ("slope = start.grad", "start=slope"), "lookalike": ("slope = opening.grad", "opening=slope")},
    lines=["through[g] = opening", "wp.launch(flow"],
    symptom="NaN in the first iteration, although every level is finite",
    repair="a flow law that is smooth at no head",
)
example(
    "double_count",
    "double_count",
    begin={"broken": ("loss.zero_()", "wool=wool"), "lookalike": ("loss = wp.zeros(", "wool=wool")},
    got=("slope = wool.grad", "wool=slope"),
    lines=["with tape:", "tape.backward(loss)"],
    iteration=1,
    symptom="the first update is right, then the loss explodes",
    repair="tape.reset() before it is entered again",
)
example(
    "seed_mismatch",
    "seed_mismatch",
    begin=("tape = wp.Tape()", "delay=delay"),
    got=("slope = delay.grad", "delay=slope"),
    lines=["tape.backward(grads=", "weight = wp.array("],
    objective="misfit.numpy() @ WEIGHTS",
    losses=[("before", "slope = delay.grad", "loss_(misfit.numpy() @ WEIGHTS)")],
    broken={"iteration": 1},
    symptom="it learns once, and never again",
    repair="a fresh seed for each backward",
)
example(
    "tape_scope",
    "tape_scope",
    begin=("tape = wp.Tape()", "brake=brake"),
    got=("slope = brake.grad", "brake=slope"),
    lines=["for state in states:", "wp.launch(rewind", "with tape:"],
    symptom="the loss explodes, the gradient is the same in each iteration",
    repair="the rewinding behind backward",
)
example(
    "unconverged_solver",
    "unconverged_solver",
    begin=("loss = wp.zeros(", "conductivity=conductivity"),
    got=("slope = conductivity.grad", "conductivity=slope"),
    lines=["SWEEPS = 4", "for _ in range(SWEEPS):", "wp.launch(sweep"],
    symptom="it fits, and the conductivities are wrong",
    repair="sweeps until nothing moves",
)
example(
    "nonsmooth_choice",
    "nonsmooth_choice",
    begin=("loss = wp.zeros(", "height=height"),
    got=("slope = height.grad", "height=slope"),
    lines=["most = wp.max(", "wp.launch(brightest"],
    broken={"verdict": "inconclusive"},
    symptom="mirror images of each other get different gradients",
    repair="a smooth maximum",
)
example(
    "where_overflow",
    "where_overflow",
    begin=("loss = wp.zeros(", "law=law"),
    got=("slope = law.grad", "law=slope"),
    lines=["exponential = law", "amps[p] = wp.where", "wp.launch(diode, POINTS, inputs=[law, volts], outputs=[amps])"],
    steps=[0.001, 0.0003],
    symptom="NaN in the first iteration, although every current is finite",
    repair="the exponent limited in the branch that is not taken",
)
example(
    "piecewise_constant",
    "piecewise_constant",
    begin=("loss = wp.zeros(", "exposure=exposure"),
    got=("slope = exposure.grad", "exposure=slope"),
    lines=["grey[f, p] = wp.round", "wp.launch(expose"],
    broken={"steps": [1e-5, 3e-6], "verdict": "not_disagree"},
    symptom="all gradients are exactly zero",
    repair="the grey before rounding as a surrogate",
)
example(
    "stochastic_forward",
    "stochastic_forward",
    begin=("loss = wp.zeros(", "paint=paint"),
    got=("slope = paint.grad", "paint=slope"),
    lines=["shuffle = time", "wp.launch(wander", "dice = wp.rand_init"],
    broken={"verdict": "inconclusive"},
    symptom="the loss jumps about, and no two runs are alike",
    repair="a fixed seed",
    others=("repaired",),
)
example(
    "precision_floor",
    "precision_floor",
    begin=("loss = wp.zeros(", "shift=shift"),
    got=("slope = shift.grad", "shift=slope"),
    lines=["wp.atomic_add(loss, 0, 2.5e6", "wp.launch(bill"],
    broken={"steps": [400.0, 200.0], "verdict": "not_disagree"},
    symptom="the printed loss does not move, and a finite-difference check finds zero",
    repair="the constant left out",
    note="the objective is quadratic, so large steps give the derivative; one ulp of it is 1",
    others=("repaired",),
)
example(
    "chaotic_horizon",
    "chaotic_horizon",
    begin=("loss = wp.zeros(", "start=start"),
    got=("slope = start.grad", "start=slope"),
    lines=["DAYS = 40", "wp.launch(a_day", "for before, after"],
    broken={"steps": [1e-8, 3e-9], "verdict": "not_disagree"},
    symptom="gradients of 1e7 that change sign from step to step",
    repair="a shorter horizon",
    others=("repaired",),
)
example(
    "custom_gradient",
    "custom_gradient",
    begin=("loss = wp.zeros(", "law=law"),
    got=("slope = law.grad", "law=slope"),
    lines=[
        "wp.adjoint[binding] +=",
        "def adj_turnover",
        "@wp.func_grad(turnover)",
        "wp.adjoint[substrate] +=",
        "wp.launch(react",
    ],
    symptom="the fit converges to a binding constant that another program does not find",
    repair="the sign of the derivative by the binding constant",
)
example(
    "replay_side_effect",
    "replay_side_effect",
    begin=("loss = wp.zeros(", "gain=gain"),
    got=("slope = gain.grad", "gain=slope"),
    lines=["return wp.atomic_add(count", "place = next_place(", "wp.launch(collect"],
    symptom="all gradients are exactly zero",
    repair="a replay function that returns the place found in the forward pass",
)
example(
    "native_without_adjoint",
    "native_without_adjoint",
    begin=("loss = wp.zeros(", "speaker=speaker"),
    got=("slope = speaker.grad", "speaker=slope"),
    lines=["@wp.func_native(", "def lorentz", "loud[t] = lorentz", "wp.launch(loudness, TONES, inputs=[speaker"],
    symptom="the damping never moves",
    repair="adj_snippet",
)
example(
    "warp_defect",
    "warp_defect",
    begin=("loss = wp.zeros(", "star=star"),
    got=("slope = star.grad", "star=slope"),
    lines=["phase = wp.frac(", "wp.launch(light_curve, NIGHTS, inputs=[star"],
    steps=[0.001, 0.0003],
    symptom="the period never moves",
    repair="x - wp.floor(x) instead of wp.frac(x)",
)
example(
    "does_not_run",
    "does_not_run",
    begin=("loss = wp.zeros(", "trim=trim"),
    got=("slope = trim.grad", "trim=slope"),
    lines=["wp.launch(sail"],
    parameter="trim",
    symptom="it stops with an error",
    repair="single precision for the wind",
    others=("repaired",),
)
