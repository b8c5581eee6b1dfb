"""What each program is about and where tests/make_truths.py looks. No measured number is written here."""

EXAMPLES = {}
PROGRAMS = {}


def example(name, **entry):
    entry["run"] = {"script": name.split("/")[1] + ".py"}
    entry["inserts"] = {entry["run"]["script"]: entry["inserts"]}
    if "lines" in entry:
        entry["lines"] = [(entry["run"]["script"], text) for text in entry["lines"]]
    EXAMPLES[name] = entry


def program(name, **entry):
    if isinstance(entry["inserts"], list):
        script = entry.get("run", {"script": "main.py"})["script"]
        entry["inserts"] = {script: entry["inserts"]}
    PROGRAMS[name] = entry


for version in ("broken", "repaired"):
    bad = version == "broken"
    example(
        f"buffer_reuse/{version}",
        cause="overwrite" if bad else "gradients_correct",
        parameter="dish.rates",
        lines=["wp.launch(grow", "now, then = then, now"] if bad else [],
        inserts=[
            ("before", "dish.mismatch.zero_()", "begin_(rates=dish.rates)"),
            ("after", "step = dish.rates.grad", "got_(rates=step)"),
        ],
        symptom="the fit oscillates" if bad else "none",
        repair="one array per step instead of two that are swapped" if bad else "none",
    )
    example(
        f"frame_truncation/{version}",
        cause="truncation" if bad else "gradients_correct",
        parameter="stiffness",
        lines=["with wp.Tape() as tape:"] if bad else [],
        inserts=[
            ("before", "stiffness.grad.zero_()", "begin_(stiffness=stiffness)"),
            ("after", "gradient = stiffness.grad", "got_(stiffness=gradient)"),
        ],
        steps=[0.1, 0.03],
        symptom="the fit creeps" if bad else "none",
        repair="one tape around all frames" if bad else "none",
    )
    example(
        f"missing_requires_grad/{version}",
        cause="missing_requires_grad" if bad else "gradients_correct",
        parameter="flow",
        lines=["temperature = wp.empty"] if bad else [],
        inserts=[
            ("before", "cost.zero_()", "begin_(flow=flow)"),
            ("after", "slope = flow.grad", "got_(flow=slope)"),
        ],
        steps=[0.01, 0.003],
        symptom="the loss rises in every iteration" if bad else "none",
        repair="requires_grad=True for temperature" if bad else "none",
    )
example(
    "diverging_but_correct/train",
    cause="gradients_correct",
    parameter="self.burn",
    inserts=[
        ("before", "self.loss.zero_()", "begin_(burn=self.burn)"),
        ("before", "self.burn.assign(", "got_(burn=self.burn.grad)"),
    ],
    symptom="the loss grows in every iteration",
    repair="a smaller learning rate; the gradient is right",
)
