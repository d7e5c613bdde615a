# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM507 by the dates of a kubelet's client certificate.

Over while it runs, in its last tenth, inside the kubeconfig, not to be read.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from tests.unit.plugins.plugin_utils.faults.node.test_kubelet_down import (
    LOOPS,
    RUNS,
    STOPPED,
    dead,
    failed,
    judged,
)
from tests.unit.support.facts import facts

NOW = datetime(2026, 11, 22, 18, 31, 29, tzinfo=timezone.utc)
CURRENT, CONF = "/var/lib/kubelet/pki/kubelet-client-current.pem", "/etc/kubernetes/kubelet.conf"
CALM = {**RUNS, "n_restarts": 0}
DAY = timedelta(days=1)


def pem(begins: timedelta, ends: timedelta) -> str:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "system:node:w1")])
    key = Ed25519PrivateKey.generate()
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(NOW + begins)
        .not_valid_after(NOW + ends)
        .sign(key, None)
    )
    return made.public_bytes(Encoding.PEM).decode()


def of(
    world, unit, begins, ends, path=CURRENT, lines=(), status="absent", config="", flags=(), **more
):
    world.documents["w1"]["collected_at"] = f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    held = {"path": path, "pem": pem(begins, ends), "error": None}
    record = {
        "path": "/var/lib/kubelet/config.yaml",
        "kind": "file",
        "text": config,
        "error": None,
        "masked": [],
        "size": 1,
    }
    verdicts, found = judged(
        world,
        unit,
        lines,
        status,
        client_certificate=held,
        kubeconfig={"path": CONF, "text": "", "size": 1},
        config=record,
        argv=["/usr/bin/kubelet", *flags],
        **more,
    )
    return verdicts["KM507"].verdict, [item for item in found if item.code == "KM507"]


@pytest.mark.parametrize(
    ("begins", "ends"),
    [(-300 * DAY, 65 * DAY), (-328 * DAY, 37 * DAY), (timedelta(hours=-5), timedelta(hours=1))],
)
def test_a_certificate_that_is_not_in_its_last_tenth_is_well(world, begins, ends):
    assert of(world, CALM, begins, ends) == ("clear", [])


def test_one_that_expired_while_the_kubelet_runs_is_why_the_api_refuses_it(world):
    verdict, (found,) = of(world, CALM, -366 * DAY, -1 * DAY)
    assert (verdict, found.severity, found.host, found.component) == (
        "present",
        "critical",
        "w1",
        "kubelet",
    )
    assert (
        "of the kubelet has expired: the API server refuses the kubelet that runs" in found.summary
    )
    assert "2026-11-21 18:31:29 UTC" in found.summary
    proof = found.evidence[0]
    assert proof.path == CURRENT
    facts(proof.text, "2025-11-21T18:31:29Z", "2026-11-21T18:31:29Z", "rotateCertificates", "not")
    assert "--client-name system:node:w1" in found.remedy
    assert found.remedy.endswith("then systemctl restart kubelet.service")
    assert found.remedy.startswith("compare the node's clock first")
    assert found.risk == 0


def test_one_that_expired_keeps_a_stopped_kubelet_down(world):
    verdict, (found,) = of(world, STOPPED, -366 * DAY, -1 * DAY)
    assert (verdict, found.severity) == (
        "present",
        "critical",
    )
    assert "it does not run, and will not start with it" in found.summary


def test_its_last_words_have_the_first_word(world):
    verdict, (found,) = of(
        world,
        {**LOOPS, "exec_main_status": 1},
        -366 * DAY,
        -1 * DAY,
        lines=dead(
            failed(
                "failed to run Kubelet: unable to load bootstrap kubeconfig: stat /x: no such file"
                " or directory"
            ),
            1,
        ),
        status="ok",
    )
    assert verdict == "present"
    assert found.summary.startswith(
        "the kubelet does not start: it has no valid client certificate"
    )


