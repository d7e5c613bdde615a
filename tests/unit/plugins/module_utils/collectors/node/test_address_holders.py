# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has the ports that messages of other collectors name."""

import os
import socket

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    address_holders,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import listeners

IN_USE = "bind: address already in use"
UID = "0b7c5f3a-1d2e-4f60-8a9b-c0d1e2f3a4b5"
LOG = f"/var/log/pods/kube-system_kube-proxy-x_{UID}/kube-proxy/3.log"


def collect(**data):
    return address_holders.collect(base.Context({}, [], data))


@pytest.fixture
def held():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


def unit(port, address="127.0.0.1"):
    line = f"2026-11-24T12:00:00+0000 w1 kubelet[7]: listen tcp {address}:{port}: {IN_USE}"
    return {"kubelet_end": {"lines": [line]}}


def test_the_process_that_listens(held):
    (row,) = collect(**unit(held))["addresses"]
    assert (row["protocol"], row["address"], row["port"]) == ("tcp", "127.0.0.1", held)
    (holder,) = row["holders"]
    assert (holder["kind"], holder["pid"]) == (listeners.LISTEN, os.getpid())
    assert holder["comm"]
    assert holder["started_at"] > 0
    assert row["unseen"] is False


def test_one_that_listens_at_another_address_has_another_port(held):
    (row,) = collect(**unit(held, "127.0.0.2"))["addresses"]
    assert row["holders"] == []
    (row,) = collect(**unit(held, "0.0.0.0"))["addresses"]
    assert [holder["pid"] for holder in row["holders"]] == [os.getpid()]


def test_a_connection_counts_where_nothing_listens(held):
    with socket.create_connection(("127.0.0.1", held)) as connection:
        port = connection.getsockname()[1]
        (row,) = collect(**unit(port))["addresses"]
    (holder,) = row["holders"]
    assert (holder["kind"], holder["pid"]) == (listeners.CONNECTION, os.getpid())
    assert holder["peer"] == f"127.0.0.1:{held}"


def test_without_a_message_nothing_is_read(monkeypatch):
    monkeypatch.setattr(listeners, "bound", lambda ports: pytest.fail("read"))
    with pytest.raises(base.Absent):
        collect(kubelet_end={"lines": ["well"]}, system_pods=None, failed_units={"units": []})


def pods(port):
    line = f"E1124 1 server.go:1] listen tcp 127.0.0.1:{port}: {IN_USE}"
    return {"pods": [{"path": LOG, "lines": [line]}], "running": None}


def test_a_pod_counts_in_the_network_of_the_node_alone(held, monkeypatch):
    with pytest.raises(base.Absent):
        collect(system_pods=pods(held))
    # what the pod has in a network of its own says nothing of the same port of the node
    with pytest.raises(base.Absent):
        collect(system_pods=pods(held), **unit(held))
    monkeypatch.setattr(address_holders, "in_network_of_node", lambda path: path == LOG)
    (row,) = collect(system_pods=pods(held))["addresses"]
    assert [holder["pid"] for holder in row["holders"]] == [os.getpid()]


@pytest.mark.parametrize(
    ("namespace", "is_in"), [("net:[1]", True), ("net:[2]", False), (None, False)]
)
def test_the_network_of_a_pod(tmp_path, namespace, is_in):
    for name, link in (("self", "net:[1]"), ("40", namespace)):
        folder = tmp_path / name / "ns"
        folder.mkdir(parents=True)
        if link:
            (folder / "net").symlink_to(link)
    slices = f"kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{'a' * 64}.scope"
    (tmp_path / "40" / "cgroup").write_text(f"0::/kubepods.slice/{slices}\n")
    assert address_holders.in_network_of_node(LOG, str(tmp_path)) is is_in
    assert address_holders.in_network_of_node("/x.log", str(tmp_path)) is False


def test_the_number_of_addresses_is_bounded():
    lines = [f"listen tcp 127.0.0.9:{port}: {IN_USE}" for port in range(1, 30)]
    context = base.Context({}, [], {"failed_units": {"units": [{"lines": lines}]}})
    rows = address_holders.collect(context)["addresses"]
    assert len(rows) == address_holders.MAX_ADDRESSES
    assert context.truncated


def test_a_socket_without_a_process_may_have_been_missed(monkeypatch):
    socket_row = {"inode": "1", "protocol": "tcp", "kind": "listen", "port": 10250}
    socket_row.update(address="0.0.0.0", peer="")
    monkeypatch.setattr(listeners, "bound", lambda ports: [dict(socket_row)])
    monkeypatch.setattr(listeners, "holders", lambda inodes: ([], False))
    (row,) = collect(**unit(10250))["addresses"]
    assert row["unseen"]
    assert row["holders"][0]["pid"] is None
    monkeypatch.setattr(listeners, "holders", lambda inodes: ([], True))
    (row,) = collect(**unit(10250))["addresses"]
    assert row["unseen"] is False
