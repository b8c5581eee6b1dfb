"""Which Warps are known, and in what they differ: one table, which drives what is said about a version."""

from __future__ import annotations

import re
from dataclasses import dataclass

Version = tuple[int, int]

OLDEST: Version = (1, 13)
NEWEST: Version = (1, 19)  # the newest that was measured; later ones of the same major are expected to work
TESTED = "1.13, 1.16, 1.17, 1.18 and 1.19"  # in every run of the tests; 1.14 and 1.15 once, by hand


@dataclass(frozen=True)
class Behaviour:
    """Something that was measured to change with `since`.

    measured: the rows of references/quick-checks.md §11 that show it (tests/skill/behaviours.py measures them).
    cause: the code it can show as (catalogue.py). of: what is differentiated wrongly before, a "copy" or a "kernel".
    """

    since: Version
    before: str
    after: str
    measured: tuple[str, ...]
    cause: str | None = None
    of: str | None = None

    @property
    def since_version(self) -> str:
        """Such as 1.17."""
        return ".".join(map(str, self.since))


BEHAVIOURS = (
    Behaviour(
        (1, 14),
        "writing one component of an array element (w[i][1] = ..., a field of a struct in an array) has gradient 0",
        "it has its right gradient",
        ("component_write",),
        cause="warp_defect",
        of="kernel",
    ),
    Behaviour(
        (1, 14),
        "the gradient of curlnoise is 0",
        "it has its right gradient",
        ("curlnoise",),
        cause="warp_defect",
        of="kernel",
    ),
    Behaviour((1, 14), "Warp's warnings are printed to stdout", "they go to stderr", ("warnings_on_stderr",)),
    Behaviour(
        (1, 15),
        "a copy with src_offset different from dest_offset has a wrong gradient",
        "it has its right gradient",
        ("copy_offsets",),
        cause="warp_defect",
        of="copy",
    ),
    Behaviour(
        (1, 17),
        "the adjoint of copy, clone and assign overwrites the source's gradient: right only if the copy is the "
        "source's last consumer",
        "it accumulates",
        ("copy_read_later", "copy_overwritten", "two_clones"),
        cause="warp_defect",
        of="copy",
    ),
    Behaviour(
        (1, 17),
        "copying a staged value back into its own array doubles the gradient",
        "the gradient is right",
        ("copy_back",),
        cause="warp_defect",
        of="copy",
    ),
    Behaviour(
        (1, 17),
        "x[i] if c else y[i] on array elements has gradient 0 (wp.where is right)",
        "it has its right gradient",
        ("ternary_on_elements",),
        cause="warp_defect",
        of="kernel",
    ),
    Behaviour(
        (1, 17),
        "Warp's overwrite tracker keeps its flags after backward: it repeats false warnings from iteration 2 on",
        "the flags are cleared by backward",
        ("tracker_flags",),
    ),
    Behaviour(
        (1, 17),
        "wp.autograd.gradcheck fails a right forward pass that changes its inputs",
        "inputs are restored between evaluations",
        ("gradcheck_restores",),
    ),
)


def parse(version: str | None) -> Version | None:
    """("1.19.0.dev3") -> (1, 19)."""
    found = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


def support_note(version: str | None) -> str | None:
    """What to say of a version that is not among those measured; None for the others."""
    known = parse(version)
    if version is None or (known is not None and OLDEST <= known <= NEWEST):
        return None
    tested = f"it was tested with {TESTED}"
    if known is None:
        return f"The version of Warp ({version}) cannot be told; {tested}. Take what is said with care."
    if known < OLDEST:
        return (
            f"Warp {version} is older than 1.13, the oldest that is supported ({tested}). What is said here is a best "
            "effort. Upgrade with pip install -U warp-lang."
        )
    if known[0] > NEWEST[0]:
        return f"Warp {version} is a new major version ({tested}). What is said here is a best effort: look for a newer warp-debug-gradients."
    return f"Warp {version} is newer than any that was tested ({tested}). It is expected to work."


def differences(version: str | None) -> list[Behaviour]:
    """What an older Warp does otherwise than the newest."""
    known = parse(version)
    return [b for b in BEHAVIOURS if known is not None and known < b.since]


def known_defects(version: str | None, of: str) -> list[str]:
    """What this Warp differentiates wrongly in a "copy" or in a "kernel", and from which version on it does not."""
    return [
        f"Warp {version}: {b.before} (from {b.since_version} on {b.after})" for b in differences(version) if b.of == of
    ]
