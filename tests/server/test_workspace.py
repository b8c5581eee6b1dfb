"""Nothing outside the workspace is opened, and the interpreter is the workspace's own where there is one."""

import os
import sys

import pytest

from warp_debug_gradients.errors import InterpreterError, WorkspaceError
from warp_debug_gradients.interpreter import choose_interpreter
from warp_debug_gradients.workspace import PYTHONS_VARIABLE, WORKSPACE_VARIABLE, Workspace


@pytest.mark.parametrize(
    "path", ["../outside.py", "/etc/passwd", "a/../../outside.py", "link.py", "linked/x.py", "a\0b"]
)
def test_paths_that_leave_the_workspace_are_refused(workspace, tmp_path, path):
    (tmp_path / "outside.py").write_text("")
    (workspace.root / "link.py").symlink_to(tmp_path / "outside.py")
    (workspace.root / "linked").symlink_to(tmp_path)
    (tmp_path / "x.py").write_text("")
    with pytest.raises(WorkspaceError):
        workspace.file(path, "script")


def test_the_message_says_what_to_do(workspace):
    with pytest.raises(WorkspaceError, match="--workspace"):
        workspace.file("../outside.py", "script")
    with pytest.raises(WorkspaceError, match=r"Beside it: .*broken\.py"):
        workspace.file("brokn.py", "script")


def test_links_inside_the_workspace_are_fine(workspace):
    (workspace.root / "alias.py").symlink_to(workspace.root / "right.py")
    assert workspace.file("alias.py", "script") == workspace.root / "right.py"
    assert workspace.file(str(workspace.root / "right.py"), "script").name == "right.py"


def test_a_folder_is_no_script(workspace):
    (workspace.root / "folder").mkdir()
    with pytest.raises(WorkspaceError):
        workspace.file("folder", "script")
    assert workspace.folder("folder", "cwd").name == "folder"
    with pytest.raises(WorkspaceError):
        workspace.folder("right.py", "cwd")


def test_the_root_is_the_argument_then_the_environment_then_the_current_folder(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Workspace.find().root == tmp_path.resolve()
    monkeypatch.setenv(WORKSPACE_VARIABLE, str(project))
    assert Workspace.find().root == project.resolve()
    assert Workspace.find(tmp_path).root == tmp_path.resolve()
    with pytest.raises(WorkspaceError):
        Workspace.find(tmp_path / "missing")


def test_relative_names_are_the_users(workspace, tmp_path):
    assert workspace.relative(workspace.root / "a" / "b.py") == "a/b.py"
    assert workspace.relative("/usr/lib/x.py") == "/usr/lib/x.py"


def _make_python(folder):
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    return folder / "python"


def test_the_interpreter_is_the_named_one_then_venv_then_virtual_env_then_ours(workspace, tmp_path, monkeypatch):
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    chosen = choose_interpreter(workspace, None)
    assert chosen.path == sys.executable
    assert "the server's own" in chosen.why

    active = _make_python(tmp_path / "active" / "bin")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert choose_interpreter(workspace, None).path == str(active)

    own = _make_python(workspace.root / ".venv" / "bin")
    chosen = choose_interpreter(workspace, None)
    assert chosen.path == str(own)  # the link itself: resolved, it would be outside its environment
    assert ".venv" in chosen.why

    assert choose_interpreter(workspace, sys.executable).why == "named by the caller"
    assert choose_interpreter(workspace, ".venv/bin/python").path == str(own)


def test_an_interpreter_that_cannot_run_is_refused(workspace):
    for named in ("missing/python", "right.py"):
        with pytest.raises(InterpreterError, match="--python"):
            choose_interpreter(workspace, named)
    assert not os.access(workspace.root / "right.py", os.X_OK)


def test_a_server_runs_no_interpreter_that_its_start_did_not_allow(workspace, tmp_path, monkeypatch):
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", PYTHONS_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(WORKSPACE_VARIABLE, str(workspace.root))
    inside = _make_python(workspace.root / "envs" / "bin")
    others = [_make_python(tmp_path / name / "bin") for name in ("one", "two")]
    (workspace.root / "away").symlink_to(tmp_path / "one")

    served = Workspace.served()
    assert choose_interpreter(served, str(inside)).path == str(inside)
    assert choose_interpreter(served, sys.executable).path == sys.executable
    for path in (*others, workspace.root / "away" / "bin" / "python", inside.parent / "../../../one/bin/python"):
        with pytest.raises(InterpreterError, match=r"serve --python"):
            choose_interpreter(served, str(path))

    monkeypatch.setenv(PYTHONS_VARIABLE, f"{others[0]}{os.pathsep}{tmp_path / 'two'}")
    for path in others:  # the one by itself, the other by its folder
        assert choose_interpreter(Workspace.served(), str(path)).path == str(path)
    assert choose_interpreter(workspace, "/bin/sh").path == "/bin/sh"  # a person at the shell names what they like
