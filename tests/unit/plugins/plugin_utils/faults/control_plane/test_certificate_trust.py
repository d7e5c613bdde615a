# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support import pki
from tests.unit.support.pki import DAY, FOLDER, Authority, Pki

SHOWN = ("tls-cert-file", "cert-file", "peer-cert-file")


@pytest.fixture
def made(world: Any) -> Pki:
    made = Pki(world.data("m1", "system")["clock"])
    pki.certify(world, made)
    return made


def verdict(world: Any, code: str, host: str = "m1") -> str:
    rows = world.judge(faults={code}).verdicts
    return next(row.verdict for row in rows if row.host == host)


def finding(world: Any, code: str) -> Any:
    (hit,) = world.judge(faults={code}).findings
    return hit


@pytest.mark.parametrize("code", ["KM122", "KM124"])
def test_a_control_plane_that_is_well_is_clear(world: Any, made: Pki, code: str) -> None:
    assert verdict(world, code) == "clear"
    assert verdict(world, code, "w1") == "not_applicable"


@pytest.mark.parametrize("code", ["KM122", "KM124"])
def test_an_older_release_did_not_collect_it(world: Any, code: str) -> None:
    pki.forget(world)
    assert [row.code for row in world.judge(faults={code}).not_judged] == [code]


@pytest.mark.parametrize("flag", SHOWN)
def test_a_port_that_shows_the_former_certificate(world: Any, made: Pki, flag: str) -> None:
    former = made.ca.issue("kube-apiserver", ["m1"], begins=-360, ends=5)
    for row in world.data("m1", "certificates")["served"]:
        if row["flag"] == flag:
            row["pem"] = former.pem
    hit = finding(world, "KM122")
    assert hit.severity == "warning"
    assert "ends at 2027-01-20" in hit.summary
    assert "restart " in hit.remedy


def test_a_port_that_shows_an_expired_certificate_is_critical(world: Any, made: Pki) -> None:
    former = made.ca.issue("former", ["m1"], begins=-366, ends=-1)
    world.data("m1", "certificates")["served"][0]["pem"] = former.pem
    assert finding(world, "KM122").severity == "critical"


@pytest.mark.parametrize(("age", "present"), [(60, False), (600, True)])
def test_a_server_has_three_minutes_to_load_a_file(
    world: Any, made: Pki, age: int, present: bool
) -> None:
    data = world.data("m1", "certificates")
    path = f"{FOLDER}/apiserver.crt"
    new = made.ca.issue("kube-apiserver", ["m1"])
    pki.set_file(data, path, new, mtime=made.now - age)
    assert (verdict(world, "KM122") == "present") is present


@pytest.mark.parametrize(
    ("row", "present"),
    [
        ({"mtime": 3500, "replaced": False}, True),
        ({"mtime": 3700, "replaced": False}, False),
        ({"mtime": 3700, "replaced": True}, True),
    ],
)
def test_a_kubeconfig_that_is_newer_than_its_process(
    world: Any, made: Pki, row: dict[str, Any], present: bool
) -> None:
    path = "/etc/kubernetes/controller-manager.conf"
    given = {**row, "path": path, "mtime": made.now - row["mtime"]}
    for process in world.data("m1", "instances")["processes"]:
        if process["component"] == "kube-controller-manager":
            process["given"] = [given]
    assert (verdict(world, "KM122") == "present") is present


@pytest.mark.parametrize(("is_same", "expected"), [(True, "clear"), (False, "present")])
def test_another_file_with_the_same_certificate_is_not_to_be_loaded(
    world: Any, made: Pki, is_same: bool, expected: str
) -> None:
    """A program that writes the same kubeconfig again replaces the file, which a pod then lacks."""
    path = "/etc/kubernetes/controller-manager.conf"
    for process in world.data("m1", "instances")["processes"]:
        process["given"] = [{"path": path, "mtime": made.now, "replaced": True}]
    fresh = made.ca.issue("system:kube-controller-manager").pem
    for row in world.data("m1", "certificates")["kubeconfigs"]:
        if row["path"] == path:
            row["host_client"] = row["client"] if is_same else fresh
    assert verdict(world, "KM122") == expected


