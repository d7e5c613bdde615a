# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that pods or their node need and that failed, KM564."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    failed_units as names,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import failed_units
from tests.unit.support.waiting_pods import judged

HEAD = "2027-01-15T07:58:5{}+0000 w1 {}"
LINES = (
    HEAD.format(1, "iscsid[77]: Could not insert module tcp_tcp. Kmod error -2"),
    HEAD.format(2, "iscsid[77]: shutting down"),
    HEAD.format(3, "systemd[1]: iscsid.service: Failed with result 'exit-code'."),
)


def fail(world, name="iscsid.service", lines=LINES, **more):
    row = {"name": name, "active_state": "failed", "sub_state": "failed", "result": "exit-code"}
    row |= {"exec_main_status": 7, "lines": list(lines), **more}
    answer = world.data("w1", "failed_units")
    answer["units"].append(row)


def test_a_healthy_cluster_and_missing_evidence(world):
    verdicts, found = judged(world, "KM564")
    assert (set(verdicts), found) == ({"clear"}, [])
    world.data("w1", "failed_units")["failed"] = 9  # of others
    assert judged(world, "KM564")[1] == []
    world.documents["w1"]["collectors"]["failed_units"] = {"status": "error", "data": None}
    assert "unknown" in judged(world, "KM564")[0]


def test_a_service_of_storage(world):
    ended_at = world.data("w1", "system")["clock"] - 60
    fail(world, unit_file_state="enabled", ended_at=ended_at)
    (found,) = judged(world, "KM564")[1]
    assert (found.host, found.severity, found.component) == ("w1", "warning", "iscsid")
    assert "Could not insert module tcp_tcp" in found.summary
    assert "at 2027-01-15T07:59:00Z" in found.summary
    assert "journalctl -u iscsid.service" in found.remedy
    assert len(found.evidence) == 1 + len(LINES)


def test_each_group_has_a_meaning():
    assert set(failed_units.GROUPS) == {*names.GROUPS, names.DEVICES, names.CLUSTER}


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("Failed to find module 'lp'", "info"),
        ("Failed to find module 'br_netfilter'", "warning"),
        ("Couldn't write '1' to 'net/bridge/bridge-nf-call-iptables'", "warning"),
    ],
)
def test_modules_that_pods_do_not_need(world, line, severity):
    text = HEAD.format(1, f"systemd-modules-load[7]: {line}")
    fail(world, "systemd-modules-load.service", [text])
    assert [found.severity for found in judged(world, "KM564")[1]] == [severity]


def test_a_service_that_ends_again_and_again(world):
    fail(world, sub_state="auto-restart", active_state="activating", n_restarts=12, lines=[])
    (found,) = judged(world, "KM564")[1]
    assert "12 restarts" in found.summary


# kubernetes-the-hard-way#806
PROXY = (
    HEAD.format(
        1,
        'kube-proxy[77]: E0915 10:00:00.000000      77 run.go:74] "command failed" err="error'
        ' loading config file \\"/var/lib/kube-proxy/kubeconfig\\": read'
        ' /var/lib/kube-proxy/kubeconfig: is a directory"',
    ),
    HEAD.format(2, "systemd[1]: kube-proxy.service: Failed with result 'exit-code'."),
)


@pytest.mark.parametrize(
    ("enabled", "severity"), [("enabled", "critical"), ("disabled", "warning")]
)
def test_a_kube_proxy_that_is_a_unit(world, enabled, severity):
    fail(world, "kube-proxy.service", PROXY, unit_file_state=enabled, sub_state="auto-restart")
    (found,) = judged(world, "KM564")[1]
    assert (found.severity, found.component) == (severity, "kube-proxy")
    assert "Known cause: /var/lib/kube-proxy/kubeconfig" in found.summary


def test_another_service(world):
    fail(world, "fwupd-refresh.service")
    assert judged(world, "KM564")[1] == []


def test_what_a_node_says_is_bounded(world):
    fail(world, lines=[HEAD.format(1, "iscsid[77]: error \x1b" + "x" * 9000)])
    (found,) = judged(world, "KM564")[1]
    assert "\x1b" not in found.summary
    assert len(found.summary) < 900


def test_a_plugin_that_was_stopped_with_the_kubelet(world):
    name = "nvidia-k8s-device-plugin.service"
    state = {"active_state": "inactive", "sub_state": "dead", "bound_to": ["kubelet.service"]}
    fail(world, name, [], **state)
    (found,) = judged(world, "KM564")[1]
    assert "with kubelet.service" in found.summary
    assert f"systemctl restart {name}" in found.remedy


