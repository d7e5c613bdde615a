# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets the limit of open files of a service, in a drop-in, and of its running processes.

systemd is not reloaded, because a reload can take devices away from containers. The file applies
from the unit's next start after a reload. Nothing restarts unless the operator allowed that by
name. Then systemd is reloaded and the unit restarted; where the unit does not start with the limit,
the file is restored and the unit is started as before. No limit is lowered. The file is written
first, so that a killed run can be completed.
"""

import base64
import os
import re
import time

from ...changes import step_claim
from ...collectors.node import limits
from ...shared import unit_limits
from ...shared.consent import KUBELET_RESTART
from ...shared.errors import PreconditionFailed
from ...state import step_record
from ...state.storage import ChangeError
from ...system import command, files, procfs, systemd
from .. import kubelet_restart, managed_file, preconditions, service_restart
from ..base import StepHandler, outcome
from .login_limit import ceiling

PROC = "/proc"
LINE = re.compile(r"([1-9][0-9]*)(:([1-9][0-9]*|infinity))?\Z")
HEADER = (
    b"# Made by kubemend: a process of this unit had as many files open as it may. It counts from"
    b" its next start after a daemon-reload.\n"
)
KEY = b"LimitNOFILE"
ASKED = "systemd was asked to restart it"
SETTLED = 5  # seconds until what systemd was asked for has begun


class SetServiceLimit(StepHandler):
    """Sets the limit of open files of a service.

    The change of a step is {path, unit, line, processes [{pid, ticks, soft, hard, select}],
    restart}.

    line: None where the unit has a sufficient limit already, or is transient.
    soft, hard: None where the kernel would refuse them, or where the program may use select().
    select: whether the program may use select().
    restart: the soft limit that the unit must have at once, by a restart; missing without a
        restart.
    """

    proc = PROC

    def check(self, step):
        """Return the processes, and what a restart needs; refuse what cannot be set."""
        name, line = step.change.get("unit"), step.change.get("line")
        restart = step.change.get("restart")
        _require_settable(name, line, step.path, step.host, restart)
        processes = _present(name, step.change.get("processes") or [], self.proc, step.host)
        facts = {"line": line, "unit": name, "processes": processes}
        if restart:
            facts["limit"] = service_restart.SECONDS
            facts.update(self._restart_facts(name, step))
        return facts

    def _restart_facts(self, name, step):
        """Return the process that must end, and the file's present bytes, for the record.

        PreconditionFailed is raised where the unit must not be restarted.
        """
        group = _show(name, step.host).get("ControlGroup", [""])[0]
        members = [
            int(pid)
            for pid in os.listdir(self.proc)
            if pid.isdigit() and within(int(pid), group, self.proc)
        ]
        main = service_restart.check(name, step.host, step.allow, step.path, members)
        try:
            before = managed_file.read(step.path)
        except OSError as error:
            raise PreconditionFailed(
                f"{step.path} of {step.host} cannot be read ({files.one_line(error)}): nothing was"
                " changed"
            ) from error
        return {
            "restart": step.change["restart"],
            "main": list(main),
            "before": None if before is None else base64.b64encode(before).decode(),
        }

    def apply(self, step, record):
        """Write the drop-in, where one is needed."""
        line = record["line"]
        if line is not None:
            managed_file.write(step.path, lambda present: merged(present, line), step.context)

    def explain_unwritten(self, step, error):
        """Return the sentence about a file that could not be written."""
        return (
            f"{step.path} of {step.host} could not be written ({files.one_line(error)}): no limit"
            " was changed; see what lies there"
        )

    def complete(self, step, record, applied):
        """Set the processes, or restart the unit."""
        if record.get("restart"):
            return outcome(step.context, *_restarted(step.context, record))
        results, refused = run(record["processes"], self.proc)
        if record["line"] is None and not results:
            reason = "; ".join(refused) or "there was nothing to do"
            return outcome(step.context, step_record.NOT_DONE, reason)
        return outcome(
            step.context,
            step_record.PROVEN,
            "; ".join(refused) or None,
            {"running": results, "line": record["line"]},
        )

    def recover(self, record, context=None, params=None):
        """Set the processes where the file has the limit, or complete the restart."""
        line, name = record["line"], record["unit"]
        written = line is None or managed_file.says(
            record["path"], lambda present: merged(present, line)
        )
        if record.get("phase") == ASKED:
            return _restart_recovered(record, context, written)
        if not written:
            return step_record.NOT_DONE, "nothing of it was written"
        if not record.get("restart"):
            refused = run(record["processes"], self.proc)[1]
            return step_record.PROVEN, "; ".join(refused) or "the unit and its processes have it"
        # another operator may allow something else
        if not line:
            return step_record.NOT_DONE, f"{name} was not restarted"
        return (
            step_record.PROVEN,
            f"the file is written, and {name} was not restarted: it counts from its next start",
        )


def _restarted(context, record):
    """Restart the unit, which loads the file: (state of the record, reason, what was seen).

    The file and the service are restored where the unit does not start with its limit.
    """
    name, host = record["unit"], record["host"]
    step_claim.tell(context.run_id, context.step, ASKED, context.root, "phase")
    # a later run would not know what to do with it
    if (step_record.read(context.run_id, context.step, context.root) or {}).get("phase") != ASKED:
        reason = f"{name} of {host} was not restarted, because that cannot be recorded"
        return _back(context, record, reason, restart=False)
    complaint = service_restart.restart(name)
    pid, failure = service_restart.wait(name, record["main"], record["restart"])
    if pid and not failure:
        return (
            step_record.PROVEN,
            None,
            {"pid": pid, "ticks": procfs.ticks(pid), "line": record["line"]},
        )
    effect = "has no more" if pid else "is not well"
    details = "; ".join(filter(None, [failure, complaint]))
    reason = f"{name} of {host} was restarted and {effect}: {details}"
    return _back(context, record, reason, restart=not pid)


def _back(context, record, reason, restart=True):
    """Restore the file, and start the unit with it.

    restart: whether the unit is down. A unit that is up is not stopped a second time.
    """
    name, before = record["unit"], record["before"]
    former = None if before is None else base64.b64decode(before)
    try:
        managed_file.put_back(record["path"], former, context)
    except (ChangeError, OSError) as error:
        trouble = "{} was not put back: {}".format(record["path"], files.one_line(error))
        return step_record.FAILED, f"{reason}; and {trouble}", {}
    reason = "{}; {} is as it was".format(reason, record["path"])
    if not restart or _is_former(record):
        return _left_running(name, reason)
    complaint = service_restart.restart(name)
    pid, failure = service_restart.wait(name, None, None)
    if pid:
        return (
            step_record.ROLLED_BACK,
            f"{reason}, and it runs with that (pid {pid})",
            {"pid": pid},
        )
    return (
        step_record.FAILED,
        "component down: {}, and it does not come up with that either ({}): look at journalctl"
        " -u {}".format(reason, "; ".join(filter(None, [failure, complaint])), name),
        {},
    )


def _left_running(name, reason):
    """Reload systemd, and return the end of a unit that is not restarted."""
    service_restart.reload()
    if not _is_stopping(name):
        return step_record.ROLLED_BACK, f"{reason}, and {name} runs", {}
    return (
        step_record.FAILED,
        (
            f"component down: {reason}, and {name} is stopping still: systemd starts it then"
            f" with that, see that it does (systemctl status {name})"
        ),
        {},
    )


def _is_stopping(name):
    try:
        return service_restart.is_stopping(name)
    except (command.CommandError, OSError):
        return True


def _is_former(record):
    return procfs.ticks(record["main"][0]) == record["main"][1]


def _require_settable(name, line, path, host, restart=None):
    """Require that the unit exists, and that no later file gives it a lower limit."""
    if not _is_managed(name or "", path):
        raise PreconditionFailed(
            f"{files.one_line(name, 80)} is no unit whose limit is written here"
        )
    if line is None and not restart:
        return
    _require_below_ceiling(name, line, host, restart)
    for place in systemd.unit(_show(name, host))["drop_in_paths"]:
        _require_read_before(place)


def _require_below_ceiling(name, line, host, restart):
    """Raise PreconditionFailed where no process of the host may have as many open files."""
    limit = str(restart) if line is None else line
    number = LINE.match(limit)
    bound = ceiling("nofile")
    if number is None or bound is None:
        raise PreconditionFailed(
            f"it is unknown how many files a process of {host} may have open: nothing was changed"
        )
    most, owner = bound
    if int(number.group(1)) > most >= 0:
        raise PreconditionFailed(
            f"LimitNOFILE={line or restart} is above {int(most)} ({owner}) on {host}: {name}"
            f" would not start with it, and nothing was"
            " changed"
        )


def _is_managed(name, path):
    folder, _slash, file = path.rpartition("/")
    return bool(
        unit_limits.UNIT.match(name)
        and file == unit_limits.OURS
        and folder.rpartition("/")[2] == name + ".d"
    )


def _require_read_before(place):
    """Raise PreconditionFailed where a drop-in that is read later sets the limit."""
    if place.rpartition("/")[2] <= unit_limits.OURS:
        return
    lines = [
        line
        for line in limits.settings(place, files.text(place, managed_file.MAX_FILE, ""))
        if line["text"].startswith("LimitNOFILE=")
    ]
    if lines:
        raise PreconditionFailed(
            "{}:{} is read after our file and says {}: raise it there, or take the line away;"
            " nothing was changed".format(place, int(lines[-1]["line"]), lines[-1]["text"])
        )


def _show(name, host):
    """Return systemd's properties of the unit; raise PreconditionFailed where there are none."""
    try:
        block = systemd.show([name], (*limits.PROPERTIES, "ControlGroup")).get(name)
    except (command.CommandError, OSError) as error:
        raise PreconditionFailed(
            f"systemd of {host} does not say what {name} is ({files.one_line(error)}): nothing was"
            " changed"
        ) from error
    if not block or block.get("LoadState", [""])[0] != "loaded":
        raise PreconditionFailed(
            f"{host} has no unit {name} that could be started: nothing was changed"
        )
    return block


