# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM125 of kubelets: what API servers refuse, and what has no certificate at all."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.unit.support import pki
from tests.unit.support.pki import FOLDER, Authority, Pki

AUTHORITY = f"{FOLDER}/ca.crt"
FLAG = f"--kubelet-certificate-authority={AUTHORITY}"
HOST, ADDRESS = "w1", "10.0.0.100"
NO_CERTIFICATE = "TLS: TLSV1_ALERT_INTERNAL_ERROR"


@pytest.fixture
def made(world: Any) -> Pki:
    made = Pki(world.data("m1", "system")["clock"])
    pki.certify(world, made)
    return made


def verify(world: Any, *more: str) -> None:
    """Let API servers verify kubelets."""
    for host in ("m1", "m2", "m3"):
        for row in world.data(host, "instances")["processes"]:
            if row["component"] == "kube-apiserver":
                row["argv"] = [*row["argv"], FLAG, *more]
        data = world.data(host, "certificates")
        number = next(row["file"] for row in data["uses"] if row["path"] == AUTHORITY)
        flag = {"component": "kube-apiserver", "flag": "kubelet-certificate-authority"}
        data["uses"].append({**flag, "path": AUTHORITY, "pid": 90, "file": number})


def serve(world: Any, pem: str | None, error: str | None = None) -> None:
    """Let the kubelet of the worker show this certificate."""
    place = {"address": "127.0.0.1", "port": 10250, "pid": 7}
    row = {"component": "kubelet", "flag": "tls-cert-file", "pem": pem, "error": error, **place}
    data = {"uses": [], "files": [], "keys": [], "kubeconfigs": [], "served": [row]}
    world.documents[HOST]["collectors"]["certificates"] = {"status": "ok", "data": data}


def addresses(world: Any) -> list[dict[str, str]]:
    item = next(row for row in world.data("api", "nodes")["items"] if row["name"] == HOST)
    return item["addresses"]


def request(world: Any, node: str = HOST, state: str = "waiting", seconds: float = 3600) -> None:
    nodes = world.data("api", "nodes")
    created = pki_time(world, -seconds)
    user = f"system:node:{node}"
    row = {"name": "csr-x1", "node": node, "user": user, "created": created, "state": state}
    nodes["serving_requests"] = [row]


def pki_time(world: Any, seconds: float) -> str:
    from datetime import datetime, timedelta, timezone

    now = datetime.fromtimestamp(world.data("m1", "system")["clock"], timezone.utc)
    return f"{now + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def of_kubelets(world: Any) -> Any:
    result = world.judge(faults={"KM125"})
    (verdict,) = [row for row in result.verdicts if row.component == "kubelet"]
    return verdict, [hit for hit in result.findings if hit.component == "kubelet"]


def test_a_kubelet_that_api_servers_accept(world: Any, made: Pki) -> None:
    verify(world)
    serve(world, made.ca.issue("kubelet", [HOST, ADDRESS]).pem)
    assert of_kubelets(world)[0].verdict == "clear"


def test_nobody_verifies_a_certificate_that_a_kubelet_signed(world: Any, made: Pki) -> None:
    serve(world, Authority(HOST, made.now).pair.pem)
    assert of_kubelets(world)[0].verdict == "clear"


def test_api_servers_refuse_what_a_kubelet_signed_itself(world: Any, made: Pki) -> None:
    verify(world)
    serve(world, Authority(HOST, made.now).pair.pem)
    verdict, (hit,) = of_kubelets(world)
    assert (verdict.verdict, hit.severity) == ("present", "warning")
    assert f"the kubelet of {HOST} shows a certificate that it signed itself" in hit.summary
    assert {proof.host for proof in hit.evidence} == {HOST, "m1"}


def test_api_servers_refuse_what_another_authority_signed(world: Any, made: Pki) -> None:
    verify(world)
    serve(world, made.etcd.issue("kubelet", [HOST, ADDRESS]).pem)
    (hit,) = of_kubelets(world)[1]
    assert "signed, which API servers do not trust" in hit.summary


