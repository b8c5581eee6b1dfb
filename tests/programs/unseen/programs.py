"""What each program is about and where tests/make_truths.py looks. No measured number is written here."""

PROGRAMS = {}


def program(name, **entry):
    if isinstance(entry["inserts"], list):
        script = entry.get("run", {"script": "main.py"})["script"]
        entry["inserts"] = {script: entry["inserts"]}
    PROGRAMS[name] = entry


# ---------------------------------------------------------------- structs, files, packages, arguments

program(
    "still_column",
    cause="overwrite",
    parameter="self.col.heater",
    lines=["wp.launch(exchange"],
    inserts=[
        ("before", "self.fill()", "begin_(heater=self.col.heater)"),
        ("after", "slope = self.col.heater.grad", "got_(heater=slope)"),
    ],
    symptom="the gradient is some percent off, so a quasi-Newton method stalls; no warning",
    repair="one Fluid per tick, or a boil kernel whose inputs are not rewritten by exchange",
    teaches="the overwritten arrays are fields of a nested struct",
)
program(
    "greenhouse",
    cause="gradients_correct",
    parameter=["controls.vent", "controls.mist"],
    inserts=[
        ("before", "hours = [Hour(0.2", "begin_(vent=controls.vent, mist=controls.mist)"),
        ("before", "opt.step(", "got_(vent=controls.vent.grad, mist=controls.mist.grad)"),
    ],
    symptom="none: the user suspects the nested structs",
    repair="none",
    teaches="nested structs, a fresh state per hour, Adam over two parameters inside a struct",
)
program(
    "rover",
    cause="accumulator_reset",
    parameter="rover.damping",
    lines=[("model.py", "self.force.zero_()")],
    inserts=[
        ("before", "with wp.Tape() as tape:", "begin_(damping=rover.damping)"),
        ("after", "grad = rover.damping.grad", "got_(damping=grad)"),
    ],
    symptom="the first update throws the dampers from 1 to 20 and one of them below zero",
    repair="clear the force with a kernel, or a force array per step",
    teaches="the fault is in an imported module",
)
program(
    "kite",
    cause="gradients_correct",
    parameter="self.wind",
    inserts={
        "train.py": [
            ("before", "tape = wp.Tape()", "begin_(wind=self.wind)"),
            ("before", "guess = self.wind.numpy()", "got_(wind=self.wind.grad)"),
        ]
    },
    symptom="none: one force array serves all ticks and looks suspicious",
    repair="none",
    teaches="the shared force array is cleared by a kernel on the tape, which is right",
)
program(
    "peatbog",
    run={"module": "peat.train"},
    cause="truncation",
    parameter="params",
    lines=[("peat/train.py", "tape = wp.Tape()"), ("peat/train.py", "theta = wp.clone(end")],
    inserts={
        "peat/train.py": [
            ("before", "g = np.zeros(2)", "begin_(params=params)"),
            ("before", "params.assign(", "got_(params=g)"),
        ]
    },
    symptom="each week's gradient is right; the fit converges to wrong values, slowly",
    repair="one tape for all weeks, or carry the adjoint of theta from week to week",
    teaches="several windows in one iteration, summed by hand",
)
program(
    "quarry",
    run={"module": "quarry.train"},
    args=["--batch", "10", "--epochs", "5"],
    cause="gradients_correct",
    parameter="coef",
    inserts={
        "quarry/train.py": [
            ("before", "running = 0.0", "begin_(coef=coef)"),
            ("before", "sgd.step(", "got_(coef=coef.grad)"),
        ]
    },
    symptom="none: several backward calls before one step, no zero between them",
    repair="none",
    teaches="accumulation over mini-batches whose sum is the objective",
)
program(
    "loudspeaker",
    cause="double_count",
    args=["--sweeps", "6"],
    iteration=1,
    parameter="part",
    lines=["with tape:"],
    inserts=[
        ("before", "out.zero_()", "begin_(part=part)"),
        ("after", "dp = part.grad", "got_(part=dp)"),
    ],
    symptom="first sweep right, then the gradient is 2x, 3x, ... the true one",
    repair="tape.reset() before the with, or a new Tape per sweep",
)
program(
    "tuning_fork",
    cause="gradients_correct",
    args=["-n", "6"],
    iteration=1,
    parameter="p",
    inserts=[
        ("before", "tape.reset()", "begin_(p=p)"),
        ("before", "values -= lr", "got_(p=p.grad)"),
    ],
    symptom="none: one tape for all iterations, the parameter is changed through a NumPy view",
    repair="none",
)
program(
    "sunflower",
    cause="missing_requires_grad",
    parameter=["table", "angle"],
    lines=["radius = table.flatten()", "table.requires_grad = True"],
    inserts=[
        ("before", "cost.zero_()", "begin_(table=table, angle=angle)"),
        ("after", "d_angle = angle.grad", "got_(table=d_table, angle=d_angle)"),
    ],
    symptom="the cost falls for a few generations and then rises: the head shrinks although crowding should push the seeds apart; the angle's gradient is right",
    repair="requires_grad=True when the array is created, before a view of it is taken",
)

# ---------------------------------------------------------------- how the gradient is read and used