def _present(name, processes, proc, host):
    """Return the processes of the evidence that still belong to this unit of this systemd.

    A process in a container may belong to a unit of the same name, which does not count. The
    `former` of each process is its present limit; the record needs it where another run ends the
    step.
    """
    group = _show(name, host).get("ControlGroup", [""])[0]
    present = [
        dict(
            [(key, process.get(key)) for key in ("pid", "ticks", "soft", "hard", "select")],
            former=nofile(process["pid"], proc),
        )
        for process in processes
        if _is_same(process, proc) and within(process["pid"], group, proc)
    ]
    if not present:
        raise PreconditionFailed(
            f"the evidence is old: no process of it is one of {name} of {host} any more;"
            f" {preconditions.OLD}"
        )
    return present


def _is_same(process, proc):
    ticks = process.get("ticks")
    return ticks is not None and procfs.ticks(process["pid"], proc) == ticks


def within(pid, group, proc=PROC):
    """Return whether a process is in this control group, as PID 1 counts them."""
    own_group, first = [
        _group(files.text(f"{proc}/{int(number)}/cgroup", 65536, "")) for number in (pid, 1)
    ]
    if not group.strip("/") or own_group is None or first is None:
        return False
    if first.endswith("/init.scope"):
        first = first[: -len("/init.scope")]
    place = first.rstrip("/") + group.rstrip("/")
    return own_group == place or own_group.startswith(place + "/")


