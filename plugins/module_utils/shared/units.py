# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of systemd's units that run a kubelet or a container runtime."""

KUBELET = "kubelet.service"
# The units whose kubelet has no unit of its own, and what shows that they are there.
KUBELET_OF_DISTRIBUTIONS = (
    ("/var/lib/rancher/rke2", ("rke2-server.service", "rke2-agent.service")),
    ("/etc/rancher/k3s", ("k3s.service",)),
    ("/var/lib/rancher/k3s/agent", ("k3s-agent.service",)),
    ("/var/snap/microk8s", ("snap.microk8s.daemon-kubelite.service",)),
)
_OF_DISTRIBUTIONS = [name for _path, names in KUBELET_OF_DISTRIBUTIONS for name in names]
# Of snaps there are none: snapd disables and enables its services itself.
KUBELET_UNITS = (
    KUBELET,
    *tuple(name for name in _OF_DISTRIBUTIONS if not name.startswith("snap.")),
)
# The units of a runtime in the order in which they start.
RUNTIME_UNITS = {
    "containerd": ("containerd.service",),
    "crio": ("crio.service",),
    "docker": ("docker.service",),
    "cri-docker": ("docker.service", "cri-docker.service", "cri-dockerd.service"),
}
RUNTIMES = tuple(sorted({name for names in RUNTIME_UNITS.values() for name in names}))
# The units whose limits count, with what each of them runs.
ROLES = (
    (KUBELET, "kubelet"),
    ("containerd.service", "runtime"),
    ("crio.service", "runtime"),
    ("docker.service", "runtime"),
    ("cri-docker.service", "runtime"),
    ("ssh.service", "sshd"),
    ("sshd.service", "sshd"),
)
# Units of the control plane by their names: their program is a script, or a distribution's own.
CONTROL_PLANE = {
    "etcd.service": "etcd",
    "etcd2.service": "etcd",
    "etcd3.service": "etcd",
    "etcd-member.service": "etcd",
    "kube-etcd.service": "etcd",
    "kube-apiserver.service": "kube-apiserver",
    "kube-controller-manager.service": "kube-controller-manager",
    "kube-scheduler.service": "kube-scheduler",
    "k3s.service": "k3s",
    "rke2-server.service": "rke2",
    "k0scontroller.service": "k0s",
    "k0sworker.service": "k0s",
    "snap.microk8s.daemon-kubelite.service": "kubelite",
    "snap.microk8s.daemon-k8s-dqlite.service": "k8s-dqlite",
}
