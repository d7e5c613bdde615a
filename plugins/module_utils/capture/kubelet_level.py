# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restart of this node's kubelet at another log level, and its revert.

The files are journalled like every other. The command line of the new process and its healthz
verify it.
"""

import time

from ..changes import step_claim
from ..shared.klog_verbosity import of_argv, without
from ..state import step_record
from ..state.storage import ChangeError
from ..steps import kubelet_restart, preconditions
from ..steps.kubelet_files import ask_restart, tidy, write
from ..steps.revert.files import revert
from ..system import command, files

REMEDY, COMPONENT = "raise_kubelet", "kubelet"
BUDGET = 2 * (kubelet_restart.SECONDS + 60) + 30  # seconds: there, and back where it is not proven

RECORDED = (  # of the record that raised it, in the record of its revert
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


def raise_level(step, plan_step, host):
    """Raise the level by a restart, and return (the record's state, the reason).

    The restart is verified, or rolled back. step: the context; plan_step: the plan's step.
    """
    try:
        former = _checked(plan_step, host)
        record = _record(step, plan_step, host, former)
        if step_claim.claim(step, record) is not None:
            return step_record.FAILED, "it was begun before (a connection that was made twice)"
    except (preconditions.PreconditionFailed, ChangeError) as error:
        return step_record.NOT_DONE, str(error)
    try:
        for file in plan_step["change"]["files"]:
            write(file, step)
    except ChangeError as error:  # nothing was loaded yet
        return _back(step, record, former, str(error), False)
    reason = ask_restart(record["reload"])
    if reason is None:
        running, reason = kubelet_restart.wait(
            _raised(former.argv, plan_step["expect"]["level"]), former.identity
        )
        if running:
            process = {"pid": running.pid, "ticks": running.ticks}
            return _end(step, step_record.PROVEN, None, process=process)
    return _back(step, record, former, f"the kubelet of {host} was not proven: {reason}", True)


def _checked(plan_step, host):
    """Return the kubelet as it runs before the restart, or raise where it must not be restarted."""
    allow = (plan_step.get("guard") or {}).get("allow") or []
    return kubelet_restart.check(host, plan_step, allow, _paths(plan_step))


def _paths(plan_step):
    return [file["path"] for file in plan_step["change"]["files"]]


def _record(step, plan_step, host, former):
    paths = _paths(plan_step)
    return {
        "component": COMPONENT,
        "host": host,
        "remedy": REMEDY,
        "limit": kubelet_restart.SECONDS,
        "path": paths[0],
        "kind": "none",
        "expect": plan_step["expect"],
        "guard": plan_step.get("guard"),
        "paths": paths,
        "reload": plan_step["change"]["reload"],
        "of_run": step.run_id,
        "former": {
            "pid": former.pid,
            "ticks": former.ticks,
            "argv": files.masked_argv(former.argv),
        },
    }


def _raised(former, level):
    """Return a test of command lines: it accepts the former one with another level."""

    def mismatch(argv):
        if of_argv(argv) != level:
            return f"the process runs at level {of_argv(argv):d}, not {level:d}"
        if without(argv) != without(former):
            return "the process does not run with the former command line except for its level"
        return None

    return mismatch


def _unchanged(former):
    """Return a test of command lines: it accepts exactly the former one."""

    def mismatch(argv):
        if argv != former:
            return "the process does not run with the former command line"
        return None

    return mismatch


def _lower_than(level):
    """Return a test of command lines: it accepts every level but the raised one."""

    def mismatch(argv):
        if of_argv(argv) == level:
            return f"the process still runs at level {level:d}"
        return None

    return mismatch


def _back(step, record, former, reason, restarted):
    """Roll all of it back at once, and return (the record's state, the reason)."""
    refused = _refused(step.run_id, record, step)
    if refused:
        return _end(step, step_record.FAILED, f"{reason}; and not taken back: {refused}")
    if not restarted:
        return _end(step, step_record.NOT_DONE, reason)
    try:
        now = kubelet_restart.look(record["host"]).identity
    except preconditions.PreconditionFailed:
        now = None
    running, problem = _restarted(record["reload"], _unchanged(former.argv), now)
    if running:
        return _end(
            step, step_record.ROLLED_BACK, f"{reason}; it runs as before (pid {running.pid:d})"
        )
    return _end(
        step,
        step_record.FAILED,
        "{}; the former files are back, but the kubelet did not come back ({}): look at journalctl"
        " -u kubelet on {}".format(reason, problem, record["host"]),
    )


def _refused(run_id, record, step):
    """Restore the former files, and return why some were not restored, or an empty text."""
    results = revert(
        run_id, step.also(what="roll back: {}".format(record["path"])), only=record["paths"]
    )
    tidy(record["paths"])
    return "; ".join(file["reason"] for file in results if file["result"] == "refused")


def _restarted(reload_units, mismatch, former):
    """Restart the kubelet, and return (the new one or None, the problem)."""
    problem = ask_restart(reload_units)
    if problem:
        return None, problem
    return kubelet_restart.wait(mismatch, former)


def _end(step, state, reason, process=None):
    return step_claim.ended(step, state, reason, process)[:2]


def take_back(record, restore, step, allow):
    """Revert the kubelet's part of a run, and return (verified, the reason).

    verified: None where nothing had to restart; record: that of the step that raised it;
    restore(step): restores the former files and returns why not. It raises PreconditionFailed
    or ChangeError before anything is changed.
    """
    may_restart(record, allow)
    facts = {name: record[name] for name in RECORDED}
    facts.update(guard=dict(record.get("guard") or {}, allow=allow), former=None)
    if step_claim.claim(step, facts) is not None:
        raise preconditions.PreconditionFailed(
            f"run {step.run_id} has begun this before (a connection that was made twice); list"
            " again to see what became of it"
        )
    problem = restore(step)
    tidy(record["paths"])
    if problem:
        return None, _end(step, step_record.NOT_DONE, problem)[1]
    verified, reason = _lowered(record, allow)
    state = step_record.FAILED if verified is False else step_record.PROVEN
    return verified, _end(step, state, reason)[1]


def resumed(record, step, allow=()):
    """Finish an interrupted revert, and return (the record's state, the reason).

    The state is None while it has to wait.
    """
    allow = sorted(set(allow).union((record.get("guard") or {}).get("allow") or []))
    try:
        may_restart(record, allow)
    except preconditions.PreconditionFailed as error:
        return None, str(error)
    refused = _refused(record["of_run"], record, step)
    if refused:
        return step_record.FAILED, refused
    verified, reason = _lowered(record, allow)
    return step_record.FAILED if verified is False else step_record.ROLLED_BACK, reason


def may_restart(record, allow):
    """Return the kubelet as it runs, or raise PreconditionFailed where it must not be restarted.

    A kubelet that is stopped needs no restart.
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
    """Return may_restart() of a kubelet that may have started a moment ago."""
    end = time.monotonic() + kubelet_restart.SECONDS
    while True:
        try:
            return may_restart(record, allow)
        except preconditions.PreconditionFailed:
            if time.monotonic() >= end:
                raise
            time.sleep(kubelet_restart.PAUSE)


def _is_raised(record, running):
    return running.pid is not None and of_argv(running.argv) == record["expect"]["level"]


def _lowered(record, allow):
    """Restart the kubelet with the restored files, where it still runs at the raised level.

    It returns (verified, the reason). The kubelet may have restarted meanwhile.
    """
    level = record["expect"]["level"]
    try:
        kubelet_restart.load(record["reload"])
        running = _settled(record, allow)
    except (preconditions.PreconditionFailed, command.CommandError) as error:
        return False, (
            "the files are back, but the kubelet was not started from them:"
            f" {files.one_line(error)}"
        )
    if not _is_raised(record, running):
        return None, f"its kubelet did not run at level {level:d} any more"
    lowered, problem = _restarted(False, _lower_than(level), running.identity)
    if lowered:
        return True, None
    return False, (
        "the kubelet of {} was not proven after its files were restored: {}; look at journalctl -u"
        " kubelet".format(record["host"], problem)
    )
