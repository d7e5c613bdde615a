# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts that do not answer, and processes that cannot end, KM607."""

from __future__ import annotations

import pytest

from tests.unit.support.cni_evidence import of_w1

POINT = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~nfs/data"
MOUNT = {"point": POINT, "type": "nfs4", "source": "server:/data", "answers": False}
TASK = {"pid": 7, "name": "ls", "wchan": "rpc_wait_bit_killable", "pod_uid": "1-2"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"mounts": [MOUNT]}, f"does not get an answer from server:/data (nfs4 at {POINT})"),
        ({"tasks": [TASK]}, "has processes in state D: ls (pid 7)"),
        ({"tasks": [{**TASK, "wchan": "percpu_rwsem_wait"}]}, "ls (pid 7)"),
        ({"tasks": [TASK], "mounts": [MOUNT]}, "and has processes in state D"),
        ({"mounts": [{**MOUNT, "answers": True}]}, ""),
        ({"mounts": [{**MOUNT, "answers": None}]}, ""),
        # a disk that is busy
        ({"tasks": [{**TASK, "wchan": "io_schedule"}]}, ""),
        ({"tasks": [{**TASK, "wchan": ""}], "zombies": [{"pid": 1, "zombies": 99}]}, ""),
    ],
)
def test_what_hangs(world, data, words):
    world.documents["w1"]["collectors"]["hangs"] = {"status": "ok", "data": data}
    verdict, findings = of_w1(world, "KM607")
    assert verdict == ("present" if words else "clear")
    assert len(findings) == bool(words)
    for finding in findings:
        assert words in finding.summary
        assert (finding.host, finding.node, finding.severity) == ("w1", "w1", "warning")


BUSY = {**TASK, "wchan": "io_schedule"}
SUSPENDED = {
    "name": "dm-0",
    "mapped": "vg-data",
    "suspended": True,
    "in_flight": 0,
    "points": ["/var/lib/kubelet"],
}
LOST = {"name": "sdb", "mapped": None, "suspended": False, "in_flight": 3, "points": []}


@pytest.mark.parametrize(
    ("data", "words", "remedy"),
    [
        (
            {"tasks": [BUSY], "devices": [SUSPENDED]},
            "vg-data (dm-0), suspended, mounted at /var/lib/kubelet and has processes in state D:"
            " ls (pid 7)",
            ("dmsetup resume vg-data",),
        ),
        ({"tasks": [BUSY], "devices": [LOST]}, "sdb and has processes", ("journalctl -k",)),
        (
            {"tasks": [BUSY], "devices": [LOST], "mounts": [MOUNT]},
            "sdb",
            ("journalctl -k", "umount"),
        ),
        # nothing waits for it: LVM suspends a device for a moment
        ({"devices": [SUSPENDED]}, "", ()),
    ],
)
def test_disks_that_complete_no_request(world, data, words, remedy):
    world.documents["w1"]["collectors"]["hangs"] = {"status": "ok", "data": data}
    verdict, findings = of_w1(world, "KM607")
    assert verdict == ("present" if words else "clear")
    for finding in findings:
        assert words in finding.summary
        assert [word for word in remedy if word not in finding.remedy] == []
        assert ("umount" in finding.remedy) == ("umount" in remedy)
        assert any(one.path.startswith("/sys/block/") for one in finding.evidence if one.path)


OF_CSI = "/var/lib/kubelet/pods/656f7d40-7c02/volumes/kubernetes.io~csi/pvc-d899/mount"
ENDED = {"point": OF_CSI, "type": "fuse.ceph-fuse", "source": "ceph-fuse", "answers": True}


