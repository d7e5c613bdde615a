# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import installer
from tests.unit.support import pki
from tests.unit.support.pki import FOLDER, Pki

DATES = ("KM120", "KM121")


@pytest.fixture
def made(world: Any) -> Pki:
    return Pki(world.data("m1", "system")["clock"])


def verdicts(world: Any, code: str) -> dict[str, str]:
    result = world.judge(faults={code})
    return {row.host: row.verdict for row in result.verdicts}


def finding(world: Any, code: str) -> Any:
    (hit,) = world.judge(faults={code}).findings
    return hit


@pytest.mark.parametrize("code", DATES)
def test_certificates_with_much_time_are_clear(world: Any, made: Pki, code: str) -> None:
    pki.certify(world, made)
    expected = dict.fromkeys(("m1", "m2", "m3"), "clear")
    assert verdicts(world, code) == {**expected, "w1": "not_applicable"}


@pytest.mark.parametrize("code", DATES)
def test_evidence_of_an_older_release_is_not_judged(world: Any, code: str) -> None:
    pki.forget(world)
    result = world.judge(faults={code})
    assert not result.verdicts
    assert [row.code for row in result.not_judged] == [code]


@pytest.mark.parametrize("code", DATES)
def test_a_file_that_may_not_be_read_is_unknown(world: Any, made: Pki, code: str) -> None:
    pki.certify(world, made)
    world.data("m1", "certificates")["files"][0].update(pem=None, error="denied")
    assert verdicts(world, code)["m1"] == "unknown"


@pytest.mark.parametrize("status", ["timeout", "error", "denied"])
def test_a_collector_that_fails_is_unknown(world: Any, made: Pki, status: str) -> None:
    pki.certify(world, made)
    world.documents["m2"]["collectors"]["certificates"] = {"status": status, "data": None}
    assert verdicts(world, "KM120")["m2"] == "unknown"


