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
    return world.judge(faults={"KM123"})


def shorten(world: Any, made: Pki, ends: float, hosts: tuple[str, ...], begins: float = -3000):
    pair = Authority("etcd-ca", made.now, begins=begins, ends=ends, key=made.etcd.key).pair
    for host in hosts:
        pki.set_file(world.data(host, "certificates"), f"{FOLDER}/etcd/ca.crt", pair)


def test_authorities_with_years_are_clear(world: Any, made: Pki) -> None:
    assert [row.verdict for row in judged(world).verdicts] == ["clear"]


@pytest.mark.parametrize(
    ("ends", "severity", "text"),
    [
        (300, "warning", "ends in 300 days"),
        (20, "critical", "ends in 20 days"),
        (-2, "critical", "has ended"),
    ],
)
def test_an_authority_that_ends_is_reported_once(
    world: Any, made: Pki, ends: float, severity: str, text: str
) -> None:
    shorten(world, made, ends, ("m1", "m2", "m3"))
    (hit,) = judged(world).findings
    assert (hit.severity, hit.host) == (severity, None)
    assert text in hit.summary
    assert "etcd-ca" in hit.summary
    assert {proof.host for proof in hit.evidence} == {"m1", "m2", "m3"}


def test_an_authority_of_one_host_names_it(world: Any, made: Pki) -> None:
    shorten(world, made, 100, ("m2",))
    (hit,) = judged(world).findings
    assert hit.host == "m2"


def test_an_authority_that_was_made_for_a_year_is_renewed_by_what_made_it(
    world: Any, made: Pki
) -> None:
    shorten(world, made, 100, ("m1", "m2", "m3"), begins=-265)
    assert not judged(world).findings


def test_the_newest_authority_of_a_file_counts(world: Any, made: Pki) -> None:
    shorten(world, made, -10, ("m1", "m2", "m3"))
    for host in ("m1", "m2", "m3"):
        for record in world.data(host, "certificates")["files"]:
            if record["path"] == f"{FOLDER}/etcd/ca.crt":
                record["pem"] += made.etcd.pair.pem
    assert not judged(world).findings


def test_operators_of_openshift_replace_their_authorities(world: Any, made: Pki) -> None:
    shorten(world, made, 100, ("m1",))
    paths = {"paths": ["/etc/machine-config-daemon"], "kubelet_exe": None}
    world.documents["m1"]["collectors"]["installer"] = {"status": "ok", "data": paths}
    assert not judged(world).findings


def test_a_member_that_did_not_answer_is_missing(world: Any, made: Pki) -> None:
    world.documents["m3"]["collectors"]["certificates"] = {"status": "timeout", "data": None}
    assert [row.verdict for row in judged(world).verdicts] == ["unknown"]


def test_machines_without_kubernetes_are_not_applicable(world: Any) -> None:
    world.leave_kubernetes()
    assert {row.verdict for row in judged(world).verdicts} <= {"not_applicable"}