program(
    "ferry",
    cause="stale_gradient",
    parameter="rudder",
    lines=["g = rudder.grad.numpy()", "tape.zero()"],
    inserts=[
        ("before", "tape = wp.Tape()", "begin_(rudder=rudder)"),
        ("before", "rudder.assign(", "got_(rudder=g)"),
    ],
    symptom="the rudder never moves; the gradient printed in a debugger just after backward is fine",
    repair="g = rudder.grad.numpy().copy(), or tape.zero() after the update",
    teaches="on the CPU .numpy() is a live view, which tape.zero() clears",
)
program(
    "violin",
    cause="gradients_correct",
    iteration=1,
    parameter="mass",
    inserts=[
        ("before", "u = wp.array(pluck", "begin_(mass=mass)"),
        ("before", "mass.numpy()[...]", "got_(mass=mass.grad)"),
    ],
    symptom="none: the whole history lives in one 2-D array, the update goes through a NumPy view",
    repair="none",
)
program(
    "glacier",
    cause="stale_gradient",
    parameter="self.friction",
    lines=["direction = np.array(self.friction.grad.numpy())"],
    inserts=[
        ("before", "J = wp.zeros(1", "begin_(friction=self.friction)"),
        ("after", "self.friction.grad.zero_()", "direction_ = direction"),
        ("before", "self.friction.assign(", "got_(friction=direction_)"),
    ],
    symptom="the first iteration changes nothing, later ones follow the gradient of the iteration before",
    repair="read the gradient after backward",
    note="iteration 1 happens to be right: the zero gradient of iteration 0 left the parameter where it was; from iteration 2 on it is wrong again",
)
program(
    "beehive",
    cause="stale_gradient",
    parameter="bee",
    lines=["tape.zero()"],
    inserts=[
        ("before", "comb = wp.zeros", "begin_(bee=bee)"),
        ("before", "wp.launch(walk", "got_(bee=bee.grad)"),
    ],
    symptom="the bees never move",
    repair="tape.zero() after the walk kernel",
    teaches="the gradient is consumed by a user kernel outside the tape",
)
program(
    "telescope",
    cause="seed_mismatch",
    parameter="tilt",
    objective="err.numpy().mean()",
    lines=["tape.backward(grads={err: wp.ones("],
    inserts=[
        ("before", "pixel = wp.zeros(", "begin_(tilt=tilt)"),
        ("after", "mse = float(", "loss_(mse)"),
        ("after", "g = tilt.grad.numpy()", "got_(tilt=g)"),
    ],
    symptom="the reported mse rises from 0.1 to 2.2; a learning rate 20 times smaller works",
    repair="seed with 1/PIXELS, or a mean kernel on the tape",
    note="against the sum of err, which is what backward was given, the gradient agrees; against the reported mean it is exactly 20x",
)
program(
    "tide_gauge",
    cause="gradients_correct",
    parameter=["tides.amplitude", "tides.phase"],
    objective="sq.numpy().mean()",
    inserts=[
        ("before", "sq = wp.zeros(", "begin_(amplitude=tides.amplitude, phase=tides.phase)"),
        ("after", "tape.backward(", "got_(amplitude=tides.amplitude.grad, phase=tides.phase.grad)"),
    ],
    symptom="none: there is no scalar loss, backward is seeded with 1/N per residual",
    repair="none",
)
program(
    "bakery",
    cause="gradients_correct",
    parameter="oven",
    objective="(weight * score.numpy()).sum()",
    inserts=[
        ("before", "core = wp.zeros(", "begin_(oven=oven)"),
        ("after", "complaint = float(", "loss_(complaint)"),
        ("before", "heat = oven.numpy()", "got_(oven=oven.grad)"),
    ],
    symptom="none: the seed is written into score.grad, backward() has no argument; the update is clipped",
    repair="none",
)
program(
    "carousel",
    cause="seed_mismatch",
    iteration=1,
    parameter="offset",
    objective="felt.numpy().sum()",
    lines=["felt = wp.zeros(", "everyone = wp.ones(", "tape.backward(grads={felt: everyone})"],
    inserts=[
        ("before", "tape = wp.Tape()", "begin_(offset=offset)"),
        ("before", "tape.backward(", "loss_(felt)"),
        ("after", "push = offset.grad", "got_(offset=push)"),
    ],
    symptom="the first turn improves, all later ones have a zero gradient",
    repair="a fresh seed array for every backward, or requires_grad=True for felt",
    teaches="where the seeded array has no gradient, Warp makes the seed array its gradient buffer, and the adjoint of a plain store empties it",
)
program(
    "harp",
    cause="double_count",
    parameter="tension",
    lines=["freq = wp.zeros(", "play()"],
    inserts=[
        ("before", "total = wp.zeros(1", "begin_(tension=tension)"),
        ("after", "turn = tension.grad", "got_(tension=turn)"),
    ],
    symptom="gradient exactly twice the true one",
    repair="launch pitch once, or drop retain_grad",
)

# ---------------------------------------------------------------- inside the kernels

program(
    "snowpack",
    cause="backward_disabled",
    parameter="par",
    lines=["@wp.kernel(enable_backward=False)"],
    inserts=[
        ("before", "par = wp.array(p", "begin_(par=p)"),
        ("after", "tape.backward(", "got_(par=par.grad)"),
    ],
    symptom="the fit creeps: what the discharge record says about the melt does not count",
    repair="enable the backward pass of route",
    teaches="the parameter is rebuilt from NumPy each iteration; one path of two is severed",
)
program(
    "paint_shop",
    cause="inplace_muldiv",
    parameter="pigment",
    lines=["light[b] *="],
    inserts=[
        ("before", "with wp.Tape() as tape:", "begin_(pigment=pigment)"),
        ("before", "pigment.assign(", "got_(pigment=pigment.grad)"),
    ],
    symptom="the colour gets near the swatch, slowly; all gradients too small",
    repair="write into a new array: out[b] = light[b] * t",
)
program(
    "prism",
    cause="component_reassignment",
    parameter="apex",
    lines=["b[0] = b[0]", "b[1] = b[1] +", "b[2] = b[2]", "b[1] = b[1] /"],
    inserts=[
        ("before", "loss.zero_()", "begin_(apex=apex)"),
        ("after", "nudge = apex.grad", "got_(apex=nudge)"),
    ],
    symptom="the first adjustment turns a prism by more than 2 rad and the spread doubles",
    repair="scalars for the components, one vec3 constructed at the end",
)
program(
    "wood_joint",
    cause="dynamic_loop",
    parameter="peg",
    lines=["all_break = all_break *"],
    inserts=[
        ("before", "failure = wp.zeros(1", "begin_(peg=peg)"),
        ("after", "tape.backward(", "got_(peg=peg.grad)"),
    ],
    symptom="the gradient of most pegs is off, the more the earlier they stand in the loop",
    repair="sum logarithms, or make count a compile-time constant",
)
program(
    "pollen",
    cause="stale_gradient",
    iteration=1,
    parameter="strength",
    lines=["wp.copy(today, strength)", "strength.grad.zero_()"],
    inserts=[
        ("before", "air = wp.zeros(", "begin_(strength=strength)"),
        ("after", "ds = strength.grad", "got_(strength=ds)"),
    ],
    symptom="first day right, later ones too large, though the gradient is zeroed in every iteration",
    repair="zero the gradient before the forward pass: wp.copy also copies the gradient, so the old one of strength reaches today.grad",
)
program(
    "dune",
    cause="where_overflow",
    parameter="wind",
    lines=["creeping = wp.exp(", "q[s] = wp.where("],
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(wind=wind)"),
        ("after", "gradient = wind.grad", "got_(wind=gradient)"),
    ],
    symptom="NaN gradient at the windiest station in the first iteration, loss finite",
    repair="clamp the exponent of the branch that is not selected, or if/else",
)
program(
    "sail",
    cause="custom_gradient",
    parameter="regatta.trim",
    lines=["wp.adjoint[a] +="],
    inserts=[
        ("before", "tape = wp.Tape()", "begin_(trim=regatta.trim)"),
        ("after", "change = regatta.trim.grad", "got_(trim=change)"),
    ],
    symptom="trims grow past the best lift",
    repair="the quotient rule: 5/q - 80 a^2/q^2",
)

