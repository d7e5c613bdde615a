# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector component_restart: how containers of control plane components ended in the last hour.

It asks the runtime for the containers that it still has, and reads the journals of runtime,
kubelet and kernel. It reads none of them where all components have run for longer.
"""

import os
import time

from ...system import command, cri, files, procfs, protobuf
from ..base import Denied
from . import component_end
from .runtime import EMBEDDED

RECENT = component_end.RECENT
# A stop begins some time before the container ends, and a probe fails several times before that.
BEFORE = 600
SECONDS = 2.0
READ_BYTES, KEPT, LONGEST, MAX_CONTAINERS, MAX_MESSAGE = 4 * 1024 * 1024, 200, 500, 40, 300
# A line of the kernel has at most 1024 bytes; its end names whose process was killed.
LONGEST_OF_KERNEL = 1500
JOURNALS = ("/var/log/journal", "/run/log/journal")
NAME, POD_UID = "io.kubernetes.container.name", "io.kubernetes.pod.uid"
RESTARTS = "io.kubernetes.container.restartCount"
STATES = ("created", "running", "exited", "unknown")
NANOSECONDS = 1e9
# What a kubelet of 1.14 to 1.36 logs of a container that it ends or does not start again yet.
# The texts of probes have --v=1, those of its own stop --v=2; a back-off is logged always.
OF_KUBELET = (
    "iveness probe",
    "tartup probe",
    "robe failed",
    "robe errored",
    "probe for",
    'SyncLoop (probe)" probe="liveness"',
    "(container unhealthy)",
    "Killing container",
    "definition changed",
    "ack-off",
)
READINESS = ("eadiness probe", 'probeType="Readiness"', '="readiness"')
# What containerd and CRI-O log of a container by its id.
OF_CONTAINER = ("StopContainer for", "TaskOOM", "exit event", "TaskExit", "Stopping container: ")
CREATED = ("CreateContainer within sandbox", "Created container ")
RETURNS = "returns container id"
# Each line of the kernel that names who was killed, and by which limit.
OF_KERNEL = (
    "oom-kill:",
    "Killed process ",
    "Out of memory: Kill process ",  # up to Linux 4.20, before the line of the victim
    "killed as a result of limit of",
    "going to be killed due to memory.oom.group",
)


def collect(context):
    """Return {since, runtime_started, containers, unread, runtime, kubelet, kernel}.

    containers: [{component, id, sandbox, pod_uid, attempt, state, created, started, finished,
    exit_code, reason, message, memory_limit}] that the runtime has, None where unread says why it
    was not asked; runtime, kubelet, kernel: {lines, oldest, error} of the journals. A line begins
    with the seconds since the epoch.
    """
    components = component_end.recent(context)
    if os.geteuid() != 0:
        raise Denied("the runtime's socket and the journals are for root")
    since = time.time() - RECENT - BEFORE
    runtime = context.data.get("runtime") or {}
    unit = _unit(runtime)
    context.source = "the runtime's socket, journalctl"
    containers, unread = _containers(context, runtime, components)
    ids = [container["id"] for container in containers or ()]
    kubelet = ((context.data.get("kubelet") or {}).get("unit") or {}).get("name")
    runtime_lines, kubelet_lines, kernel_lines = _journals(
        context, (unit.get("name"), kubelet, "-k"), since
    )
    return {
        "since": since,
        "runtime_started": procfs.started_at(unit.get("main_pid") or 0),
        "containers": containers,
        "unread": unread,
        "runtime": _journal(runtime_lines, lambda lines: of_runtime(lines, components, ids)),
        "kubelet": _journal(kubelet_lines, lambda lines: of_kubelet(lines, components)),
        "kernel": _journal(kernel_lines, of_kernel, LONGEST_OF_KERNEL),
    }


def _unit(runtime):
    """Return the first unit of the runtime that is there: it runs the containers."""
    units = [unit for unit in runtime.get("units") or () if not unit.get("absent")]
    return next(iter(units), {})


def _containers(context, runtime, components):
    """Return (the containers of these components, None), or (None, why they are not known)."""
    if not runtime:
        return None, "the container runtime is not known"
    if runtime.get("kind") == EMBEDDED:
        return None, "the runtime is a part of another program and is not asked"
    calls = runtime.get("calls") or {}
    api = next((name for name in cri.VERSIONS if calls.get(name) == cri.OK), None)
    if api is None:
        return None, "the runtime answers no call of the CRI"
    rows = []
    for component in components:
        listed = _listed(context, runtime["path"], api, component)
        if listed is None:
            return None, "the runtime does not list its containers"
        rows += listed
    for row in rows:
        _add_status(context, runtime["path"], api, row)
    return rows, None


def _call(context, path, api, method, message):
    return cri.call(
        path, f"runtime.{api}.RuntimeService/{method}", message, context.seconds(SECONDS)
    )


def _listed(context, path, api, component):
    """Return the containers with a component's name in static pods, None without an answer."""
    label = protobuf.string(1, NAME) + protobuf.string(2, component)
    question = protobuf.message(1, protobuf.message(4, label))
    status, data = _call(context, path, api, "ListContainers", question)
    if status != cri.OK:
        return None
    rows = [container_of(item, component) for item in protobuf.values(protobuf.fields(data), 1)]
    rows = [row for row in rows if "-" not in row["pod_uid"]]  # of static pods
    rows.sort(key=lambda row: row["created"] or 0.0)
    return rows[-MAX_CONTAINERS // 5 :]


def container_of(data, component):
    """Return the row of one container of a list, without what only its status has."""
    fields = protobuf.fields(data)
    labels, annotations = protobuf.pairs(fields, 8), protobuf.pairs(fields, 9)
    attempt = protobuf.integer(_part(fields, 3), 2)
    count = procfs.number(annotations.get(RESTARTS, ""))
    return {
        "component": component,
        "id": files.one_line(protobuf.text(fields, 1), 128),
        "sandbox": files.one_line(protobuf.text(fields, 2), 128),
        "pod_uid": files.one_line(labels.get(POD_UID, ""), 64),
        "attempt": attempt if count is None else count,
        "state": state_of(protobuf.integer(fields, 6)),
        "created": seconds(protobuf.integer(fields, 7)),
        "started": None,
        "finished": None,
        "exit_code": None,
        "reason": None,
        "message": None,
        "memory_limit": None,
    }


def _part(fields, number):
    """Return the fields of the message that a field has, [] where it is left out."""
    parts = [protobuf.fields(value) for value in protobuf.values(fields, number)]
    return next(reversed(parts), [])


def state_of(number):
    """Return the name of a container's state."""
    return STATES[min(number, len(STATES) - 1)]


def seconds(nanoseconds):
    """Return a time of the CRI in seconds since the epoch, None where it is not set."""
    if not 0 < nanoseconds < 1 << 63:
        return None
    return round(nanoseconds / NANOSECONDS, 3)


def _add_status(context, path, api, row):
    status, data = _call(context, path, api, "ContainerStatus", protobuf.string(1, row["id"]))
    if status == cri.OK:
        row.update(status_of(data))


def status_of(data):
    """Return what a reply to ContainerStatus says of a container's life and end."""
    fields = _part(protobuf.fields(data), 1)
    values = {
        "state": state_of(protobuf.integer(fields, 3)),
        "started": seconds(protobuf.integer(fields, 5)),
        "finished": seconds(protobuf.integer(fields, 6)),
        "memory_limit": memory_limit(fields),
    }
    if values["finished"] is not None:
        values["exit_code"] = signed(protobuf.integer(fields, 7))
        values["reason"] = files.one_line(protobuf.text(fields, 10), 80)
        values["message"] = files.masked_line(protobuf.text(fields, 11), MAX_MESSAGE)
    return values


def signed(number):
    """Return a number that protobuf has as 64 bits without a sign."""
    return number - (number >> 63 << 64)


def memory_limit(fields):
    """Return the memory limit of a container in bytes, None where it has none or is not told."""
    for resources in protobuf.values(fields, 16):
        for linux in protobuf.values(protobuf.fields(resources), 1):
            return protobuf.integer(protobuf.fields(linux), 4) or None
    return None


def _journals(context, units, since):
    """Return (text, error) of the journal of each of these units, None where a unit has no name.

    A unit is its name, or -k for the kernel.
    """
    # the newest first, so that the limit of bytes costs the oldest
    window = ["-r", "-o", "short-unix", f"--since=@{int(since)}"]
    argvs = {}
    for unit in filter(None, units):
        named = [unit] if unit == "-k" else ["-u", unit]
        argvs[unit] = ["journalctl", "--no-pager", "--all", "-q", *window, *named]
    answers = command.run_together(list(argvs.values()), context.seconds(3), READ_BYTES)
    by_unit = dict(zip(argvs, answers))
    return [by_unit.get(unit) for unit in units]


def _journal(answer, choose, longest=LONGEST):
    """Return {lines, oldest, error} of the chosen lines of a journal, the oldest first.

    answer: what _journals returns of it; oldest: the time of the first line that was read, where
    the limit cut off older ones; longest: the characters of a line that are kept.
    """
    record = {"lines": [], "oldest": None, "error": None}
    if answer is None:
        record["error"] = "its unit is not known"
        return record
    text, error = answer
    if isinstance(error, command.Silent):
        record["error"] = _why_silent(error)
        return record
    if isinstance(error, OSError):
        raise error  # no process can be started
    if error is not None:
        record["error"] = files.one_line(error, 200)
        return record
    rows = text.split("\n")[::-1]
    if len(text) >= READ_BYTES:
        rows = rows[1:]
        record["oldest"] = oldest(rows)
    chosen = choose(rows)
    if len(chosen) > KEPT:
        chosen = chosen[-KEPT:]
        record["oldest"] = oldest(chosen)
    record["lines"] = [files.masked_ends(line, longest) for line in chosen]
    return record


def _why_silent(silent, folders=JOURNALS):
    """Return why a journal without a line was not read, None where it has none of that time."""
    if silent.complaint:
        return files.one_line(silent.complaint, 200)
    if not any(files.names(folder) for folder in folders):
        return "journald keeps no journal"
    return None


def oldest(rows):
    """Return the time of the first row that has one."""
    for row in rows:
        word = row.partition(" ")[0]
        if word.partition(".")[0].isdigit():
            return float(word)
    return None


def of_runtime(lines, components, listed):
    """Return the runtime's lines about the making and the stops of these components' containers.

    Only the line about the making of a container that the runtime has no more tells whose id it is.
    """
    ids, rows = set(listed), []
    for line in lines:
        if any(word in line for word in CREATED):
            if _is_made(line, components):
                ids.add(id_of(line))
                rows.append(line)
        elif any(word in line for word in OF_CONTAINER) and any(
            name in line for name in ids if name
        ):
            rows.append(line)
    return rows


def _is_made(line, components):
    """Return whether a line tells that a container of one of these components was made."""
    if CREATED[1] in line:
        return any("/" + component in line for component in components)
    if RETURNS not in line:
        return False
    return any(
        f"Name:{component}," in line
        or f'name:\\"{component}\\"' in line
        or f'name:\\\\\\"{component}\\\\\\"' in line
        for component in components
    )


def id_of(line):
    """Return the id of the container that a line tells to be made, or an empty text."""
    if RETURNS in line:
        rest = line.rpartition(RETURNS)[2]
    else:
        rest = line.partition(CREATED[1])[2]
    word = rest.strip(' \\"').partition('"')[0].partition("\\")[0].partition(":")[0]
    if len(word) != 64:
        return ""
    return word


def of_kubelet(lines, components):
    """Return the kubelet's lines about ends of these components' containers."""
    return [
        line
        for line in lines
        if any(word in line for word in OF_KUBELET)
        and not any(word in line for word in READINESS)
        and any(component in line for component in components)
    ]


def of_kernel(lines):
    """Return the kernel's lines about processes that its OOM killer ended."""
    return [line for line in lines if any(word in line for word in OF_KERNEL)]
