"""Which environment variables the user's program gets: what runs need, nothing that looks like a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

NAMES = {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LANGUAGE", "TMPDIR", "TEMP", "TMP",
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "DISPLAY",
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
    "PROGRAMFILES", "PROGRAMDATA", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
    "SLURM_JOB_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_CPUS_PER_TASK", "SLURM_GPUS_ON_NODE",
}  # fmt: skip
PREFIXES = (
    "LC_", "CUDA", "WARP", "NVIDIA_", "NVCC", "NVRTC", "NEWTON", "PYTHON", "OMP_", "OPENBLAS_", "MKL_", "NUMEXPR_",
    "KMP_", "TORCH", "PYTORCH_", "JAX_", "XLA_", "MPL",
)  # fmt: skip
STARTUP_HOOKS = {
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PYTHONHOME",
    "PYTHONDEBUG",
    "PYTHONPROFILEIMPORTTIME",
}
SECRETS = re.compile(
    r"TOKEN|SECRET|PASS(WORD|WD|PHRASE)|CREDENTIAL|COOKIE|BEARER|WEBHOOK|(^|_)(AUTH|JWT|PAT|DSN|PWD)(_|$)|KEYS?(_|$)",
)  # in a name
LOGIN = re.compile(r"://[^/\s]*:[^/\s]*@")  # in a value: a URL with a password
SOURCE_ROOT = Path(__file__).resolve().parents[1]


def probe_environment(named: Iterable[str] = ()) -> dict[str, str]:
    """The environment of the probe: what runs need, and the variables that the caller has named.

    Output is unbuffered, so that what a killed script printed is not lost.
    """
    named = set(named)
    environment = {name: value for name, value in os.environ.items() if name in named or _allowed(name.upper(), value)}
    paths = [p for p in environment.pop("PYTHONPATH", "").split(os.pathsep) if p and Path(p).resolve() != SOURCE_ROOT]
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment | {"PYTHONUNBUFFERED": "1"}


def _allowed(name: str, value: str) -> bool:
    if name in STARTUP_HOOKS or SECRETS.search(name) or LOGIN.search(value):
        return False
    return name in NAMES or name.startswith(PREFIXES)
