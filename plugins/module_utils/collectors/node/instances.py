# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector instances: the processes of control plane components on this node."""

import os

from ...system import files, procfs, yaml_scalars

# Of capability.h: the bit by which a process passes by owner and mode of files.
DAC_OVERRIDE = 1 << 1
LONGEST_LABEL = 120
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
MAX_PROCESSES = 100
# Flags of scheduler and controller manager that name a file which is read at the start.
GIVEN = (
    "config",
    "kubeconfig",
    "authentication-kubeconfig",
    "authorization-kubeconfig",
    "client-ca-file",
    "requestheader-client-ca-file",
    "root-ca-file",
    "service-account-private-key-file",
    "cluster-signing-cert-file",
    "cluster-signing-key-file",
    "tls-cert-file",
    "tls-private-key-file",
    "cloud-config",
    "policy-config-file",
)
COMPONENTS = (
    "kube-scheduler",
    "kube-controller-manager",
    "kube-apiserver",
    "cloud-controller-manager",
    "etcd",
)


def collect(context):
    """Return every process that is a control plane component, of any cluster.

    The controller judges later which cluster it serves.
    """
    context.source = "/proc"
    processes, unreadable = [], []
    own_network = _identity("/proc/self/ns/net")
    mounts = files.whole("/proc/self/mountinfo") or ""
    for pid, comm in context.processes:
        if len(processes) >= MAX_PROCESSES:
            context.truncated = True
            break
        try:
            argv = procfs.argv(pid)
        except OSError as error:
            if files.reason(error) != "missing":
                unreadable.append({"pid": pid, "error": files.reason(error)})
            continue
        if argv:
            component = procfs.component(comm, argv)
        else:
            component = None
        if component in COMPONENTS:
            described = _describe(pid, component, argv, own_network, mounts)
            # A process that ended meanwhile has no network any more, and would count as one whose
            # network is unknown.
            if described["host_network"] is not None or _runs(pid):
                processes.append(described)
    return {"processes": processes, "unreadable": unreadable}


def _runs(pid):
    """Return whether the process is there still; a zombie has no words."""
    try:
        return bool(procfs.argv(pid))
    except OSError:
        return False


def _describe(pid, component, argv, own_network, mounts):
    root = f"/proc/{pid}/root"
    network = _identity(f"/proc/{pid}/ns/net")
    process = {
        "component": component,
        "pid": pid,
        "started_at": procfs.started_at(pid),
        "argv": files.masked_argv(argv),
        "exe": procfs.link(pid, "exe"),
        "host_network": network == own_network if network and own_network else None,
        "kubeconfig": None,
        "authority": None,
        "config": None,
        "ignores_modes": ignores_modes(files.text(f"/proc/{pid}/status") or ""),
        "label": label(files.text(f"/proc/{pid}/attr/current", LONGEST_LABEL)),
    }
    process.update(procfs.cgroup(files.text(f"/proc/{pid}/cgroup") or ""))
    if component in ("kube-apiserver", "etcd"):
        return process
    process["given"] = flag_files(pid, argv, mounts)
    folder = procfs.link(pid, "cwd") or "/"
    _read_config(process, argv, folder, root, mounts)
    _add_kubeconfig(process, argv, folder, root)
    return process


def ignores_modes(status):
    """Return whether owner and mode of files do not keep a process out; None if unknown."""
    words = procfs.status(status, "CapEff")
    try:
        return bool(int(words[0], 16) & DAC_OVERRIDE)
    except (IndexError, ValueError):
        return None


def label(text):
    """Return the label that a security module has for a process, None without one."""
    return files.one_line((text or "").strip("\0\n "), LONGEST_LABEL) or None


def _add_kubeconfig(process, argv, folder, root):
    """Add the kubeconfig and the CA by which the process knows its API server."""
    # A scheduler's configuration file counts, where it has one.
    path = yaml_scalars.anywhere(
        (process["config"] or {}).get("text") or "", "kubeconfig"
    ) or procfs.flag(argv, "kubeconfig")
    if not path:
        process["authority"] = files.pem(SERVICE_ACCOUNT, root=root)
        return
    path = os.path.normpath(os.path.join(folder, path))
    process["kubeconfig"] = files.record(path, root=root)
    authority = yaml_scalars.anywhere(process["kubeconfig"]["text"] or "", "certificate-authority")
    if authority:
        process["authority"] = files.pem(os.path.join(os.path.dirname(path), authority), root=root)


def _read_config(process, argv, folder, root, mounts):
    if process["component"] == "kube-scheduler":
        path = procfs.flag(argv, "config")
    else:
        path = None
    if path:
        path = os.path.normpath(os.path.join(folder, path))
        process["config"] = dict(
            files.record(path, root=root), host_path=_host_path(process["pid"], path, root, mounts)
        )


def flag_files(pid, argv, mounts):
    """Return [{path, mtime, replaced}] of the files that the process's flags name.

    mtime: the later of the time in the process's mount namespace and of that on the host, if it
    is a file of the host.
    """
    process_mounts = files.whole(f"/proc/{pid}/mountinfo") or ""
    records = {}
    for name in GIVEN:
        path = procfs.flag(argv, name)
        if not path or not path.startswith("/") or path in records:
            continue
        replaced = _is_replaced(path, process_mounts)
        times = [_mtime(f"/proc/{pid}/root{path}")]
        if not replaced:
            times.append(_mtime(procfs.host_path(path, process_mounts, mounts)))
        mtime = max(time or 0.0 for time in times) or None
        records[path] = {"path": path, "mtime": mtime, "replaced": replaced}
    return list(records.values())


def _is_replaced(path, mountinfo):
    """Return whether a bind-mounted file was replaced on the host.

    The container still has the former one.
    """
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) > 4 and fields[4] == path and fields[3].endswith("//deleted"):
            return True
    return False


def _mtime(path):
    try:
        if path:
            return os.stat(path).st_mtime
        return None
    except OSError:
        return None


def _identity(path):
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _host_path(pid, path, root, mounts):
    """Return the path on the host, if device and inode prove that it is the same file."""
    try:
        descriptor = files.opened(path, root)
    except OSError:
        return None
    try:
        state = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    process_mounts = files.whole(f"/proc/{pid}/mountinfo") or ""
    for candidate in (path, procfs.host_path(path, process_mounts, mounts)):
        if candidate and _identity(candidate) == (state.st_dev, state.st_ino):
            return candidate
    return None
