# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collectors of a node and of a cluster's API, and how each of them runs.

Import time is part of the cost of an audit: what runs on every node imports neither re nor json,
socket or subprocess.
"""

from ..shared import collector_names

# Steps and capture take the context and the errors from here.
from .base import (  # noqa: F401 # pylint: disable=unused-import
    Absent,
    Context,
    Denied,
    Failed,
)

CORE, DEEP = "core", "deep"
# What a collector follows that a plain audit runs too where another one is slow or hangs.
SLOW = "slow"
ELECTING = ("kube-scheduler", "kube-controller-manager")


class Collector:
    """Collects one subject of a node; its code is the module of its name.

    needs: collectors whose data it uses. components, path: one of these components or this path
    must be here. asks: it has a question() for systemd. follows: a collector whose data start it
    in a plain audit too, where they report that something is used up (used_up), or SLOW. waits: it
    waits for a network, so that it gets a process of its own.
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
        "waits",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - one row of the registry
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
        waits=False,
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
        self.waits = waits

    def module(self):
        """Import the code of the collector."""
        return __import__(__name__.rpartition(".")[0] + ".node." + self.name, fromlist=["collect"])

    def run(self, context):
        """Collect, in the child: a module that does not compile costs this collector only."""
        return self.module().collect(context)


class ApiCollector:
    """Reads one subject from a cluster's API, by the Reader's method of its name."""

    __slots__ = ("name", "reads", "tier")

    def __init__(self, name, reads, tier=CORE):
        self.name = name
        self.reads = reads
        self.tier = tier

    def run(self, reader):
        """Return (data, whether they were cut)."""
        return getattr(reader, self.name)()


def _node(name, **options):
    return Collector(name, collector_names.NODE[name], **options)


def _cluster(name):
    tier = CORE
    if name in collector_names.DEEP_CLUSTER:
        tier = DEEP
    return ApiCollector(name, collector_names.CLUSTER[name], tier)


# In the order in which they start.
COLLECTORS = (
    _node("system"),
    _node("kubelet", asks=True),
    _node("manifests", needs=("kubelet",)),
    _node("instances"),
    _node("failed_units", timeout=8),
    _node("static_pod_paths", timeout=5, needs=("manifests",)),
    _node("api_server", timeout=8, needs=("manifests", "instances"), waits=True),
    _node("api_load", timeout=12, needs=("instances", "api_server"), waits=True),
    _node("component_http", timeout=20, needs=("instances",), components=ELECTING, waits=True),
    _node("component_end", timeout=8, needs=("kubelet", "manifests", "instances")),
    _node("component_units", needs=("instances",)),
    _node("system_pods", timeout=5, needs=("kubelet",)),
    _node(
        "scheduler_log",
        timeout=8,
        needs=("instances", "component_http"),
        components=("kube-scheduler",),
    ),
    _node(
        "etcd",
        needs=("instances",),
        components=("kube-apiserver", "etcd"),
        path="/var/lib/rancher/k3s/server/db/etcd",
        waits=True,
    ),
    _node("certificates", timeout=8, needs=("kubelet", "manifests", "instances"), waits=True),
    _node("installer", timeout=5),
    _node("devices", timeout=8, path="/var/lib/kubelet/device-plugins"),
    _node("pinning", timeout=8, needs=("kubelet",)),
    _node("limits", timeout=8, asks=True),
    _node("swap", timeout=8, asks=True),
    _node("boot", timeout=5, needs=("kubelet",), asks=True),
    _node("kubelet_log", tier=DEEP, needs=("kubelet",)),
    _node("kubelet_end", needs=("kubelet",)),
    _node("runtime", timeout=8, needs=("kubelet",), asks=True),
    _node(
        "component_restart",
        timeout=12,
        needs=("kubelet", "manifests", "instances", "runtime"),
    ),
    _node("cri", timeout=8, needs=("runtime",)),
    _node("cni", timeout=8, needs=("kubelet", "runtime", "cri")),
    _node("unit_start", timeout=8, needs=("kubelet", "runtime", "component_units")),
    _node("api_way", needs=("kubelet",), waits=True),
    _node("repeated_errors", timeout=8, needs=("kubelet", "runtime", "instances")),
    _node("descriptors", tier=DEEP, timeout=20, follows="limits"),
    _node("pressure", timeout=5, needs=("kubelet",)),
    _node("largest", tier=DEEP, timeout=15, needs=("kubelet", "pressure"), follows="pressure"),
    _node("hangs", tier=DEEP, timeout=20, follows=SLOW),
    _node("network", timeout=8, needs=("kubelet",)),
    _node("kernel_log", timeout=5),
    _node("space", timeout=5, needs=("kubelet", "manifests", "instances", "component_units")),
    _node("next_start", tier=DEEP, timeout=20, needs=("kubelet", "runtime")),
    _node(
        "address_holders",
        timeout=6,
        needs=(
            *("component_end", "component_units", "kubelet_end", "runtime", "component_restart"),
            *("unit_start", "repeated_errors", "failed_units", "system_pods"),
        ),
    ),
    _node(
        "path_states",
        timeout=5,
        needs=(
            *("component_end", "component_units", "kubelet_end", "runtime", "component_restart"),
            *("unit_start", "repeated_errors", "failed_units"),
        ),
    ),
    _node("package_changes", timeout=5),
    _node("journal", path="/var/lib/kubemend"),
)
API_COLLECTORS = tuple(_cluster(name) for name in collector_names.CLUSTER)
BY_NAME = {collector.name: collector for collector in COLLECTORS}


def select(names=None, deep=False, is_slow=False):
    """Return the collectors of these names and those that they need, in the registry's order.

    Without names it returns all of the tier. is_slow: whether one of them is slow or hangs.
    """
    selected_names = set(names or _names_of_tier(COLLECTORS, deep))
    if is_slow and not names:
        selected_names.update(item.name for item in COLLECTORS if item.follows == SLOW)
    for collector in reversed(COLLECTORS):
        if collector.name in selected_names:
            selected_names.update(collector.needs)
    return [collector for collector in COLLECTORS if collector.name in selected_names]


def select_api(names=None, deep=False):
    """Return the API's collectors of these names; without names, all of the tier."""
    selected_names = set(names or _names_of_tier(API_COLLECTORS, deep))
    return [collector for collector in API_COLLECTORS if collector.name in selected_names]


def _names_of_tier(collectors, deep):
    return [collector.name for collector in collectors if deep or collector.tier == CORE]


def followers(name, data):
    """Return the collectors that start because these data report that something is used up."""
    if not isinstance(data, dict) or not data.get("used_up"):
        return []
    return [collector for collector in COLLECTORS if collector.follows == name]