# ---------------------------------------------------------------- what is on the tape and what is not

program(
    "wells",
    cause="overwrite",
    parameter="logT",
    lines=["check = float(aquifer.run("],
    inserts=[
        ("before", "tape = wp.Tape()", "begin_(logT=logT)"),
        ("after", "train = float(", "loss_(train)"),
        ("after", "g = logT.grad", "got_(logT=g)"),
    ],
    objective="train",
    symptom="the fitted misfit falls for some iterations, then rises; without the line that prints the held-back misfit it falls",
    repair="backward before the check run, or own arrays for it",
    teaches="the overwrite happens outside the tape, after it closed",
    note="when backward is called, the loss array holds the value of the check run: take the objective when the tape closes",
)
program(
    "brine",
    cause="unrecorded_operation",
    parameter="rate",
    lines=["wp.utils.array_sum("],
    inserts=[
        ("before", "total = wp.zeros(1", "begin_(rate=rate)"),
        ("after", "step = rate.grad", "got_(rate=step)"),
    ],
    symptom="all rates fall and the objective rises: the demand is not seen",
    repair="sum with an atomic_add kernel",
)
program(
    "orchard",
    cause="host_round_trip",
    parameter="handle",
    lines=["pumped = wp.array(smooth("],
    inserts=[
        ("before", "flow = wp.zeros(", "begin_(handle=handle)"),
        ("before", "handle.assign(", "got_(handle=handle.grad)"),
    ],
    symptom="only the small cost of turning the handles is minimised",
    repair="smooth in a kernel",
)
program(
    "campfire",
    cause="stale_gradient",
    iteration=1,
    parameter=["angle", "heat"],
    lines=["tape.zero()"],
    inserts=[
        ("before", "warmth = wp.zeros(", "begin_(angle=angle, heat=heat)"),
        ("before", "optimizer.step(", "got_(angle=angle.grad, heat=heat.grad)"),
    ],
    symptom="improves at first, then oscillates with growing swings",
    repair="tape.zero() after the step; a fresh tape that has not run backward yet has nothing to zero",
)

# ---------------------------------------------------------------- correct ones