def test_a_kubeconfig_that_names_its_files_is_read_again(world: Any, made: Pki) -> None:
    path = "/etc/kubernetes/controller-manager.conf"
    for process in world.data("m1", "instances")["processes"]:
        process["given"] = [{"path": path, "mtime": made.now, "replaced": False}]
    for row in world.data("m1", "certificates")["kubeconfigs"]:
        row["client_path"] = "/etc/kubernetes/pki/client.crt"
    assert verdict(world, "KM122") == "clear"


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("apiserver", "pods refuse the API server"),
        ("apiserver-etcd-client", "etcd refuses the API server"),
        ("etcd/server", "the API server refuses etcd"),
        ("etcd/peer", "members of etcd refuse this one"),
        ("front-proxy-client", "aggregated APIs refuse the API server"),
    ],
)
def test_a_certificate_of_another_authority(world: Any, made: Pki, name: str, effect: str) -> None:
    other = Authority("kubernetes", made.now)
    path = f"{FOLDER}/{name}.crt"
    pair = other.issue("kube-apiserver", ["m1", "10.0.0.1"])
    data = world.data("m1", "certificates")
    pki.set_file(data, path, pair)
    for key in data["keys"]:
        if key["path"] == path.replace(".crt", ".key"):
            key["digests"] = [pair.digest]
    hit = finding(world, "KM124")
    assert hit.severity == "critical"
    assert effect in hit.summary
    assert path in hit.summary


def test_an_authority_with_the_same_name_and_another_key_is_another_one(
    world: Any, made: Pki
) -> None:
    other = Authority(made.etcd.name, made.now)
    pki.set_file(world.data("m1", "certificates"), f"{FOLDER}/etcd/ca.crt", other.pair)
    assert verdict(world, "KM124") == "present"


def test_an_authority_that_was_renewed_with_its_key_is_the_same(world: Any, made: Pki) -> None:
    renewed = Authority(made.etcd.name, made.now, key=made.etcd.key, ends=7000)
    pki.set_file(world.data("m1", "certificates"), f"{FOLDER}/etcd/ca.crt", renewed.pair)
    assert verdict(world, "KM124") == "clear"


def test_a_key_of_another_certificate(world: Any, made: Pki) -> None:
    pki.set_key(world.data("m1", "certificates"), "peer-key-file", "0" * 64)
    hit = finding(world, "KM124")
    assert f"{FOLDER}/etcd/peer.key is not the key of {FOLDER}/etcd/peer.crt" in hit.summary


def test_a_key_whose_public_part_is_not_known_proves_nothing(world: Any, made: Pki) -> None:
    for row in world.data("m1", "certificates")["keys"]:
        row.update(digests=[], error="a key without its public part")
    assert verdict(world, "KM124") == "clear"


def test_the_key_of_a_kubeconfig(world: Any, made: Pki) -> None:
    world.data("m2", "certificates")["kubeconfigs"][0]["digests"] = ["0" * 64]
    assert "the key in /etc/kubernetes/controller-manager.conf" in finding(world, "KM124").summary


@pytest.mark.parametrize(("signer", "present"), [("servers", False), ("clients", True)])
def test_the_serving_certificate_of_an_agent(
    world: Any, made: Pki, signer: str, present: bool
) -> None:
    authorities = {name: Authority(name, made.now) for name in ("servers", "clients")}
    pairs = {
        "tls-cert-file": authorities[signer].issue("w1", ["w1"]),
        "server-ca": authorities["servers"].pair,
    }
    data: dict[str, Any] = {"uses": [], "files": []}
    for number, (flag, pair) in enumerate(pairs.items()):
        use = {"component": "kubelet", "flag": flag, "path": f"/a/{flag}", "file": number}
        data["uses"].append(use)
        data["files"].append({"path": f"/a/{flag}", "pem": pair.pem, "mtime": made.now - DAY})
    world.documents["w1"]["collectors"]["certificates"] = {"status": "ok", "data": data}
    assert (verdict(world, "KM124", "w1") == "present") is present
    if present:
        assert finding(world, "KM124").severity == "warning"