def _group(text):
    """Return a process's path in systemd's hierarchy: of its own, where there are several."""
    rows = [line.split(":", 2) for line in text.splitlines() if line.count(":") > 1]
    paths = [row[2] for row in rows if row[1] == "name=systemd"]
    paths = paths or [row[2] for row in rows if row[0] == "0"]
    return paths[0] if paths else None


def merged(present, line):
    """Return the bytes of the drop-in with this limit: the rest of it stays."""
    limit = b"%s=%s\n" % (KEY, line.encode())
    rows = [
        row
        for row in (HEADER if present is None else present).splitlines(True)
        if row.partition(b"=")[0].strip() != KEY
    ]
    if rows and not rows[-1].endswith(b"\n"):
        rows[-1] += b"\n"
    sections = [row.strip() for row in rows if row.strip().startswith(b"[")]
    if sections[-1:] != [b"[Service]"]:
        rows.append(b"[Service]\n")
    return b"".join([*rows, limit])


def run(processes, proc=PROC):
    """Set the processes' limits: ([{pid, ticks, former, now}], what could not be set).

    Each process is compared again before, and its limit is read afterwards.
    """
    results, refused = [], []
    for process in processes:
        result, reason = _set(process, proc)
        if result:
            results.append(result)
        else:
            refused.append("process {} {}".format(int(process["pid"]), reason))
    return results, refused


