# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of systemd that pods and their nodes need, by what they are for."""

GROUPS = {
    "network": (
        "NetworkManager.service",
        "dnsmasq.service",
        "network.service",
        "networking.service",
        "systemd-networkd.service",
        "systemd-resolved.service",
        "wicked.service",
    ),
    "switch": (
        "openvswitch-switch.service",
        "openvswitch.service",
        "ovn-controller.service",
        "ovs-vswitchd.service",
        "ovsdb-server.service",
    ),
    "storage": (
        "iscsi.service",
        "iscsid.service",
        "multipathd.service",
        "open-iscsi.service",
        "rpc-statd.service",
        "rpcbind.service",
    ),
    "clock": (
        "chrony.service",
        "chronyd.service",
        "ntp.service",
        "ntpd.service",
        "ntpsec.service",
        "systemd-timesyncd.service",
    ),
    "firewall": (
        "firewalld.service",
        "ip6tables.service",
        "iptables.service",
        "netfilter-persistent.service",
        "nftables.service",
        "ufw.service",
    ),
    "address": ("haproxy.service", "keepalived.service"),
    # Where no DaemonSet runs it.
    "proxy": ("kube-proxy.service",),
    # Of layouts that have their own; those of packages belong to the collector runtime.
    "runtime": ("snap.k8s.containerd.service", "snap.microk8s.daemon-containerd.service"),
    # Folders in which a node keeps what it runs. The mounts below them belong to containers.
    "folder": (
        "var.mount",
        "var-lib.mount",
        "var-lib-containerd.mount",
        "var-lib-containers.mount",
        "var-lib-docker.mount",
        "var-lib-etcd.mount",
        "var-lib-k0s.mount",
        "var-lib-kubelet.mount",
        "var-lib-rancher.mount",
        "var-log.mount",
    ),
    "machine": (
        "apparmor.service",
        "dbus.service",
        "dbus-broker.service",
        "systemd-logind.service",
        "systemd-modules-load.service",
        "systemd-sysctl.service",
        "systemd-udevd.service",
    ),
}
DEVICES, CLUSTER = "devices", "cluster"
OF_CLOUD = ("cloud-init", "cloud-config", "cloud-final")  # user data runs in the last one
OF_DEVICES = ("nvidia-", "device-plugin", "habana", "amdgpu-")
OF_CLUSTER = (
    *("kube-", "k8s-", "crio-", "cni-", "calico-", "flanneld"),
    # What makes a machine a node at its first boot: user data, units of ignition, those of EKS.
    *(*OF_CLOUD, "kubeadm", "nodeadm"),
)
OTHERS = frozenset(("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"))
_GROUP_BY_NAME = {name: group for group, names in GROUPS.items() for name in names}


def group(name):
    """Return what a unit is for: a key of GROUPS, DEVICES or CLUSTER, or "" for any other one."""
    if name in _GROUP_BY_NAME:
        return _GROUP_BY_NAME[name]
    stem, _dot, kind = name.rpartition(".")
    if kind != "service" or stem in OTHERS:
        return ""
    if any(word in stem for word in OF_DEVICES):
        return DEVICES
    return CLUSTER if stem.startswith(OF_CLUSTER) else ""
