# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""More open files for a service of this node.

A drop-in of ours, and its running processes told as far as the kernel lets us.

systemd is not told: a daemon-reload can take devices away from containers. The file counts from the
unit's next start after one, and nothing restarts, unless its operator allowed that by name: then
systemd is told and the unit restarted, and where it does not come up with the limit, the file is
taken back and it is started as before. Nothing is ever lowered. The file first: whoever finds a
killed run ends it by what comes after.
"""

import base64
import os
import re
import time

from ...collectors.node import limits
from ...shared import unit_limits
from ...state import step_record as proof
from ...state.storage import ChangeError
from ...system import command, files, procfs
from ...system import systemd as unit
from .. import (
    kubelet_restart,
)
from .. import (
    managed_file as own_file,
)
from .. import (
    preconditions as guard,
)
from .. import (
    service_restart as unit_restart,
)
from . import login_limit as file_limit

REMEDY = "unit_limit"
SECONDS = 30
PROC = "/proc"
LINE = re.compile(r"([1-9][0-9]*)(:([1-9][0-9]*|infinity))?\Z")
HEADER = (
    b"# Made by kubemend: a process of this unit had as many files open as it may. It counts from"
    b" its next start after a daemon-reload.\n"
)
KEY = b"LimitNOFILE"
ASKED = "systemd was asked to restart it"
SETTLED = 5  # seconds until what systemd was asked for has begun


def do(step, wanted, host, dummy_params=None, proc=PROC):
    """(how its proof ended, why, what was seen). wanted.

    The plan's step, its change {path, unit, line, processes [{pid, ticks, soft, hard, select}],
    restart}.

    line: None where the unit gives as much already, or is transient. soft, hard: None where the
    kernel would not take them, or the program may use select(), which select says. restart: the
    soft limit that the unit has to have at once, by a restart; none where there is no such key.
    """
    asked = wanted["change"]
    name, line, restart = asked.get("unit"), asked.get("line"), asked.get("restart")
    try:
        _demand(name, line, asked["path"], host, restart)
        those = _there(name, asked.get("processes") or [], proc, host)
        record = {
            "component": None,
            "host": host,
            "remedy": REMEDY,
            "limit": unit_restart.SECONDS if restart else SECONDS,
            "kind": "none",
            "path": asked["path"],
            "line": line,
            "unit": name,
            "processes": those,
            "expect": {},
            "guard": wanted.get("guard"),
            "former": None,
        }
        if restart:
            record.update(_restarting(name, wanted, host, proc))
        if proof.claim(step, record) is not None:
            return proof.FAILED, "it was begun before (a connection that was made twice)", {}
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error), {}
    try:
        if line is not None:
            own_file.write(asked["path"], lambda present: merged(present, line), step)
    except (ChangeError, OSError) as error:
        state = proof.FAILED if getattr(error, "changed", False) else proof.NOT_DONE
        return proof.ended(
            step,
            state,
            "{} of {} could not be written ({}): no limit was changed; see what lies there".format(
                asked["path"], host, files.one_line(error)
            ),
        )
    if restart:
        return proof.ended(step, *_restarted(step, record))
    seen, refused = run(those, proc)
    if line is None and not seen:
        return proof.ended(step, proof.NOT_DONE, "; ".join(refused) or "there was nothing to do")
    return proof.ended(
        step, proof.PROVEN, "; ".join(refused) or None, {"running": seen, "line": line}
    )


def _restarting(name, wanted, host, proc):
    """What the record of a restart holds besides.

    The process that must go, and the bytes of our file as they are; guard.Refused where it must not
    be.
    """
    group, path = _show(name, host).get("ControlGroup", [""])[0], wanted["change"]["path"]
    members = [
        int(pid) for pid in os.listdir(proc) if pid.isdigit() and within(int(pid), group, proc)
    ]
    main = unit_restart.check(
        name, host, (wanted.get("guard") or {}).get("allow") or [], path, members
    )
    try:
        before = own_file.read(path)
    except OSError as error:
        raise guard.Refused(
            f"{path} of {host} cannot be read ({files.one_line(error)}): nothing was changed"
        )
    return {
        "restart": wanted["change"]["restart"],
        "main": list(main),
        "before": None if before is None else base64.b64encode(before).decode(),
    }


def _restarted(step, record):
    """(state, why, seen) of the restart that the file waits for.

    The file and the service as they were where it does not come up with its limit.
    """
    name, host = record["unit"], record["host"]
    proof.tell(step.run_id, step.step, ASKED, step.root, "phase")
    # a later run would not know what to do with it
    if (proof.read(step.run_id, step.step, step.root) or {}).get("phase") != ASKED:
        return _back(
            step,
            record,
            f"{name} of {host} was not restarted, because that cannot be recorded",
            restart=False,
        )
    told = unit_restart.restart(name)
    pid, why = unit_restart.wait(name, record["main"], record["restart"])
    if pid and not why:
        return proof.PROVEN, None, {"pid": pid, "ticks": procfs.ticks(pid), "line": record["line"]}
    return _back(
        step,
        record,
        "{} of {} was restarted and {}: {}".format(
            name,
            host,
            "has no more" if pid else "is not well",
            "; ".join(filter(None, [why, told])),
        ),
        restart=not pid,
    )


def _back(step, record, reason, restart=True):
    """Our file as it was, and the unit started with that. restart: whether it is down.

    One that is up is not stopped a second time.
    """
    name, before = record["unit"], record["before"]
    try:
        own_file.put_back(
            record["path"], None if before is None else base64.b64decode(before), step
        )
    except (ChangeError, OSError) as error:
        return (
            proof.FAILED,
            "{}; and {} was not put back: {}".format(reason, record["path"], files.one_line(error)),
            {},
        )
    reason = "{}; {} is as it was".format(reason, record["path"])
    if not restart or _is_former(record):
        unit_restart.reload()
        if not _under_way(name):
            return proof.ROLLED_BACK, f"{reason}, and {name} runs", {}
        return (
            proof.FAILED,
            (
                f"component down: {reason}, and {name} is stopping still: systemd starts it then"
                f" with that, see that it does (systemctl status {name})"
            ),
            {},
        )
    told = unit_restart.restart(name)
    pid, why = unit_restart.wait(name, None, None)
    if pid:
        return proof.ROLLED_BACK, "%s, and it runs with that (pid %d)" % (reason, pid), {"pid": pid}
    return (
        proof.FAILED,
        "component down: {}, and it does not come up with that either ({}): look at journalctl"
        " -u {}".format(reason, "; ".join(filter(None, [why, told])), name),
        {},
    )


def _under_way(name):
    try:
        return unit_restart.is_stopping(name)
    except (command.CommandError, OSError):
        return True


def _is_former(record):
    return procfs.ticks(record["main"][0]) == record["main"][1]


def _demand(name, line, path, host, restart=None):
    """What may be written, for a unit that is there, where nothing that is read later says less.

    Guard.Refused.
    """
    if (
        not unit_limits.UNIT.match(name or "")
        or path.rpartition("/")[2] != unit_limits.OURS
        or path.rpartition("/")[0].rpartition("/")[2] != name + ".d"
    ):
        raise guard.Refused(f"{files.one_line(name, 80)} is no unit whose limit is written here")
    if line is None and not restart:
        return
    words = LINE.match(str(restart) if line is None else line)
    most = file_limit.ceiling("nofile")
    if words is None or most is None:
        raise guard.Refused(
            f"nobody can tell how many files a process of {host} may have open: nothing was changed"
        )
    if int(words.group(1)) > most[0] >= 0:
        raise guard.Refused(
            "LimitNOFILE=%s is above %d (%s) on %s: %s would not start with it, and nothing was"
            " changed" % ((line or restart, *most, host, name))
        )
    block = _show(name, host)
    for place in unit.unit(block)["drop_in_paths"]:
        told = [
            one
            for one in limits.settings(place, files.text(place, own_file.MAX_FILE, ""))
            if one["text"].startswith("LimitNOFILE=")
        ]
        if told and place.rpartition("/")[2] > unit_limits.OURS:
            raise guard.Refused(
                "%s:%d is read after our file and says %s: raise it there, or take the line away;"
                " nothing was changed" % (place, told[-1]["line"], told[-1]["text"])
            )


def _show(name, host):
    """Systemd's properties of the unit.

    Guard.Refused where it has no such unit, or does not answer.
    """
    try:
        block = unit.show([name], (*limits.PROPERTIES, "ControlGroup")).get(name)
    except (command.CommandError, OSError) as error:
        raise guard.Refused(
            f"systemd of {host} does not say what {name} is ({files.one_line(error)}): nothing was"
            " changed"
        )
    if not block or block.get("LoadState", [""])[0] != "loaded":
        raise guard.Refused(f"{host} has no unit {name} that could be started: nothing was changed")
    return block


def _there(name, processes, proc, host):
    """Those that are the ones of the evidence, and of this unit of this systemd.

    One in a container may have a unit of the same name.

    former: what each has now, so that the record knows it also of a step that is ended by somebody
    else.
    """
    group = _show(name, host).get("ControlGroup", [""])[0]
    found = [
        dict(
            [(key, one.get(key)) for key in ("pid", "ticks", "soft", "hard", "select")],
            former=nofile(one["pid"], proc),
        )
        for one in processes
        if one.get("ticks") is not None
        and procfs.ticks(one["pid"], proc) == one["ticks"]
        and within(one["pid"], group, proc)
    ]
    if not found:
        raise guard.Refused(
            f"the evidence is old: no process of it is one of {name} of {host} any more;"
            f" {guard.OLD}"
        )
    return found


def within(pid, group, proc=PROC):
    """Whether a process is in this control group, as PID 1 counts them."""
    own, first = [_group(files.text("%s/%d/cgroup" % (proc, one), 65536, "")) for one in (pid, 1)]
    if not group.strip("/") or own is None or first is None:
        return False
    place = (first[: -len("/init.scope")] if first.endswith("/init.scope") else first).rstrip(
        "/"
    ) + group.rstrip("/")
    return own == place or own.startswith(place + "/")


def _group(text):
    """Its path in systemd's hierarchy: of its own, where there are several."""
    rows = [line.split(":", 2) for line in text.splitlines() if line.count(":") > 1]
    paths = [row[2] for row in rows if row[1] == "name=systemd"] or [
        row[2] for row in rows if row[0] == "0"
    ]
    return paths[0] if paths else None


