# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds what: made-up trees of /proc, and processes of this machine that really hold it."""

import contextlib
import os
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    registry,
    runner,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    descriptors,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command

ID = "5a264048b04d476b86bc1eaab133f342a4517f5c554da4472aa53e165975bc2c"
POD = "0f6fb4f5-8b5c-4f0e-9d0a-0d6f8c1f3f11"
IN_POD = (
    "0::/kubepods.slice/kubepods-besteffort.slice"
    f"/kubepods-besteffort-pod{POD.replace('-', '_')}.slice/cri-containerd-{ID}.scope\n"
)
# fdinfo of an inotify descriptor, Linux 5.10
FDINFO = """\
pos:\t0
flags:\t02004000
mnt_id:\t15
inotify wd:2 ino:7c sdev:1a mask:fc6 ignored_mask:0 fhandle-bytes:8 fhandle-type:1 \
f_handle:7c00000000000000
inotify wd:1 ino:1 sdev:1a mask:fc6 ignored_mask:0 fhandle-bytes:8 fhandle-type:1 \
f_handle:0100000000000000
"""
INSTANCE = "anon_inode:inotify"
USER, OTHER = "user:[4026531837]", "user:[4026532901]"
LATER = time.time() + 10**6


class Proc:
    """A made-up /proc."""

    def __init__(self, root):
        self.root = root
        (root / "self" / "ns").mkdir(parents=True)
        (root / "self" / "ns" / "user").symlink_to(USER)
        (root / "sys").mkdir()

    def add(
        self,
        pid,
        fds,
        uid=0,
        soft=1024,
        cgroup="0::/system.slice/kubelet.service\n",
        user=USER,
        comm="kubelet",
        state="S (sleeping)",
    ):
        """Return a process with these descriptors: {number: (target, fdinfo)}."""
        folder = self.root / str(pid)
        for name in ("fd", "fdinfo", "ns"):
            (folder / name).mkdir(parents=True)
        (folder / "status").write_text(
            f"Name:	{comm}\nState:	{state}\nUid:	{uid}	0	0	0\n"
        )
        (folder / "limits").write_text(
            f"Max open files            {soft!s:<20} {4096!s:<20} files\n"
        )
        (folder / "cgroup").write_text(cgroup)
        (folder / "comm").write_text(comm + "\n")
        (folder / "ns" / "user").symlink_to(user)
        for number, (target, info) in fds.items():
            (folder / "fd" / str(number)).symlink_to(target)
            (folder / "fdinfo" / str(number)).write_text(info)
        return folder

    def walk(self, end=LATER):
        return descriptors.walk(end, str(self.root))


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


def held(number, form=INSTANCE, info=FDINFO):
    return dict.fromkeys(range(3, 3 + number), (form, info))


def test_instances_and_watches_of_each_user(proc):
    proc.add(
        5,
        {
            3: (INSTANCE, FDINFO),
            4: (INSTANCE, FDINFO),
            9: ("socket:[1]", ""),
            10: ("anon_inode:[eventpoll]", "inotify wd:9"),
        },
    )
    proc.add(6, held(3, "anon_inode:[inotify]"), uid=1000, cgroup=IN_POD, comm="a\nb")
    proc.add(7, held(1, info="pos:\t0\n"), comm="sshd", cgroup="")
    proc.add(8, {0: ("/dev/null", "")}, uid=1000)
    found = proc.walk()
    assert (found["processes"], found["denied"], found["complete"]) == (4, 0, True)
    assert (
        found["uids"]
        == [
            {"uid": 0, "instances": 3, "watches": 4, "holders": 2},
            {"uid": 1000, "instances": 3, "watches": 6, "holders": 1},
        ][::-1]
    )
    assert found["inotify"] == [
        {
            "pid": 6,
            "comm": "a b",
            "uid": 1000,
            "unit": None,
            "pod_uid": POD,
            "container_id": ID,
            "instances": 3,
            "watches": 6,
        },
        {
            "pid": 5,
            "comm": "kubelet",
            "uid": 0,
            "unit": "kubelet.service",
            "pod_uid": None,
            "container_id": None,
            "instances": 2,
            "watches": 4,
        },
        {
            "pid": 7,
            "comm": "sshd",
            "uid": 0,
            "unit": None,
            "pod_uid": None,
            "container_id": None,
            "instances": 1,
            "watches": 0,
        },
    ]