program(
    "marbles",
    cause="gradients_correct",
    verdict="not_disagree",
    parameter="throw",
    steps=[0.001, 0.0003],
    inserts=[
        ("before", "roll = [Marbles(begin", "begin_(throw=throw)"),
        ("before", "throw.assign(", "got_(throw=throw.grad)"),
    ],
    symptom="none: contacts switch on and off, large difference steps cross them",
    repair="none",
)
program(
    "rope_bridge",
    cause="gradients_correct",
    parameter="pre",
    inserts=[
        ("before", "ys = [wp.zeros(", "begin_(pre=pre)"),
        ("before", "optimizer.step(", "got_(pre=pre.grad)"),
    ],
    symptom="none: a custom gradient that is right",
    repair="none",
)
program(
    "estuary",
    cause="gradients_correct",
    parameter="release",
    inserts=[
        ("before", "sse.zero_()", "begin_(release=release)"),
        ("before", "salt = release.numpy()", "got_(release=release.grad)"),
    ],
    symptom="none: two work arrays are swapped in every step, but the step is linear in them",
    repair="none",
    teaches="an overwrite that does no harm",
)
program(
    "sensor_drift",
    cause="gradients_correct",
    parameter="par",
    inserts=[
        ("before", "pick = np.random.choice(", "begin_(par=par)"),
        ("after", "tape.backward(", "got_(par=par.grad)"),
    ],
    symptom="none: unseeded np.random in every iteration",
    repair="none",
    note="the readings are drawn anew in every run: the numbers here are of one run; the loss printed is per reading",
)
program(
    "photons",
    cause="gradients_correct",
    parameter="self.density",
    inserts=[
        ("before", "self.shots += 1", "begin_(density=self.density)"),
        ("before", "new = self.density.numpy()", "got_(density=self.density.grad)"),
    ],
    symptom="none: new random numbers on the device in every step, the parameter is a new array each time",
    repair="none",
)
program(
    "reactor64",
    cause="gradients_correct",
    parameter="lnk",
    inserts=[
        ("before", "chi2 = wp.zeros(1", "begin_(lnk=lnk)"),
        ("after", "g = lnk.grad", "got_(lnk=g)"),
    ],
    symptom="none: float64, reads a file, writes a checkpoint in every iteration",
    repair="none",
)
program(
    "attitude",
    cause="gradients_correct",
    parameter=["q", "lens"],
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(q=q, lens=lens)"),
        ("after", "tape.backward(", "got_(q=q.grad, lens=lens.grad)"),
    ],
    symptom="none: a quaternion and a matrix as parameters",
    repair="none",
)
program(
    "mosaic",
    cause="gradients_correct",
    parameter="patch",
    inserts=[
        ("before", "tape = wp.Tape()", "begin_(patch=patch)"),
        ("before", "patch.assign(", "got_(patch=patch.grad)"),
    ],
    symptom="none: the parameter is a slice of the array on the tape; the forward pass also runs outside the tape",
    repair="none",
)
program(
    "tram",
    cause="gradients_correct",
    parameter="throttle",
    inserts=[
        ("before", "s = wp.zeros(", "begin_(throttle=throttle)"),
        ("before", "total = wp.zeros(1", "got_(throttle=throttle.grad)"),
    ],
    symptom="none: the gradient is clipped in place before the update kernel",
    repair="none",
    note="autodiff here is the gradient before clipping; what the update kernel takes is this scaled to norm 1",
)
program(
    "pipes",
    cause="gradients_correct",
    parameter="length",
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(length=length)"),
        ("after", "tape.backward(", "got_(length=length.grad)"),
    ],
    symptom="none: a dynamic loop that only adds, *= on local scalars, torch not installed",
    repair="none",
)
program(
    "shooting",
    cause="gradients_correct",
    parameter="rate",
    inserts=[
        ("before", "sse = 0.0", "begin_(rate=rate)"),
        ("before", "rate.assign(", "got_(rate=rate.grad)"),
    ],
    symptom="none: a tape per year, but each year starts from data, so nothing is cut",
    repair="none",
    teaches="windows that are not a truncation",
)
program(
    "accretion",
    cause="gradients_correct",
    parameter="drive",
    inserts=[
        ("before", "x = wp.zeros(BEADS", "begin_(drive=drive)"),
        ("before", "drive.assign(", "got_(drive=drive.grad)"),
    ],
    symptom="none: state advanced in place with +=, linear",
    repair="none",
)
program(
    "ice_core",
    cause="gradients_correct",
    parameter="snow",
    objective="misfit.numpy().sum()",
    inserts=[
        ("before", "kept = [wp.zeros(", "begin_(snow=snow)"),
        ("before", "tape.backward(misfit)", "loss_(misfit)"),
        ("before", "snow.assign(", "got_(snow=snow.grad)"),
    ],
    symptom="none: six tapes and six backward calls in one iteration, boundary adjoints carried by hand",
    repair="none",
    teaches="windows with carried state that are right: segments computed again, adjoint handed on",
    note="the backward calls with grads= carry adjoints, not losses: the objective is misfit alone",
)
program(
    "drumhead",
    cause="gradients_correct",
    parameter="tension",
    inserts=[
        ("before", "z = wp.array(strike", "begin_(tension=tension)"),
        ("before", "velocity = 0.8", "got_(tension=tension.grad)"),
    ],
    symptom="none: Warp warns about enable_backward=False, but that kernel only feeds a printed energy; momentum by hand",
    repair="none",
    note="the first row of the parameter has the gradient of the penalty only, which is zero in the first iteration",
    iteration=1,
)
program(
    "lantern",
    cause="gradients_correct",
    parameter="holes",
    inserts=[
        ("before", "light = wp.zeros(", "begin_(holes=holes)"),
        ("after", "g = holes.grad", "got_(holes=g)"),
    ],
    iteration=1,
    symptom="none: retain_grad without a repeated launch, weight decay in the update, the parameter is cloned",
    repair="none",
)
program(
    "vineyard",
    cause="gradients_correct",
    parameter=['params["base"]', 'params["gain"]'],
    objective="mean_loss",
    inserts=[
        ("before", "visited = random.sample(", "begin_(base=params['base'], gain=params['gain'])"),
        ("before", "mean_loss += float(", "loss_(loss.numpy() / len(groups))"),
        ("after", "mean = {name", "got_(**mean)"),
    ],
    symptom="none: the update divides by the number of groups, as the reported mean does",
    repair="none",
    teaches="Python reseeds the random module in a forked child (os.register_at_fork in random.py): its state has to be put back",
    note="against the sum of what backward was given the consumed gradient is 1/2; against the reported mean it is right",
)
program(
    "bracket",
    cause="gradients_correct",
    parameter="self.area",
    inserts=[
        ("before", "tape = wp.Tape()", "begin_(area=self.area)"),
        ("after", "g = self.area.grad", "got_(area=g)"),
    ],
    symptom="none: a line search changes the parameter several times and runs the forward pass outside the tape",
    repair="none",
    note="from iteration 3 on it has converged: the gradient is so small that differences in single precision are noise",
)
program(
    "foundry",
    cause="overwrite",
    parameter="sand",
    lines=["view[t + 1, 0] = 1.0", "view[t + 1, -1] ="],
    inserts=[
        ("before", "err = wp.zeros(1", "begin_(sand=sand)"),
        ("before", "sand.assign(", "got_(sand=sand.grad)"),
    ],
    symptom="the loss falls, but in a direction that is far from steepest descent",
    repair="boundary conditions in the kernel",
    teaches="the state is written through a NumPy view inside the tape",
)
program(
    "polarimeter",
    cause="seed_mismatch",
    parameter="angle",
    objective="figure.numpy().sum()",
    lines=["tape.backward(figure, grads="],
    inserts=[
        ("before", "beam = [light]", "begin_(angle=angle)"),
        ("before", "tape.backward(figure", "loss_(figure)"),
        ("after", "turn_by = angle.grad", "got_(angle=turn_by)"),
    ],
    symptom="the figure of merit jumps about at a learning rate that is well below its limit",
    repair="tape.backward(figure) alone: seeding linear as well adds the gradient of the sum, 5 of the mean's",
    note="the gradient is that of the mean plus the sum, so 6x",
)
program(
    "cloud_chamber",
    cause="replay_side_effect",
    parameter="field",
    lines=["slot = wp.atomic_add("],
    inserts=[
        ("before", "hit = wp.zeros(", "begin_(field=field)"),
        ("after", "correction = field.grad", "got_(field=correction)"),
    ],
    symptom="the fit follows a few droplets only",
    repair="write to hit[d] with a mask, or a func_replay that returns the stored slot",
    teaches="in the backward pass the counter is not run again, the slot is 0 for every droplet",
)
program(
    "metronome",
    cause="native_without_adjoint",
    parameter="bob",
    lines=["def period("],
    inserts=[
        ("before", "beat = wp.zeros(3", "begin_(bob=bob)"),
        ("before", "bob.assign(", "got_(bob=bob.grad)"),
    ],
    symptom="the bobs only ever shrink; no warning",
    repair="an adj_snippet, or the formula in Warp's Python",
)
program(
    "caustic",
    cause="overwrite",
    parameter="pool.height",
    lines=["self.screen = wp.array(ptr=", "wp.launch(tone_map"],
    inserts=[
        ("before", "tape, loss = pool.render()", "begin_(height=pool.height)"),
        ("before", "pool.height.assign(", "got_(height=pool.height.grad)"),
    ],
    steps=[0.003, 0.001],
    symptom="the loss sinks slowly; without the line that prints the picture it sinks faster",
    repair="tone-map a copy, or after backward",
    teaches="a second array over the same pointer is written after the tape closed",
)
program(
    "sluice",
    cause="unrecorded_operation",
    parameter="gate",
    lines=["wp.launch(schedule"],
    inserts=[
        ("before", "level = wp.full(", "begin_(gate=gate)"),
        ("before", "gate.assign(", "got_(gate=gate.grad)"),
    ],
    symptom="the gates close, the schedule is ignored",
    repair="launch schedule inside the with",
    teaches="one part of the objective is launched after the tape closed",
)
program(
    "double_arm",
    cause="chaotic_horizon",
    verdict="not_disagree",
    parameter="throw",
    steps=[1e-8, 3e-9],
    inserts=[
        ("before", "s = wp.zeros((STEPS", "begin_(throw=throw)"),
        ("after", "g = throw.grad", "got_(throw=g)"),
    ],
    symptom="the gradient is huge and jumps from attempt to attempt",
    repair="none in the tape: a shorter horizon, or several shots with matching conditions",
    note="in double precision the gradient agrees with differences of 1e-8; larger steps see another branch of the motion",
)
program(
    "thermostat",
    cause="piecewise_constant",
    verdict="not_disagree",
    parameter="switch",
    steps=[1e-4, 3e-5],
    inserts=[
        ("before", "room = wp.full(", "begin_(switch=switch)"),
        ("before", "switch.assign(", "got_(switch=switch.grad)"),
    ],
    symptom="the gradient is exactly zero, nothing changes",
    repair="zero is right: the objective is constant between switching events; a soft switch is a modelling choice",
)
program(
    "seesaw",
    cause="precision_floor",
    verdict="not_disagree",
    parameter="seat",
    steps=[0.5, 0.25],
    inserts=[
        ("before", "energy.zero_()", "begin_(seat=seat)"),
        ("after", "down = seat.grad", "got_(seat=down)"),
    ],
    symptom="the energy does not change in its last digits although the seats move; difference quotients with small steps are garbage",
    repair="none in the tape: leave out the constant, or double precision",
    note="the objective is quadratic, so large steps give the derivative; one ulp of it is 0.25",
)
program(
    "orrery",
    cause="gradients_correct",
    parameter="speed",
    steps=[0.003, 0.001],
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(speed=speed)"),
        ("after", "tape.backward(", "got_(speed=speed.grad)"),
    ],
    symptom="none: backward and update stand inside the with",
    repair="none",
    teaches="a tape that is thrown away may record its own update: harmless",
)
program(
    "relay",
    cause="does_not_run",
    parameter="switch",
    lines=["def wait(switch"],
    inserts=[],
    symptom="CPU kernel build failed with error code -1, and a page of C++",
    repair="rename the kernel's argument: switch is a word of C++, and Warp 1.19 puts argument names into the generated code as they are",
)

