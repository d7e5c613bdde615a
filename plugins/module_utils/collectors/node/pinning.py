# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector pinning: the state of CPU and memory manager, the CPUs, and where containers run."""

import errno
import os

from ...system import files, procfs, reserved_cgroups

CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"
LOGS = "/var/log/containers"
ROOT_DIR = "/var/lib/kubelet"
# What a kubelet makes of them its version decides.
VERSIONED = (
    "swapBehavior",
    "NodeSwap",
    "AllAlpha",
    "AllBeta",
    "docker",
    "--container-runtime=",
    "--container-runtime ",
    "ManagerPolicy",
    "-manager-policy",
    "opologyManagerScope",
    "-manager-scope",
    "eservedMemory",
    "--reserved-memory",
    "-compressible",
    "ReservedCgroup",
    "-reserved-cgroup",
)
MAX_CONTAINERS, MAX_PODS, MAX_TASKS = 2000, 2000, 10
MAX_READ = 20000  # tasks that are looked at


def collect(context):
    """Return the state of CPU and memory manager, the CPUs, and what the containers really have.

    cpu_state, memory_state: records of the files, None where there is none. cpus: {online,
    possible, isolated, topology: [[cpu, core, socket, NUMA node]]}, lists as the kernel writes
    them. numa: the machine's NUMA nodes, also those without a CPU. memory_total: its bytes.
    cgroups: [{name, driver, path, missing}] of those in which the kubelet's configuration
    limits others. pods: UIDs of which the kubelet keeps a folder. containers: [{pod_uid, pod,
    name, container_id, pid, static, cpus, allowed}]: cpus is the set of its cgroup, and allowed
    that of its first process, None where it cannot be read; pod (namespace/name) and name are
    None where no link of the kubelet's names it. logged: ids of containers that the state names
    and for whose log the kubelet keeps a link, which it removes with a container that has
    ended. frozen: [{pod_uid, container_id, path, state, tasks: [[pid, name, state]]}] of
    cgroups that are not thawed. stuck: [{pod_uid, pod, name, container_id, tasks}] of
    containers with tasks in state D, which no freezer stops; None outside the deep tier.

    Topology, containers, logged, frozen and runc are None outside the deep tier where neither a
    CPU manager's state nor the kubelet's configuration has the policy static: no container is
    pinned there. So is kubelet_version, if that kubelet is healthy, its program was not replaced
    and its configuration has nothing whose meaning depends on the version: it takes 60 ms of CPU
    time and 50 MB to ask the program. mount is the release of util-linux, of the deep tier alone.
    """
    kubelet = context.data.get("kubelet") or {}
    root = _root_dir(kubelet)
    context.source = root
    evidence = {
        "root_dir": root,
        "cpu_state": _state(root + "/cpu_manager_state"),
        "memory_state": _state(root + "/memory_manager_state"),
        "cpus": {name: _line(f"{CPUS}/{name}") for name in ("online", "possible", "isolated")},
        "numa": numa_nodes(),
        "memory_total": memory_total(files.text("/proc/meminfo", 4096) or ""),
        "pods": _pods(root, context),
        "containers": None,
        "logged": None,
        "frozen": None,
        "stuck": None,
        "runc": None,
        "mount": None,
        "kubelet_version": None,
    }
    words = _words(kubelet)
    evidence["cgroups"] = reserved_cgroups.cgroups(kubelet)
    evidence["pod_cgroups"] = reserved_cgroups.of_pods()
    evidence["cpus"]["topology"] = None
    has_pinning = context.params.get("deep") or _is_static(evidence["cpu_state"], words)
    if has_pinning:
        evidence["cpus"]["topology"] = topology()
        _add_containers(evidence, context)
        evidence["runc"] = _version("runc", context)
    is_told = _is_replaced(kubelet) or not _is_well(kubelet) or _is_versioned(words)
    if has_pinning or is_told:
        evidence["kubelet_version"] = _kubelet_version(kubelet, context)
    return evidence


def _is_versioned(words):
    """Return whether the meaning of the kubelet's configuration depends on its version."""
    return any(word in words for word in VERSIONED)


def _kubelet_version(kubelet, context):
    program = (kubelet.get("process") or {}).get("exe") or "kubelet"
    return _version(program, context)


def _root_dir(kubelet):
    return procfs.flag(kubelet.get("argv") or [], "root-dir") or ROOT_DIR


def _is_static(cpu_state, words):
    """Return whether a state file or the kubelet's configuration has the policy static."""
    text = ((cpu_state or {}).get("text") or "") + words
    return "static" in text.replace("staticPod", "").lower()


def _is_well(kubelet):
    return (kubelet.get("healthz") or {}).get("status") == 200


def _is_replaced(kubelet):
    """Return whether the program of the kubelet that runs is no more the one on the disk."""
    return (kubelet.get("process") or {}).get("exe_deleted") is True


