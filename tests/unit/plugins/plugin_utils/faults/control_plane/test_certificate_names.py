# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support import pki
from tests.unit.support.pki import FOLDER, Pki

BALANCER = "lb.example"


@pytest.fixture
def made(world: Any) -> Pki:
    made = Pki(world.data("m1", "system")["clock"])
    pki.certify(world, made)
    return made


def judged(world: Any) -> Any:
    return world.judge(faults={"KM125"})


def serve(world: Any, made: Pki, host: str, name: str, names: list[str]) -> None:
    authority = made.etcd if name.startswith("etcd/") else made.ca
    pair = authority.issue("server", names)
    pki.set_file(world.data(host, "certificates"), f"{FOLDER}/{name}.crt", pair)


def ask(world: Any, host: str, server: str, error: str | None = None) -> None:
    data = {"server": f"https://{server}:6443", "address": "10.0.0.9", "error": error}
    data["failed"] = "certificate" if error else None
    world.documents[host]["collectors"]["api_way"] = {"status": "ok", "data": data}


def test_names_that_are_used_are_there(world: Any, made: Pki) -> None:
    ask(world, "w1", "10.0.0.1")
    assert {row.verdict for row in judged(world).verdicts} == {"clear"}


def test_the_address_of_the_service_is_needed(world: Any, made: Pki) -> None:
    serve(world, made, "m2", "apiserver", ["m2", "10.0.0.2"])
    (hit,) = judged(world).findings
    assert f"{FOLDER}/apiserver.crt of m2 lacks 10.96.0.1, by which pods reach it" in hit.summary


def test_the_address_of_the_server_is_that_of_its_host(world: Any, made: Pki) -> None:
    serve(world, made, "m1", "apiserver", ["m1", "10.96.0.1"])
    ask(world, "w1", "10.0.0.1")
    (hit,) = judged(world).findings
    assert "of m1 lacks 10.0.0.1" in hit.summary
    assert "the kubelet of w1" in hit.summary
    assert "of m2" not in hit.summary


def test_a_balancer_leads_to_each_server_if_one_has_its_name(world: Any, made: Pki) -> None:
    for host in ("m1", "m2"):
        names = ["10.96.0.1", f"10.0.0.{host[1]}", BALANCER]
        serve(world, made, host, "apiserver", names)
    ask(world, "w1", BALANCER)
    (hit,) = judged(world).findings
    assert f"of m3 lacks {BALANCER}" in hit.summary
    assert "of m1" not in hit.summary


@pytest.mark.parametrize(
    ("error", "present"),
    [
        (None, False),
        ("certificate verify failed: unable to get local issuer certificate", False),
        ("certificate verify failed: Hostname mismatch, certificate is not valid for", True),
    ],
)
def test_a_balancer_with_a_certificate_of_its_own_is_no_fault(
    world: Any, made: Pki, error: str | None, present: bool
) -> None:
    ask(world, "w1", BALANCER, error)
    assert bool(judged(world).findings) is present


def test_an_address_of_a_worker_is_no_api_server(world: Any, made: Pki) -> None:
    ask(world, "w1", "10.0.0.100")
    assert not judged(world).findings


@pytest.mark.parametrize(
    ("name", "lacks"), [("etcd/server", "127.0.0.1"), ("etcd/peer", "10.0.0.1")]
)
def test_the_addresses_of_etcd(world: Any, made: Pki, name: str, lacks: str) -> None:
    serve(world, made, "m1", name, ["m1"])
    (hit,) = judged(world).findings
    assert f"{FOLDER}/{name}.crt of m1 lacks {lacks}" in hit.summary


def test_a_certificate_without_alternative_names_is_not_judged_here(world: Any, made: Pki) -> None:
    serve(world, made, "m1", "etcd/peer", [])
    assert not judged(world).findings


def test_an_older_release_is_not_judged(world: Any) -> None:
    pki.forget(world)
    assert [row.code for row in judged(world).not_judged] == ["KM125"]


def test_an_address_of_the_range_of_services_is_enough(world: Any, made: Pki) -> None:
    """A bundle without names has another one of the same network."""
    serve(world, made, "m2", "apiserver", ["m2", "10.0.0.2", "10.97.3.4"])
    assert not judged(world).findings