# ---------------------------------------------------------------- repairs as text: (file, old, new)

# ---------------------------------------------------------------- written to be answered blind (docs/sweeps.md has the score)

program(
    "vent_stack",
    cause="missing_requires_grad",
    parameter=["stack.power", "stack.opening"],
    lines=["self.draught = wp.zeros("],
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(power=stack.power, opening=stack.opening)"),
        ("after", "steps = [(p, p.grad", "got_(power=stack.power.grad, opening=stack.opening.grad)"),
    ],
    symptom="the power is never changed",
    repair="requires_grad=True for the draught; then the swapped states of flow.rise show, and need an array a tick",
    teaches="two faults: nothing is seen of the second before the first is repaired",
)
program(
    "rudder",
    cause="stale_gradient",
    parameter="rudder",
    lines=[("helm.py", "wp.copy(self.slope"), "optimizer.stage()"],
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(rudder=rudder)"),
        ("before", "optimizer.step()", "got_(rudder=optimizer.slope)"),
    ],
    symptom="the course gets better, but overshoots more and more with a larger rate",
    repair="stage the gradient after backward",
    teaches="the gradient is used one iteration late, by way of a copy on the device",
)
program(
    "canal",
    cause="truncation",
    run={"module": "canal.fit"},
    parameter="rough",
    lines=[("canal/fit.py", "tape.backward(grads="), ("canal/fit.py", "handed = wp.clone(")],
    inserts={
        "canal/fit.py": [
            ("before", "rough.grad.zero_()", "begin_(rough=rough)"),
            ("after", "loss = loss_and_gradient(", "loss_(loss)"),
            ("after", "slope = rough.grad", "got_(rough=slope)"),
        ]
    },
    symptom="the fit is slow",
    repair="hand on the adjoint of the flow as well",
    teaches="checkpointing by hand in float64; one of two adjoints is dropped",
)
program(
    "loom",
    cause="gradients_correct",
    parameter="loom.weights",
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(weights=loom.weights)"),
        ("after", "w, g = loom.weights", "got_(weights=g)"),
    ],
    symptom="none: the user suspects the two cloths that take turns",
    repair="none",
    teaches="tiles; a linear ping-pong whose overwritten values no adjoint needs",
)
program(
    "caterpillar",
    cause="overwrite",
    iteration=1,
    parameter="tension",
    lines=["bodies = [make_body()", "wp.launch(crawl"],
    inserts=[
        ("before", "bodies = [make_body()", "begin_(tension=tension)"),
        ("after", "g = tension.grad", "got_(tension=g)"),
    ],
    symptom="the gradient is a little off, and more so with more strides",
    repair="a body a stride: [make_body() for _ in range(n)] instead of [make_body()] * n",
    teaches="a list of one struct, many times",
)
program(
    "sonar",
    cause="seed_mismatch",
    parameter="depths",
    iteration=1,
    objective="survey.misfit()",
    lines=["wp.launch(subtract", "tape.backward(grads="],
    inserts=[
        ("before", "tape = wp.Tape()", "begin_(depths=depths)"),
        ("after", "misfit = survey.misfit()", "loss_(misfit)"),
        ("after", "slope = depths.grad", "got_(depths=slope)"),
    ],
    symptom="converges, but slower than it should, and oscillates at larger rates",
    repair="subtract after listening: the seed is the residual of the iteration before",
    teaches="a seed that is one iteration old, in float64",
)
program(
    "bellows",
    cause="gradients_correct",
    parameter="valve",
    inserts=[
        ("before", "air = Air(1.0", "begin_(valve=valve)"),
        ("before", "wp.copy(chains[0][2].p", "loss_(loss)"),
        ("after", "g = valve.grad", "got_(valve=g)"),
    ],
    symptom="none: three tapes that hand on all adjoints, and a copy that changes nothing",
    repair="none",
    teaches="a chain of tapes in float64; a read array is written with what it holds",
)
program(
    "drift_net",
    cause="unrecorded_operation",
    parameter="strength",
    lines=[("sea.py", "wp.launch(limit_kernel"), ("sea.py", "def limited(")],
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(strength=strength)"),
        ("after", "g = strength.grad", "got_(strength=g)"),
    ],
    symptom="the gradient is too small",
    repair="record the limiter",
    teaches="a helper in another module does not record by default; the array it writes has a gradient",
)
program(
    "hologram",
    cause="component_reassignment",
    parameter="phase",
    lines=[("optics.py", "c[0] = c[0] + k"), ("optics.py", "c[1] = c[1] + k"), ("optics.py", "c[0] = c[0] * c[1]")],
    inserts=[
        ("before", "screen = wp.zeros(", "begin_(phase=phase)"),
        ("before", "adam.step(", "got_(phase=phase.grad)"),
    ],
    symptom="the contrast gets better and then worse",
    repair="a vector built once",
    teaches="the construct is in a function two modules away from the launch; a fixed loop beside it is innocent",
)
program(
    "trawler",
    cause="gradients_correct",
    parameter=["layers[0].w", "layers[0].b", "layers[1].w", "layers[1].b"],
    inserts=[
        ("before", "for p in parameters:", "begin_(**{str(k): p for k, p in enumerate(parameters)})"),
        (
            "before",
            "optimizer.step(",
            "got_(**{str(k): p.grad for k, p in enumerate(parameters)})",
        ),
    ],
    symptom="none: gradients add up over four backward calls, on purpose",
    repair="none",
    teaches="micro-batches; parameters in structs, given to the optimizer flattened",
)
program(
    "pendula",
    cause="overwrite",
    parameter="spring",
    lines=["state[i] = vec2d(", "wp.launch(advance, N"],
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(spring=spring)"),
        ("after", "slope = spring.grad", "got_(spring=slope)"),
    ],
    symptom="the springs wander off",
    repair="a state array a step",
    teaches="integration in place, in float64 vectors",
)
program(
    "marsh",
    cause="truncation",
    parameter="seep",
    lines=["self.tape.reset()"],
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(seep=seep)"),
        ("after", "g = seep.grad", "got_(seep=g)"),
    ],
    symptom="the gradient is too small by half",
    repair="reset the tape once, at the start",
    teaches="the tape is emptied in the middle of the forward pass",
)

