# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member of etcd whose revision others do not have, by its log, and look-alikes."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import etcd_revisions

FUTURE = "etcdserver: mvcc: required revision is a future revision"
LINE = (
    '{"level":"warn","ts":"2022-03-30T10:04:05.120Z","caller":"etcdserver/corrupt.go:289",'
    '"msg":"failed hash kv request","local-member-id":"360752fe18073483",'
    '"requested-revision":51842389,"remote-peer-endpoint":"https://10.0.0.2:2380",'
    f'"error":"{FUTURE}"}}'
)
FORMER = (
    f'2019-03-30 10:04:05.120123 W | etcdserver: 360752fe18073483 hash-kv error "{FUTURE}" on peer'
    ' "https://10.0.0.2:2380" with revision 51842389'
)


def document(line=LINE, component="etcd", first=-300.0):
    entry = {"count": 4, "minutes": 2, "first": 1.8e9 + first, "last": 1.8e9, "line": line}
    row = {"component": component, "source": "/log", "entries": [entry]}
    data = {"read_at": 1.8e9, "components": [row]}
    return {"host": "m1", "collectors": {"repeated_errors": {"status": "ok", "data": data}}}


@pytest.mark.parametrize("line", [LINE, FORMER])
@pytest.mark.parametrize("component", ["etcd", "k3s", "rke2"])
def test_a_revision_that_others_do_not_have(line, component):
    found = etcd_revisions.extract(document(line, component))
    assert found is not None
    assert (found.revision, found.count, found.seconds) == ("51842389", 4, 300.0)
    assert (found.line, found.source) == (line, "/log")


@pytest.mark.parametrize(
    "changes",
    [
        {"first": 0.0},  # a follower that is behind for a moment
        {"component": "kube-apiserver"},
        {"line": LINE.replace(FUTURE, "context deadline exceeded")},
        {"line": f"E1128 13:00:00.000000 1 watcher.go:253] watch chan error: {FUTURE}"},
    ],
)
def test_what_is_another_thing(changes):
    assert etcd_revisions.extract(document(**changes)) is None


def test_without_a_log():
    assert etcd_revisions.extract({"host": "m1", "collectors": {}}) is None