@pytest.mark.parametrize(
    ("names", "types", "lacks"),
    [
        ([HOST], None, None),
        ([HOST], "InternalIP,Hostname", ADDRESS),
        ([ADDRESS], "InternalIP,Hostname", None),
        ([ADDRESS], None, HOST),
        (["other"], "ExternalIP,InternalIP", ADDRESS),
        (["other"], "ExternalIP", None),
    ],
)
def test_the_address_by_which_api_servers_ask(
    world: Any, made: Pki, names: list[str], types: str | None, lacks: str | None
) -> None:
    """The first type of address of the flag that the Node has."""
    verify(world, *([f"--kubelet-preferred-address-types={types}"] if types else []))
    addresses(world)[:] = [
        {"type": "InternalIP", "address": ADDRESS},
        {"type": "Hostname", "address": HOST},
    ]
    serve(world, made.ca.issue("kubelet", names).pem)
    verdict, hits = of_kubelets(world)
    assert verdict.verdict == ("present" if lacks else "clear")
    assert [f"lacks {lacks}," in hit.summary for hit in hits] == ([True] if lacks else [])


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("waiting", "its request csr-x1 waits for approval"),
        ("approved", "its request csr-x1 is approved and not signed"),
        ("denied", "its request csr-x1 was denied"),
        (None, "has no certificate to show"),
    ],
)
def test_a_kubelet_without_a_certificate(
    world: Any, made: Pki, state: str | None, words: str
) -> None:
    """Also where no API server verifies kubelets."""
    serve(world, None, NO_CERTIFICATE)
    world.data("api", "nodes")["serving_requests"] = []
    if state:
        request(world, state=state, seconds=10)
    (hit,) = of_kubelets(world)[1]
    assert words in hit.summary
    assert ("csr-x1" in (hit.remedy or "")) is bool(state)


@pytest.mark.parametrize("error", ["Connection refused", "timed out"])
def test_a_port_that_does_not_answer_is_no_missing_certificate(
    world: Any, made: Pki, error: str
) -> None:
    serve(world, None, error)
    assert not of_kubelets(world)[1]


@pytest.mark.parametrize(
    ("node", "seconds", "present"),
    [
        ("w9", 3600, True),
        ("w9", 60, False),  # an approver may be at work
        (HOST, 3600, False),  # it shows a certificate: another one is on its way
    ],
)
def test_a_request_of_a_node_that_was_not_audited(
    world: Any, made: Pki, node: str, seconds: float, present: bool
) -> None:
    serve(world, made.ca.issue("kubelet", [HOST, ADDRESS]).pem)
    request(world, node, seconds=seconds)
    assert bool(of_kubelets(world)[1]) is present


def test_without_the_api_it_is_not_known_by_which_address_they_ask(world: Any, made: Pki) -> None:
    verify(world)
    serve(world, made.ca.issue("kubelet", [HOST, ADDRESS]).pem)
    world.api["collectors"]["nodes"] = {"status": "timeout"}
    assert of_kubelets(world)[0].verdict == "unknown"


def test_a_host_without_the_evidence_is_unknown(world: Any, made: Pki) -> None:
    verify(world)
    world.documents[HOST]["collectors"]["certificates"] = {"status": "denied"}
    assert of_kubelets(world)[0].verdict == "unknown"


def test_where_the_host_has_the_authority_itself_it_is_another_fault(world: Any, made: Pki) -> None:
    """k3s and RKE2 give it to each node: KM124."""
    verify(world)
    serve(world, made.etcd.issue("kubelet", [HOST, ADDRESS]).pem)
    data = world.data(HOST, "certificates")
    record = next(
        row for row in world.data("m1", "certificates")["files"] if row["path"] == AUTHORITY
    )
    data["files"].append(copy.deepcopy(record))
    use = {"component": "kubelet", "flag": "server-ca", "path": AUTHORITY, "pid": 7, "file": 0}
    data["uses"].append(use)
    assert not of_kubelets(world)[1]
