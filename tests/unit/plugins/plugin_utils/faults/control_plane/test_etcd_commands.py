# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for etcd: those of the installer, and nothing of a node's that a shell would run."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import etcd
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.control_plane import (
    etcd_commands,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import (
    Cluster,
    Host,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.etcd_damage import Damage


def host(local=None, traces=(), installer=(), **more):
    said = etcd.Etcd(local=local)
    return Host(
        "m1",
        "m1",
        "k",
        "ok",
        "",
        (),
        frozenset(["m1"]),
        {},
        None,
        said,
        installer,
        etcd_said=said,
        traces=traces,
        **more,
    )


def tool(*args, **more):
    return etcd_commands.tool(Cluster("k", [host(*args, **more)]))


def test_a_static_pod_is_entered():
    at = tool(etcd.LocalMember(static=True, settings={"cert-file": "/srv/s.crt"}))
    assert at.layout == etcd_commands.STATIC
    assert "crictl exec" in at.setup
    assert "--cert=/srv/s.crt" in at.setup
    assert "manifests" in at.stop


def test_kubespray_has_an_environment():
    at = tool(etcd.LocalMember(unit="etcd.service"), ("/etc/etcd.env",))
    assert at.setup == "set -a; . /etc/etcd.env; set +a; E=etcdctl"
    assert at.stop == "systemctl stop etcd"


def test_a_unit_has_the_paths_of_its_settings():
    settings = {"trusted-ca-file": "/s/ca", "cert-file": "/s/c", "key-file": "/s/k"}
    at = tool(etcd.LocalMember(unit="etcd.service", settings={**settings, "data-dir": "/data"}))
    assert at.setup.endswith('--cacert=/s/ca --cert=/s/c --key=/s/k"')
    assert etcd_commands.snapshot(at) == "$E snapshot save /data/before.db"


@pytest.mark.parametrize(
    ("local", "layout", "word"),
    [
        (etcd.LocalMember(embedded=True), "k3s", "k3s etcd-snapshot save"),
        (
            etcd.LocalMember(
                static=True,
                settings={"config-file": "/var/lib/rancher/rke2/server/db/etcd/config"},
            ),
            "RKE2",
            "rke2 etcd-snapshot save",
        ),
    ],
)
def test_k3s_and_rke2_have_snapshots_of_their_own(local, layout, word):
    at = tool(local)
    assert at.layout == layout
    assert etcd_commands.snapshot(at) == word
    assert "cluster-reset" in etcd_commands.restore(at)


@pytest.mark.parametrize("value", ["/a;reboot", "/a $(x)", "relative", "/a'b", ""])
def test_what_a_node_says_is_no_part_of_a_command(value):
    settings = {"data-dir": value, "cert-file": value}
    at = tool(etcd.LocalMember(static=True, settings=settings))
    assert "reboot" not in at.setup + at.folder
    assert "(x)" not in at.setup + at.folder
    assert "'b" not in at.setup + at.folder


@pytest.mark.parametrize(
    ("more", "layout"),
    [
        ({}, "static pod"),
        ({"traces": ("/etc/etcd.env",)}, "kubespray"),
        ({"installer": ("/etc/rancher/k3s",)}, "k3s"),
        ({"installer": ("/var/lib/rancher/rke2",)}, "RKE2"),
        ({"etcd_damage": Damage("x", "etcd.service")}, "unit"),
        ({"etcd_damage": Damage("x", "/var/log/pods/x")}, "static pod"),
    ],
)
def test_where_no_etcd_runs_traces_tell_the_installer(more, layout):
    assert etcd_commands.tool_of(host(**more)).layout == layout


def test_the_leader_is_defragmented_last_and_the_alarm_goes_at_the_end():
    text = etcd_commands.free_space(tool(etcd.LocalMember(static=True)))
    order = ("snapshot save", "compact", "leader last", "alarm disarm")
    assert [text.index(word) for word in order] == sorted(text.index(word) for word in order)


def test_a_cluster_without_hosts_has_commands_too():
    assert etcd_commands.tool(Cluster("k", [])).host == "a host of etcd"