def merged(present, line):
    """The bytes of our file with this limit: whatever else it holds stays."""
    ours = b"%s=%s\n" % (KEY, line.encode())
    rows = [
        row
        for row in (HEADER if present is None else present).splitlines(True)
        if row.partition(b"=")[0].strip() != KEY
    ]
    if rows and not rows[-1].endswith(b"\n"):
        rows[-1] += b"\n"
    sections = [row.strip() for row in rows if row.strip().startswith(b"[")]
    return b"".join(rows + ([] if sections[-1:] == [b"[Service]"] else [b"[Service]\n"]) + [ours])


def run(those, proc=PROC):
    """Tell the processes: ([{pid, ticks, former, now}], what could not be).

    Each is compared once more, and looked at afterwards.
    """
    seen, refused = [], []
    for one in those:
        pid = one["pid"]
        if one["soft"] is None:
            refused.append(
                "process %d keeps its limit until its unit is started again: %s"
                % (
                    pid,
                    (
                        "it may use select(), which breaks beyond it"
                        if one.get("select")
                        else "raising it needs CAP_SYS_RESOURCE"
                    ),
                )
            )
            continue
        former, ticks = nofile(pid, proc), procfs.ticks(pid, proc)
        if former is None or ticks != one["ticks"]:
            there = os.path.exists("%s/%d/stat" % (proc, pid)) and ticks in (None, one["ticks"])
            refused.append(
                "process %d %s"
                % (
                    pid,
                    (
                        "keeps its limit until its unit is started again (what it has cannot be"
                        " read)"
                        if there
                        else "has ended"
                    ),
                )
            )
            continue
        asked = aim(former, one)
        why = told(pid, asked)
        now = nofile(pid, proc)
        if why is None and now is not None and now != asked:
            why = f"it has {now}"
        if why is None:
            seen.append({"pid": pid, "ticks": one["ticks"], "former": former, "now": now})
        else:
            refused.append(
                "process %d keeps its limit until its unit is started again (%s)" % (pid, why)
            )
    return seen, refused


