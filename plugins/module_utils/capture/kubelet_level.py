# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet of this node started again with another log level, and its files taken back.

The files are journalled like every other; the proof is the command line of the new process and its
healthz.
"""

import time

from ..state import step_record as proof
from ..state.storage import ChangeError
from ..steps import kubelet_restart
from ..steps import preconditions as guard
from ..steps.kubelet_files import ask_restart, tidy, write
from ..steps.revert import files as revert
from ..system import command, files
from . import klog_level as level

REMEDY, COMPONENT = "raise_kubelet", "kubelet"
BUDGET = 2 * (kubelet_restart.SECONDS + 60) + 30  # seconds: there, and back where it is not proven


def raise_level(step, wanted, host):
    """Write, restart, prove, or all of it back: (how its proof ended, why). step: on whose behalf.

    Wanted: the plan's step.
    """
    expect, allow = wanted["expect"], (wanted.get("guard") or {}).get("allow") or []
    paths = [one["path"] for one in wanted["change"]["files"]]
    try:
        former = kubelet_restart.check(host, wanted, allow, paths)
        record = {
            "component": COMPONENT,
            "host": host,
            "remedy": REMEDY,
            "limit": kubelet_restart.SECONDS,
            "path": paths[0],
            "kind": "none",
            "expect": expect,
            "guard": wanted.get("guard"),
            "paths": paths,
            "reload": wanted["change"]["reload"],
            "of_run": step.run_id,
            "former": {
                "pid": former.pid,
                "ticks": former.ticks,
                "argv": files.masked_argv(former.argv),
            },
        }
        if proof.claim(step, record) is not None:
            return proof.FAILED, "it was begun before (a connection that was made twice)"
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error)
    try:
        for one in wanted["change"]["files"]:
            write(one, step)
    except ChangeError as error:  # nothing was loaded yet
        return _back(step, record, former, str(error), False)
    reason = ask_restart(record["reload"])
    if reason is None:
        found, reason = kubelet_restart.wait(_raised(former.argv, expect["level"]), former.identity)
        if found:
            return _end(step, proof.PROVEN, None, seen={"pid": found.pid, "ticks": found.ticks})
    return _back(step, record, former, f"the kubelet of {host} was not proven: {reason}", True)


def _raised(former, wanted):
    """A test of command lines: the former one, but for the level."""

    def misfit(argv):
        if level.of_argv(argv) != wanted:
            return "the process runs at level %d, not %d" % (level.of_argv(argv), wanted)
        return (
            None
            if level.without(argv) == level.without(former)
            else "the process does not run with the former command line beside its level"
        )

    return misfit


def _back(step, record, former, reason, restarted):
    """All of it taken back at once."""
    done = revert.revert(
        step.run_id, step.also(what="roll back: {}".format(record["path"])), only=record["paths"]
    )
    tidy(record["paths"])
    left = [one["reason"] for one in done if one["result"] == "refused"]
    if left:
        return _end(
            step, proof.FAILED, "{}; and not taken back: {}".format(reason, "; ".join(left))
        )
    if not restarted:
        return _end(step, proof.NOT_DONE, reason)
    try:
        now = kubelet_restart.look(record["host"]).identity
    except guard.Refused:
        now = None
    trouble = ask_restart(record["reload"])
    found, why = (
        (None, trouble)
        if trouble
        else kubelet_restart.wait(
            lambda argv: (
                None
                if argv == former.argv
                else "the process does not run with the former command line"
            ),
            now,
        )
    )
    if found:
        return _end(step, proof.ROLLED_BACK, reason + "; it runs as before (pid %d)" % found.pid)
    return _end(
        step,
        proof.FAILED,
        "{}; the former files are back, but the kubelet did not come back ({}): look at journalctl"
        " -u kubelet on {}".format(reason, why, record["host"]),
    )


def _end(step, state, reason, seen=None):
    return proof.ended(step, state, reason, seen)[:2]


def unfinished(record):
    """Whether the very process that was started with the raised level still runs, although its
    files may be back.
    """
    seen = record.get("seen") or {}
    return bool(seen.get("pid")) and proof.ticks(seen["pid"]) == seen.get("ticks")


def take_back(record, restore, step, allow):
    """The kubelet's part of a revert: (proven.

    True, False, or None where nothing had to start again, why).

    record: of the step that raised it; restore(step): puts the former files back and says why not.
    Raises guard.Refused or ChangeError before anything is changed.
    """
    may_restart(record, allow)
    mine = {
        name: record[name]
        for name in (
            "component",
            "host",
            "remedy",
            "limit",
            "path",
            "kind",
            "expect",
            "paths",
            "reload",
            "of_run",
        )
    }
    if (
        proof.claim(
            step, dict(mine, guard=dict(record.get("guard") or {}, allow=allow), former=None)
        )
        is not None
    ):
        raise guard.Refused(
            f"run {step.run_id} has begun this before (a connection that was made twice); list"
            " again to see what became of it"
        )
    problem = restore(step)
    tidy(record["paths"])
    if problem:
        return None, _end(step, proof.NOT_DONE, problem)[1]
    proven, reason = _lowered(record, allow)
    return proven, _end(step, proof.FAILED if proven is False else proof.PROVEN, reason)[1]


def resumed(record, step, allow=()):
    """What was interrupted is taken back: (how its proof ends, None while it has to wait; why)."""
    allow = sorted(set(allow).union((record.get("guard") or {}).get("allow") or []))
    try:
        may_restart(record, allow)
    except guard.Refused as error:
        return None, str(error)
    done = revert.revert(
        record["of_run"],
        step.also(what="roll back: {}".format(record["path"])),
        only=record["paths"],
    )
    tidy(record["paths"])
    left = [one["reason"] for one in done if one["result"] == "refused"]
    proven, reason = (False, "; ".join(left)) if left else _lowered(record, allow)
    return proof.FAILED if proven is False else proof.ROLLED_BACK, reason


def may_restart(record, allow):
    """The kubelet as it runs; guard.Refused where it has to be restarted and may not.

    One that is stopped needs no restart.
    """
    running = kubelet_restart.look(record["host"])
    if running.pid is not None and (record["reload"] or _is_raised(record, running)):
        kubelet_restart.check(
            record["host"], {"guard": record.get("guard")}, allow, record["paths"]
        )
    elif record["reload"] and "kubelet_restart" not in allow:
        # systemd's daemon-reload alone may take them
        kubelet_restart.demand_no_devices(record["host"])
    return running


def _settled(record, allow):
    """The same, of one that may have started a moment ago."""
    end = time.monotonic() + kubelet_restart.SECONDS
    while True:
        try:
            return may_restart(record, allow)
        except guard.Refused:
            if time.monotonic() >= end:
                raise
            time.sleep(kubelet_restart.PAUSE)


def _is_raised(record, running):
    return running.pid is not None and level.of_argv(running.argv) == record["expect"]["level"]


def _lowered(record, allow):
    """(proven, why): the kubelet started from the files that are back, where it runs with what
    was taken back. It may have started meanwhile.
    """
    try:
        kubelet_restart.load(record["reload"])
        running = _settled(record, allow)
    except (guard.Refused, command.CommandError) as error:
        return (
            False,
            (
                "the files are back, but the kubelet was not started from them:"
                f" {files.one_line(error)}"
            ),
        )
    if not _is_raised(record, running):
        return None, "its kubelet did not run at level %d any more" % record["expect"]["level"]
    trouble = ask_restart(False)
    found, why = (
        (None, trouble)
        if trouble
        else kubelet_restart.wait(
            lambda argv: (
                "the process still runs at level %d" % level.of_argv(argv)
                if level.of_argv(argv) == record["expect"]["level"]
                else None
            ),
            running.identity,
        )
    )
    if found:
        return True, None
    return (
        False,
        "the kubelet of {} was not proven after its files were restored: {}; look at journalctl -u"
        " kubelet".format(record["host"], why),
    )