def _set(process, proc):
    """Set one process's limit; return (what was seen, None) or (None, why it was not set)."""
    pid = process["pid"]
    if process["soft"] is None:
        reason = "raising it needs CAP_SYS_RESOURCE"
        if process.get("select"):
            reason = "it may use select(), which breaks beyond it"
        return None, f"keeps its limit until its unit is started again: {reason}"
    former, ticks = nofile(pid, proc), procfs.ticks(pid, proc)
    if former is None or ticks != process["ticks"]:
        is_there = os.path.exists(f"{proc}/{pid}/stat")
        if is_there and ticks in (None, process["ticks"]):
            return None, (
                "keeps its limit until its unit is started again (what it has cannot be read)"
            )
        return None, "has ended"
    target = aim(former, process)
    reason = set_nofile(pid, target)
    now = nofile(pid, proc)
    if reason is None and now not in (None, target):
        reason = f"it has {now}"
    if reason is not None:
        return None, f"keeps its limit until its unit is started again ({reason})"
    return {"pid": pid, "ticks": process["ticks"], "former": former, "now": now}, None


def aim(former, process):
    """Return [soft, hard] that a process gets that had former."""
    return [_more(former[0], process["soft"]), _more(former[1], process["hard"])]


def _more(former, target):
    """Return the higher limit; -1 is unlimited."""
    return -1 if -1 in (former, target) else max(former, target)


def nofile(pid, proc=PROC):
    """Return [soft, hard] of a process by the kernel; None when it is gone."""
    return procfs.rlimit(files.text(f"{proc}/{pid}/limits", 8192, ""), "Max open files")


def set_nofile(pid, pair):
    """Set these limits; return why the kernel does not, or None.

    Python lacks the function where the C library lacks prlimit().
    """
    import resource  # only this step needs it

    try:
        soft, hard = (resource.RLIM_INFINITY if number < 0 else number for number in pair)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    except (AttributeError, OSError, ValueError, OverflowError) as error:
        return files.one_line(error)
    return None


def _restart_recovered(record, context, written):
    """Complete an interrupted restart: (state of the record, reason).

    A unit that is down is started as before, unless it was stopped since. A unit that is up stays
    up.
    """
    name, host = record["unit"], record["host"]
    if not _has_begun(record):
        return (
            step_record.PROVEN,
            f"{name} was not restarted: what is written counts from its next start",
        )
    pid, reason = service_restart.wait(name, record["main"], record["restart"] if written else None)
    if pid:
        return _restart_ended(record, written, pid, reason)
    try:
        if service_restart.is_stopped(name):
            return step_record.PROVEN, f"{name} was stopped since, and stays so"
        allow = (record.get("guard") or {}).get("allow") or []
        if not _is_former(record) and KUBELET_RESTART not in allow:
            kubelet_restart.demand_no_devices(host)
    except (command.CommandError, OSError, PreconditionFailed) as error:
        return (
            None,
            f"{name} of {host} is not well ({reason}), and was left so: {files.one_line(error)}",
        )
    return _back(
        context,
        record,
        f"{name} of {host} was restarted by a run that was interrupted, and is not well: {reason}",
    )[:2]


def _has_begun(record):
    """Return whether the restart began, within the seconds that systemd needs for that."""
    end = time.monotonic() + SETTLED
    while _is_former(record) and not _is_stopping(record["unit"]):
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def _restart_ended(record, written, pid, reason):
    """Return how a restart ended after which the unit runs."""
    name = record["unit"]
    if not written:
        return step_record.ROLLED_BACK, "{} is as it was, and {} runs with that (pid {})".format(
            record["path"], name, pid
        )
    if reason:
        return step_record.PROVEN, f"{name} runs, and {reason}: the file counts from its next start"
    return step_record.PROVEN, f"{name} runs with it (pid {pid})"
