# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server that answered, and its version."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    server,
)
from tests.unit.support import answers

SERVER = answers.recorded("v1.36.3-etcd-no-space", "m1.cluster", "server")


def test_the_server_with_its_version_and_clock():
    found = answers.typed(server.Server, SERVER)
    assert (found.url, found.git_version) == ("https://10.89.0.11:6443", "v1.36.3")
    assert (found.major, found.minor) == ("1", "36")
    assert found.kube_system_uid == "d579aa35-d7a0-4609-a869-ae1ee62da2a6"
    assert (found.kubectl, found.kubeconfig) == ("/usr/bin/kubectl", "/etc/kubernetes/admin.conf")
    assert found.clock.date == "Wed, 25 Nov 2026 13:41:09 GMT"


def test_a_minor_version_is_a_text_because_vendors_write_36_plus():
    assert answers.typed(server.Server, {**SERVER, "minor": "36+"}).minor == "36+"
    decoded = answers.changed(server.Server, SERVER, "minor", value=36)
    assert (decoded.malformed, decoded.answer.minor) == (("minor",), None)
    assert decoded.answer.major == "1"


def test_an_answer_of_a_release_without_a_clock():
    recorded = answers.recorded("v1.36.3-healthy", "m1.cluster", "server")
    assert answers.typed(server.Server, recorded).clock is None