def _add_containers(evidence, context):
    names = container_names()
    containers = _containers(context, names)
    evidence["logged"] = _logged(evidence["cpu_state"], names)
    evidence["frozen"] = _frozen(containers)
    if context.params.get("deep"):
        evidence["stuck"] = _stuck(containers)
        evidence["mount"] = _version("mount", context)
    evidence["containers"] = [
        {key: container[key] for key in container if key != "folder"} for container in containers
    ]


def _words(kubelet):
    """Return the kubelet's command line and configuration as one text.

    The kubelet's policies are none where the word static occurs only in staticPodPath.
    """
    records = [kubelet.get("config") or {}] + (kubelet.get("config_dropins") or [])
    return " ".join((kubelet.get("argv") or []) + [record.get("text") or "" for record in records])


def _pods(root, context):
    """Return the UIDs of the pods that still have a folder of the kubelet; None if unreadable."""
    try:
        uids = sorted(name for name in os.listdir(root + "/pods") if not name.startswith("."))
    except OSError:
        return None
    context.truncated = context.truncated or len(uids) > MAX_PODS
    return uids[:MAX_PODS]


def _version(program, context):
    """Return the first line that the kubelet prints for --version; None where it does not start."""
    from ...system import command

    try:
        return files.one_line(
            command.run([program, "--version"], context.seconds(2), 4096).partition("\n")[0], 100
        )
    except command.CommandError:
        return None


def _state(path):
    """Return the record of a state file, None where there is none.

    A file that this user may not look for has a record too.
    """
    record = files.record(path)
    if record["error"] == "missing" and not record["link"]:
        return None
    return record


def topology(root=CPUS, nodes=NODES):
    """Return [[cpu, core, socket, NUMA node]] of the CPUs that are online.

    The kernel gives no core for a CPU that is offline.
    """
    numa = _numa_by_cpu(nodes)
    rows = []
    for cpu in sorted(_numbers(os.listdir(root), "cpu")):
        place = f"{root}/cpu{cpu}/topology/"
        core = _number(place + "core_id")
        if core is not None:
            rows.append([cpu, core, _number(place + "physical_package_id"), numa.get(cpu)])
    return rows


def _numa_by_cpu(nodes):
    """Return {cpu: its NUMA node}; it is empty where the kernel has no NUMA nodes."""
    if not os.path.isdir(nodes):
        return {}
    numa = {}
    for node in sorted(_numbers(os.listdir(nodes), "node")):
        for cpu in _numbers(os.listdir(f"{nodes}/node{node}"), "cpu"):
            numa[cpu] = node
    return numa


def _numbers(names, prefix):
    """Return the numbers of the names that are this prefix and a number, as cpu7."""
    ends = [name[len(prefix) :] for name in names if name.startswith(prefix)]
    return [int(end) for end in ends if end.isdigit()]


def numa_nodes(nodes=NODES):
    """Return the numbers of the NUMA nodes, [0] where the kernel has none; None if unreadable."""
    try:
        names = os.listdir(nodes)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return [0]
        return None
    return sorted(_numbers(names, "node")) or [0]


def memory_total(meminfo):
    """Return the bytes of memory by the text of /proc/meminfo; None if unknown."""
    for line in meminfo.splitlines():
        words = line.split()
        if words[:1] == ["MemTotal:"] and len(words) == 3 and words[1].isdigit():
            return int(words[1]) * 1024
    return None


def _line(path):
    text = files.text(path, 65536)
    if text is None:
        return None
    return text.strip()


def _number(path):
    text = _line(path) or ""
    if text.lstrip("-").isdigit():
        return int(text)
    return None


def _logged(state, names):
    """Return those of these container ids that the state names.

    The entries of a state file are by container id up to 1.17.
    """
    text = (state or {}).get("text") or ""
    return sorted(identity for identity in names if identity and identity in text)[:MAX_CONTAINERS]


def _containers(context, names):
    """Return an entry for each container of a pod that has a process, by its oldest process."""
    hierarchy = _hierarchy(files.whole("/proc/self/mountinfo") or "")
    entries = {}
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        text = files.text(f"/proc/{pid}/cgroup")
        group = procfs.cgroup(text or "")
        if not group["container_id"] or group["container_id"] in entries:
            continue
        if len(entries) >= MAX_CONTAINERS:
            context.truncated = True
            break
        folder = _own(_folder(text, hierarchy), group["container_id"])
        pod, name = names.get(group["container_id"]) or (None, None)
        entries[group["container_id"]] = {
            "pod_uid": group["pod_uid"],
            "pod": pod,
            "name": name,
            "container_id": group["container_id"],
            "static": group["static"],
            "pid": pid,
            "cpus": _set_of(folder),
            "allowed": _allowed(pid),
            "folder": folder,
        }
    return list(entries.values())


