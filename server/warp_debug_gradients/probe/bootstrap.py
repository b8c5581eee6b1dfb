"""The file that the user's interpreter is started with: `PYTHON bootstrap.py JOB.json`.

It loads the probe package under a private name, ties this process's life to the server's, and hands the
job to `main.run`. Nothing else: when the user's script starts, `sys.path`, `sys.argv` and the environment
look as if Python had been started with that script.

Only `sys` (built in) is imported at the top: Python puts this folder first on `sys.path`, and the folder
holds names (`trace.py`) that would shadow the standard library's until `forget_probe_folder` has run.
"""

import sys

PACKAGE = "_warp_debug_gradients_probe"

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def forget_probe_folder(bootstrap_file: str) -> str:
    """Takes this file's folder off `sys.path`, where Python has put it as "the script's folder"."""
    import os  # already loaded by site, or else frozen: cannot be shadowed

    folder = os.path.dirname(os.path.abspath(bootstrap_file))
    if sys.path and _same_folder(sys.path[0], folder):
        del sys.path[0]  # absent under `python -P` / PYTHONSAFEPATH
    sys.path_importer_cache.pop(folder, None)
    return folder


def _same_folder(left: str, right: str) -> bool:
    import os

    return os.path.realpath(left or os.curdir) == os.path.realpath(right)


def die_with_parent(parent_pid: int) -> None:
    """Asks Linux to kill this process when its parent ends; elsewhere does nothing.

    The kernel means the *thread* that started this process, so whoever starts a probe must do it from a
    thread that lives as long as the probe should. A fork clears the setting: forked children call this
    again. If the parent (as seen by the caller earlier) has gone meanwhile, no signal would ever come, so
    the process ends here.
    """
    if not sys.platform.startswith("linux"):
        return
    import os
    import signal

    try:
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return  # an interpreter built without ctypes: the server's own clean-up must do
    if os.getppid() != parent_pid:
        os._exit(1)


def load_package(folder: str, name: str = PACKAGE):
    """Imports the probe package from its folder under a private name, without touching `sys.path`."""
    import importlib.util
    import os

    spec = importlib.util.spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None  # the file's name says how to load it
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    return package


def start(bootstrap_file: str, arguments: "list[str]") -> int:
    """Reads the job and runs it; returns the exit status."""
    folder = forget_probe_folder(bootstrap_file)
    if len(arguments) != 1:
        print("usage: python bootstrap.py JOB.json", file=sys.stderr)
        return 2
    import importlib
    import json
    import os

    with open(arguments[0], encoding="utf-8") as stream:
        job = json.load(stream)
    # A server that states its process id also covers the moment before this line.
    die_with_parent(job.get("parent_pid") or os.getppid())
    load_package(folder)
    return importlib.import_module(PACKAGE + ".main").run(job)


if __name__ == "__main__":
    sys.exit(start(__file__, sys.argv[1:]))
