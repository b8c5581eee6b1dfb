"""Newton, a physics engine on Warp: its own examples, and faults planted in its package, through the real command.

The package comes from the index into an environment that the tests make themselves (tests/conftest.py). Nothing of it
is edited on disk but the copies below; what is shrunk is shrunk by `--set`.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from truths import environment

NEWTON = ("newton==1.8.0", "warp-lang==1.19.0")
EXAMPLE = "newton.examples.diffsim.example_diffsim_{}"
HEADLESS = ["--viewer", "null", "--device", "cpu"]
RIGHT = {  # example -> command, what is shrunk, the example's own arguments
    "spring_cage": ("diagnose", "sim_steps=12", ["--num-frames", "13"]),
    "drone": ("bisect-steps", "sim_steps=180", ["--num-frames", "2"]),
    "cloth": ("gradcheck-full-horizon", "sim_steps=4", ["--num-frames", "8"]),
}
SOLVER = "_src/solvers/semi_implicit/solver_semi_implicit.py"
PLANTED = {  # fault -> cause, its line, and what is planted: (text of the file, text that takes its place)
    "severed": (  # the springs' forces pass through a buffer without a gradient
        "unrecorded_operation",
        "wp.copy(state_in.particle_f, particle_f)",
        [
            (
                "                particle_f = state_in.particle_f\n",
                "                particle_f = wp.zeros_like(state_in.particle_f, requires_grad=False)\n",
            ),
            (
                "            # triangle elastic and lift/drag forces\n",
                "            wp.copy(state_in.particle_f, particle_f)\n",
            ),
        ],
    ),
    "overwritten": (  # positions that the springs' adjoint reads are set back behind its back
        "overwrite",
        "state_in.particle_q.assign(model.particle_q)",
        [
            (
                "            # triangle elastic and lift/drag forces\n",
                "            state_in.particle_q.assign(model.particle_q)\n",
            )
        ],
    ),
}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def newton_python(python_with):
    return python_with(*NEWTON)


@pytest.fixture(scope="session")
def newton(newton_python):
    """The folder of the installed package."""
    code = "import importlib.util; print(importlib.util.find_spec('newton').submodule_search_locations[0])"
    done = subprocess.run([newton_python, "-c", code], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def run(python, folder, operation, target, shrunk, arguments):
    """(exit code, result) of one command."""
    command = [sys.executable, "-m", "warp_debug_gradients", operation, *target, "--workspace", str(folder)]
    command += ["--python", python, "--timeout", "500", "--json", "--iteration", "0", "--set", shrunk]
    command += ["--", *HEADLESS, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{"), done.stderr
    return done.returncode, json.loads(done.stdout)


def line_of(path, number):
    return path.read_text().splitlines()[number - 1].strip()


@pytest.mark.parametrize("name", RIGHT)
def test_the_examples_gradients_are_right(newton_python, name, tmp_path):
    operation, shrunk, arguments = RIGHT[name]
    module = EXAMPLE.format(name)
    shrunk = f"{module.rpartition('.')[2]}.Example.{shrunk}"
    code, result = run(newton_python, tmp_path, operation, ["--module", module], shrunk, arguments)
    assert (code, result["verdict"]) == (0, "agree"), result["message"]
    assert [c["code"] for c in result["causes"] if c["code"] != "gradients_correct"] == []


@pytest.mark.parametrize("fault", PLANTED)
def test_faults_planted_in_the_package_are_placed_there_and_at_the_call_that_leads_there(
    newton_python, newton, fault, tmp_path
):
    cause, line, edits = PLANTED[fault]
    shutil.copytree(newton, tmp_path / "newton", ignore=shutil.ignore_patterns("assets", "__pycache__"))
    shutil.copy(newton / "examples" / "diffsim" / "example_diffsim_spring_cage.py", tmp_path / "spring.py")
    path = tmp_path / "newton" / SOLVER
    for old, new in edits:
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
    arguments = ["--num-frames", "13"]
    code, result = run(newton_python, tmp_path, "bisect-steps", ["spring.py"], "spring.Example.sim_steps=12", arguments)
    assert code == 1, result["message"]
    first = result["causes"][0]
    assert (first["code"], first["file"]) == (cause, f"newton/{SOLVER}")
    assert line_of(path, first["line"]) == line
    assert first["via"]["file"] == "spring.py"
    assert line_of(tmp_path / "spring.py", first["via"]["line"]).startswith("self.solver.step(")