def container_names():
    """Return {container id: (namespace/pod, name in its pod)}, by the links to their logs.

    A link is <pod>_<namespace>_<container>-<id>.log.
    """
    names = {}
    for name in os.listdir(LOGS) if os.path.isdir(LOGS) else ():
        if name.endswith(".log"):
            rest, _dummy, identity = name[: -len(".log")].rpartition("-")
        else:
            rest, _dummy, identity = ("", "", "")
        if rest.count("_") == 2:
            pod, namespace, container = rest.split("_")
            names[identity] = (f"{namespace}/{pod}", container)
    return names


def _hierarchy(mountinfo):
    """Return (mount point, its root, controller) of the cgroup hierarchy of cpuset, or None.

    The controller is "cpuset" in a hierarchy of v1 and empty in that of v2.
    """
    unified = None
    for line in mountinfo.splitlines():
        before, _dummy, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if len(fields) > 4 and kind[0] == "cgroup" and "cpuset" in kind[-1].split(","):
            return fields[4], fields[3], "cpuset"
        if len(fields) > 4 and kind[0] == "cgroup2":
            unified = fields[4], fields[3], ""
    return unified


def _folder(text, hierarchy):
    """Return the folder of a process's cpuset cgroup, as this process sees it."""
    if not text or not hierarchy:
        return None
    mount, root, controller = hierarchy
    for line in text.splitlines():
        _dummy, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if controller in controllers.split(",") and bool(controllers) == bool(controller):
            if root != "/" and path.startswith(root):
                inside = path[len(root) :]
            else:
                inside = path
            return mount + "/" + inside.strip("/")
    return None


def _own(folder, container_id):
    """Return the container's own cgroup: its first process may have made cgroups below it."""
    parts = (folder or "").split("/")
    while parts and container_id not in parts[-1]:
        parts.pop()
    return "/".join(parts) or folder


def _set_of(folder):
    """Return the CPUs that the cgroup allows: an empty cpuset.cpus of v2 inherits."""
    for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus") if folder else ():
        text = _line(f"{folder}/{name}")
        if text is not None:
            return text
    return None


def _allowed(pid):
    for line in (files.text(f"/proc/{pid}/status") or "").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return line.partition(":")[2].strip()
    return None


def _frozen(containers):
    """Return the cgroups of these containers that are frozen or on the way there.

    The freezers of v1 and of v2 count.
    """
    rows = []
    for container in containers:
        for folder, name, thawed in _freezers(container):
            state = _line(f"{folder}/{name}")
            if state is not None and state != thawed:
                rows.append(
                    {
                        "pod_uid": container["pod_uid"],
                        "container_id": container["container_id"],
                        "path": folder,
                        "state": state if thawed == "THAWED" else "FROZEN",
                        "tasks": _tasks(folder),
                    }
                )
    return rows


def _freezers(container):
    """Yield (folder, file, the content where nothing is frozen) of the freezers of a container."""
    if container["folder"]:
        yield container["folder"], "cgroup.freeze", "0"
    for line in (files.text(f"/proc/{container['pid']}/cgroup") or "").splitlines():
        _dummy, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if "freezer" in controllers.split(","):
            yield "/sys/fs/cgroup/freezer" + path, "freezer.state", "THAWED"


def _stuck(containers):
    """Return those of these containers that have tasks in state D."""
    rows, room = [], MAX_READ
    for container in containers:
        listed = _listed(container["folder"])[:room]
        room -= len(listed)
        tasks = [task for task in _told(listed) if task[2] == "D"]
        if tasks:
            rows.append(
                dict(
                    ((key, container[key]) for key in ("pod_uid", "pod", "name", "container_id")),
                    tasks=tasks[:MAX_TASKS],
                )
            )
    return rows


def _tasks(folder):
    """Return [[pid, name, state]] of tasks of a cgroup, first those in state D.

    A task in state D does not freeze.
    """
    return sorted(_told(_listed(folder)[:MAX_READ]), key=lambda task: task[2] != "D")[:MAX_TASKS]


def _listed(folder):
    """Return the ids of the tasks of a cgroup.

    A task is a thread where the hierarchy lists threads, else a process.
    """
    for name in ("tasks", "cgroup.threads", "cgroup.procs") if folder else ():
        text = files.whole(f"{folder}/{name}", 1048576)
        if text is not None:
            return text.split()
    return []


def _told(pids):
    """Return [[pid, name, state]] of those tasks that still exist."""
    tasks = []
    for pid in pids:
        name, _dummy, rest = (files.text(f"/proc/{pid}/stat") or "").rpartition(") ")
        if rest:
            tasks.append([int(pid), files.one_line(name.partition("(")[2], 20), rest[:1]])
    return tasks