program(
    "juggler",
    cause="stale_gradient",
    parameter="self.v",
    iteration=5,
    lines=["self.descend(rate)", "last = self.history", 'self.history["grad"].append'],
    inserts=[
        ("before", "with wp.Tape() as tape", "begin_(v=self.v)"),
        ("after", "last = self.history", "got_(v=last)"),
    ],
    symptom="overshoots",
    repair="append the gradient before the descent",
    teaches="the gradient is read after the update, and handed on through a list",
)
program(
    "choir",
    cause="double_count",
    parameter="pitch",
    lines=["return loss.numpy()[0]", "value, g = listen(r)", "gradient += g"],
    inserts=[
        ("before", "pitch.grad.zero_()", "begin_(pitch=pitch)"),
        ("before", "pitch.assign(", "got_(pitch=gradient)"),
    ],
    symptom="the first recordings count more than the last ones",
    repair="take the gradient once, after the last recording",
    teaches="every reading of a gradient that itself adds up is added up",
)
program(
    "membrane",
    cause="unconverged_solver",
    parameter="self.load",
    lines=["relax_iters: int", "for _ in range(self.opts.relax_iters)"],
    inserts=[
        ("before", "loss = wp.zeros(1", "begin_(load=self.load)"),
        ("after", "tape.backward(loss)", "got_(load=self.load.grad)"),
    ],
    symptom="the load that was found gives another shape with a finer solver",
    repair="more passes",
    teaches="the count of the passes is a field of a dataclass of options, held by an object",
)

