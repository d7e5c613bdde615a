# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    certificates as model,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    cluster as model_cluster,
)
from tests.unit.support import pki
from tests.unit.support.pki import FOLDER, Pki


@pytest.fixture
def made(world: Any) -> Pki:
    made = Pki(world.data("m1", "system")["clock"])
    pki.certify(world, made)
    return made


def test_leaves_and_authorities_are_apart(world: Any, made: Pki) -> None:
    certificates = model.extract(world.documents["m1"])
    assert certificates.file("etcd", "peer-cert-file").place == f"{FOLDER}/etcd/peer.crt"
    assert certificates.file("etcd", "trusted-ca-file") is None
    assert certificates.authority("etcd", "trusted-ca-file").leaf.subject == "etcd-ca"
    assert len(certificates.trusted("etcd", "trusted-ca-file")) == 1
    assert certificates.key("etcd", "peer-key-file").path == f"{FOLDER}/etcd/peer.key"
    assert {use.place for use in certificates.served} == {
        "127.0.0.1:6443",
        "127.0.0.1:2379",
        "127.0.0.1:2380",
    }


def test_what_was_not_read_is_kept_with_its_reason(world: Any, made: Pki) -> None:
    data = world.data("m1", "certificates")
    data["files"][0].update(pem=None, error="denied")
    data["uses"].append({"component": "etcd", "flag": "cert-file", "path": "/x", "file": 99})
    certificates = model.extract(world.documents["m1"])
    assert {row[3] for row in certificates.unread} == {"denied"}


def test_only_the_control_plane_is_kept(world: Any, made: Pki) -> None:
    assert model_cluster.host_of(world.documents["m1"]).certificates is not None
    assert model_cluster.host_of(world.documents["w1"]).certificates is None


@pytest.mark.parametrize(
    ("received", "ahead"), [(0, 0), (3600, -3600), (-7200, 7200), (None, 0), (True, 0)]
)
def test_the_clock_of_the_host(world: Any, made: Pki, received: Any, ahead: int) -> None:
    document = world.documents["m1"]
    document["received_at"] = received
    if received is not None and received is not True:
        document["received_at"] = made.now + received
    assert model.extract(dict(document)).ahead == timedelta(seconds=ahead)


@pytest.mark.parametrize(
    ("ends", "received", "is_doubted"),
    [(-0.5, -1, True), (-0.5, 0, False), (-3, -1, False), (5, -1, False)],
)
def test_a_clock_is_in_doubt_where_the_controllers_accepts_the_certificate(
    world: Any, made: Pki, ends: float, received: float, is_doubted: bool
) -> None:
    pair = made.ca.issue("kube-apiserver", begins=-30, ends=ends)
    pki.set_file(world.data("m1", "certificates"), f"{FOLDER}/apiserver.crt", pair)
    world.documents["m1"]["received_at"] = made.now + received * pki.DAY
    certificates = model.extract(world.documents["m1"])
    leaf = certificates.file("kube-apiserver", "tls-cert-file").leaf
    assert ("1440 min ahead of" in certificates.doubt(leaf)) is is_doubted
