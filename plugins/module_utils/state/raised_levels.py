# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which log levels of this node are raised by a restart still, by what the journal, the files and
the processes say.

An audit asks this too: nothing here changes anything, and nothing that does is imported.
"""

import os
import re

from ..shared.klog_verbosity import given, of_argv
from ..shared.paths import ROOT
from ..system import component_process, kubelet_process, procfs
from . import journal, revert_plan
from . import step_record as proof

ARGUMENT = r"""(?m)^(?![ \t]*[#;]).*--v(?:=|["',\s-]+)%s(?![0-9])"""
KUBELET = "kubelet"
PREFIX = proof.PREFIX + "raise-"  # records of these steps, and of no others


def records(run_id, root=ROOT):
    """What the run raised here by a restart: the records of those steps."""
    return [record for record in _read(run_id, root) if record.get("component")]


def unread(run_id, root=ROOT):
    """Why it is not known what the run raised here by a restart; None where it is."""
    return next(
        (str(record["error"]) for record in _read(run_id, root) if record.get("error")), None
    )


def _read(run_id, root):
    with journal.opened(root, run_id) as fd:
        names = (
            []
            if fd is None
            else sorted(
                name
                for name in os.listdir(fd)
                if name.startswith(PREFIX) and name.endswith(proof.SUFFIX)
            )
        )
    found = [
        proof.read(run_id, name[len(proof.PREFIX) : -len(proof.SUFFIX)], root) for name in names
    ]
    return [record for record in found if record]


def left(run_id, root=ROOT):
    """The records of those that are raised still, or may be, and whose former bytes can come
    back.
    """
    return _sorted_out(run_id, root)[0]


def edited(run_id, root=ROOT):
    """[(record, (whether the level is up still, what is to be done by hand))] where somebody
    else changed the file meanwhile: it is his.
    """
    return [(record, _by_hand(record)) for record in _sorted_out(run_id, root)[1]]


def _sorted_out(run_id, root):
    found, ours, theirs = records(run_id, root), [], []
    if not found:
        return ours, theirs
    unproven = [
        record.get("component") for record in proof.unproven(root) if record["run_id"] == run_id
    ]
    plan = revert_plan.plan_revert(run_id, root)
    for record in found:
        states = {one["state"] for one in plan if one["path"] in paths_of(record)}
        if (
            states.intersection((revert_plan.RESTORE, revert_plan.OPEN))
            or record["component"] in unproven
        ):
            ours.append(record)
        elif revert_plan.CONFLICT in states:
            theirs += [] if _raised_since(run_id, record["component"], root) else [record]
        elif record["component"] == KUBELET and raised_kubelet_runs(record):
            ours.append(record)
    return ours, theirs


def _raised_since(run_id, component, root):
    """Whether a later run raised it too: it was down again then, whoever took it down."""
    return any(
        record["component"] == component and record.get("state") != proof.NOT_DONE
        for other in journal.run_ids(root)
        if other > run_id
        for record in records(other, root)
    )


def raised_to(record):
    """The level that the step raised it to, as text."""
    expect = record.get("expect") or {}
    return str(expect.get("level") or (expect.get("flags") or {}).get("v"))


def _by_hand(record):
    """(whether the level is up still, one sentence).

    By the file as it is now, and by the process that runs.
    """
    wanted, former = raised_to(record), given((record.get("former") or {}).get("argv") or [])
    paths = paths_of(record)
    holding = (
        [path for path in paths if _holds(path, wanted)]
        if all(os.path.exists(path) for path in paths)
        else []
    )
    if holding:
        return True, "{} was edited meanwhile: take --v={} out by hand (before it was: {})".format(
            holding[0],
            wanted,
            "no --v" if former is None else "--v=%d" % former,
        )
    running = _levels(record["component"])
    if wanted in running:
        return (
            True,
            "{} was edited meanwhile and does not give --v={} any more, but {} still runs with it:"
            " restart it by hand".format(paths[0], wanted, record["component"]),
        )
    return False, "{} was edited meanwhile: {}".format(
        paths[0],
        (
            "{} runs at level {} now".format(record["component"], running[0])
            if running
            else "{} does not run".format(record["component"])
        ),
    )


def _holds(path, wanted):
    """Whether the file gives that level, wherever in it: what is commented out does not count."""
    try:
        with open(path, "rb") as handle:
            return (
                re.search(
                    ARGUMENT % re.escape(wanted),
                    handle.read(1024 * 1024).decode("utf-8", "replace"),
                )
                is not None
            )
    except OSError:
        return False


def _levels(component):
    """The levels that the command lines of its processes give, the youngest first."""
    if component != KUBELET:
        return [str(of_argv(one.argv)) for one in component_process.instances(component)]
    try:
        process = kubelet_process.here(procfs.of_interest())[0]
    except Exception:  # pylint: disable=broad-except
        return []  # nothing can be said about it
    return [str(of_argv(process["raw"]))] if process else []


def raised_kubelet_runs(record):
    """Whether the very process that was started with the raised level still runs, although its
    files may be back.
    """
    seen = record.get("seen") or {}
    return bool(seen.get("pid")) and proof.ticks(seen["pid"]) == seen.get("ticks")


def paths_of(record):
    """The files that the step wrote."""
    return record.get("paths") or [record.get("path")]
