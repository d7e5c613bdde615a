# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit webhook that the flags of an API server name, and whether it keeps up."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import audit_webhook
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.control_plane import (
    ControlPlane,
    FileUse,
    Process,
)

SERVER, PATH = "kube-apiserver", "/etc/kubernetes/manifests/kube-apiserver.yaml"
FILE = "--audit-webhook-config-file=/etc/kubernetes/audit-webhook.yaml"
SLOW = 'Post "https://audit.example/": context deadline exceeded'


def use(*words, component=SERVER, usual=True):
    words = (component, *words)
    return FileUse(PATH, "kube-system/a", component, words, None, None, 0.0, None, usual)


def process(*words, ours=True):
    argv = (SERVER, *words)
    return Process(
        *(SERVER, 90, argv, 0.0, None, True, None, ours, None, None),
        *("", "", None, {}),
    )


def lost(reason, plugin="webhook"):
    return (
        f"E1 metrics.go:86] Error in audit plugin '{plugin}' affecting 400 audit events: {reason}"
    )


def find(*words, lines=(), plane=None):
    row = {"component": SERVER, "lines": list(lines)}
    end = {"status": "ok", "data": {"components": [row]}}
    document = {"host": "m1", "collectors": {"component_end": end}}
    return audit_webhook.find(document, plane or ControlPlane((use(*words),)), "m1")


@pytest.mark.parametrize(
    ("words", "flag", "mode", "buffer"),
    [
        ((FILE,), audit_webhook.FILE, "batch", None),
        (FILE.split("="), audit_webhook.FILE, "batch", None),
        ((FILE, "--audit-webhook-mode=blocking"), audit_webhook.FILE, "blocking", None),
        ((FILE, "--audit-webhook-batch-buffer-size=10000"), audit_webhook.FILE, "batch", None),
        ((FILE, "--audit-webhook-batch-buffer-size=900000"), audit_webhook.FILE, "batch", 900000),
        ((FILE, "--audit-webhook-batch-buffer-size=many"), audit_webhook.FILE, "batch", None),
        (("--audit-dynamic-configuration",), audit_webhook.DYNAMIC, "batch", None),
    ],
)
def test_the_flags_name_it(words, flag, mode, buffer):
    found = find(*words)
    assert (found.flag, found.mode, found.buffer, found.reason) == (flag, mode, buffer, "")
    assert f"--{flag}" in found.clause
    assert (str(buffer) in found.clause) is bool(buffer)
    (proof,) = found.proofs
    assert (proof.path, proof.text.split()[0].partition("=")[0]) == (PATH, f"--{flag}")


@pytest.mark.parametrize(
    "plane",
    [
        ControlPlane(),
        ControlPlane((use("--audit-log-path=/a", "--audit-policy-file=/b"),)),
        ControlPlane((use("--audit-webhook-config-file="),)),
        ControlPlane((use("--audit-dynamic-configuration=false"),)),
        ControlPlane((use(FILE, usual=False), use(FILE, component="kube-scheduler"))),
        ControlPlane(processes=(process(FILE, ours=False),)),
    ],
    ids=range(6),
)
def test_there_is_none(plane):
    assert find(plane=plane, lines=[lost(SLOW)]) is None


def test_the_process_counts_before_the_file():
    plane = ControlPlane((use(FILE),), processes=(process(FILE, "--audit-webhook-mode=blocking"),))
    found = find(plane=plane)
    assert (found.mode, found.proofs[0].pid) == ("blocking", 90)
    assert "each request waits" in found.clause


@pytest.mark.parametrize(
    ("plugin", "reason", "is_slow"),
    [
        ("webhook", SLOW, True),
        ("webhook", "net/http: request canceled (Client.Timeout exceeded while awaiting)", True),
        ("webhook", "audit webhook queue blocked", True),
        ("buffered", "audit buffer queue blocked", True),
        ("webhook", "the server has received too many requests", True),
        # an answer at once costs no memory
        ("webhook", "dial tcp 192.0.2.9:443: connect: connection refused", False),
        ("webhook", "x509: certificate signed by unknown authority", False),
        ("log", "write /var/log/audit.log: i/o timeout", False),
    ],
)
def test_its_log_says_that_it_does_not_keep_up(plugin, reason, is_slow):
    found = find(FILE, lines=["I1 a", lost(reason, plugin), "I1 b"])
    assert found.reason == (reason if is_slow else "")
    assert ("does not keep up" in found.clause) is is_slow
    assert found.advice.startswith("give") is is_slow
    assert len(found.proofs) == 1 + is_slow


def test_the_buffer_may_be_that_of_the_log_file():
    blocked = [lost("audit buffer queue blocked", "buffered")]
    assert find(FILE, "--audit-log-mode=batch", lines=blocked).reason == ""
