"""Hostile programs, each with the answer that it must get in the first lines of its file.

# status: completed | blocked | timeout      (several: "completed or blocked")
# error: CODE            instead: the call is refused, or fails, with this code
# says: TEXT             in the answer; repeatable
# limits: NAME=VALUE     WARP_DEBUG_GRADIENTS_NAME
# timeout: SECONDS       of the call; default 3
# patience: SECONDS      what the whole call may take beyond that; default 20
# cwd: FOLDER            is made, and is the working folder
# leaves: PATH           what the program itself leaves, relative to the workspace's parent
# warp: yes              needs Warp
"""

from dataclasses import dataclass, field
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
SECRETS = {
    "OPENAI_API_KEY": "sk-planted-1",
    "GITHUB_TOKEN": "ghp-planted-2",
    "AWS_SECRET_ACCESS_KEY": "planted-3",
    "AWS_SESSION_TOKEN": "planted-4",
    "DATABASE_URL": "postgres://me:planted-5@host/db",
    "HF_TOKEN": "planted-6",
    "NVCR_KEY": "planted-7",
    "NVIDIA_API_KEY": "planted-8",
    "XDG_SESSION_COOKIE": "planted-9",
    "PYTHON_KEYRING_PASSPHRASE": "planted-10",
    "JAX_AUTH": "planted-11",
    "TORCH_HUB_PAT": "planted-12",
    "SLURM_JWT": "planted-13",
    "LC_PASSWORD": "planted-14",
    "WARP_SERVICE_CREDENTIALS": "planted-15",
    "MPL_WEBHOOK": "https://me:planted-16@host",
}


@dataclass
class Expected:
    """What the head of a script says."""

    status: set[str] = field(default_factory=set)
    error: str | None = None
    says: list[str] = field(default_factory=list)
    limits: dict[str, str] = field(default_factory=dict)
    timeout: float = 3.0
    patience: float = 20.0
    cwd: str | None = None
    leaves: str | None = None
    warp: bool = False


def expected(name):
    """Reads the head of scripts/NAME.py."""
    found = Expected()
    for line in (SCRIPTS / f"{name}.py").read_text(errors="replace").splitlines():
        if not line.startswith("# "):
            break
        key, _, value = line[2:].partition(": ")
        if key == "status":
            found.status = set(value.split(" or "))
        elif key == "says":
            found.says.append(value)
        elif key == "limits":
            found.limits = dict(item.split("=") for item in value.split())
        elif key in ("timeout", "patience"):
            setattr(found, key, float(value))
        elif key == "warp":
            found.warp = True
        else:
            assert key in ("error", "cwd", "leaves"), key
            setattr(found, key, value)
    assert bool(found.status) != bool(found.error), name
    return found