def test_expired_certificates_are_named_with_their_effects(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    pair = made.etcd.issue("m2", ["m2"], begins=-400, ends=-3)
    pki.set_file(world.data("m2", "certificates"), f"{FOLDER}/etcd/peer.crt", pair)
    hit = finding(world, "KM120")
    assert (hit.host, hit.severity) == ("m2", "critical")
    assert f"{FOLDER}/etcd/peer.crt expired at 2027-01-12" in hit.summary
    assert "quorum is lost" in hit.summary
    assert "kubeadm certs renew etcd-peer;" in hit.remedy
    assert "renew all" not in hit.remedy
    assert [proof.path for proof in hit.evidence] == [f"{FOLDER}/etcd/peer.crt"]


def test_an_aggregated_api_is_a_warning(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    pair = made.front.issue("front-proxy-client", begins=-400, ends=-3)
    pki.set_file(world.data("m1", "certificates"), f"{FOLDER}/front-proxy-client.crt", pair)
    assert finding(world, "KM120").severity == "warning"


def test_a_certificate_of_the_future_is_not_valid(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    pair = made.ca.issue("kube-apiserver", ["m1"], begins=2, ends=300)
    pki.set_file(world.data("m1", "certificates"), f"{FOLDER}/apiserver.crt", pair)
    assert "not valid before 2027-01-17" in finding(world, "KM120").summary


@pytest.mark.parametrize(("received", "first"), [(-400, True), (0, False)])
def test_a_wrong_clock_comes_before_a_renewal(
    world: Any, made: Pki, received: int, first: bool
) -> None:
    pki.certify(world, made)
    pair = made.etcd.issue("m2", ["m2"], begins=-400, ends=-3)
    pki.set_file(world.data("m2", "certificates"), f"{FOLDER}/etcd/peer.crt", pair)
    world.documents["m2"]["received_at"] = made.now + received / 100 * pki.DAY
    hit = finding(world, "KM120")
    assert ("set the clock first" in hit.remedy) is first


@pytest.mark.parametrize(
    ("path", "present"),
    [
        ("/var/lib/kubelet/pki/kubelet.crt", False),
        ("/etc/kubernetes/kubelet-serving.crt", True),
    ],
)
def test_a_certificate_that_a_kubelet_signed_itself_is_no_fault(
    world: Any, made: Pki, path: str, present: bool
) -> None:
    pki.certify(world, made)
    pair = made.ca.issue("w1", ["w1"], begins=-400, ends=-3)
    use = {"component": "kubelet", "flag": "tls-cert-file", "path": path, "file": 0}
    data = {"uses": [use], "files": [{"path": path, "pem": pair.pem}]}
    world.documents["w1"]["collectors"]["certificates"] = {"status": "ok", "data": data}
    assert (verdicts(world, "KM120")["w1"] == "present") is present


@pytest.mark.parametrize(
    ("ends", "owner", "severity"),
    [(-3, None, "info"), (-3, "RKE2", "warning"), (30, None, None)],
)
def test_a_certificate_that_a_component_made_for_itself(
    world: Any,
    made: Pki,
    monkeypatch: pytest.MonkeyPatch,
    ends: int,
    owner: str | None,
    severity: str | None,
) -> None:
    monkeypatch.setattr(installer, "owner_of", lambda _document: owner)
    pki.certify(world, made)
    pair = pki.Authority("localhost-ca@1", made.now).issue("localhost@1", begins=-400, ends=ends)
    row = {"component": "kube-scheduler", "flag": "tls-cert-file", "pem": pair.pem}
    row.update(address="127.0.0.1", port=10259, pid=None, error=None)
    world.data("m1", "certificates")["served"].append(row)
    assert verdicts(world, "KM120")["m1"] == ("present" if severity else "clear")
    if severity:
        hit = finding(world, "KM120")
        assert hit.severity == severity
        assert "127.0.0.1:10259" in hit.summary
        assert "restart kube-scheduler" in hit.remedy


@pytest.mark.parametrize(("is_read", "verdict"), [(True, "clear"), (False, "unknown")])
def test_a_certificate_of_a_file_is_none_that_a_component_made(
    world: Any, made: Pki, is_read: bool, verdict: str
) -> None:
    """A component serves an older certificate than that of its file until it reads it again."""
    pki.certify(world, made)
    data = world.data("m1", "certificates")
    ended = made.ca.issue("kube-scheduler", begins=-400, ends=-3)
    row = {"component": "kube-scheduler", "flag": "tls-cert-file", "pem": ended.pem}
    row.update(address="127.0.0.1", port=10259, pid=None, error=None)
    data["served"].append(row)
    use = {"component": "kube-scheduler", "flag": "tls-cert-file", "path": "/etc/s.crt"}
    data["uses"].append(dict(use, file=len(data["files"])))
    pem = made.ca.issue("kube-scheduler").pem if is_read else None
    data["files"].append({"path": "/etc/s.crt", "pem": pem, "error": None if is_read else "denied"})
    assert verdicts(world, "KM120")["m1"] == verdict


def test_what_ends_soon_is_named_with_its_days(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    for ends, name in ((20, "apiserver"), (25, "apiserver-kubelet-client")):
        pair = made.ca.issue("kube-apiserver", begins=-300, ends=ends)
        pki.set_file(world.data("m1", "certificates"), f"{FOLDER}/{name}.crt", pair)
    hit = finding(world, "KM121")
    assert hit.severity == "warning"
    assert "the first one in 20 days" in hit.summary
    assert "kubeadm certs renew apiserver; kubeadm certs renew apiserver-kubelet" in hit.remedy


def test_the_kubeconfig_of_a_component_ends_soon(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    pair = made.ca.issue("system:kube-scheduler", begins=-350, ends=15)
    row = world.data("m3", "certificates")["kubeconfigs"][1]
    row.update(client=pair.pem, digests=[pair.digest])
    hit = finding(world, "KM121")
    assert "kubeadm certs renew scheduler.conf" in hit.remedy
    assert "restart kube-scheduler" in hit.remedy


@pytest.mark.parametrize(
    ("begins", "ends", "present"),
    [(-335, 31, False), (-335, 29, True), (-10, 20, False), (-25, 5, True), (-2, 0.5, True)],
)
def test_a_short_life_is_due_in_its_last_third(
    world: Any, made: Pki, begins: float, ends: float, present: bool
) -> None:
    pki.certify(world, made)
    pair = made.ca.issue("kube-apiserver", begins=begins, ends=ends)
    pki.set_file(world.data("m1", "certificates"), f"{FOLDER}/apiserver.crt", pair)
    assert (verdicts(world, "KM121")["m1"] == "present") is present


@pytest.mark.parametrize(("ends", "present"), [(30, False), (10, True)])
def test_a_kubelet_renews_its_own_until_the_last_tenth(
    world: Any, made: Pki, ends: float, present: bool
) -> None:
    pki.certify(world, made)
    path = "/var/lib/kubelet/pki/kubelet-server-current.pem"
    pair = made.ca.issue("w1", ["w1"], begins=-200, ends=ends)
    use = {"component": "kubelet", "flag": "tls-cert-file", "path": path, "file": 0}
    data = {"uses": [use], "files": [{"path": path, "pem": pair.pem}]}
    world.documents["w1"]["collectors"]["certificates"] = {"status": "ok", "data": data}
    assert (verdicts(world, "KM121")["w1"] == "present") is present


def test_operators_of_openshift_renew_in_time(world: Any, made: Pki) -> None:
    pki.certify(world, made, ends=10)
    for host in ("m1", "m2", "m3"):
        kubelet = world.data(host, "kubelet")
        kubelet["process"]["argv"] = ["kubelet", "--node-labels=node.openshift.io/os_id=rhcos"]
    assert set(verdicts(world, "KM121").values()) == {"clear", "not_applicable"}


def test_a_wrong_clock_explains_what_has_expired(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    pair = made.etcd.issue("m2", ["m2"], begins=-400, ends=-0.001)
    pki.set_file(world.data("m2", "certificates"), f"{FOLDER}/etcd/peer.crt", pair)
    world.data("m2", "system")["clock"] += 7200
    result = world.judge(faults={"KM120", "KM526"})
    because = {row.code: row.because for row in result.findings}
    assert because["KM120"] == ("KM526",)
