"""The hand-written checkpointing: the full tape's gradient, in memory that grows like the square root of the steps."""

import json
import re

import numpy as np
import pytest

LINE = re.compile(r"gradient \[(.*?)\]")
LAST = re.compile(r"steps (\d+)  states kept (\d+)  memory of the training (\d+) MB")


@pytest.fixture
def train(shell):
    """Runs the example once: its gradient, the states it keeps, its memory in MB."""

    def run(file, *options):
        done = shell(f"python examples/checkpointing/{file}.py --iterations 1 {' '.join(options)}")
        assert done.returncode == 0, done.stderr
        _, states, memory = map(int, LAST.search(done.stdout).groups())
        return np.array(LINE.search(done.stdout).group(1).split(), dtype=float), states, memory

    return run


@pytest.mark.slow
def test_gradient_and_memory(train):
    full, all_states, all_memory = train("repaired", "--steps 400", "--full")
    gradient, states, memory = train("repaired", "--steps 400")
    assert gradient == pytest.approx(full, rel=1e-4)
    assert (all_states, states) == (402, 41)  # steps + 1, and the one saved; 2 sqrt(steps) + 1
    assert all_memory > 5 * memory
    _, states, longer = train("repaired", "--steps 1600")
    assert states == 81
    assert longer < 3 * memory + 5  # four times the steps: twice the memory


@pytest.mark.slow
def test_a_dropped_adjoint_is_wrong(train):
    full, _, _ = train("broken", "--full")  # one segment: no boundary, nothing to drop
    gradient, _, _ = train("broken")
    assert np.all(gradient / full < 0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "verdict", "causes"), [("repaired", "agree", []), ("broken", "disagree", ["truncation"])]
)
def test_nobody_names_parameter_or_objective(shell, file, verdict, causes):
    done = shell(
        f"warp-debug-gradients bisect-steps examples/checkpointing/{file}.py --set {file}.POINTS=200 --json --timeout 200"
    )
    found = json.loads(done.stdout)
    assert found["verdict"] == verdict, found["message"]
    assert found["parameter"] == "self.stiffness"
    assert [c["code"] for c in found["causes"]] == causes