def test_another_user_namespace_counts_its_own(proc):
    proc.add(5, held(2), uid=100000, user=OTHER)
    found = proc.walk()
    assert found["uids"] == []
    assert [one["pid"] for one in found["inotify"]] == [5]


def test_the_fullest_first(proc):
    for pid, soft in ((5, 10), (6, 11), (7, 8), (8, "unlimited"), (9, 0), (10, 4)):
        proc.add(pid, dict.fromkeys(range(8), ("/dev/null", "")), soft=soft)
    assert [
        (one["pid"], one["open"], one["soft"], one["hard"]) for one in proc.walk()["nofile"]
    ] == [(10, 8, 4, 4096), (7, 8, 8, 4096), (5, 8, 10, 4096)]


@pytest.mark.parametrize(
    ("cgroup", "unit_", "session"),
    [
        ("0::/system.slice/app.service\n", "app.service", None),
        ("0::/user.slice/user-0.slice/session-12.scope\n", None, "session-12.scope"),
        (
            "1:name=systemd:/user.slice/user-1000.slice/session-c1.scope\n0::/x\n",
            None,
            "session-c1.scope",
        ),
        (
            "0::/user.slice/user-7.slice/user@7.service/app.slice/a.service\n",
            "user@7.service",
            "user@7.service",
        ),
        (
            f"0::/system.slice/docker-{ID}.scope/user.slice/user-0.slice/session-1.scope\n",
            None,
            None,
        ),
        ("0::/user.slice/user-0.slice\n", None, None),
        (IN_POD, None, None),
        ("", None, None),
    ],
)
def test_to_which_unit_or_login_one_near_its_limit_belongs(proc, cgroup, unit_, session):
    folder = proc.add(5, held(2, "/dev/null"), soft=2, cgroup=cgroup)
    (folder / "stat").write_text("5 (a) b) S 1 " + "0 " * 17 + "4711 0\n")
    (found,) = proc.walk()["nofile"]
    assert (found["unit"], found["session"], found["ticks"]) == (unit_, session, 4711)


def test_systemd_is_asked_for_the_units_of_those_near_their_limit_only(monkeypatch):
    asked = []

    def show(names, properties, seconds):
        asked.append((names, seconds))
        return {
            "app.service": {
                "Id": ["app.service"],
                "LoadState": ["loaded"],
                "ActiveState": ["active"],
                "LimitNOFILE": ["9"],
                "LimitNOFILESoft": ["5"],
            },
            "gone.service": {
                "Id": ["gone.service"],
                "LoadState": ["not-found"],
                "ActiveState": ["inactive"],
            },
        }

    monkeypatch.setattr(descriptors.systemd, "show", show)
    full = [
        {"unit": name}
        for name in (
            "gone.service",
            "app.service",
            None,
            "app.service",
            "--all.service",
            "a b.service",
        )
    ]
    assert (
        descriptors.units([], 5)
        == []
        == descriptors.units([{"unit": None}, {"unit": "--all.service"}], 5)
    )
    assert asked == []
    (found,) = descriptors.units(full, 4)
    assert asked == [(["app.service", "gone.service"], 4)]
    assert (
        found["name"],
        found["limit_nofile"],
        found["ours"],
    ) == ("app.service", [5, 9], None)


def test_a_systemd_that_does_not_answer_is_not_known(monkeypatch):
    def silent(*dummy):
        raise command.CommandError("it took 5 s")

    monkeypatch.setattr(descriptors.systemd, "show", silent)
    assert descriptors.units([{"unit": "a.service"}], 5) is None