def aim(former, one):
    """[soft, hard] that a process gets that had former."""
    return [_more(former[0], one["soft"]), _more(former[1], one["hard"])]


def _more(former, asked):
    """Nothing is lowered; -1 is unlimited."""
    return -1 if -1 in (former, asked) else max(former, asked)


def nofile(pid, proc=PROC):
    """[soft, hard] of a process as the kernel says it; None when it is gone."""
    return procfs.rlimit(files.text("%s/%d/limits" % (proc, pid), 8192, ""), "Max open files")


def told(pid, pair):
    """Why the kernel does not give a process these limits, or None.

    Python lacks the call where the C library does.
    """
    import resource  # a step alone needs it

    try:
        resource.prlimit(
            pid,
            resource.RLIMIT_NOFILE,
            tuple(resource.RLIM_INFINITY if one < 0 else one for one in pair),
        )
    except (AttributeError, OSError, ValueError, OverflowError) as error:
        return files.one_line(error)
    return None


def resumed(record, step=None, proc=PROC):
    """What was interrupted, ended: (how its proof ends, why).

    Where our file says it, the processes are told too, or the unit is proven, or as it was.
    """
    written = record["line"] is None or own_file.says(
        record["path"], lambda present: merged(present, record["line"])
    )
    if record.get("phase") == ASKED:
        return _restart_resumed(record, step, written)
    if not written:
        return proof.NOT_DONE, "nothing of it was written"
    if record.get("restart"):  # another operator may allow something else
        return (
            (
                proof.PROVEN,
                "the file is written, and {} was not restarted: it counts from its next start".format(
                    record["unit"]
                ),
            )
            if record["line"]
            else (proof.NOT_DONE, "{} was not restarted".format(record["unit"]))
        )
    refused = run(record["processes"], proc)[1]
    return proof.PROVEN, "; ".join(refused) or "the unit and its processes have it"


