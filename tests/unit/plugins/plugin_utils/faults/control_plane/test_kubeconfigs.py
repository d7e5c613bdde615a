# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.control_plane import (
    kubeconfigs,
)
from tests.unit.support import pki
from tests.unit.support.pki import Authority, Pki

MANAGER, ADMIN = "/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/admin.conf"
HOME = "/root/.kube/config"


@pytest.fixture
def made(world: Any) -> Pki:
    made = Pki(world.data("m1", "system")["clock"])
    pki.certify(world, made)
    return made


def row(world: Any, path: str, host: str = "m1") -> dict[str, Any]:
    rows = world.data(host, "certificates")["kubeconfigs"]
    return next(item for item in rows if item["path"] == path)


def copy(world: Any, **more: Any) -> None:
    item = {**row(world, ADMIN), "path": HOME, **more}
    world.data("m1", "certificates")["kubeconfigs"].append(item)


def findings(world: Any) -> Any:
    return world.judge(faults={"KM126"}).findings


def test_kubeconfigs_that_work_are_clear(world: Any, made: Pki) -> None:
    copy(world)
    assert not findings(world)
    rows = {item.host: item.verdict for item in world.judge(faults={"KM126"}).verdicts}
    assert rows["m1"] == "clear"


@pytest.mark.parametrize(
    ("path", "severity", "name"),
    [
        (MANAGER, "critical", "controller-manager.conf"),
        (ADMIN, "warning", "admin.conf"),
    ],
)
def test_an_expired_certificate(world: Any, made: Pki, path: str, severity: str, name: str) -> None:
    pair = made.ca.issue("client", begins=-366, ends=-1)
    row(world, path).update(client=pair.pem, digests=[pair.digest])
    (hit,) = findings(world)
    assert hit.severity == severity
    assert f"{path} has a client certificate that expired at" in hit.summary
    assert f"kubeadm certs renew {name}" in hit.remedy


def test_an_expired_copy_of_a_person_is_information(world: Any, made: Pki) -> None:
    copy(world, client=made.ca.issue("client", begins=-366, ends=-1).pem)
    (hit,) = findings(world)
    assert hit.severity == "info"
    assert f"replace {HOME}" in hit.remedy


@pytest.mark.parametrize(
    "more", [{"users": 2}, {"server": "https://192.0.2.1:6443"}], ids=["several", "another"]
)
def test_a_copy_that_may_be_of_another_cluster_is_no_fault(
    world: Any, made: Pki, more: dict[str, Any]
) -> None:
    copy(world, client=made.ca.issue("client", begins=-366, ends=-1).pem, **more)
    assert not findings(world)


def test_a_client_that_another_authority_signed(world: Any, made: Pki) -> None:
    other = Authority("kubernetes", made.now).issue("client")
    row(world, MANAGER).update(client=other.pem, digests=[other.digest])
    (hit,) = findings(world)
    assert "which the API server does not trust" in hit.summary


def test_another_authority_of_the_server(world: Any, made: Pki) -> None:
    row(world, ADMIN)["authority"] = Authority("kubernetes", made.now).pair.pem
    (hit,) = findings(world)
    assert "trusts another authority" in hit.summary


def test_a_name_that_leads_elsewhere_may_have_another_authority(world: Any, made: Pki) -> None:
    other = Authority("balancer", made.now).pair.pem
    row(world, ADMIN).update(authority=other, server="https://balancer.example:443")
    assert not findings(world)


def test_a_kubeconfig_that_may_not_be_read_is_unknown(world: Any, made: Pki) -> None:
    row(world, MANAGER).update(client=None, authority=None, error="denied")
    rows = world.judge(faults={"KM126"}).verdicts
    assert next(item.verdict for item in rows if item.host == "m1") == "unknown"


@pytest.mark.parametrize(
    ("server", "name"),
    [
        ("https://10.0.0.1:6443", "10.0.0.1"),
        ("https://[fd00::1]:6443/path", "fd00::1"),
        ("https://lb.example", "lb.example"),
        ("", ""),
    ],
)
def test_the_name_of_a_server(server: str, name: str) -> None:
    assert kubeconfigs.server_name(server) == name


def test_the_kubeconfig_of_a_component_counts_wherever_it_is(world: Any, made: Pki) -> None:
    pair = made.ca.issue("client", begins=-366, ends=-1)
    path = "/var/lib/rancher/rke2/server/cred/controller.kubeconfig"
    item = row(world, MANAGER)
    item.update(path=path, client=pair.pem, digests=[pair.digest])
    (hit,) = findings(world)
    assert hit.severity == "critical"
    assert "a copy of a kubeconfig of administrators" not in hit.remedy
