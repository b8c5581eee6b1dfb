"""What each program is about and where tests/make_truths.py looks. No measured number is written here.

Each of these was answered wrongly once, or not at all.
"""

PROGRAMS = {}


def program(name, begin, got, file="main.py", **entry):
    """begin, got: (a line's beginning, what is inserted before it)."""
    entry["inserts"] = {file: [("before", *begin), ("before", *got)]}
    entry.setdefault("cause", "gradients_correct")
    entry.setdefault("repair", "none")
    PROGRAMS[name] = entry


program(
    "seesaw_pair",
    ("loss.zero_()", "begin_(right=right)"),
    ("factor = left", "got_(right=right.grad)"),
    parameter="right",
    iteration=1,
    symptom="none: two parameters in turns; the gradient of the other one is zeroed unread",
)
program(
    "logged_offset",
    ("loss.zero_()", "begin_(gain=gain, offset=offset)"),
    ("gain.assign(", "got_(gain=gain.grad, offset=offset.grad)"),
    iteration=1,
    symptom="none: the gradient of a parameter that is never updated is printed",
)
program(
    "standing_views",
    ("loss.zero_()", "begin_(theta=theta)"),
    ("x -= 0.05", "got_(theta=theta.grad)"),
    symptom="none: the views are read before any backward, and see what it leaves",
)
program(
    "two_halves",
    ("loss.zero_()", "begin_(first=first, second=second)"),
    ("first.assign(", "got_(first=first.grad, second=second.grad)"),
    symptom="none: the parameters are younger than the array whose memory they share",
)
program(
    "slow_copy",
    ("loss.zero_()", "begin_(student=student)"),
    ("student.assign(", "got_(student=student.grad)"),
    iteration=1,
    symptom="none: what follows an update from the parameter belongs to the iteration that ends",
)
program(
    "two_losses",
    ("loss.zero_()", "begin_(theta=theta)"),
    ("theta.assign(", "got_(theta=theta.grad)"),
    cause="double_count",
    lines=["tape.backward(penalty)"],
    symptom="the misfit counts twice: loss.grad is still 1 in the second backward call",
    repair="zero the gradients of the tape's own arrays between the calls, or add up the two losses",
    fix=[("main.py", "    tape.backward(penalty)", "    loss.grad.zero_()\n    tape.backward(penalty)")],
)
program(
    "hard_exit",
    ("loss.zero_()", "begin_(theta=theta)"),
    ("theta.assign(", "got_(theta=theta.grad)"),
    symptom="none: the process ends without a report of its own",
)
program(
    "worker_thread",
    ("loss.zero_()", "begin_(theta=theta)"),
    ("theta.assign(", "got_(theta=theta.grad)"),
    symptom="none: trained in a thread; another thread may hold a lock at any moment",
)
program(
    "mapped_history",
    ("loss.zero_()", "begin_(theta=theta)"),
    ("theta.assign(", "got_(theta=theta.grad)"),
    symptom="none: a file is written through shared memory",
)
program(
    "window_of_grid",
    ("loss.zero_()", "begin_(grid=grid)"),
    ("grid.assign(", "got_(grid=grid.grad)"),
    symptom="none: the gradient is read through the base of the view on the tape",
)
program(
    "layers_in_a_loop",
    ("loss.zero_()", "begin_(layers_0=layers[0], layers_1=layers[1], layers_2=layers[2])"),
    ("tape.zero()", "got_(layers_0=layers[0].grad, layers_1=layers[1].grad, layers_2=layers[2].grad)"),
    parameter=["layers[0]", "layers[1]", "layers[2]"],
    symptom="none: a loop variable names the last of several arrays",
)
program(
    "rivals",
    ("here.grad.zero_()", "begin_(here=here)"),
    ("here.assign(", "got_(here=here.grad)"),
    parameter="here",
    look=1,
    note="the first bout holds two iterations: one of `there`, one of `here`",
    symptom="none: two losses, two parameters, each zeroes its own gradient only",
)
program(
    "soil_block",
    ("self.loss.zero_()", "begin_(logsigma=self.logsigma)"),
    ("size = float(", "got_(logsigma=self.logsigma.grad)"),
    file="ert/inversion.py",
    cause="unconverged_solver",
    parameter="self.logsigma",
    lines=[("ert/poisson.py", "for k in range(12)")],
    symptom="the image is far off although the misfit falls: 12 sweeps are far from the potential",
    repair="more sweeps, or the adjoint of the solution",
)
program(
    "gravity_road",
    ("loss.zero_()", "begin_(density=density)"),
    ("step = 0.02", "got_(density=density.grad)"),
    cause="precision_floor",
    verdict="not_disagree",
    steps=[4000.0, 2000.0],
    lines=["wp.launch(read_out"],
    symptom="the loss never moves, although the densities do: float32 near 981234 has steps of 1/16",
    repair="take the normal gravity out of the readings instead of adding it",
    note="the objective is quadratic, so large steps give the derivative; below them it does not change at all",
)
program(
    "phase_mask",
    ("re = wp.zeros(", "begin_(phase=mask.phase)"),
    ("self.sgd.step(", "got_(phase=self.grads[0])"),
    cause="stale_gradient",
    parameter="mask.phase",
    iteration=1,
    lines=["self.sgd.step(", "self.phase = wp.array(turned", "self.grads = "],
    symptom="the error falls, and then rises again; a new array every time, the optimizer goes on with the first one's gradient",
    repair="write the wrapped phases into the same array, and zero its gradient",
    fix=[
        ("main.py", "        self.grads = [self.phase.grad]\n", "        self.grads = [self.phase.grad]  # stays the same buffer\n"),
        (
            "main.py",
            "self.phase = wp.array(turned, dtype=float, requires_grad=True)",
            "self.phase.assign(turned)\n        self.phase.grad.zero_()",
        ),
    ],
)
program(
    "lidar_ground",
    ("tape = wp.Tape()", "begin_(height=self.height)"),
    ("self.height.assign(", "got_(height=grad)"),
    parameter="self.height",
    symptom="the printed objective rises: its roughness term is added in NumPy and is not on the tape",
    repair="a kernel for the roughness",
)
program(
    "dam_drains",
    ("h[0].assign(ground)", "begin_(drain=drain)"),
    ("drain.assign(", "got_(drain=g)"),
    symptom="none: a loop called settle makes what the tape starts from, and does not depend on the parameter",
)
program(
    "filter_bed",
    ("with wp.Tape() as tape:", "begin_(thickness=self.thickness)"),
    ("self.thickness.assign(", "got_(thickness=grad)"),
    file="bed/study.py",
    cause="missing_requires_grad",
    parameter="self.thickness",
    lines=[("bed/pool.py", "bigger = wp.zeros(")],
    symptom="the thickness only shrinks; behind the buffer that lost its gradient a function overwrites what its adjoint reads",
    repair="requires_grad when a field grows; then an array per day for what is left",
    fix=[
        ("bed/pool.py", "bigger = wp.zeros(size, dtype=float, device=self.device)", "bigger = wp.zeros(size, dtype=float, device=self.device, requires_grad=True)"),
        ("bed/kernels.py", "def take_up(load: wp.array(dtype=float), i: int, rate: float)", "def take_up(load: wp.array(dtype=float), i: int, rate: float, rest: wp.array(dtype=float))"),
        ("bed/kernels.py", "    load[i] = free - 0.5 * bound", "    rest[i] = free - 0.5 * bound"),
        ("bed/kernels.py", "d: int, uptake: wp.array(dtype=float))", "d: int, uptake: wp.array(dtype=float), rest: wp.array(dtype=float))"),
        ("bed/kernels.py", "take_up(capacity, i, rate)", "take_up(capacity, i, rate, rest)"),
        (
            "bed/study.py",
            "            wp.launch(day, s.layers, inputs=[capacity, 0.8, s.layers, d], outputs=[uptake])\n",
            '            rest = self.pool.get(f"rest {d}", s.layers)\n'
            "            wp.launch(day, s.layers, inputs=[capacity, 0.8, s.layers, d], outputs=[uptake, rest])\n"
            "            capacity = rest\n",
        ),
    ],
)
program(
    "platoon",
    ("self.law.grad.zero_()", "begin_(law=self.law)"),
    ("law = self.law.numpy()", "loss_(self.platoon.cost); got_(law=grad)"),
    file="traffic/fit.py",
    cause="truncation",
    parameter="self.law",
    lines=[("traffic/checkpoint.py", "tape.backward(grads={self.x[-1]"), ("traffic/checkpoint.py", "carry = wp.clone(")],
    symptom="the fit creeps: the adjoint of the speeds is dropped between the segments",
    repair="hand on both adjoints",
    teaches="the gradient is saved before tape.zero() and put back after it: one sum, not four",
    fix=[
        ("traffic/checkpoint.py", "grads={self.x[-1]: carry}", "grads={self.x[-1]: carry[0], self.v[-1]: carry[1]}"),
        (
            "traffic/checkpoint.py",
            "carry = wp.clone(self.x[0].grad)",
            "carry = (wp.clone(self.x[0].grad), wp.clone(self.v[0].grad))",
        ),
    ],
)
program(
    "crane",
    ("tape = wp.Tape()", "begin_(control=self.control)"),
    ("step = self.adam.direction(", "got_(control=self.gradient)"),
    cause="stale_gradient",
    parameter="self.control",
    iteration=6,
    note="the first step is none, so attempts 0 and 1 have one gradient; it is looked at where the loss has turned",
    lines=["step = self.adam.direction(", "self.gradient = self.control.grad"],
    symptom="the cost falls and then rises again; the first attempt changes nothing",
    repair="hand Adam the gradient of this attempt",
    fix=[
        (
            "main.py",
            "        step = self.adam.direction(self.gradient)\n        self.gradient = self.control.grad.numpy().copy()\n",
            "        self.gradient = self.control.grad.numpy().copy()\n        step = self.adam.direction(self.gradient)\n",
        )
    ],
)
program(
    "tides",
    ("amplitude.grad.zero_()", "begin_(amplitude=amplitude, phase=phase)"),
    ("wp.launch(descend, CONSTITUENTS, inputs=[amplitude", "got_(amplitude=amplitude.grad, phase=phase.grad)"),
    cause="stale_gradient",
    parameter=["amplitude", "phase"],
    lines=["wp.launch(scale, CONSTITUENTS, inputs=[amplitude", "wp.launch(scale, CONSTITUENTS, inputs=[phase"],
    symptom="the fit follows the last gauge; the first ones hardly count",
    repair="do not divide what the earlier gauges left",
    fix=[
        ("main.py", "        wp.launch(scale, CONSTITUENTS, inputs=[amplitude.grad, 1.0 / GAUGES])\n", ""),
        ("main.py", "        wp.launch(scale, CONSTITUENTS, inputs=[phase.grad, 1.0 / GAUGES])\n", ""),
    ],
)