def _restart_resumed(record, step, written):
    """A restart goes on without whoever asked for it.

    One that is down is started as before, unless somebody stopped it since; one that is up is left.
    """
    name, host = record["unit"], record["host"]
    end = time.monotonic() + SETTLED
    while _is_former(record) and not _under_way(name):
        if time.monotonic() > end:
            return (
                proof.PROVEN,
                f"{name} was not restarted: what is written counts from its next start",
            )
        time.sleep(0.2)
    pid, why = unit_restart.wait(name, record["main"], record["restart"] if written else None)
    if pid and not written:
        return proof.ROLLED_BACK, "%s is as it was, and %s runs with that (pid %d)" % (
            record["path"],
            name,
            pid,
        )
    if pid:
        return proof.PROVEN, (
            "%s runs with it (pid %d)" % (name, pid)
            if not why
            else f"{name} runs, and {why}: the file counts from its next start"
        )
    try:
        if unit_restart.is_stopped(name):
            return proof.PROVEN, f"{name} was stopped since, and stays so"
        if not _is_former(record) and "kubelet_restart" not in (
            (record.get("guard") or {}).get("allow") or []
        ):
            kubelet_restart.demand_no_devices(host)
    except (command.CommandError, OSError, guard.Refused) as error:
        return (
            None,
            f"{name} of {host} is not well ({why}), and was left so: {files.one_line(error)}",
        )
    return _back(
        step,
        record,
        f"{name} of {host} was restarted by a run that was interrupted, and is not well: {why}",
    )[:2]
