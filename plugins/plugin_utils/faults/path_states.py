# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding what lies at the path that a program could not open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...module_utils.shared import path_in_error, program_kinds
from ..evidence.answers.node.path_states import PathState, PathStates
from ..evidence.document import one_line
from ..models.moments import moment
from ..models.result import EvidenceRef
from ..parsers.pod_manifest import Mount
from .base import Detection

MISSING, DENIED, FOLDER, LINK = "missing", "denied", "directory", "link"
SHOWN = 160
BEGIN = "On this machine "


def with_state(
    hit: Detection, answer: PathStates, mounts: Sequence[Mount] | None = None
) -> Detection:
    """Return a hit with what lies at the path of an error that it quotes.

    answer: that of the host which the hit is of
    mounts: the volumes of the static pod that says it, None where a unit says it
    """
    if not answer.paths or BEGIN in hit.summary:
        return hit
    for text in (*(ref.text or "" for ref in hit.evidence), hit.summary):
        for path, error in path_in_error.find(text):
            row = _row(path, answer, mounts)
            if row is not None:
                return _extended(hit, row, sentence_of(row, error, answer.processor))
    return hit


def _row(path: str, answer: PathStates, mounts: Sequence[Mount] | None) -> PathState | None:
    """Return what lies at a path of a program on the host, None where that is not known."""
    inside = path
    if mounts is not None:
        mount = max(
            (mount for mount in mounts if f"{path}/".startswith(f"{mount.path.rstrip('/')}/")),
            key=lambda mount: len(mount.path),
            default=None,
        )
        if mount is None or mount.host_path is None:
            return None
        inside = mount.host_path.rstrip("/") + path[len(mount.path.rstrip("/")) :]
    return next((row for row in answer.paths if row.path == inside), None)


def _extended(hit: Detection, row: PathState, sentence: str) -> Detection:
    if not sentence:
        return hit
    proof = EvidenceRef("file", hit.host, path=row.path, text=_owner(row) or row.kind)
    return replace(
        hit, summary=f"{hit.summary}. {BEGIN}{sentence}", evidence=(*hit.evidence, proof)
    )


def sentence_of(row: PathState, error: str, processor: str = "") -> str:
    """Return what a state tells of an error of the kernel, "" where it tells nothing.

    processor: that of the machine
    """
    if row.kind == DENIED:
        return ""
    if row.kind == MISSING:
        return ", ".join((_of_missing(row), *_of_folder(row, error)))
    path = _path(row)
    if row.kind == FOLDER and error == path_in_error.FOLDER:
        facts = f"{_owner(row)}{_changed(row)}"
        return f"{path} is a folder{_entries(row)} ({facts}), where a file has to be"
    clauses = [f"{path} is a {row.kind} ({_owner(row)})"]
    if error == path_in_error.NO_ENTRY:
        clauses.append(_of_present(row))
    elif error == path_in_error.DENIED:
        clauses += _of_denied(row)
    elif error == path_in_error.FORMAT:
        clauses += _of_program(row, processor)
    elif error in (path_in_error.READ_ONLY, path_in_error.FORBIDDEN):
        clauses += _of_write(row)
    return ", ".join(clauses)


def _of_present(row: PathState) -> str:
    """Return what an error about a missing file means where the file is there."""
    if row.kind == "file" and set(row.mode or "") & set("1357"):
        return (
            "so that it is there now, or what runs it is not: the loader of its C library, or the"
            " program in its line #!"
        )
    return "so that it is there now"


def _of_program(row: PathState, processor: str) -> list[str]:
    """Return why the kernel does not execute a program."""
    if row.program == program_kinds.EMPTY:
        return ["empty, as a power cut or a download that broke off leaves it"]
    if row.program == program_kinds.NO_PROGRAM:
        return ["which is neither a program nor a script with a line #!"]
    if row.program in (None, program_kinds.SCRIPT, processor) or not processor:
        return []
    return [f"which is for {one_line(row.program, 40)}, and this machine is {processor[:40]}"]


def _path(row: PathState) -> str:
    """Return a path, and where it leads to if it is a link or below one."""
    path = one_line(row.path, SHOWN)
    if not row.target:
        return path
    return f"{path} (a link to {one_line(row.target, SHOWN)})"


def _of_missing(row: PathState) -> str:
    """Return from which folder on a path is missing."""
    path, above = _path(row), one_line(row.above or "", SHOWN)
    real = row.target or row.path
    if row.above_kind not in (FOLDER, None):
        return f"{path} cannot be there: {above} is a {row.above_kind} and no folder"
    if not above:
        return f"{path} is not there"
    if above.rstrip("/") == real.rpartition("/")[0]:
        return f"{path} is not there, and its folder {above} is"
    below = real[len(above.rstrip("/")) + 1 :].partition("/")[0]
    first = one_line(f"{above.rstrip('/')}/{below}", SHOWN)
    return f"{path} is not there, because the folder {first} is not"


def _of_folder(row: PathState, error: str) -> list[str]:
    """Return what keeps a program from making a file in a folder that is there."""
    if row.above_kind != FOLDER or not row.above_mode:
        return []
    folder = (
        f"{one_line(row.above or '', SHOWN)} has owner {one_line(row.above_owner or '', 130)},"
        f" mode {one_line(row.above_mode, 8)}"
    )
    if error == path_in_error.DENIED:
        return [folder, *_of_denied(row)]
    if error in (path_in_error.READ_ONLY, path_in_error.FORBIDDEN):
        return [folder, *_of_write(row)]
    return []


def _owner(row: PathState) -> str:
    if row.mode is None:
        return ""
    names = f"{one_line(row.owner or '', 64)}:{one_line(row.group or '', 64)}"
    return f"owner {names}, mode {one_line(row.mode, 8)}"


def _changed(row: PathState) -> str:
    """Return when a folder last changed, which of an empty one is when it was made."""
    changed_at = moment(row.changed)
    if changed_at is None:
        return ""
    return f", last changed {changed_at:%Y-%m-%dT%H:%M:%SZ}"


def _entries(row: PathState) -> str:
    if row.entries is None:
        return ""
    if row.entries == 0:
        return " and empty"
    return f" with {row.entries} entries"


def _of_denied(row: PathState) -> list[str]:
    """Return what may keep a program out that may not open a file."""
    clauses = []
    if row.closed:
        clauses.append(
            f"and the folder {one_line(row.closed, SHOWN)} above it lets no user pass but"
            f" {one_line(row.closed_owner or '', 64)} and its group"
            f" (mode {one_line(row.closed_mode or '', 8)})"
        )
    if "noexec" in (row.mount_options or "").split(","):
        clauses.append(f"on {_mount(row)}, from which no program is executed (noexec)")
    return clauses


def _of_write(row: PathState) -> list[str]:
    """Return what keeps a program from a change."""
    clauses = []
    if row.immutable:
        clauses.append("which no user may change (chattr -i takes the attribute i away)")
    if row.mount:
        is_read_only = "ro" in (row.mount_options or "").split(",")
        state = (
            "not mounted read-only now: the program's own view of it may be (ProtectSystem= or"
            " ReadOnlyPaths= of its unit, readOnly of its volume)"
        )
        if is_read_only:
            state = "mounted read-only"
        clauses.append(f"on {_mount(row)}, which is {state}")
    return clauses


def _mount(row: PathState) -> str:
    return f"{one_line(row.mount or '', SHOWN)} ({one_line(row.mount_type or '', 40)})"