@pytest.mark.parametrize(
    ("changes", "words", "remedy"),
    [
        (
            {"error": "ENOTCONN"},
            "the volume pvc-d899 of the pod with UID 656f7d40-7c02: transport endpoint is not",
            f"umount -l {OF_CSI}",
        ),
        ({"error": "ENOTCONN", "point": "/mnt/a b"}, "(fuse.ceph-fuse at /mnt/a b)", "-l PATH,"),
        ({"error": "ESTALE", "type": "nfs4"}, "stale file handle", "server of the file system"),
        ({"error": "EHOSTDOWN", "type": "cifs"}, "host is down", "server of the file system"),
        # root may not look at it; older releases did not collect the error
        ({"error": "EACCES"}, "", ""),
        ({"error": None}, "", ""),
        ({}, "", ""),
    ],
)
def test_mounts_whose_program_or_server_ended(world, changes, words, remedy):
    data = {"mounts": [{**ENDED, **changes}]}
    world.documents["w1"]["collectors"]["hangs"] = {"status": "ok", "data": data}
    verdict, findings = of_w1(world, "KM607")
    assert verdict == ("present" if words else "clear")
    assert len(findings) == bool(words)
    for finding in findings:
        assert words in finding.summary
        assert remedy in finding.remedy
        assert (finding.component, finding.severity) == ("mounts", "warning")
        assert [one.text for one in finding.evidence] == [f"statvfs: {changes['error']}"]


STARTER = {"pid": 7, "name": "runc:[2:INIT]", "wchan": "register_shrinker_prepared"}


@pytest.mark.parametrize(
    ("changes", "cgroup", "words"),
    [
        ([{}, {"pid": 8}], "v1", "cgroup.memory=nokmem"),
        ([{}, {"pid": 8, "name": "umount", "wchan": "unregister_shrinker"}], "v1", "nokmem"),
        ([{}, {"pid": 8}], "v2", "memory that is short"),
        # one may have its turn in a moment; a process of a user; a busy disk
        ([{}], "v1", ""),
        ([{}, {"pid": 8, "name": "java"}], "v1", ""),
        ([{}, {"pid": 8, "wchan": "io_schedule"}], "v1", ""),
    ],
)
def test_processes_that_wait_for_the_kernel_s_shrinkers(world, changes, cgroup, words):
    world.data("w1", "system")["cgroup"] = cgroup
    tasks = [{**STARTER, **change} for change in changes]
    world.documents["w1"]["collectors"]["hangs"] = {"status": "ok", "data": {"tasks": tasks}}
    verdict, findings = of_w1(world, "KM607")
    assert verdict == ("present" if words else "clear")
    for finding in findings:
        assert words in finding.summary
        assert ("grubby" in finding.remedy) == (cgroup == "v1")
        assert (finding.component, finding.severity) == ("shrinkers", "warning")


COMMANDS = [
    {**TASK, "name": name, "pid": pid, "wchan": "bdev_open"}
    for pid, name in enumerate(("vgs", "lvcreate"), 70)
]


@pytest.mark.parametrize(
    ("data", "components"),
    [
        ({"tasks": COMMANDS}, {"lvm"}),
        # one may wait for a disk that spins up; programs of other names
        ({"tasks": COMMANDS[:1]}, set()),
        ({"tasks": [{**task, "name": "ipvsadm"} for task in COMMANDS]}, set()),
        # the disk for which they wait is known
        ({"tasks": COMMANDS, "devices": [SUSPENDED]}, {None}),
    ],
)
def test_commands_of_lvm_that_wait_for_a_disk(world, data, components):
    world.documents["w1"]["collectors"]["hangs"] = {"status": "ok", "data": data}
    _verdict, findings = of_w1(world, "KM607")
    assert {finding.component for finding in findings} == components
    for finding in findings:
        assert "vgs (pid 70)" in finding.summary
        assert ("global_filter" in finding.remedy) is (finding.component == "lvm")


@pytest.mark.parametrize(("mounts", "codes"), [([MOUNT], {"KM607"}), ([], set())])
def test_a_plain_audit_names_what_made_a_collector_slow(world, mounts, codes):
    world.documents["w1"]["collectors"]["hangs"] = {"status": "ok", "data": {"mounts": mounts}}
    result = world.judge(faults=frozenset(("KM607",)), deep=False)
    assert {finding.code for finding in result.findings} == codes


def test_without_an_answer(world):
    del world.documents["w1"]["collectors"]["hangs"]
    assert of_w1(world, "KM607") == ("not judged", [])
    world.documents["w1"]["collectors"]["hangs"] = {"status": "timeout", "data": None}
    assert of_w1(world, "KM607") == ("unknown", [])