FIXES = {
    "juggler": [
        (
            "main.py",
            """\
            self.descend(rate)
            self.history["grad"].append(self.v.grad.numpy().copy())
""",
            """\
            self.history["grad"].append(self.v.grad.numpy().copy())
            self.descend(rate)
""",
        ),
    ],
    "choir": [
        (
            "main.py",
            "        gradient += g\n",
            "        gradient = g\n",
        ),
    ],
    "rover": [
        (
            "model.py",
            "self.force.zero_()",
            "self.force = wp.zeros(WHEELS, dtype=float, requires_grad=True)",
        ),
    ],
    "loudspeaker": [
        (
            "main.py",
            "    out.zero_()\n",
            "    out.zero_()\n    tape.reset()\n",
        ),
    ],
    "sunflower": [
        (
            "main.py",
            ".reshape(ROWS, COLS), dtype=float)",
            ".reshape(ROWS, COLS), dtype=float, requires_grad=True)",
        ),
        (
            "main.py",
            "table.requires_grad = True\n",
            "",
        ),
    ],
    "ferry": [
        (
            "main.py",
            "g = rudder.grad.numpy()",
            "g = rudder.grad.numpy().copy()",
        ),
    ],
    "glacier": [
        (
            "main.py",
            """\
        direction = np.array(self.friction.grad.numpy())
        self.friction.grad.zero_()
        tape.backward(J)
""",
            """\
        tape.backward(J)
        direction = np.array(self.friction.grad.numpy())
        self.friction.grad.zero_()
""",
        ),
    ],
    "beehive": [
        (
            "main.py",
            """\
    tape.zero()
    wp.launch(walk, BEES, inputs=[bee, bee.grad, 0.05])
""",
            """\
    wp.launch(walk, BEES, inputs=[bee, bee.grad, 0.05])
    tape.zero()
""",
        ),
    ],
    "telescope": [
        (
            "main.py",
            "wp.ones(PIXELS, dtype=float)",
            "wp.full(PIXELS, 1.0 / PIXELS, dtype=float)",
        ),
    ],
    "carousel": [
        (
            "main.py",
            "felt = wp.zeros(RIDERS, dtype=float)",
            "felt = wp.zeros(RIDERS, dtype=float, requires_grad=True)",
        ),
    ],
    "harp": [
        (
            "main.py",
            ", retain_grad=True",
            "",
        ),
    ],
    "snowpack": [
        (
            "main.py",
            "@wp.kernel(enable_backward=False)",
            "@wp.kernel",
        ),
    ],
    "paint_shop": [
        (
            "main.py",
            "pigment: wp.array2d(dtype=float), coat: int):",
            "pigment: wp.array2d(dtype=float), coat: int, through: wp.array(dtype=float)):",
        ),
        (
            "main.py",
            "light[b] *= 1.0 / (1.0 + pigment[coat, b] * pigment[coat, b])",
            "through[b] = light[b] / (1.0 + pigment[coat, b] * pigment[coat, b])",
        ),
        (
            "main.py",
            """\
        wp.launch(glaze, BANDS, inputs=[light, pigment, coat])
""",
            """\
        through = wp.zeros(BANDS, dtype=float, requires_grad=True)
        wp.launch(glaze, BANDS, inputs=[light, pigment, coat], outputs=[through])
        light = through
""",
        ),
    ],
    "prism": [
        (
            "main.py",
            """\
    b[0] = b[0] + 0.3 * b[1]
    b[1] = b[1] + (index - 1.0) * wp.sin(apex[k]) * (1.0 + 0.5 * b[0] * b[0])
    b[2] = b[2] + b[1] * b[1]
    b[1] = b[1] / (1.0 + b[2])
    out[c] = b
""",
            """\
    x = b[0] + 0.3 * b[1]
    y = b[1] + (index - 1.0) * wp.sin(apex[k]) * (1.0 + 0.5 * x * x)
    z = b[2] + y * y
    out[c] = wp.vec3(x, y / (1.0 + z), z)
""",
        ),
    ],
    "wood_joint": [
        (
            "main.py",
            "for k in range(count):",
            "for k in range(PEGS):",
        ),
    ],
    "pollen": [
        (
            "main.py",
            "    strength.grad.zero_()\n    tape.backward(loss)\n",
            "    tape.backward(loss)\n",
        ),
        (
            "main.py",
            "    loss.zero_()\n",
            "    loss.zero_()\n    strength.grad.zero_()\n",
        ),
    ],
    "dune": [
        (
            "main.py",
            "wp.exp(8.0 * excess)",
            "wp.exp(8.0 * wp.min(excess, 0.0))",
        ),
    ],
    "sail": [
        (
            "main.py",
            "40.0 * a * a",
            "80.0 * a * a",
        ),
    ],
    "wells": [
        (
            "main.py",
            """\
    check = float(aquifer.run(logT, *held_back).numpy()[0])
    tape.backward(misfit)
    g = logT.grad.numpy().copy()
    tape.zero()
""",
            """\
    tape.backward(misfit)
    g = logT.grad.numpy().copy()
    tape.zero()
    check = float(aquifer.run(logT, *held_back).numpy()[0])
""",
        ),
    ],
    "brine": [
        (
            "main.py",
            "@wp.kernel\ndef waste(",
            """\
@wp.kernel
def add_up(brine: wp.array(dtype=float), total: wp.array(dtype=float)):
    wp.atomic_add(total, 0, brine[wp.tid()])


@wp.kernel
def waste(""",
        ),
        (
            "main.py",
            "wp.utils.array_sum(brine, out=total)",
            "wp.launch(add_up, CAVERNS, inputs=[brine], outputs=[total])",
        ),
    ],
    "orchard": [
        (
            "main.py",
            """\
def smooth(x):
    return np.convolve(np.pad(x, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
""",
            """\
@wp.kernel
def smooth(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    w = wp.tid()
    y[w] = 0.25 * x[wp.max(w - 1, 0)] + 0.5 * x[w] + 0.25 * x[wp.min(w + 1, WEEKS - 1)]
""",
        ),
        (
            "main.py",
            """\
pumped = wp.array(smooth(flow.numpy()), dtype=float, requires_grad=True)
""",
            """\
pumped = wp.zeros(WEEKS, dtype=float, requires_grad=True)
        wp.launch(smooth, WEEKS, inputs=[flow], outputs=[pumped])
""",
        ),
    ],
    "campfire": [
        (
            "main.py",
            "    tape.zero()\n",
            "",
        ),
        (
            "main.py",
            "    optimizer.step([angle.grad, heat.grad])\n",
            "    optimizer.step([angle.grad, heat.grad])\n    tape.zero()\n",
        ),
    ],
    "foundry": [
        (
            "main.py",
            "    temp[t + 1, i] = temp[t, i] + k * lap\n",
            """\
    new = temp[t, i] + k * lap
    if i == 0:
        temp[t + 1, i] = 1.0
    elif i < CELLS - 1:
        temp[t + 1, i] = new
        if i == CELLS - 2:
            temp[t + 1, CELLS - 1] = new
""",
        ),
        (
            "main.py",
            """\
        view[t + 1, 0] = 1.0
        view[t + 1, -1] = view[t + 1, -2]
""",
            "",
        ),
    ],
    "polarimeter": [
        (
            "main.py",
            "tape.backward(figure, grads={linear: wp.ones(WAVES, dtype=float)})",
            "tape.backward(figure)",
        ),
    ],
    "peatbog": [
        (
            "peat/train.py",
            """\
        for w in range(opts.weeks):
            loss = wp.zeros(1, dtype=float, requires_grad=True)
            tape = wp.Tape()
            with tape:
                end = week_forward(theta, params, w)
                wp.launch(soil.against_gauge, LAYERS, inputs=[end, gauge, w], outputs=[loss])
            tape.backward(loss)
            g += params.grad.numpy()
            total += loss.numpy()[0]
            tape.zero()
            theta = wp.clone(end, requires_grad=True)
""",
            """\
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            for w in range(opts.weeks):
                theta = week_forward(theta, params, w)
                wp.launch(soil.against_gauge, LAYERS, inputs=[theta, gauge, w], outputs=[loss])
        tape.backward(loss)
        g += params.grad.numpy()
        total += loss.numpy()[0]
        tape.zero()
""",
        ),
    ],
    "still_column": [
        (
            "main.py",
            "def exchange(col: Column):",
            "def exchange(col: Column, nxt: Fluid):",
        ),
        (
            "main.py",
            "    col.fluid.ethanol[k] = col.fluid.ethanol[k] +",
            "    nxt.ethanol[k] = col.fluid.ethanol[k] +",
        ),
        (
            "main.py",
            "    col.fluid.temp[k] = col.fluid.temp[k] +",
            "    nxt.temp[k] = col.fluid.temp[k] +",
        ),
        (
            "main.py",
            """\
        for _ in range(TICKS):
            wp.launch(boil_off, TRAYS, inputs=[self.col])
            wp.launch(exchange, TRAYS, inputs=[self.col])
        wp.launch(off_spec, TRAYS, inputs=[self.col, 0.4], outputs=[self.J])
""",
            """\
        col = self.col
        for _ in range(TICKS):
            nxt = Column()
            nxt.fluid = Fluid()
            nxt.fluid.temp = wp.zeros(TRAYS, dtype=float, requires_grad=True)
            nxt.fluid.ethanol = wp.zeros(TRAYS, dtype=float, requires_grad=True)
            nxt.boil = wp.zeros(TRAYS, dtype=float, requires_grad=True)
            nxt.heater = self.col.heater
            wp.launch(boil_off, TRAYS, inputs=[col])
            wp.launch(exchange, TRAYS, inputs=[col, nxt.fluid])
            col = nxt
        wp.launch(off_spec, TRAYS, inputs=[col, 0.4], outputs=[self.J])
""",
        ),
    ],
    "cloud_chamber": [
        (
            "main.py",
            """\
        slot = wp.atomic_add(count, 0, 1)
        hit[slot] = x
""",
            """\
        wp.atomic_add(count, 0, 1)
        hit[d] = x
    else:
        hit[d] = 0.5
""",
        ),
        (
            "main.py",
            """\
    if s < count[0]:
        d = hit[s] - 0.5
        wp.atomic_add(loss, 0, d * d)
""",
            """\
    d = hit[s] - 0.5
    wp.atomic_add(loss, 0, d * d)
""",
        ),
    ],
    "metronome": [
        (
            "main.py",
            """\
@wp.func_native(snippet)
def period(l: float, a: float) -> float: ...
""",
            """\
@wp.func
def period(l: float, a: float):
    s = 1.0 + 0.0625 * a * a + 0.0114 * a * a * a * a
    return 6.2831853 * wp.sqrt(l / 9.81) * s
""",
        ),
    ],
    "caustic": [
        (
            "main.py",
            """\
        wp.launch(tone_map, FLOOR, inputs=[self.screen])
        return "".join(" .:-=+*#%@"[int(9 * v)] for v in self.screen.numpy())
""",
            """\
        shown = wp.clone(self.screen)
        wp.launch(tone_map, FLOOR, inputs=[shown])
        return "".join(" .:-=+*#%@"[int(9 * v)] for v in shown.numpy())
""",
        ),
    ],
    "sluice": [
        (
            "main.py",
            "    wp.launch(schedule, (HOURS + 1",
            "        wp.launch(schedule, (HOURS + 1",
        ),
    ],
    "vent_stack": [
        ("main.py", "dtype=float)\n\n    def run", "dtype=float, requires_grad=True)\n\n    def run"),
        ("main.py", "self.pair = [flow.fresh(), flow.fresh()]", "self.states = [flow.fresh() for _ in range(TICKS + 1)]"),
        ("main.py", "here, there = self.pair", "here = self.states[0]"),
        ("main.py", "for _ in range(TICKS):\n", "for there in self.states[1:]:\n"),
        ("main.py", "here, there = there, here", "here = there"),
    ],
    "rudder": [
        ("main.py", "        optimizer.stage()\n", ""),
        ("main.py", "tape.backward(loss)\n", "tape.backward(loss)\n        optimizer.stage()\n"),
    ],
    "canal": [
        ("canal/fit.py", "grads={last.depth: handed}", "grads={last.depth: handed[0], last.flow: handed[1]}"),
        ("canal/fit.py", "handed = wp.clone(first.depth.grad)", "handed = wp.clone(first.depth.grad), wp.clone(first.flow.grad)"),
    ],
    "caterpillar": [("main.py", "*[make_body()] * options.strides]", "*[make_body() for _ in range(options.strides)]]")],
    "sonar": [
        (
            "main.py",
            "        wp.launch(subtract, BEAMS, inputs=[survey.times, survey.heard], outputs=[survey.residual])\n        tape",
            "        tape",
        ),
        (
            "main.py",
            "        tape.backward(",
            "        wp.launch(subtract, BEAMS, inputs=[survey.times, survey.heard], outputs=[survey.residual])\n"
            "        tape.backward(",
        ),
    ],
    "drift_net": [("sea.py", "cheap=True", "cheap=False")],
    "hologram": [
        (
            "optics.py",
            "    c = v\n    c[0] = c[0] + k * wp.sin(c[1])\n    c[1] = c[1] + k * c[0] * c[2]\n    c[0] = c[0] * c[1]\n    return c",
            "    x = v[0] + k * wp.sin(v[1])\n    y = v[1] + k * x * v[2]\n    return wp.vec3(x * y, y, v[2])",
        ),
    ],
    "pendula": [
        ("main.py", "dt: wp.float64, state: wp.array(dtype=vec2d)):", "dt: wp.float64, state: wp.array(dtype=vec2d), out: wp.array(dtype=vec2d)):"),
        ("main.py", "    state[i] = vec2d(", "    out[i] = vec2d("),
        (
            "main.py",
            "        for _ in range(STEPS):\n",
            "        self.last = self.state\n        for _ in range(STEPS):\n"
            "            after = wp.zeros(N, dtype=vec2d, requires_grad=True)\n",
        ),
        ("main.py", "inputs=[self.state, spring]", "inputs=[self.last, spring]"),
        (
            "main.py",
            "inputs=[push, 0.1], outputs=[self.state])",
            "inputs=[push, 0.1, self.last], outputs=[after])\n            self.last = after",
        ),
        ("main.py", "wp.array(row.state.numpy()", "wp.array(row.last.numpy()"),
        ("main.py", "inputs=[row.state, seen]", "inputs=[row.last, seen]"),
    ],
    "marsh": [("main.py", "if self.flush and d % FLUSH == 0:", "if self.flush and d == 0:")],
}

for name, edits in FIXES.items():
    PROGRAMS[name]["fix"] = edits
