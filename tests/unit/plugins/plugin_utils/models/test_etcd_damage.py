# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines by which etcd says that its data is damaged, of each of its loggers, and look-alikes."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import etcd_damage

DAMAGED = (
    "2020-05-26 14:00:14.693013 C | etcdserver: recovering backend from snapshot error: failed to"
    " find database snapshot file (snap: snapshot file doesn't exist)",
    "panic: freepages: failed to get all reachable pages (page 61: multiple references)",
    "panic: page 1938 already freed",
    '{"level":"panic","caller":"etcdserver/server.go:454","msg":"failed to recover v3 backend from'
    ' snapshot","error":"failed to find database snapshot file"}',
    '{"level":"fatal","msg":"discovery failed","error":"walpb: crc mismatch"}',
    '{"level":"fatal","msg":"failed to open WAL","error":"wal: max entry size limit exceeded"}',
    '{"level":"panic","msg":"tocommit(12345) is out of range [lastIndex(12000)]. Was the raft log'
    ' corrupted, truncated, or lost?"}',
    "[signal SIGBUS: bus error code=0x2 addr=0x7f3a457f3008 pc=0x9e2b65]",
    "go.etcd.io/bbolt.(*Cursor).search(0xc000316680, 0x1a310c0, 0x4, 0x4, 0x3)",
)
OTHERS = (
    # of a k3s that had a defect in its JSON
    "unexpected fault address 0x2326d30",
    "fatal error: fault",
    "[signal SIGSEGV: segmentation violation code=0x2 addr=0x2326d30 pc=0x1ce981c]",
    "github.com/modern-go/reflect2.(*UnsafeMapType).UnsafeIterate(0x1d4b46b471c0, 0x22eb909?)",
    '{"level":"info","msg":"snap: crc mismatch"}',
    '{"level":"fatal","msg":"cannot open database at /var/lib/etcd: permission denied"}',
    '{"level":"warn","msg":"apply request took too long"}',
    '{"level":"warn","msg":"prober detected unhealthy status","error":"dial tcp 10.0.0.2:2380"}',
    "",
)


@pytest.mark.parametrize("line", DAMAGED)
def test_a_line_about_damaged_data(line):
    assert etcd_damage.damaged(["I | etcdmain: etcd Version: 3.4.2", line, "goroutine 1"]) == line


@pytest.mark.parametrize("line", OTHERS)
def test_a_line_about_something_else(line):
    assert etcd_damage.damaged([line]) == ""


def document(**collectors):
    records = {name: {"status": "ok", "data": data} for name, data in collectors.items()}
    return {"host": "m1", "collectors": records}


def log(component="etcd", running=False):
    row = {"component": component, "running": running, "path": "/log", "lines": [DAMAGED[1]]}
    return document(component_end={"components": [row]})


def unit(component="etcd", state="activating", lines=DAMAGED[:1]):
    said = [f"2026-11-27T04:00:00+0000 m1 etcd[7]: {line}" for line in lines]
    said.append(
        "2026-11-27T04:00:01+0000 m1 systemd[1]: etcd.service: Main process exited, code=exited,"
        " status=2/INVALIDARGUMENT"
    )
    row = {"name": "etcd.service", "component": component, "active_state": state, "lines": said}
    return document(component_units={"units": [row]})


def test_the_log_of_a_static_pod_and_the_journal_of_a_unit():
    found = etcd_damage.extract(log())
    assert found is not None
    assert found.source == "/log"
    found = etcd_damage.extract(unit())
    assert found is not None
    assert found.source == "etcd.service"
    assert "snapshot file doesn't exist" in found.message
    assert "etcdserver:" not in found.message


@pytest.mark.parametrize("component", ["k3s", "rke2"])
def test_etcd_is_a_part_of_other_programs(component):
    assert etcd_damage.extract(unit(component)) is not None


@pytest.mark.parametrize(
    "evidence",
    [
        log(running=True),
        log("kube-apiserver"),
        unit(state="active"),
        unit("kube-apiserver"),
        unit(lines=OTHERS[:2]),
        document(),
    ],
)
def test_what_runs_or_is_no_etcd_has_no_damage(evidence):
    assert etcd_damage.extract(evidence) is None