@pytest.mark.parametrize(
    "unit", ["snap.microk8s.daemon-containerd.service", "snap.k8s.containerd.service"]
)
def test_the_runtime_of_a_layout_is_why_its_kubelet_ends(world, unit):
    words = (
        'failed to recover state: failed to reserve sandbox name \\"a_b_c_0\\": name \\"a_b_c_0\\"'
        ' is reserved for \\"0107b2\\"'
    )
    fail(world, unit, [HEAD.format(1, f'containerd[7]: level=fatal msg="no CRI" error="{words}"')])
    world.data("w1", "kubelet").update(process=None)
    down = {"active_state": "failed", "sub_state": "failed", "result": "exit-code"}
    world.data("w1", "kubelet")["unit"].update(down, exec_main_status=255, main_pid=0)
    (found,) = judged(world, "KM564")[1]
    assert (found.severity, found.component) == ("critical", unit.rpartition(".")[0])
    assert "Known cause: containerd does not start its CRI" in found.summary
    ended = [row for row in judged(world, "KM502")[1] if row.host == "w1"]
    assert [row.because for row in ended] == [("KM564",)]


JOIN = (
    HEAD.format(
        1, "cloud-init[77]: error execution phase preflight: couldn't validate the identity"
    ),
    HEAD.format(
        2,
        "cloud-init[77]: could not find a JWS signature in the cluster-info ConfigMap for a token",
    ),
    HEAD.format(3, "systemd[1]: cloud-final.service: Failed with result 'exit-code'."),
)


@pytest.mark.parametrize("name", ["cloud-final.service", "kubeadm.service", "kubeadm-join.service"])
def test_a_first_boot_that_joins_no_cluster(world, name):
    fail(world, name, JOIN, sub_state="failed")
    (found,) = judged(world, "KM564")[1]
    assert (found.severity, found.component) == ("warning", name.partition(".")[0])
    assert "Known cause: The bootstrap token of kubeadm join" in found.summary


def test_a_first_boot_that_fails_at_what_is_not_known(world):
    fail(world, "cloud-final.service", LINES[:1], sub_state="failed")
    (found,) = judged(world, "KM564")[1]
    assert found.severity == "info"


@pytest.mark.parametrize(
    ("unit", "line", "cause"),
    [
        (
            "haproxy.service",
            "haproxy[7]: [ALERT]    (7) : Binding [/etc/haproxy/haproxy.cfg:20] for frontend api:"
            " cannot bind socket (Cannot assign requested address) for [192.0.2.100:6443]",
            "192.0.2.100",
        ),
        (
            "keepalived.service",
            "Keepalived[7]: Configuration file '/etc/keepalived/keepalived.conf' is not a regular"
            " non-executable file",
            "executable",
        ),
        (
            "iscsi.service",
            "iscsiadm[7]: iscsiadm: initiator reported error (8 - connection timed out)",
            "iSCSI",
        ),
        ("chronyd.service", "chronyd[7]: Fatal error : Invalid directive at line 5", "line 5"),
        (
            "openvswitch-switch.service",
            "ovs-vswitchd[7]: ovs|00007|dpif_netlink|ERR|Generic Netlink family 'ovs_datapath' does"
            " not exist. The Open vSwitch kernel module is probably not loaded.",
            "openvswitch",
        ),
        (
            "nvidia-persistenced.service",
            "nvidia-persistenced[7]: Failed to query NVIDIA devices. Please ensure that the NVIDIA"
            " device files (/dev/nvidia*) exist",
            "nvidia",
        ),
        (
            "cloud-final.service",
            "cloud-init[7]: 2024-05-02 10:11:12,123 - subp.py[WARNING]: Failed running"
            " /var/lib/cloud/instance/scripts/part-001 [1]",
            "part-001",
        ),
        (
            "var-lib-etcd.mount",
            "mount[7]: mount: /var/lib/etcd: can't find UUID=0a3407de-014b-458b.",
            "UUID=0a3407de-014b-458b",
        ),
    ],
)
def test_a_service_says_what_is_wrong(world, unit, line, cause):
    fail(world, unit, [HEAD.format(1, line), HEAD.format(2, f"systemd[1]: {unit}: Failed.")])
    (found,) = judged(world, "KM564")[1]
    assert found.severity == "warning"
    _quoted, _told, known = found.summary.partition("Known cause: ")
    assert cause in known


def test_a_mount_of_a_pod_is_none_of_the_node(world):
    fail(world, "var-lib-kubelet-pods-0a3407de-volumes-kubernetes.io~csi-pvc-mount.mount")
    assert judged(world, "KM564")[1] == []
