# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The renewal of certificates: which ones, in which order, with which risk, and when not."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    kubeadm_certificates,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import contract
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.control_plane import (
    certificate_renewal,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    certificates,
    maintenance,
)
from tests.unit.support import pki
from tests.unit.support.pki import DAY, FOLDER, Pki

CODES = frozenset(certificates.REMEDIES)
API, MANAGER, SCHEDULER = kubeadm_certificates.LOADERS
RENEW, LOAD = "renew_certificates", "load_certificates"
OVER = {"begins": -400.0, "ends": -3.0}


@pytest.fixture
def made(world: Any) -> Pki:
    return Pki(world.data("m1", "system")["clock"])


def planned(world: Any, max_risk: int = 2, allow: Iterable[str] = ()) -> tuple[plan.Step, ...]:
    documents = copy.deepcopy(world.documents)
    result, found = fault_engine.evaluate_clusters([*documents.values(), world.api], CODES)
    return plan.plan(
        result.findings,
        found,
        lambda host: contract.checked(documents[host]),
        plan.Consent(max_risk, frozenset(allow)),
        certificates.REMEDIES,
        fault_engine.KEY_DIGITS,
    )


def expire(world: Any, made: Pki, host: str, *names: str, ends: float = -3) -> None:
    """Let these certificates of a host have ended; the port shows it too."""
    data = world.data(host, "certificates")
    fresh = made.files(host, f"10.0.0.{host[1:]}", ends)
    for name in names:
        if name.endswith(".conf"):
            for row in data["kubeconfigs"]:
                if row["path"] == f"/etc/kubernetes/{name}":
                    row.update(client=fresh[name].pem, digests=[fresh[name].digest])
            continue
        pki.set_file(data, f"{FOLDER}/{name}.crt", fresh[name])
    for row in data["served"]:
        if row["flag"] == "tls-cert-file" and "apiserver" in names:
            row["pem"] = fresh["apiserver"].pem


def rows(steps: Iterable[plan.Step]) -> list[tuple[str, str, int, bool]]:
    return [(step.host, step.remedy, step.risk, step.allowed) for step in steps]


def blocked(steps: Iterable[plan.Step]) -> str:
    (reason,) = {step.blocked_by for step in steps}
    return str(reason)


