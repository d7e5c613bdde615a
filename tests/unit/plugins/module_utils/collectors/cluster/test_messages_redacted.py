# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program said reaches the API by its container's message, a pod's or an event's.

No secret leaves the node with it.
"""

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    jobs as cluster_jobs,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    pod as cluster_pod,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    rejected as cluster_rejected,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import files

SAID = "cannot log in: password=hunter2 at https://me:hunter2@db, " + "x" * 600
ENDED = {"terminated": {"message": SAID, "exitCode": 1}}
STATUS = {"name": "app", "state": ENDED, "lastState": ENDED}
EVENT = {"message": SAID, "involvedObject": {}, "metadata": {}, "source": {}}
PLUGIN = {"volumes": [{"hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]}
POD = {
    "metadata": {"name": "a", "namespace": "b", "uid": "c"},
    "spec": PLUGIN,
    "status": {"message": SAID, "containerStatuses": [STATUS]},
}


@pytest.mark.parametrize(
    "found",
    [
        lambda: cluster_rejected.plugin_of(POD),
        lambda: cluster_rejected.pod_of(POD),
        lambda: cluster_pod._container(STATUS, False),
        lambda: cluster_pod._short({"message": SAID}, "message"),
        lambda: cluster_pod.event_of(EVENT),
        lambda: cluster_jobs.event_of(EVENT),
    ],
    ids=[
        "last words of a plugin",
        "rejected pod",
        "container",
        "condition",
        "event of a pod",
        "event",
    ],
)
def test_no_secret_is_told(found):
    text = json.dumps(found())
    assert "cannot log in: password=*******" in text
    assert "hunter2" not in text
    assert "x" * 600 not in text


def test_secrets_are_masked_before_the_text_is_cut():
    assert (
        files.masked_text("key: -----BEGIN PRIVATE KEY-----abc", 33)
        == "key: -----BEGIN PRIVATE KEY-----*"
    )
    assert files.masked_text("https://me:hunter2@db", 17) == "https://me:******"
    assert (
        files.masked_text(None, 9),
        files.masked_text("\ud800", 9),
    ) == ("", "?")
