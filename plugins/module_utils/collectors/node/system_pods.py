# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector system_pods: logs of the cluster's own pods that end or say an error repeatedly.

These are kube-proxy, network plugins, the cluster's DNS, cloud controller managers and others in
namespaces of the system, agents of networks, storage and devices in others, and add-ons such as
load balancers and certificate managers. The kubelet numbers the logs of a container by its starts:
no runtime and no API is asked. Static pods of the control plane are those of component_end.
"""

import os
import time

from ...logs import plugin_files, pod_errors, repeated_lines
from ...shared import own_pods, system_namespaces
from ...system import files
from ..base import Absent, Denied
from . import component_end, instances

STARTS = 3  # before the newest one
RECENT = 3600  # seconds since the newest log began
# Seconds since then in which the controller takes an end for one of many, with what a clock may be
# off: where the log of the start before it is there, and where it is not.
OF_MANY, OF_MANY_ALONE = 900, 2100
MAX_LISTED, MAX_FOLDERS, MAX_LOGS, MAX_RUNNING, MAX_ENTRIES, MAX_NAMED = 3000, 1000, 8, 32, 4, 5


def collect(context):
    """Return {pods, more, running, unread, ...} of containers of the cluster's own pods.

    pods are those that were started often, and of late. A row is {namespace, pod,
    container, restart, begun, written, path, first, last, lines, error, own}.

    restart: how many starts the container had before its newest log; begun, written: when that log
    begins and when it was written to. path, first, last, lines: of the log of the start before it,
    or of the newest where only that is left; times are seconds since the epoch. own: the errors of
    the file in which its program logs, see plugin_files, or None. more: how many are left out whose
    start is so young that they may end again and again; more_pods: some of their pods.

    running are those that say an error again and again, and device plugins. A row is {namespace,
    pod, container, path, told} with what pod_errors.read returns; told: what a device plugin
    misses, else []. read, unread: how many logs that are written to were read, and were not;
    unread_pods: some of the pods of the latter.
    """
    root = _folder(context)
    now = time.time()
    newest = sorted(_logs(root), key=_precedence)
    logs = _restarted(now, newest)
    more = [log for log in logs[MAX_LOGS:] if _may_end(now, log) and not _is_add_on(log)]
    written = [log for log in newest if now - log[0] < pod_errors.WINDOW or is_plugin(log[3])]
    unread = [log for log in written[MAX_RUNNING:] if not _is_add_on(log)]
    return {
        "pods": [_row(now, *log) for log in logs[:MAX_LOGS]],
        "more": len(more),
        "more_pods": _pods(more),
        "running": list(filter(_says, (_running(now, *log) for log in written[:MAX_RUNNING]))),
        "read": len(written[:MAX_RUNNING]),
        "unread": len(unread),
        "unread_pods": _pods(unread),
    }


def _folder(context):
    """Return the folder of the logs of pods."""
    context.source = root = component_end.log_folder(context.data.get("kubelet") or {})
    if not os.path.isdir(root):
        raise Absent(f"{root} does not exist")
    if not os.access(root, os.R_OK | os.X_OK):
        raise Denied(f"{root} is not this user's to read")
    return root


def _is_add_on(log):
    """Return whether a log is of an add-on; a finding is not unknown without it."""
    return own_pods.is_add_on(log[2], log[3], os.path.basename(log[4]))


def _precedence(log):
    """Return what sorts logs: those of add-ons last, then the newest first."""
    return _is_add_on(log), -log[0]


def _pods(logs):
    """Return the first few pods of logs, as namespace/name."""
    names = [f"{log[2][:63]}/{log[3][:253]}" for log in logs]
    return list(dict.fromkeys(names))[:MAX_NAMED]


def _restarted(now, newest):
    """Return the logs of containers that were started often, and of late; the youngest first."""
    # A pod that runs well for days writes too, and was started by each boot of its node.
    logs = [log for log in newest if log[1] >= STARTS and now - _begun(log) < RECENT]
    return sorted(logs, key=lambda log: (_is_add_on(log), -_begun(log)))


def _begun(log):
    """Return when a container's newest log came into its folder, or one was rotated or removed."""
    return files.mtime(log[4]) or 0


