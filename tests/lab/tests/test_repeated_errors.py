# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components that run and repeat an error, on a real cluster: found, and over once undone.

A webhook that nothing answers, and that fails closed, refuses the leases of nodes: kubelets run,
and cannot renew theirs, and API servers say so. Nothing is restarted.
"""

from __future__ import annotations

import contextlib
import json
import time

from tests.lab.support import gpu

NAME, NAMESPACE = "lab-gone", "kube-node-lease"
MINUTES = 5  # the errors have to go on for four minutes of the clock
CODES = {"KM118", "KM529"}


@contextlib.contextmanager
def leases_refused(cluster):
    """Send writes of leases of nodes to a webhook whose service does not exist."""
    service = {"namespace": "default", "name": "lab-gone", "path": "/"}
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["leases"],
    }
    webhook = {
        "name": "gone.lab.example.com",
        "clientConfig": {"service": service},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 2,
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {NAME: "yes"}},
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [webhook],
    }
    try:
        cluster.kubectl("label", "namespace", NAMESPACE, f"{NAME}=yes")
        gpu.create(cluster, "default", configuration)
        yield
    finally:
        cluster.kubectl("delete", "validatingwebhookconfiguration", NAME, "--ignore-not-found")
        cluster.kubectl("label", "namespace", NAMESPACE, f"{NAME}-")


def repeated(report):
    """Return {(code, host, component): finding} of errors that are repeated."""
    return {
        (item["code"], item["host"], item["component"]): item
        for item in report["findings"]
        if item["code"] in CODES and item["severity"] != "info"
    }


def test_a_webhook_that_refuses_the_leases_of_nodes(cluster, play):
    _done, report = play(name="audit")
    assert repeated(report) == {}
    with leases_refused(cluster):
        time.sleep(60 * MINUTES)
        _done, report = play(name="audit")
        findings = repeated(report)
        kubelet = findings["KM529", "w1", "kubelet"]
        assert "gone.lab.example.com" in kubelet["summary"]
        assert kubelet["evidence"], json.dumps(kubelet)
    cluster.wait_healthy(120)
    cluster.wait(
        lambda: repeated(play(name="audit")[1]) == {}, 240, "the errors to be over for a while"
    )