def test_those_who_may_not_be_looked_at_are_counted(proc, monkeypatch):
    proc.add(5, held(1), soft=1)
    proc.add(6, held(1))
    proc.add(7, held(1))
    (proc.root / "7" / "status").unlink()  # as hidepid does it
    scandir, readlink = os.scandir, os.readlink

    def denied(path, *args, **more):
        if "/5/fd/" in str(path) or str(path).endswith("/6/fd"):
            raise PermissionError(13, "Permission denied")
        return (scandir if str(path).endswith("/fd") else readlink)(path, *args, **more)

    monkeypatch.setattr(descriptors.os, "scandir", denied)
    monkeypatch.setattr(descriptors.os, "readlink", denied)
    found = proc.walk()
    assert (found["processes"], found["denied"], found["uids"]) == (3, 3, [])
    assert [one["pid"] for one in found["nofile"]] == [5]  # how many it has could be counted


def test_those_that_end_meanwhile_are_passed_over(proc, monkeypatch):
    proc.add(5, held(2))
    proc.add(6, held(1), state="Z (zombie)")
    proc.add(7, held(1))
    for name in ("3", "4"):
        (proc.root / "5" / "fdinfo" / name).unlink()
    (proc.root / "7" / "fd").rename(proc.root / "7" / "gone")
    listdir = os.listdir
    monkeypatch.setattr(descriptors.os, "listdir", lambda path: [*listdir(path), "4194303"])
    found = proc.walk()
    assert (found["processes"], found["denied"], found["complete"]) == (2, 0, True)
    assert found["uids"] == [{"uid": 0, "instances": 2, "watches": 0, "holders": 1}]


def test_out_of_time(proc, monkeypatch):
    for pid in (5, 6, 7):
        proc.add(pid, held(1))
    assert proc.walk(end=0) == {
        "processes": 0,
        "denied": 0,
        "complete": False,
        "uids": [],
        "inotify": [],
        "nofile": [],
        "open": [],
        "threads": [],
    }
    clock = iter([0, 0])
    monkeypatch.setattr(descriptors.time, "monotonic", lambda: next(clock, 2))
    # the clock is looked at before the first, in its first fdinfo, and after that
    found = proc.walk(end=1)
    assert (found["processes"], found["complete"], found["uids"][0]["watches"]) == (1, False, 2)


def test_out_of_time_within_one_process(proc, monkeypatch):
    monkeypatch.setattr(descriptors, "EVERY", 3)
    proc.add(5, dict.fromkeys(range(100), ("/dev/null", "")), soft=2)
    proc.add(6, held(1))
    clock = iter([0, 0])
    monkeypatch.setattr(descriptors.time, "monotonic", lambda: next(clock, 2))
    found = proc.walk(end=1)
    assert (found["processes"], found["complete"], found["nofile"][0]["open"]) == (1, False, 6)


def test_watches_across_the_pieces_that_are_read(tmp_path):
    line = (
        "inotify wd:%x ino:1 sdev:1a mask:fc6 ignored_mask:0 fhandle-bytes:8 fhandle-type:1"
        " f_handle:0100000000000000\n"
    )
    file = tmp_path / "3"
    file.write_text("pos:\t0\n" + "".join(line % number for number in range(5000)))
    assert descriptors.watches(str(file), LATER) == (5000, False)
    assert file.stat().st_size > 3 * 65536
    count, late = descriptors.watches(str(file), 0)
    assert late
    assert 0 < count < 5000


@given(
    st.lists(st.sampled_from([b"inotify wd:", b"inotify ", b"wd:", b"i", b"\n"]), max_size=40),
    st.integers(1, 30),
)
def test_no_piece_hides_a_watch_or_counts_it_twice(parts, size):
    data = b"".join(parts)
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    real = os.read
    try:
        with contextlib.ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(descriptors.os, "open", lambda path, flags: os.dup(read))
            patch.setattr(descriptors.os, "read", lambda fd, dummy: real(fd, size))
            assert descriptors.watches("x", LATER) == (data.count(b"inotify wd:"), False)
    finally:
        os.close(read)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=80))
def test_the_most_of_both_are_named(counts):
    holders = [
        {"pid": pid, "instances": instances, "watches": watches}
        for pid, (instances, watches) in enumerate(counts)
    ]
    found = descriptors.most(holders)
    assert len(found) == min(len(holders), descriptors.MAX_HOLDERS)
    assert len({one["pid"] for one in found}) == len(found)
    assert [one["instances"] for one in found] == sorted(
        (one["instances"] for one in found), reverse=True
    )
    for key in ("instances", "watches"):
        assert max((one[key] for one in found), default=0) == max(
            (one[key] for one in holders), default=0
        )


