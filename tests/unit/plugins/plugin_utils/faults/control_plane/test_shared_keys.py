# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support import pki
from tests.unit.support.pki import FOLDER, Authority, Pki


@pytest.fixture
def made(world: Any) -> Pki:
    made = Pki(world.data("m1", "system")["clock"])
    pki.certify(world, made)
    return made


def judged(world: Any) -> Any:
    return world.judge(faults={"KM127"})


def server(world: Any, host: str) -> list[str]:
    rows = world.data(host, "instances")["processes"]
    argv: list[str] = next(row["argv"] for row in rows if row["component"] == "kube-apiserver")
    return argv


def test_a_control_plane_that_shares_all_is_clear(world: Any, made: Pki) -> None:
    assert [row.verdict for row in judged(world).verdicts] == ["clear"]


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("ca", "a client is accepted by one API server"),
        ("etcd/ca", "members of etcd refuse each other"),
        ("front-proxy-ca", "metrics-server"),
    ],
)
def test_an_authority_of_its_own(world: Any, made: Pki, name: str, effect: str) -> None:
    pair = Authority("kubernetes", made.now).pair
    pki.set_file(world.data("m3", "certificates"), f"{FOLDER}/{name}.crt", pair)
    (hit,) = judged(world).findings
    assert hit.severity == "critical"
    assert f"{FOLDER}/{name}.crt" in hit.summary
    assert effect in hit.summary
    assert {proof.host for proof in hit.evidence} == {"m1", "m2", "m3"}


@pytest.mark.parametrize("kind", ["renewed", "bundle"])
def test_a_rotation_that_goes_on_is_no_difference(world: Any, made: Pki, kind: str) -> None:
    new = Authority("front-proxy-ca", made.now, key=made.front.key, ends=7000).pair
    if kind == "bundle":
        new = Authority("another", made.now).pair
    for record in world.data("m3", "certificates")["files"]:
        if record["path"] == f"{FOLDER}/front-proxy-ca.crt":
            former = record["pem"] if kind == "bundle" else ""
            record["pem"] = new.pem + former
    assert not judged(world).findings


def test_a_key_of_tokens_that_another_server_does_not_verify(world: Any, made: Pki) -> None:
    for flag in ("service-account-private-key-file", "service-account-signing-key-file"):
        pki.set_key(world.data("m2", "certificates"), flag, "0" * 64)
    pki.set_key(world.data("m2", "certificates"), "service-account-key-file", "0" * 64)
    (hit,) = judged(world).findings
    assert "--service-account-private-key-file" in hit.summary
    assert f"{FOLDER}/sa.key" in hit.summary
    assert "m2" in hit.summary


def test_several_keys_may_verify(world: Any, made: Pki) -> None:
    for flag in ("service-account-private-key-file", "service-account-signing-key-file"):
        pki.set_key(world.data("m2", "certificates"), flag, "0" * 64)
    for host in ("m1", "m2", "m3"):
        for row in world.data(host, "certificates")["keys"]:
            if row["flag"] == "service-account-key-file":
                row["digests"].append("0" * 64)
    assert not judged(world).findings


def test_a_key_that_could_not_be_read_proves_nothing(world: Any, made: Pki) -> None:
    for row in world.data("m2", "certificates")["keys"]:
        if row["flag"] == "service-account-key-file":
            row.update(digests=[], error="missing")
    assert not judged(world).findings


@pytest.mark.parametrize(
    ("issuers", "present"),
    [
        (["https://m2:6443"], True),
        (["https://m2:6443", "https://kubernetes.default.svc"], True),
        (["https://kubernetes.default.svc", "https://m2:6443"], False),
        ([], True),
    ],
)
def test_issuers_that_others_do_not_accept(
    world: Any, made: Pki, issuers: list[str], present: bool
) -> None:
    argv = server(world, "m2")
    argv[:] = [word for word in argv if not word.startswith("--service-account-issuer")]
    argv += [f"--service-account-issuer={issuer}" for issuer in issuers]
    assert any("--service-account-issuer" in hit.summary for hit in judged(world).findings) is (
        present
    )


def test_issuers_are_compared_without_the_collector(world: Any) -> None:
    server(world, "m2").append("--service-account-issuer=https://m2:6443")
    (hit,) = judged(world).findings
    assert "--service-account-issuer" in hit.summary


@pytest.mark.parametrize("is_known", [True, False])
def test_another_authority_in_cluster_info(world: Any, made: Pki, is_known: bool) -> None:
    info = world.data("api", "cluster_info")
    info.update(pem=Authority("kubernetes", made.now).pair.pem, key="1" * 64)
    if not is_known:
        for host in ("m1", "m2", "m3"):
            del world.documents[host]["collectors"]["certificates"]
    (hit,) = judged(world).findings
    assert hit.severity == "warning"
    assert "cluster-info" in hit.summary


def test_an_authority_of_the_same_key_is_the_same_in_cluster_info(world: Any, made: Pki) -> None:
    renewed = Authority("kubernetes", made.now, key=made.ca.key, ends=7000).pair
    world.data("api", "cluster_info").update(pem=renewed.pem, key="1" * 64)
    assert not judged(world).findings


@pytest.mark.parametrize(("status", "verdict"), [("absent", "clear"), ("denied", "unknown")])
def test_a_cluster_info_that_is_not_read(world: Any, made: Pki, status: str, verdict: str) -> None:
    world.api["collectors"]["cluster_info"] = {"status": status, "data": None}
    assert [row.verdict for row in judged(world).verdicts] == [verdict]
