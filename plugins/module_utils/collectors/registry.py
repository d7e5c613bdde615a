# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node is asked for. One literal per collector; its code is the module of its name.

Import time is part of the price of an audit: what runs on every node imports neither re nor json,
socket or subprocess.
"""

import time

MARGIN = 0.7
CORE, DEEP = "core", "deep"
ELECTING = ("kube-scheduler", "kube-controller-manager")


class Absent(Exception):
    """What the collector looks for is not on this node."""


class Denied(Exception):
    """It may be there, but this user may not look."""


class Failed(Exception):
    """It did not answer; `data` is what is known nevertheless."""

    def __init__(self, reason, data=None):
        super().__init__(reason)
        self.data = data


class Collector:
    """Name, what it reads, tier, seconds it may take, the collectors whose data it uses.

    What it is absent without: one of these components, this path; whether it asks systemd what its
    module's question() says. follows: a collector whose data make it start in a plain audit too,
    where they say that something is used up (used_up).
    """

    __slots__ = (
        "asks",
        "components",
        "follows",
        "name",
        "needs",
        "path",
        "reads",
        "tier",
        "timeout",
    )

    def __init__(
        self,
        name,
        reads,
        tier=CORE,
        timeout=10,
        needs=(),
        components=(),
        path=None,
        asks=False,
        follows=None,
    ):
        self.name = name
        self.reads = reads
        self.tier = tier
        self.timeout = timeout
        self.needs = needs
        self.components = components
        self.path = path
        self.asks = asks
        self.follows = follows

    def module(self):
        """The code of it."""
        return __import__(__name__.rpartition(".")[0] + ".node." + self.name, fromlist=["collect"])

    def run(self, context):
        """Its data. In the child: a module that does not even compile costs this collector only."""
        return self.module().collect(context)


def in_this_network(context, components):
    """The instances of these components that share this node's network.

    Denied where that cannot be told.
    """
    found = [
        one
        for one in (context.data.get("instances") or {}).get("processes") or []
        if one["component"] in components
    ]
    unknown = [one["pid"] for one in found if one["host_network"] is None]
    if unknown:
        raise Denied(
            "without root nobody can tell whether pid %d is in this node's network" % unknown[0]
        )
    return [one for one in found if one["host_network"]]


class Context:
    """What a collector may use: the parameters, the processes of interest, the data of the
    collectors it needs.
    """

    __slots__ = ("data", "deadline", "params", "processes", "source", "truncated")

    def __init__(self, params, processes, data, deadline=None):
        self.params = params
        self.processes = processes
        self.data = data
        self.source = None
        self.truncated = False
        self.deadline = deadline

    def seconds(self, most):
        """How long one question may take, so that what is known already still gets home before
        the collector's own limit.
        """
        return (
            most
            if self.deadline is None
            else max(0.0, min(most, self.deadline - time.monotonic() - MARGIN))
        )


COLLECTORS = (
    Collector(
        "system",
        "host name, machine and boot id, kernel, distribution, cgroup version and addresses, from"
        " /proc, /etc and /sys",
    ),
    Collector(
        "kubelet",
        "the kubelet's process, unit, configuration files, kubeconfig (masked), client certificate"
        " and healthz",
        asks=True,
    ),
    Collector(
        "manifests",
        "every file of the static pod folder, with owner, mode and time of change",
        needs=("kubelet",),
    ),
    Collector(
        "instances",
        "control plane processes: argv, pod, kubeconfig and configuration as their container sees"
        " them",
    ),
    Collector(
        "component_http",
        "healthz, configz and metrics of the scheduler and the controller manager on this node",
        timeout=20,
        needs=("instances",),
        components=ELECTING,
    ),
    Collector(
        "component_end",
        "the end of the log of a component that a static pod should run and that does not run or"
        " was started of late",
        timeout=8,
        needs=("kubelet", "manifests", "instances"),
    ),
    Collector(
        "scheduler_log",
        "the order in which the scheduler saw nodes come and go, as far as its log has it (--v=2"
        " and higher, of versions that may lose nodes)",
        timeout=8,
        needs=("instances", "component_http"),
        components=("kube-scheduler",),
    ),
    Collector(
        "etcd",
        "etcd's live member list and cluster id, the leader, alarms and size of the member that"
        " answers, with the API server's own client certificate",
        needs=("instances",),
        components=("kube-apiserver", "etcd"),
    ),
    Collector(
        "installer",
        "the files by which kubeadm, kubespray, RKE2, k3s, kOps, OpenShift and microk8s are known,"
        " and what shows that the machine is a node",
        timeout=5,
    ),
    Collector(
        "devices",
        "the kubelet's device plugin folder: its sockets, and its checkpoint without what plugins"
        " told for containers",
        timeout=8,
        path="/var/lib/kubelet/device-plugins",
    ),
    Collector(
        "pinning",
        "the state files of the CPU and the memory manager, the machine's CPUs, NUMA nodes and"
        " memory, whether the cgroups are there that the kubelet is told to limit, and where a"
        " policy is static, the CPUs that containers really have",
        timeout=8,
        needs=("kubelet",),
    ),
    Collector(
        "limits",
        "the kernel's limits of files and inotify, a try at opening an instance, the limits of PID"
        " 1, the kubelet, the runtime and sshd, and the files that set them",
        timeout=8,
        asks=True,
    ),
    Collector(
        "swap",
        "which swap is on and how much of it is used, and what may switch it on at a boot: fstab,"
        " systemd's units, the kernel's command line, zram-generator and services",
        timeout=8,
        asks=True,
    ),
    Collector(
        "boot",
        "modules and settings of the kernel that pods need, what names them for the next boot, how"
        " the folders of kubelet, runtime and etcd are mounted, SELinux's modes and what it denied,"
        " and the files of firewalld and ufw",
        timeout=5,
        needs=("kubelet",),
    ),
    Collector(
        "kubelet_log",
        "lines of the kubelet's and the runtime's journal about CPUs, memory, the freezer, cgroup"
        " drivers and open files",
        tier=DEEP,
        timeout=10,
        needs=("kubelet",),
    ),
    Collector(
        "kubelet_end",
        "the end of the journal of the kubelet's unit, where the kubelet does not run or systemd"
        " started it again of late",
        timeout=10,
        needs=("kubelet",),
    ),
    Collector(
        "runtime",
        "the container runtime that the kubelet uses: its units, its socket, and whether it takes a"
        " connection and a call of the CRI there",
        timeout=8,
        needs=("kubelet",),
        asks=True,
    ),
    Collector(
        "unit_start",
        "what systemd checks before it starts a unit of the kubelet or its runtime that does not"
        " run: conditions, paths, the units that it needs, and what it said of them",
        timeout=8,
        needs=("kubelet", "runtime"),
    ),
    Collector(
        "api_way",
        "whether the node reaches the API server of its kubelet's kubeconfig: name, connection and"
        " certificate",
        timeout=10,
        needs=("kubelet",),
    ),
    Collector(
        "descriptors",
        "who holds inotify instances, watches, open files and threads, by /proc/*/fd and"
        " /proc/*/status",
        tier=DEEP,
        timeout=20,
        follows="limits",
    ),
    Collector(
        "pressure",
        "what is free of the filesystems of the kubelet and of the runtime, of memory and of"
        " process ids",
        timeout=5,
        needs=("kubelet",),
    ),
    Collector(
        "largest",
        "where one of these is nearly used up: the largest folders of that filesystem, the largest"
        " processes",
        tier=DEEP,
        timeout=15,
        needs=("kubelet", "pressure"),
        follows="pressure",
    ),
    Collector(
        "space",
        "what is free where the components' logs and this collection's journal lie",
        tier=DEEP,
        timeout=5,
    ),
    Collector(
        "journal",
        "what earlier runs changed on this node, what they left unfinished, and who holds its lock",
        path="/var/lib/kubemend",
    ),
)
BY_NAME = {one.name: one for one in COLLECTORS}


def chosen(names=None, deep=False):
    """The collectors of these names (default.

    All of the tier) and those that they need, in the order of the table.
    """
    wanted = set(names or (one.name for one in COLLECTORS if deep or one.tier == CORE))
    for one in reversed(COLLECTORS):
        if one.name in wanted:
            wanted.update(one.needs)
    return [one for one in COLLECTORS if one.name in wanted]


def following(name, data):
    """The collectors that start because this one's data say that something is used up."""
    used_up = data.get("used_up") if isinstance(data, dict) else None
    return [one for one in COLLECTORS if one.follows == name] if used_up else []
