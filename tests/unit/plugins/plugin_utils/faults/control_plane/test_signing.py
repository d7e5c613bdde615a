# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

MANAGER = "kube-controller-manager"
CERTIFICATE, KEY = "--cluster-signing-cert-file", "--cluster-signing-key-file"
TOKENS = "--service-account-private-key-file"
HOSTS = ("m1", "m2", "m3")


def judged(world: Any) -> Any:
    return world.judge(faults={"KM128"})


def process(world: Any, host: str) -> dict[str, Any]:
    rows = world.data(host, "instances")["processes"]
    found: dict[str, Any] = next(row for row in rows if row["component"] == MANAGER)
    return found


def without(world: Any, *flags: str, hosts: tuple[str, ...] = HOSTS) -> None:
    for host in hosts:
        row = process(world, host)
        row["argv"] = [word for word in row["argv"] if word.partition("=")[0] not in flags]


def add(world: Any, *words: str) -> None:
    for host in HOSTS:
        process(world, host)["argv"].extend(words)


def released(world: Any, release: str) -> None:
    for host in HOSTS:
        for row in world.data(host, "component_http")["components"]:
            row["metrics"]["git_version"] = release


def test_managers_that_have_both_pairs_are_clear(world: Any) -> None:
    assert [row.verdict for row in judged(world).verdicts] == ["clear"]


@pytest.mark.parametrize(
    ("release", "has_default"), [("v1.18.20", True), ("v1.30.1", False), ("v1.36.3", False)]
)
def test_no_files_to_sign_certificates_with(world: Any, release: str, has_default: bool) -> None:
    without(world, CERTIFICATE, KEY, hosts=("m2",))
    released(world, release)
    (hit,) = judged(world).findings
    assert (hit.severity, hit.component) == ("warning", MANAGER)
    assert CERTIFICATE in hit.summary
    assert "m2" in hit.summary
    assert ("/etc/kubernetes/ca)" in hit.summary) is has_default
    assert [proof.host for proof in hit.evidence] == ["m2"]


@pytest.mark.parametrize(
    "words",
    [
        ["--cluster-signing-kubelet-client-cert-file=/tls/client-ca.crt"],
        ["--cluster-signing-kubelet-serving-cert-file", "/tls/server-ca.crt"],
        ["--controllers=*,-csrsigning"],
        ["--controllers=*,-certificatesigningrequest-signing-controller,bootstrapsigner"],
        ["--controllers=deployment,replicaset"],
    ],
)
def test_a_signer_of_its_own_or_none_that_is_wanted(world: Any, words: list[str]) -> None:
    without(world, CERTIFICATE, KEY)
    add(world, *words)
    assert not judged(world).findings


@pytest.mark.parametrize(("release", "count"), [("v1.23.17", 1), ("v1.24.0", 0), ("v1.36.3", 0)])
def test_no_key_of_tokens_counts_where_secrets_hold_them(
    world: Any, release: str, count: int
) -> None:
    without(world, TOKENS)
    released(world, release)
    hits = judged(world).findings
    assert [TOKENS in hit.summary for hit in hits] == [True] * count


def test_a_process_that_was_not_read_leaves_it_unknown(world: Any) -> None:
    world.documents["m3"]["collectors"]["instances"] = {"status": "denied", "data": None}
    assert [row.verdict for row in judged(world).verdicts] == ["unknown"]


def test_a_cluster_whose_managers_are_no_processes(world: Any) -> None:
    for host in HOSTS:
        rows = world.data(host, "instances")["processes"]
        rows[:] = [row for row in rows if row["component"] != MANAGER]
    assert [row.verdict for row in judged(world).verdicts] == ["not_applicable"]


def test_machines_without_kubernetes(world: Any) -> None:
    world.leave_kubernetes()
    assert {row.verdict for row in judged(world).verdicts} <= {"not_applicable"}