@contextlib.contextmanager
def child(code):
    """Return a process that has run this code and waits."""
    begun = subprocess.Popen(
        [sys.executable, "-c", code + "\nprint('ready', flush=True)\nimport sys\nsys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert begun.stdout.readline() == b"ready\n"
        yield begun.pid
    finally:
        begun.stdin.close()
        begun.stdout.close()
        begun.wait(120)


@pytest.fixture
def whole(monkeypatch):
    """Let the collector look at all of this machine.

    It takes as long as it needs, whatever runs there.
    """
    monkeypatch.setattr(descriptors, "MAX_HOLDERS", 10**6)
    monkeypatch.setattr(descriptors, "SECONDS", 600)
    monkeypatch.setattr(registry.BY_NAME["descriptors"], "timeout", 600)


def test_a_process_that_really_watches(tmp_path, whole):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    code = (
        "import ctypes\nlibc = ctypes.CDLL(None)\nfds = [libc.inotify_init1(0) for dummy in"
        " range(3)]\nassert min(fds) > 0\nassert all(libc.inotify_add_watch(fds[0], path, 2) > 0"
        " for path in ({!r}, {!r}))\nassert libc.inotify_add_watch(fds[1], {!r}, 2) > 0".format(
            os.fsencode(str(tmp_path / "a")),
            os.fsencode(str(tmp_path / "b")),
            os.fsencode(str(tmp_path)),
        )
    )
    with child(code) as pid:
        record = runner.run({"timeout": 600}, registry.select(["descriptors"]), [])["descriptors"]
    assert record["status"] == "ok"
    assert record["data"]["complete"] is True
    assert record["data"]["processes"] > 1
    (found,) = [one for one in record["data"]["inotify"] if one["pid"] == pid]
    assert (found["instances"], found["watches"], found["uid"]) == (3, 3, os.getuid())
    assert found["comm"].startswith("python")
    (ours,) = [one for one in record["data"]["uids"] if one["uid"] == os.getuid()]
    assert ours["holders"] >= 1
    assert ours["instances"] >= 3
    assert ours["watches"] >= 3


def test_a_process_that_really_is_near_its_limit(whole):
    code = (
        "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (20, 30))\n"
        "while True:\n    if os.dup(0) >= 17:\n        break"
    )
    with child(code) as pid:
        (found,) = [one for one in descriptors.walk(LATER)["nofile"] if one["pid"] == pid]
    assert (found["open"], found["soft"], found["hard"]) == (18, 20, 30)


def test_the_first_process_of_a_service_whose_worker_is_near_its_limit(monkeypatch):
    block = {
        "Id": ["app.service"],
        "LoadState": ["loaded"],
        "ActiveState": ["active"],
        "LimitNOFILE": ["9"],
        "MainPID": [str(os.getpid())],
    }
    monkeypatch.setattr(
        descriptors.systemd, "show", lambda names, properties, seconds: {"app.service": block}
    )
    (found,) = descriptors.units([{"pid": 1, "unit": "app.service"}], 5)
    assert found["main"]["pid"] == os.getpid()
    assert found["main"]["ticks"]
    assert len(found["main"]["nofile"]) == 2
    assert descriptors.units([{"pid": os.getpid(), "unit": "app.service"}], 5)[0]["main"] is None
    block["MainPID"] = ["0"]
    assert descriptors.units([{"pid": 1, "unit": "app.service"}], 5)[0]["main"] is None


def test_the_pods_of_those_who_hold_the_most_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(descriptors.pinning, "LOGS", str(tmp_path))
    (tmp_path / f"leaky-5f8c_shop_main-{ID}.log").write_text("")
    holders = [{"container_id": ID}, {"container_id": "0" * 64}, {"container_id": None}]
    descriptors.name_pods(holders)
    assert [(one["pod"], one["container"]) for one in holders] == [
        ("shop/leaky-5f8c", "main"),
        (None, None),
        (None, None),
    ]
    monkeypatch.setattr(
        descriptors.pinning, "container_names", lambda: pytest.fail("no container: nobody looks")
    )
    descriptors.name_pods([{"container_id": None}])