def test_where_its_last_words_are_not_certain_the_date_is(world):
    verdict, (found,) = of(
        world,
        {**LOOPS, "exec_main_status": 1},
        -366 * DAY,
        -1 * DAY,
        lines=dead(failed("something new"), 1),
        status="ok",
    )
    assert verdict == "present"
    assert "has expired" in found.summary


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        ("", ("--rotate-certificates", "--v=2")),
        ("rotateCertificates: false\n", ("--v=2", "--rotate-certificates")),
        ("rotateCertificates: yes\n", ()),
    ],
)
def test_a_kubelet_that_is_told_to_renew_it_is_not_told_again(world, config, flags):
    verdict, (found,) = of(world, CALM, -330 * DAY, 35 * DAY, config=config, flags=flags)
    assert verdict == "present"
    assert "kubectl get csr" in found.remedy
    assert "set rotateCertificates" not in found.remedy


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("rotateCertificates: true\n", "kubectl get csr"),
        ("rotateCertificates: false\n", "set rotateCertificates: true"),
        ("", "set rotateCertificates: true"),
    ],
)
def test_one_in_its_last_tenth_was_not_renewed(world, config, words):
    verdict, (found,) = of(world, CALM, -330 * DAY, 35 * DAY, config=config)
    assert (verdict, found.severity) == (
        "present",
        "warning",
    )
    assert "ends in 35 days, and was not renewed" in found.summary
    assert words in found.remedy
    assert "--client-name system:node:w1" in found.remedy


def test_hours_and_minutes_are_told_as_such(world):
    assert "ends in 6 h" in of(world, CALM, -9 * DAY, timedelta(hours=6))[1][0].summary
    assert "ends in 3 min" in of(world, CALM, -9 * DAY, timedelta(minutes=3))[1][0].summary


@pytest.mark.parametrize(
    ("unit", "ends", "severity", "words"),
    [
        (CALM, -1 * DAY, "warning", "with its next start the kubelet fails"),
        (STOPPED, -1 * DAY, "critical", "will not start with it"),
        (CALM, 3 * DAY, "warning", "ends in 3 days"),
    ],
)
def test_one_inside_the_kubeconfig_is_renewed_by_nobody(world, unit, ends, severity, words):
    verdict, (found,) = of(world, unit, -366 * DAY, ends, path=None)
    assert (verdict, found.severity, found.evidence[0].path) == ("present", severity, CONF)
    assert words in found.summary
    assert CONF in found.summary
    assert "client-certificate-data" in found.remedy
    assert "inside the kubeconfig" in found.evidence[0].text


def test_one_that_may_not_be_read_is_unknown(world):
    verdicts, found = judged(
        world,
        CALM,
        status="absent",
        client_certificate={"path": CURRENT, "pem": None, "error": "denied"},
    )
    assert (verdicts["KM507"].verdict, verdicts["KM507"].missing[0].status, found) == (
        "unknown",
        "denied",
        [],
    )


@pytest.mark.parametrize(
    "held",
    [
        None,
        {},
        {"pem": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"},
    ],
)
def test_what_is_no_certificate_tells_nothing(world, held):
    verdicts, found = judged(world, CALM, status="absent", client_certificate=held)
    assert (verdicts["KM507"].verdict, found) == ("clear", [])


@pytest.mark.parametrize("held", [7, {"pem": 7}])
def test_a_value_of_another_type_is_unknown(world, held):
    verdicts, found = judged(world, CALM, status="absent", client_certificate=held)
    assert (verdicts["KM507"].verdict, found) == ("unknown", [])


def test_a_node_that_the_api_does_not_hear_is_explained_by_it(world):
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
        engine as fault_engine,
    )

    assert ("KM507", None) in fault_engine.CATALOGUE["KM525"].explained_by


def test_a_file_of_another_name_is_left_as_it_was_by_a_kubelet_that_renews_its_own(world):
    """It runs on with the one of its own folder."""
    verdict, (found,) = of(
        world,
        CALM,
        -366 * DAY,
        -1 * DAY,
        path="/etc/kubernetes/pki/bootstrap.crt",
        config="rotateCertificates: true\n",
    )
    assert (verdict, found.severity) == (
        "present",
        "warning",
    )
    assert "until then it may have a newer one" in found.summary
    verdict, (found,) = of(
        world,
        CALM,
        -366 * DAY,
        -1 * DAY,
        path="/etc/kubernetes/pki/x.crt",
        config="rotateCertificates: false\n",
    )
    assert (verdict, found.severity) == ("present", "critical")


def test_ten_years_by_hand_are_no_year_of_warnings(world):
    assert (
        of(world, CALM, -3400 * DAY, 200 * DAY, config="rotateCertificates: false\n")[0] == "clear"
    )
    assert (
        of(world, CALM, -3400 * DAY, 60 * DAY, config="rotateCertificates: false\n")[0] == "present"
    )