def test_an_expired_api_server_is_renewed_and_restarted(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m2", "apiserver")
    renew, load = planned(world)
    assert rows((renew, load)) == [("m2", RENEW, 2, True), ("m2", LOAD, 2, True)]
    assert renew.id == "01-m2-renew-certificates"
    assert renew.change is not None
    assert renew.change["names"] == ["apiserver"]
    assert renew.change["folder"] == FOLDER
    leaf = pki.x509.load_pem_x509_certificate(
        next(
            row["pem"]
            for row in world.data("m2", "certificates")["files"]
            if row["path"] == f"{FOLDER}/apiserver.crt"
        ).encode()
    )
    assert renew.change["serials"] == {"apiserver": f"{leaf.serial_number:x}"}
    assert renew.change["release"] == (1, 30)
    assert "kubeadm certs renew apiserver: " in renew.diff
    assert load.change is not None
    assert list(load.change["components"]) == [API]
    assert load.change["serves"] is False
    assert f"{FOLDER}/apiserver.crt" in load.change["components"][API]["loads"]
    assert load.diff == f"restart of {API}\n"


def test_all_masters_are_renewed_before_the_first_is_loaded(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    names = ("apiserver", "etcd/peer", "etcd/server", "controller-manager.conf", "admin.conf")
    for host in ("m1", "m2", "m3"):
        expire(world, made, host, *names)
    steps = planned(world)
    assert [(step.host, step.remedy) for step in steps] == [
        *((host, RENEW) for host in ("m1", "m2", "m3")),
        *((host, LOAD) for host in ("m1", "m2", "m3")),
    ]
    assert all(step.allowed for step in steps)
    assert steps[0].change is not None
    assert steps[0].change["names"] == [
        "etcd-server",
        "etcd-peer",
        "apiserver",
        "admin.conf",
        "controller-manager.conf",
    ]
    assert steps[3].change is not None
    assert list(steps[3].change["components"]) == [API, MANAGER]


@pytest.mark.parametrize("name", ["etcd/peer", "admin.conf"])
def test_what_is_read_again_restarts_nothing(world: Any, made: Pki, name: str) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", name)
    assert rows(planned(world)) == [("m1", RENEW, 2, True)]


def test_an_api_server_that_serves_is_risk_3(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver-kubelet-client")
    steps = planned(world)
    assert rows(steps) == [("m1", RENEW, 3, False), ("m1", LOAD, 3, False)]
    assert steps[0].blocked_by == "risk 3 needs -e kubemend_max_risk=3"
    (_renew, load) = planned(world, 3)
    assert load.allowed
    assert load.change is not None
    assert load.change["serves"] is True


@pytest.mark.parametrize(
    ("readyz", "risk"),
    [({"status": 500}, 2), ({"error": "timed out"}, 2), ({"status": 200}, 3), ({"status": 401}, 3)],
)
def test_an_api_server_without_etcd_serves_nobody(
    world: Any, made: Pki, readyz: dict[str, Any], risk: int
) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver-etcd-client")
    servers = [{"pid": 90, "address": "10.0.0.1", "port": 6443, "readyz": readyz}]
    world.documents["m1"]["collectors"]["api_server"] = {
        "status": "ok",
        "data": {"servers": servers},
    }
    assert {step.risk for step in planned(world, 3)} == {risk}


def test_an_api_server_that_does_not_run_serves_nobody(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "etcd/server", "apiserver-etcd-client")
    instances = world.data("m1", "instances")
    instances["processes"] = [row for row in instances["processes"] if row["component"] != API]
    assert rows(planned(world)) == [("m1", RENEW, 2, True), ("m1", LOAD, 2, True)]


def test_a_kubeconfig_restarts_only_its_component(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m3", "scheduler.conf")
    renew, load = planned(world)
    assert renew.change is not None
    assert load.change is not None
    assert renew.change["names"] == ["scheduler.conf"]
    assert list(load.change["components"]) == [SCHEDULER]
    assert (load.risk, load.change["serves"]) == (2, False)
    assert load.change["components"][SCHEDULER]["image"] == "registry/kube-scheduler:v1.30.1"


def test_a_copy_of_a_person_is_not_renewed(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    pair = made.ca.issue("kubernetes-admin", **OVER)
    row = pki.kubeconfig("", "/root/.kube/config", pair, made.ca.pair, "https://10.0.0.1:6443")
    world.data("m1", "certificates")["kubeconfigs"].append(row)
    assert planned(world) == ()


def test_what_is_renewed_and_not_loaded_is_only_restarted(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    old = made.ca.issue("kube-apiserver", ["m1"], **OVER)
    for row in world.data("m1", "certificates")["served"]:
        if row["flag"] == "tls-cert-file":
            row["pem"] = old.pem
    (load,) = planned(world)
    assert rows((load,)) == [("m1", LOAD, 2, True)]
    assert load.code == "KM122"
    assert load.change is not None
    assert list(load.change["components"]) == [API]


def test_one_host_has_its_steps_once(world: Any, made: Pki) -> None:
    """KM120, KM122 and KM126 of one host ask for the same."""
    pki.certify(world, made)
    expire(world, made, "m1", "etcd/server", "controller-manager.conf", "admin.conf")
    old = made.ca.issue("kube-apiserver", ["m1"], **OVER)
    for row in world.data("m1", "certificates")["served"]:
        if row["flag"] == "tls-cert-file":
            row["pem"] = old.pem
    renew, load = planned(world)
    assert renew.change is not None
    assert load.change is not None
    assert renew.change["names"] == ["etcd-server", "admin.conf", "controller-manager.conf"]
    assert list(load.change["components"]) == [API, MANAGER]


def test_what_ends_soon_is_risk_3(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver", "scheduler.conf", ends=10)
    renew, load = planned(world, 3)
    assert rows((renew, load)) == [("m1", RENEW, 3, True), ("m1", LOAD, 3, True)]
    assert renew.code == "KM121"
    assert renew.change is not None
    assert renew.change["names"] == ["apiserver", "scheduler.conf"]
    assert rows(planned(world, 2)) == [("m1", RENEW, 3, False), ("m1", LOAD, 3, False)]


# --- what forbids it


def test_without_an_api_server_it_needs_api_down(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver")
    world.api["collectors"].clear()
    world.api["status"] = "unreachable"
    steps = planned(world)
    assert rows(steps) == [("m1", RENEW, 2, False), ("m1", LOAD, 2, False)]
    assert "allow it with -e kubemend_allow=api_down" in blocked(steps)
    assert all(step.allowed for step in planned(world, allow=["api_down"]))


def test_an_external_authority_is_refused(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver")
    for row in world.data("m1", "certificates")["files"]:
        row["key_beside"] = False
    assert "external CA" in blocked(planned(world))


def test_an_authority_that_ends_first_is_refused(world: Any) -> None:
    made = Pki(world.data("m1", "system")["clock"])
    made.ca = pki.Authority("kubernetes", made.now, ends=100)
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver")
    reason = blocked(planned(world))
    assert f"{FOLDER}/ca.crt ends at" in reason
    assert "KM123" in reason


def test_a_clock_that_is_off_is_refused(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver")
    now = world.data("m1", "system")["clock"]
    world.documents["m1"].update(asked_at=now - 4000, received_at=now - 3999)
    assert "KM526" in blocked(planned(world))


def test_a_clock_by_which_they_are_valid_is_refused(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver")
    world.documents["m1"]["received_at"] = made.now - 4 * DAY
    assert "set the clock first" in blocked(planned(world))


def test_without_a_kubelet_nothing_would_start_again(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver")
    world.data("m1", "kubelet")["healthz"] = {"status": 500, "url": "x", "error": None}
    assert "repair the kubelet of m1 first" in blocked(planned(world))


def test_a_cordoned_node_is_left_alone(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "etcd/peer")
    for item in world.data("api", "nodes")["items"]:
        if item["name"] == "m1":
            item["unschedulable"] = True
    assert "fenced" in blocked(planned(world))


@pytest.mark.parametrize(
    ("unit", "words"),
    [("rke2-server.service", "rke2 certificate rotate"), ("k3s.service", "k3s certificate rotate")],
)
def test_another_installer_is_named_with_its_command(
    world: Any, made: Pki, unit: str, words: str
) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver", "scheduler.conf")
    world.data("m1", "kubelet")["unit"] = {"name": unit}
    steps = planned(world)
    assert {step.remedy for step in steps} == {RENEW}
    assert words in blocked(steps)


def test_kubespray_has_its_own_folder(world: Any, made: Pki) -> None:
    pki.certify(world, made)
    expire(world, made, "m1", "apiserver")
    data = world.data("m1", "certificates")
    for row in [*data["uses"], *data["files"], *data["keys"]]:
        row["path"] = row["path"].replace(FOLDER, "/etc/kubernetes/ssl")
    renew, _load = planned(world)
    assert renew.change is not None
    assert renew.change["folder"] == "/etc/kubernetes/ssl"


def test_the_plan_and_the_node_know_the_same_names() -> None:
    known = {*certificate_renewal.NAMES.values(), *certificate_renewal.KUBECONFIGS}
    assert known == set(kubeadm_certificates.CERTIFICATES)
    folders = tuple(folder.rstrip("/") for folder in certificate_renewal.FOLDERS)
    assert folders == kubeadm_certificates.FOLDERS


def test_an_interrupted_renewal_is_ended_without_an_api_server(world: Any) -> None:
    step = {"step": "01-m1-renew-certificates", "component": "certificates", "remedy": RENEW}
    world.documents["m1"]["collectors"]["journal"] = {
        "status": "ok",
        "data": {"unproven": [{**step, "run_id": "20261121T090000Z-1a2b3c", "running": False}]},
    }
    world.api["collectors"].clear()
    world.api["status"] = "unreachable"
    documents = copy.deepcopy(world.documents)
    result, found = fault_engine.evaluate_clusters(
        [*documents.values(), world.api], frozenset(("KM902",))
    )
    (recover,) = plan.plan(
        result.findings,
        found,
        lambda host: contract.checked(documents[host]),
        plan.Consent(2),
        maintenance.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    assert (recover.remedy, recover.allowed) == ("recover", True)
