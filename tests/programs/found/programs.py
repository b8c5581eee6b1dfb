"""What each program is about and where tests/make_truths.py looks. No measured number is written here.

Each of these was answered wrongly once, or not at all.
"""

PROGRAMS = {}


def program(name, begin, got, **entry):
    entry["inserts"] = {"main.py": [("before", *begin), ("before", *got)]}
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
