# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases with a known defect, and the symptoms by which each shows, as one table of data.

A defect is here only if a public thread confirms it. What a release lacks for all nodes has a fault
of its own: KM331 (kubelet 1.16 and single-numa-node), KM608 (kubelet newer than the API server).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..parsers.release_number import is_within

# Where a symptom is looked for.
READY = "ready"  # the message of the Node's condition Ready
WAITING = "waiting"  # messages and events of pods that do not start
SILENT = "silent"  # pods of several workloads that wait for long, without any message
CGROUP_DRIVER = "cgroup driver"  # that of the kubelet
REGISTRY = "registry"  # containerd's older configuration where it names no runtime
SHIM = "shim"  # the kind of shims in containerd's configuration
FLAGS = "flags"  # kubeadm's file of flags for the kubelet
STATIC = "static pods"  # those that do not start, of manifests as old as the kubelet's start
KUBEADM, KUBELET, CONTAINERD = "kubeadm", "kubelet", "containerd"
RUNC, SYSTEMD, UTIL_LINUX = "runc", "systemd", "util-linux"
_PLEG = r"PLEG is not healthy: pleg was last seen active"


@dataclass(frozen=True)
class Symptom:
    """A text in one of these places of a Node's evidence; empty for any text."""

    places: tuple[str, ...]
    text: str = ""

    def is_in(self, place: str, text: str) -> bool:
        """Tell whether a text of this place shows it."""
        return place in self.places and re.search(self.text, text) is not None


@dataclass(frozen=True)
class Defect:
    """One defect of some releases of a program.

    first, fixed: the first release that has it, and the first one after it without
    symptoms: each of them must be in the evidence
    links: the threads that confirm it; the last one has the correction
    sure: whether its symptoms hardly have another cause
    betas: releases before the first one that have it too, as their numbers have no order here
    """

    program: str
    first: str
    fixed: str
    symptoms: tuple[Symptom, ...]
    what: str
    advice: str
    links: tuple[str, ...]
    sure: bool = True
    severity: str | None = None
    betas: tuple[str, ...] = ()

    def has(self, version: str | None) -> bool:
        """Tell whether this release has the defect."""
        if any((version or "").removeprefix("v") == beta for beta in self.betas):
            return True
        return is_within(version, self.first, self.fixed)