def _may_end(now, log):
    """Return whether a container was started so lately that it may end again and again."""
    age = now - _begun(log)
    if age < OF_MANY:
        return True
    return age < OF_MANY_ALONE and not os.path.exists(os.path.join(log[4], f"{log[1] - 1}.log"))


def _says(row):
    """Return whether a row tells of an error, or why its log was not read."""
    return row["told"] or row["error"] or row["entries"]


# A plugin looks for its devices at its start, and says then what it misses. NVIDIA's MIG manager
# does when a label tells it to.
is_plugin = system_namespaces.is_of_devices


def _running(now, _written, number, namespace, pod, folder):
    """Return what a container's newest log says again and again."""
    path = os.path.join(folder, f"{number}.log")
    row = {
        "namespace": namespace[:63],
        "pod": pod[:253],
        "container": os.path.basename(folder)[:63],
        "path": path,
        "told": [],
    }
    if is_plugin(pod):
        row["told"] = pod_errors.complaints(path)
    row.update(pod_errors.read(path, now))
    row["entries"] = [entry for entry in row["entries"] if entry["count"] >= repeated_lines.COUNT][
        :MAX_ENTRIES
    ]
    return row


def _logs(root):
    """Yield (when the newest log was written, its number, namespace, pod, folder) of containers."""
    for name, containers in list(_own_folders(root))[:MAX_FOLDERS]:
        namespace, pod, uid = _names(name)
        for container in containers:
            if container in instances.COMPONENTS and _is_static(uid):
                continue
            folder = os.path.join(root, name, container)
            number = max(component_end.log_numbers(folder), default=0)
            written = files.mtime(os.path.join(folder, f"{number}.log"))
            if written is not None:
                yield written, number, namespace, pod, folder


def _own_folders(root):
    """Yield (folder, containers) of the pods whose logs are read, first of those that names tell.

    A node may have more folders than are looked into, which its users' pods left.
    """
    for name in sorted(files.names(root), key=_is_told_by_containers)[:MAX_LISTED]:
        namespace, pod, _dummy = _names(name)
        containers = files.names(os.path.join(root, name)) if pod else []
        if pod and _is_read(namespace, pod, containers):
            yield name, containers


def _is_told_by_containers(folder):
    """Return whether only its containers tell what a pod is."""
    namespace, pod, _dummy = _names(folder)
    return not _is_read(namespace, pod, ())


def _is_read(namespace, pod, containers):
    """Return whether a pod is of the cluster itself, of an add-on, or a device plugin."""
    if is_plugin(pod) or system_namespaces.is_add_on(namespace, pod):
        return True
    return own_pods.is_one(namespace, pod, containers)


def _names(folder):
    """Return (namespace, pod, UID) of the name of a pod's folder."""
    namespace, _dummy, rest = folder.partition("_")
    pod, _dummy, uid = rest.rpartition("_")
    return namespace, pod, uid


def _is_static(uid):
    """Return whether a pod of this UID is a static one."""
    return len(uid) == 32 and "-" not in uid


def _row(now, written, number, namespace, pod, folder):
    newest = os.path.join(folder, f"{number}.log")
    former = os.path.join(folder, f"{number - 1}.log")
    row = {
        "namespace": namespace[:63],
        "pod": pod[:253],
        "container": os.path.basename(folder)[:63],
        "restart": number,
        "begun": None,
        "written": written,
        "path": former if os.path.exists(former) else newest,
        "first": None,
        "last": None,
        "lines": [],
        "error": None,
        "own": plugin_files.errors(os.path.basename(folder), now),
    }
    try:
        row["begun"] = component_end.ends(*component_end.read(newest))[0]
        row["first"], row["last"], row["lines"] = component_end.ends(
            *component_end.read(row["path"])
        )
    except OSError as error:
        row["error"] = files.reason(error)
    return row
