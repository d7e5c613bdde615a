# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose an error about a pod is: messages of public threads, and the parts of an error."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import error_origin
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.error_origin import (
    NETWORK,
    NODE,
    RUNTIME,
    STORAGE,
    WORKLOAD,
)

TABLE = Path(__file__).with_name("error_origins.tsv")
with TABLE.open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
EXTRACT = "failed to extract layer sha256:519abcb17676bcf41d770deedf143913f4a4aca3211f3793c8469b: "
STORE = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/453/fs/opt/a.js"
INIT = "OCI runtime create failed: runc create failed: unable to start container process: "
CGROUP = "/sys/fs/cgroup/kubepods.slice/a.slice/b.scope"


@pytest.mark.parametrize("row", ROWS, ids=[row["source"][19:] for row in ROWS])
def test_a_message_of_a_public_thread_has_its_owner(row):
    origin = error_origin.read(row["line"])
    assert origin.owner == row["owner"]
    assert origin.is_of_machine == (row["owner"] in (NODE, RUNTIME, STORAGE))
    if row["owner"] != WORKLOAD:
        assert (origin.program, origin.errno) == (row["program"], row["errno"])


def test_half_of_the_table_is_of_workloads():
    workloads = [row for row in ROWS if row["owner"] == WORKLOAD]
    assert len(ROWS) >= 40
    assert len(workloads) * 2 >= len(ROWS)
    assert len({row["source"] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        # the same errno is of the node or of the workload by its path
        (f"open {STORE}: operation not permitted", NODE),
        ("open /data/app/a.js: operation not permitted", WORKLOAD),
        ("open /data/app/a.js: input/output error", NODE),
        (f"{INIT}open /var/lib/kubelet/pods/1/volumes/a: permission denied", WORKLOAD),
        ("MountVolume.SetUp failed: stat /var/lib/kubelet/pods/1/volumes/a: stale NFS file handle",
         STORAGE),
        # a file of an image's layer that is not there is of the image, a snapshot's is not
        (f"{EXTRACT}chmod {STORE}: no such file or directory", WORKLOAD),
        (f"failed to create container: stat {STORE}: no such file or directory", RUNTIME),
        # what is used up, one workload uses up too
        (f"{EXTRACT}write {STORE}: no space left on device", WORKLOAD),
        # a sysctl is the pod's, a cgroup is not
        (f"{INIT}open /proc/sys/net/core/somaxconn: no such file or directory", WORKLOAD),
        (f"{INIT}openat2 {CGROUP}/cpu.weight: no such file or directory", NODE),
        (f"{INIT}write {CGROUP}/cgroup.procs: no such process", WORKLOAD),
        (f"{INIT}write /proc/self/oom_score_adj: permission denied", NODE),
        # what lies in the container's root is of its image and its volumes
        ('mounting "/a" to rootfs at "/b": mkdir /run/containerd/1/rootfs/b: permission denied',
         WORKLOAD),
        # a command of an image, and the same words where the device fails
        (f'{INIT}exec: "/app": permission denied: unknown', WORKLOAD),
        (f'{INIT}exec: "/app": input/output error: unknown', NODE),
        ('runc did not terminate successfully: exit status 2: fatal error: out of memory', RUNTIME),
        ('plugin type="calico" failed (add): Get "https://10.96.0.1:443/x": i/o timeout', NETWORK),
        ("dial unix /var/lib/kubelet/plugins/a/csi.sock: connect: connection refused", STORAGE),
        ("", WORKLOAD),
    ],
)  # fmt: skip
def test_the_parts_of_an_error_tell_its_owner(text, owner):
    assert error_origin.read(text).owner == owner


def test_the_parts_of_an_error():
    text = (
        "rpc error: code = Unknown desc = rpc error: code = Internal desc = a: "
        f'"b: open {STORE}: operation not permitted": unknown'
    )
    origin = error_origin.read(text)
    assert (origin.operation, origin.path) == ("open", STORE)
    assert origin.errno == error_origin.NOT_PERMITTED
    assert error_origin.clauses(text) == ("a", "b", f"open {STORE}", "operation not permitted")
    assert error_origin.code(text) == "Internal"
    assert error_origin.code("no code") == ""
    assert origin.is_refused
    assert not error_origin.read(f"open {CGROUP}: invalid argument").is_refused


def test_an_error_is_shortened_at_its_outer_part():
    path = f"/sys/fs/cgroup/{'kubepods.slice/' * 12}cri-containerd-{'8c1f2b7d' * 8}.scope"
    text = f"{'outer: ' * 40}can't open cgroup: openat2 {path}: no such file or directory"
    shown = error_origin.shortened(text, 240)
    assert len(shown) <= 240
    assert shown.startswith("outer: ")
    assert "can't open cgroup: openat2 /sys/fs/cgroup/" in shown
    assert shown.endswith("8c1f2b7d….scope: no such file or directory")
    assert error_origin.shortened("short", 240) == "short"
    plain = "a b " * 100
    assert error_origin.shortened(plain, 100).endswith(plain.strip()[-40:])
    assert error_origin.inner("a: b: c") == "a: b: c"
    assert error_origin.inner("") == ""


@pytest.mark.parametrize(
    "step", ["/a/: b \\\" ' (", "mount: ", 'exec: "', "/var/lib/docker/", "a,"]
)
def test_a_hostile_text_is_read(step):
    for text in (step * 5000, step * 30 + "operation not permitted", f'plugin type="{step}'):
        origin = error_origin.read(text)
        assert origin.owner in (NODE, RUNTIME, STORAGE, NETWORK, WORKLOAD)
        assert len(error_origin.shortened(text, 100)) <= 100