# plugins/cri/images/plugin.go of containerd: migrateConfig ends where there are no runtimes.
UNREAD_REGISTRY = Defect(
    CONTAINERD,
    "2.0.0-rc.0",
    "2.0.0-rc.1",
    (Symptom((WAITING,), r"failed to (?:do request|resolve reference)"), Symptom((REGISTRY,))),
    "of a configuration older than version 3 that names no runtime it leaves out the part registry"
    " (mirrors, config_path, credentials) and sandbox_image, so that it asks no mirror",
    "install containerd 2.0.0 or later; or write that part below"
    ' plugins."io.containerd.cri.v1.images" in a file with version = 3, and restart containerd',
    (
        "https://github.com/containerd/containerd/issues/9886",
        "https://github.com/containerd/containerd/issues/10120",
        "https://github.com/containerd/containerd/pull/10121",
    ),
    sure=False,
    betas=("2.0.0-beta.1", "2.0.0-beta.2"),
)
DEFECTS = (
    UNREAD_REGISTRY,
    Defect(
        CONTAINERD,
        "1.4.4",
        "1.4.5",
        (Symptom((READY, SILENT), rf"{_PLEG}|^$"),),
        "its shim may hang for ever when runc starts a container; then no pod is made and the"
        " kubelet gets no list of containers",
        "install containerd 1.4.5 or later with runc 1.0.0-rc94 or later, or 1.4.3",
        (
            "https://github.com/containerd/containerd/issues/5274",
            "https://github.com/Azure/AKS/issues/2246",
            "https://github.com/docker/containerd-packaging/pull/232",
        ),
    ),
    Defect(
        CONTAINERD,
        "1.0.0",
        "2.0.0",
        (Symptom((SHIM,), r"^io\.containerd\.(?:runtime\.v1\.linux|runc\.v1)$"),),
        "its configuration names shims of the first version, which stay behind where a container"
        " ends while the disk is slow (failed to handle container TaskExit event), and which"
        " containerd 2.0 does not have",
        'write runtime_type = "io.containerd.runc.v2" in the place of it, drain the node and'
        " restart containerd: pods that run keep their shims until they are made again",
        (
            "https://github.com/containerd/containerd/issues/9309",
            "https://github.com/containerd/containerd/blob/main/RELEASES.md",
        ),
    ),
    Defect(
        RUNC,
        "1.0.0-rc93",
        "1.0.0-rc94",
        (Symptom((READY, SILENT), rf"{_PLEG}|^$"),),
        "it may hang for ever when it starts a container, and the runtime and the kubelet hang"
        " with it",
        "install another release of runc, 1.0.0-rc94 or later; end the processes runc init that"
        " wait (ps -eo pid,etime,cmd | grep 'runc init'), or restart the node after a drain",
        (
            "https://github.com/kubermatic/machine-controller/issues/989",
            "https://github.com/rancher/rancher/issues/31793",
            "https://github.com/opencontainers/runc/pull/2871",
        ),
    ),
    Defect(
        KUBELET,
        "1.21.0",
        "1.21.5",
        (Symptom((WAITING,), r"Unit kubepods[\w.\\-]{0,200}\.slice already exists"),),
        "the library of runc that this kubelet includes makes a pod's slice twice with the cgroup"
        " driver systemd",
        "update the kubelet to 1.21.5 or later; until then: systemctl stop SLICE, with the slice"
        " that the message names, for a pod that has no container",
        (
            "https://github.com/kubernetes/kubernetes/issues/102676",
            "https://github.com/opencontainers/runc/issues/2996",
            "https://github.com/kubernetes/kubernetes/pull/104530",
        ),
    ),
    Defect(
        KUBELET,
        "1.22.0",
        "1.27.0",
        (Symptom((STATIC,)),),
        "it may wait for ever for the end of the static pod before where a manifest changes while"
        " it starts, and does not start the new one",
        "restart the kubelet once more (systemctl restart kubelet); where the sandboxes of the"
        " former pods are left over, stop them (crictl pods, crictl stopp ID); the kubelet of 1.27"
        " waits no more",
        (
            "https://github.com/kubernetes/kubernetes/issues/109596",
            "https://github.com/kubernetes/kubernetes/issues/116880",
            "https://github.com/kubernetes/kubernetes/pull/113145",
        ),
        sure=False,
    ),
    Defect(
        UTIL_LINUX,
        "2.41",
        "2.41.1",
        (
            Symptom(
                (WAITING,),
                r"/volume-subpaths/[^ :]{1,300}: (?:file exists|wrong fs type|move_mount\(\))"
                r"|prepare subPath",
            ),
        ),
        "its mount does not bind what the kubelet names by /proc/PID/fd (--no-canonicalize), so"
        " that no volume with a subPath is mounted",
        "install util-linux 2.40.4, or a build that has the correction (pull request 3479); with"
        " k3s, prefer-bundled-bin: true uses its own mount",
        (
            "https://github.com/util-linux/util-linux/issues/3474",
            "https://github.com/kubernetes/kubernetes/issues/130999",
            "https://github.com/util-linux/util-linux/pull/3479",
        ),
        sure=False,  # distributions correct it without another number
    ),
    Defect(
        KUBEADM,
        "1.35.0",
        "1.35.1",
        (Symptom((FLAGS,)),),
        "kubeadm upgrade apply of this release takes kubeadm-flags.env without flags for an error"
        " (no flags found in file) and stops in its last phase",
        "upgrade with kubeadm 1.35.1 or later; the file is right as it is",
        (
            "https://github.com/kubernetes/kubeadm/issues/3279",
            "https://github.com/kubernetes/kubernetes/pull/136131",
        ),
        severity="info",
    ),
    Defect(
        SYSTEMD,
        "219",
        "242",
        (Symptom((CGROUP_DRIVER,), r"^systemd$"), Symptom((READY,), _PLEG)),
        "calls of D-Bus to systemd hang, and with the cgroup driver systemd runc waits for them",
        "see whether systemd answers (busctl --timeout=5 status org.freedesktop.systemd1); where it"
        " does not, systemctl restart dbus helps for the moment, and systemd 242 or later, or the"
        " distribution's corrected package, for good",
        (
            "https://github.com/kubernetes-sigs/kubespray/issues/5134",
            "https://github.com/lnykryn/systemd-rhel/issues/266",
            "https://github.com/systemd/systemd/pull/11818",
        ),
        sure=False,
    ),
)
