# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of a component in static pods of this node: found and queried."""

import glob
import os

from . import component_endpoints, files, http_client, procfs, tls

UID_DIGITS = 32
ASK = 2  # seconds that one question may take
PODS = "/var/log/pods"  # one file for each start of a container, whatever the runtime


class Instance:
    """A process of a component in a static pod of this node."""

    def __init__(self, pid, ticks, argv, group):
        self.pid = pid
        self.ticks = ticks
        self.argv = argv  # as it is
        self.pod_uid = group["pod_uid"]
        self.identity = (pid, ticks)

    @property
    def started_at(self):
        """Return when the process started, in seconds since the epoch."""
        return procfs.started_at(self.pid)


def instances(component):
    """Return the component's processes in static pods, the youngest first.

    Processes in pods of other clusters do not count here.
    """
    processes = []
    for pid, comm in procfs.of_interest():
        if procfs.NAMES[comm] not in (component, None):
            continue
        try:
            argv = procfs.argv(pid)
        except OSError:
            continue
        if not argv or procfs.component(comm, argv) != component:
            continue
        group, ticks = procfs.cgroup(files.text(f"/proc/{pid}/cgroup") or ""), procfs.ticks(pid)
        if group["static"] and ticks is not None:
            processes.append(Instance(pid, ticks, argv, group))
    return sorted(processes, key=lambda instance: instance.ticks, reverse=True)


def starts(component):
    """Return the logs of the component's container, one for each start.

    A process that ends at once leaves no other trace. Only containers with the name of the
    component in static pods of kube-system count.
    """
    pods = glob.glob(os.path.join(PODS, f"kube-system_{component}-*_*"))
    folders = [os.path.join(pod, component) for pod in pods if is_static(pod.rpartition("_")[2])]
    return {path for folder in folders for path in glob.glob(os.path.join(folder, "*.log"))}


def is_static(uid):
    """Return whether a pod's UID is one that a kubelet makes of a manifest: it has no dashes.

    Another scheduler in a pod of the API may have the name of the component in its own.
    """
    return len(uid) == UID_DIGITS and "-" not in uid


def gone(instance):
    """Return whether exactly this process has ended."""
    return procfs.ticks(instance.pid) != instance.ticks


def ask(component, instance, credentials, seconds=ASK):
    """Return {pid, address, port, healthz, check, elect, configz, error} of a process.

    An answer that the process does not give is None.
    """
    answer = {
        "pid": instance.pid,
        "address": None,
        "port": None,
        "healthz": None,
        "check": None,
        "elect": None,
        "configz": None,
        "error": "it serves on no port",
    }
    secure = _add_healthz(answer, component, instance, credentials, seconds)
    if answer["healthz"] != 200:
        return answer
    for _path, certificate, key in credentials if secure else [(None, None, None)]:
        try:
            context = tls.context(certificate, key) if secure else None
            reply = _configz(answer["address"], answer["port"], seconds, context)
        except http_client.HttpError as error:
            answer["error"] = str(error)
            continue
        answer["configz"] = reply["status"]
        if reply["leader_election"] is not None:
            answer["elect"] = _elects(reply["leader_election"])
        if reply["status"] not in (401, 403):
            break
    return answer


def _add_healthz(answer, component, instance, credentials, seconds):
    """Add the answer of the first endpoint that gives one; return whether the last one has TLS."""
    if component != component_endpoints.API_SERVER:
        credentials = ()
    secure = False
    for address, port, secure in component_endpoints.doors(component, instance.argv):
        reply = healthz(address, port, credentials, seconds, secure)
        answer.update(address=address, port=port, healthz=reply["status"], error=reply["error"])
        if reply["error"] is None:
            if reply["status"] in (200, 500):
                answer["check"] = component_endpoints.has_check(reply["body"])
            break
    return secure


def _configz(address, port, seconds, context):
    """Return the answer of /configz; raise HttpError where there is none."""
    connection = http_client.Connection(address, port, seconds, context)
    try:
        return component_endpoints.configz(*connection.request("/configz"))
    finally:
        connection.close()


def _elects(leader_election):
    """Return whether the configuration turns leader election on; None where it does not say."""
    for key, value in leader_election.items():
        if key.lower() == "leaderelect":
            return bool(value)
    return None


def healthz(address, port, credentials, seconds=ASK, secure=True):
    """Return {status, body, error} of /healthz?verbose.

    The first request is anonymous. Where an API server refuses anonymous clients, the next ones use
    these credentials.
    """
    reply = http_client.get(
        address, port, "/healthz?verbose", seconds, tls.context() if secure else None
    )
    for _path, certificate, key in credentials if secure else ():
        if reply["status"] not in (401, 403):
            break
        try:
            reply = http_client.get(
                address, port, "/healthz?verbose", seconds, tls.context(certificate, key)
            )
        except http_client.HttpError as error:  # a certificate that cannot be used
            reply = dict(reply, error=str(error))
    return reply
