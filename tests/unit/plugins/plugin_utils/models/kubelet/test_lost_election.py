# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The election whose loss ended a process of many components, by its journal."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    lost_election,
)

STAMP = "2026-11-22T18:31:29+0000 m1 "
LEASE = "kube-system/cloud-controller-manager"
SCHEDULER = "kube-system/kube-scheduler"
ENDED = f"{STAMP}systemd[1]: x.service: Main process exited, code=exited, status=255/EXCEPTION"


def said(text, pid=77, header=77):
    severity, text = text[0], text[2:]
    return f"{STAMP}rke2[{pid}]: {severity}1122 18:31:29.346075   {header} {text}"


OLD = (
    f"E leaderelection.go:325] error retrieving resource lock {LEASE}: Get"
    ' "https://127.0.0.1:6443/x": context deadline exceeded',
    f"I leaderelection.go:278] failed to renew lease {LEASE}: timed out waiting for the condition",
    "F controllermanager.go:222] leaderelection lost",
)
NEW = (
    'E leaderelection.go:366] "Error retrieving lease lock" err="Get'
    ' \\"https://127.0.0.1:6444/x\\": etcdserver: request timed out"'
    f' lock="{SCHEDULER}"',
    f'I leaderelection.go:299] "Failed to renew lease" lock="{SCHEDULER}" err="context deadline"',
    'E server.go:328] "Leaderelection lost"',
)


def document(lines, unit="rke2-server.service"):
    kubelet = {"unit": {"name": unit, "start_words": ["/usr/local/bin/rke2", "server"]}}
    end = {"unit": unit, "lines": lines}
    collectors = {
        "kubelet": {"status": "ok", "data": kubelet},
        "kubelet_end": {"status": "ok", "data": end},
    }
    return {"host": "m1", "collectors": collectors}


def read(*lines, unit="rke2-server.service", ended=ENDED):
    return lost_election.read(document([*(said(line) for line in lines), ended], unit))


@pytest.mark.parametrize(
    ("lines", "unit", "program", "lease", "reason"),
    [
        (OLD, "rke2-server.service", "RKE2", LEASE, "context deadline exceeded"),
        (OLD, "k3s.service", "k3s", LEASE, "context deadline exceeded"),
        (NEW, "k3s.service", "k3s", SCHEDULER, "request timed out"),
        (NEW, "snap.microk8s.daemon-kubelite.service", "kubelite", SCHEDULER, "request timed out"),
        (OLD[1:], "k3s.service", "k3s", LEASE, ""),
        # another elector of the same process spoke between the two lines
        ((*OLD[:2], NEW[1], OLD[2]), "k3s.service", "k3s", LEASE, "context deadline exceeded"),
        (
            (*OLD[:2], 'E controllermanager.go:413] "leaderelection lost/stopped"'),
            "k3s.service",
            "k3s",
            LEASE,
            "context deadline exceeded",
        ),
    ],
)
def test_whose_election_ended_the_process(lines, unit, program, lease, reason):
    found = read(*lines, unit=unit)
    assert (found.program, found.lease, found.reason) == (program, lease, reason)
    assert found.component == lease.partition("/")[2]
    for words in (found.component, "leaderelection lost", program):
        assert words in found.clause
    assert "etcd" in found.advice
    assert len(found.lines) == 2 + bool(reason)


def test_without_the_lease_no_component_is_named():
    found = read(OLD[2])
    assert (found.lease, found.component, len(found.lines)) == ("", "a component", 1)


@pytest.mark.parametrize(
    ("unit", "lines", "is_told"),
    [
        ("rke2-server.service", OLD, True),
        ("k3s.service", OLD, False),
        ("rke2-server.service", NEW, False),
    ],
)
def test_only_rke2_has_a_release_without_that_component(unit, lines, is_told):
    assert ("update RKE2" in read(*lines, unit=unit).advice) is is_told


@pytest.mark.parametrize(
    "found",
    [
        read(*OLD, unit="kubelet.service"),
        read(*OLD[:2]),
        read(OLD[2].replace("F ", "I ")),
        read(OLD[2], *["I a.go:1] later"] * lost_election.FOLLOW),
        read(*OLD, ended=""),
        lost_election.read({"host": "m1", "collectors": {}}),
        lost_election.read(document([said(OLD[2]), ENDED], None)),
        # a line that a container printed
        lost_election.read(document([said(OLD[2], 77, 1), ENDED])),
    ],
    ids=range(8),
)
def test_what_is_no_lost_election(found):
    assert found == lost_election.NONE
    assert (found.clause, found.advice) == ("", "")


def test_the_last_end_counts():
    started = f"{STAMP}systemd[1]: Started x."
    lines = [*(said(line) for line in OLD), ENDED, started, said("E a.go:1] other", 78, 78), ENDED]
    assert lost_election.read(document(lines)) == lost_election.NONE
