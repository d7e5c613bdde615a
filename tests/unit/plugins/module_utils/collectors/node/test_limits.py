# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What bounds open files.

Texts of the kernel and of systemd in the shape of several versions, made-up folders, and this very
machine.
"""

import ctypes
import errno
import os
import resource
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
    registry,
    runner,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    limits,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    files,
    procfs,
    systemd,
)

# /proc/PID/limits of a container's first process, Linux 5.10
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max file size             unlimited            unlimited            bytes
Max stack size            8388608              unlimited            bytes
Max core file size        0                    unlimited            bytes
Max processes             unlimited            96365                processes
Max open files            1024                 524288               files
Max locked memory         65536                65536                bytes
Max nice priority         0                    0
Max realtime timeout      unlimited            unlimited            us
"""
STATUS = """\
Name:\tsystemd
Umask:\t0000
State:\tS (sleeping)
Tgid:\t1
Uid:\t1000\t0\t0\t0
Gid:\t0\t0\t0\t0
FDSize:\t256
CapEff:\t%(cap)s
CapBnd:\t%(cap)s
"""
# systemctl show of systemd 219 (CentOS 7): no soft limits, infinity as a number, a block per unit
V219 = """\
MainPID=1201
Result=success
ExecMainStatus=0
LimitNOFILE=1048576
Id=docker.service
LoadState=loaded
ActiveState=active
SubState=running
FragmentPath=/usr/lib/systemd/system/docker.service
DropInPaths=/etc/systemd/system/docker.service.d/limits.conf \
/etc/systemd/system/docker.service.d/proxy.conf

MainPID=0
Result=success
ExecMainStatus=0
LimitNOFILE=4096
Id=crio.service
LoadState=not-found
ActiveState=inactive
SubState=dead

MainPID=1105
Result=success
ExecMainStatus=0
LimitNOFILE=18446744073709551615
Id=sshd.service
LoadState=loaded
ActiveState=active
SubState=running
FragmentPath=/usr/lib/systemd/system/sshd.service
"""
# systemd 252 (Debian 12): sshd.service is another name of ssh.service, and comes as a second block
# of it
V252 = (
    """\
MainPID=0
Result=resources
ExecMainStatus=205
LimitNOFILE=infinity
LimitNOFILESoft=infinity
Id=containerd.service
LoadState=loaded
ActiveState=activating
SubState=auto-restart
FragmentPath=/lib/systemd/system/containerd.service
DropInPaths=
"""
    + 2
    * """
MainPID=612
Result=success
ExecMainStatus=0
LimitNOFILE=524288
LimitNOFILESoft=1024
Id=ssh.service
LoadState=loaded
ActiveState=active
SubState=running
FragmentPath=/lib/systemd/system/ssh.service
DropInPaths=
"""
)
FRAGMENT = """\
# LimitNOFILE=1 was too little
[Unit]
LimitNOFILE=2
[Service]
ExecStart=/usr/bin/containerd
LimitNOFILE = 1024:4096
;LimitNOFILE=3
LimitNPROC=infinity
LimitNOFILESoft=4
LimitNOFILE=\\
# one comment
  65536
LimitNOFILE=
"""


def told(monkeypatch, text):
    """Return the units as a systemctl that prints this text says them."""
    asked = []

    def run(argv, seconds=5, limit=1048576):
        asked.append(argv)
        return text

    monkeypatch.setattr(command, "run", run)
    blocks = limits._blocks(3)
    assert len(asked) == 1
    assert asked[0][:3] == ["systemctl", "show", "--no-pager"]
    assert asked[0][-7:] == [name for name, dummy in limits.ROLES]
    assert "LimitNOFILESoft" in asked[0][4]
    assert "Environment" not in asked[0][4]
    return blocks


def failing(error):
    """Return a function that raises this, whatever it is given."""

    def fail(*dummy, **named):
        raise error

    return fail


def test_limits_of_a_process():
    assert procfs.rlimit(LIMITS, "Max open files") == [1024, 524288]
    assert procfs.rlimit(LIMITS, "Max processes") == [-1, 96365]
    assert procfs.rlimit(LIMITS, "Max cpu time") == [-1, -1]
    assert procfs.rlimit(LIMITS, "Max file locks") is None
    cut = LIMITS[: LIMITS.index("524288")]
    assert procfs.rlimit(cut, "Max open files") is None
    assert procfs.rlimit("Max open files 1 x", "Max open files") is None


def test_whose_it_is_and_what_it_may():
    assert procfs.real_uid(STATUS) == 1000
    assert procfs.status(STATUS, "State") == ["S", "(sleeping)"]
    assert procfs.real_uid("Uid:\t") is None
    assert limits.capable(STATUS % {"cap": "000001ffffffffff"}) is True
    # what podman gives a container
    assert limits.capable(STATUS % {"cap": "00000000a80425fb"}) is False
    assert limits.capable("CapBnd:\tx") is None
    assert limits.capable("") is None


@pytest.mark.parametrize(
    ("parse", "text", "found"),
    [
        (limits.file_nr, "10432\t0\t9223372036854775807\n", [10432, 9223372036854775807]),
        (limits.file_nr, "766\t0\t2466177", [766, 2466177]),
        (limits.file_nr, "766 0", None),
        (limits.file_nr, "", None),
        (limits.file_nr, "a b c", None),
        (limits.threads, "", None),
        (limits.threads, "0.20 0.18 0.12 1/80 11206\n", 80),
        (limits.threads, "0.20 0.18", None),
        (limits.threads, "0.20 0.18 0.12 80 1", None),
    ],
)
def test_handles_and_threads_of_the_machine(parse, text, found):
    assert parse(text) == found


def test_units_of_an_old_systemd(monkeypatch):
    blocks = told(monkeypatch, V219)
    docker, crio, sshd = map(limits.of_unit, blocks.values())
    assert docker["drop_in_paths"] == [
        "/etc/systemd/system/docker.service.d/limits.conf",
        "/etc/systemd/system/docker.service.d/proxy.conf",
    ]
    assert (docker["limit_nofile"], crio, sshd["limit_nofile"]) == (
        [1048576, 1048576],
        None,
        [-1, -1],
    )


def test_units_of_a_newer_one(monkeypatch):
    blocks = told(monkeypatch, V252)
    containerd, ssh = map(limits.of_unit, blocks.values())
    assert {
        key: containerd[key]
        for key in (
            "name",
            "active_state",
            "sub_state",
            "result",
            "exec_main_status",
            "limit_nofile",
            "drop_in_paths",
        )
    } == {
        "name": "containerd.service",
        "active_state": "activating",
        "sub_state": "auto-restart",
        "result": "resources",
        "exec_main_status": 205,
        "limit_nofile": [-1, -1],
        "drop_in_paths": [],
    }
    assert ssh["limit_nofile"] == [1024, 524288]
    assert ssh["fragment_path"] == "/lib/systemd/system/ssh.service"


def test_a_block_that_was_cut_off(monkeypatch):
    blocks = told(monkeypatch, V252[: V252.index("LimitNOFILESoft")] + "\nId=ssh.service\nMainPID=")
    assert limits.of_unit(blocks["ssh.service"])["limit_nofile"] is None
    assert limits._processes([], blocks) == []


@pytest.mark.parametrize(
    "error",
    [
        command.Silent("it said nothing"),
        command.CommandError("late"),
        OSError(errno.ENFILE, "Too many open files in system"),
    ],
)
def test_a_systemd_that_does_not_answer_is_not_a_machine_without_units(monkeypatch, error):
    monkeypatch.setattr(command, "run", failing(error))
    assert limits.collect(base.Context({}, [], {}))["units"] is None


def test_lines_that_set_a_limit():
    assert [(row["line"], row["text"]) for row in limits.settings("/x", FRAGMENT)] == [
        (6, "LimitNOFILE=1024:4096"),
        (8, "LimitNPROC=infinity"),
        (10, "LimitNOFILE=65536"),
        (13, "LimitNOFILE="),
    ]


def test_of_a_unit_and_its_drop_ins_in_the_order_in_which_they_are_read(tmp_path):
    fragment, last, first = tmp_path / "a.service", tmp_path / "z.conf", tmp_path / "b x.conf"
    fragment.write_text("[Service]\nLimitNOFILE=1\n")
    first.write_text("[Service]\nLimitNOFILE=2\n")
    last.write_bytes(b"\xff\n[Service]\nLimitNOFILE=" + b"9" * 5000)
    paths = f'"{first}" {last} {tmp_path}/missing.conf'
    found = limits.of_unit(
        {
            "Id": ["a.service"],
            "LoadState": ["loaded"],
            "FragmentPath": [str(fragment)],
            "DropInPaths": [paths],
        }
    )
    assert [(row["path"], row["text"][:13]) for row in found["sets"]] == [
        (str(fragment), "LimitNOFILE=1"),
        (str(first), "LimitNOFILE=2"),
        (str(last), "LimitNOFILE=9"),
    ]
    assert len(found["sets"][2]["text"]) == limits.LONGEST
    assert found["limit_nofile"] is None


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        (None, None),
        (
            "[Service]\nLimitNOFILE=5\nLimitNPROC=3\nLimitNOFILE= 655360:infinity \n",
            "655360:infinity",
        ),
        ("LimitNOFILE=5\n", None),
    ],
)
def test_what_a_dropin_of_ours_says_that_systemd_has_not_read(monkeypatch, tmp_path, text, ours):
    monkeypatch.setattr(limits, "DROPINS", str(tmp_path))
    if text is not None:
        (tmp_path / "a.service.d").mkdir()
        (tmp_path / "a.service.d" / limits.OURS).write_text(text)
    found = limits.of_unit({"Id": ["a.service"], "LoadState": ["loaded"]})
    assert (found["ours"], found["sets"]) == (ours, [])


def test_lines_of_pam(tmp_path):
    (tmp_path / "sshd").write_text(
        "# session required pam_limits.so\n@include common-session\nsession    required  "
        " pam_limits.so # as it was\nsession optional x.so # pam_limits.so\n"
    )
    (tmp_path / "login").write_text("session \\\n required pam_limits.so conf=/etc/x.conf")
    (tmp_path / "folder").mkdir()
    os.mkfifo(str(tmp_path / "fifo"))
    assert [(row["path"], row["line"], row["text"]) for row in limits.pam(str(tmp_path))] == [
        (str(tmp_path / "login"), 1, "session required pam_limits.so conf=/etc/x.conf"),
        (str(tmp_path / "sshd"), 3, "session required pam_limits.so"),
    ]
    assert limits.pam(str(tmp_path / "none")) == []


def test_files_of_each_folder_also_masked_ones(tmp_path, monkeypatch):
    one, two = tmp_path / "etc", tmp_path / "usr"
    for folder in (one, two):
        folder.mkdir()
        (folder / "50-inotify.conf").write_text("fs.inotify.max_user_instances = 128\n")
    (one / "10-x.conf").symlink_to("/dev/null")
    (one / "99-sysctl.conf").symlink_to("../sysctl.conf")
    (one / "README").write_text("")
    paths, unlisted = limits.conf_files((str(one), str(tmp_path / "none"), str(two)))
    records, _dummy = limits._records(paths, limits.ROOM)
    assert unlisted == []
    assert [
        (os.path.relpath(item["path"], str(tmp_path)), item["kind"], item["link"], item["error"])
        for item in records
    ] == [
        ("etc/10-x.conf", "symlink", "/dev/null", None),
        ("etc/50-inotify.conf", "file", None, None),
        ("etc/99-sysctl.conf", "symlink", "../sysctl.conf", "missing"),
        ("usr/50-inotify.conf", "file", None, None),
    ]
    assert records[0]["text"] is None
    assert records[1]["text"].startswith("fs.inotify")
    monkeypatch.setattr(
        limits.os, "listdir", failing(PermissionError(errno.EACCES, "Permission denied"))
    )
    assert [(item["path"], item["error"]) for item in limits.conf_files([str(one)])[1]] == [
        (str(one), "denied")
    ]


def test_files_are_bounded_together(tmp_path):
    for name in "abc":
        (tmp_path / (name + ".conf")).write_text("#" * 1000)
    records, room = limits._records(limits.conf_files([str(tmp_path)])[0], 2500)
    assert [(item["truncated"], item["text"] is None) for item in records] == [
        (False, False),
        (False, False),
        (True, True),
    ]
    assert room == 500


def test_lib_is_a_folder_of_its_own_only_where_it_is_no_link(monkeypatch):
    assert "/lib/sysctl.d" in limits._folders() or os.path.realpath(
        "/lib/sysctl.d"
    ) == os.path.realpath("/usr/lib/sysctl.d")
    monkeypatch.setattr(limits.os.path, "realpath", lambda path: path)
    assert limits._folders()[-1] == "/lib/sysctl.d"
    monkeypatch.setattr(limits.os.path, "realpath", lambda path: path.replace("/usr", ""))
    assert limits._folders()[-1] == "/usr/lib/sysctl.d"


def test_an_instance_is_really_tried():
    assert limits.tried() == {
        "instance": None,
        "watch": None,
        "uid": os.geteuid(),
        "opened": limits.TRIED,
    }


@pytest.mark.parametrize("left", [0, 2])
def test_a_try_that_fails_says_how_many_there_were(left):
    """A process that may open nothing more: the same EMFILE as at the limit of instances."""
    code = (
        f"import ctypes, os, resource, sys\nsys.path[:0] = {sys.path!r}\nfrom"
        " ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import"
        " limits\nlimits.tried()\nresource.setrlimit(resource.RLIMIT_NOFILE,"
        f" (os.dup(0) + {left + 1 if left else 0},"
        " 64))\nprint(limits.tried())"
    )
    found = subprocess.check_output([sys.executable, "-c", code], stdin=subprocess.DEVNULL).decode()
    assert found.strip() == str(
        {
            "instance": "EMFILE",
            "watch": None if left else "untried",
            "uid": os.geteuid(),
            "opened": left,
        }
    )


class Libc:
    """A libc whose inotify_add_watch fails as at the limit of watches."""

    def __init__(self):
        self.fds = []

    def inotify_init1(self, flags):
        assert flags == os.O_NONBLOCK | os.O_CLOEXEC
        self.fds.append(os.open(os.devnull, os.O_RDONLY))
        return self.fds[-1]

    def inotify_add_watch(self, fd, path, mask):
        assert (fd, path, mask) == (self.fds[0], b"/", limits.IN_DELETE_SELF)
        ctypes.set_errno(errno.ENOSPC)
        return -1


def test_a_watch_that_is_refused(monkeypatch):
    libc = Libc()
    monkeypatch.setattr(ctypes, "CDLL", lambda name, use_errno: libc)
    assert limits.tried() == {
        "instance": None,
        "watch": "ENOSPC",
        "uid": os.geteuid(),
        "opened": limits.TRIED,
    }
    assert len(libc.fds) == limits.TRIED
    for fd in libc.fds:
        with pytest.raises(OSError):  # noqa: PT011 - any refusal will do
            os.fstat(fd)


@pytest.mark.parametrize(
    "libc", [lambda name, use_errno: object(), failing(OSError("no libc")), failing(MemoryError())]
)
def test_nothing_is_claimed_where_it_cannot_be_tried(monkeypatch, libc):
    monkeypatch.setattr(ctypes, "CDLL", libc)
    assert limits.tried() == {
        "instance": "untried",
        "watch": "untried",
        "uid": os.geteuid(),
        "opened": 0,
    }


def test_a_process_of_this_machine():
    found = limits.process(os.getpid(), "runtime", "x.service")
    assert found["nofile"] == [
        -1 if one == resource.RLIM_INFINITY else one
        for one in resource.getrlimit(resource.RLIMIT_NOFILE)
    ]
    assert found["open"] > 3
    assert found["uid"] == os.getuid()
    assert (found["role"], found["unit"]) == ("runtime", "x.service")
    assert limits.process(2**22 + 1, "runtime", None) is None


def test_descriptors_that_may_not_be_counted_are_unknown(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text(STATUS % {"cap": "0"})
    found = limits.process(7, "kubelet", None, str(tmp_path))
    assert (found["open"], found["nofile"], found["uid"], found["comm"]) == (None, None, 1000, "")


def test_the_first_process(tmp_path):
    (tmp_path / "1").mkdir()
    assert limits.init(str(tmp_path)) is None
    (tmp_path / "1" / "limits").write_text(LIMITS)
    assert limits.init(str(tmp_path)) == {
        "nofile": [1024, 524288],
        "nproc": [-1, 96365],
        "cap_sys_resource": None,
    }


def test_a_kubelet_without_a_unit_of_its_own_is_found(monkeypatch):
    groups = {
        5: "0::/kubepods/besteffort/pod{}/x".format("1b" * 16),
        6: "0::/docker/{}".format("ab" * 32),
        8: "0::/system.slice/k3s.service",
    }
    monkeypatch.setattr(procfs, "argv", lambda pid: ["k3s", "server"])
    monkeypatch.setattr(
        files, "text", lambda path, limit=0, default=None: groups[int(path.split("/")[2])]
    )
    assert limits._kubelet([(5, "kubelet"), (6, "kubelet"), (8, "k3s")]) == [8]
    assert limits._kubelet([(5, "kubelet"), (6, "kubelet")]) == [6]
    assert limits._kubelet([(5, "kubelet")]) == []


def test_this_machine():
    record = runner.run({"timeout": 20}, registry.select(["limits"]), [])["limits"]
    found = record["data"]
    assert (record["status"], record["error"]) == ("ok", None)
    assert set(found) == {
        "kernel",
        "file_nr",
        "threads",
        "inotify",
        "init",
        "processes",
        "units",
        "sysctl_files",
        "limits_files",
        "pam",
        "late",
        "user_ns",
        "used_up",
    }
    assert set(found["kernel"]) == set(limits.KERNEL)
    assert all(value.isdecimal() for value in found["kernel"].values())
    assert found["file_nr"][1] == int(found["kernel"]["fs.file-max"])
    assert found["threads"] > 1
    assert found["init"]["nofile"][1] != 0
    assert found["inotify"]["uid"] == os.geteuid()


@given(st.text())
def test_no_text_raises(text):
    for name in ("Max open files", ""):
        procfs.rlimit(text, name)
    procfs.rlimit("Max open files " + text, "Max open files")
    procfs.real_uid("Uid:" + text)
    limits.capable("CapBnd:" + text)
    limits.file_nr(text)
    limits.threads("1 1 1 1/" + text)
    limits.settings("/x", "[Service]\n" + text)
    for block in systemd.parse(f"Id=x\nExecMainStatus={text}\nLimitNOFILE={text}\n"):
        limits.limit_nofile(block)
        systemd.unit(block)


@given(st.lists(st.sampled_from(["a", "b \\", "#c \\", "", "  d"])))
def test_every_line_is_of_one_logical_line(lines):
    found = systemd.joined("\n".join(lines))
    kept = [line for line in lines if not line.startswith("#")]
    assert (
        " ".join(text for dummy, text in found).split() == " ".join(kept).replace("\\", "").split()
    )
    assert [number for number, dummy in found] == sorted({number for number, dummy in found})


@given(st.integers(-1, 2**63), st.integers(-1, 2**63))
def test_limits_come_back(soft, hard):
    words = tuple("unlimited" if one < 0 else str(one) for one in (soft, hard))
    assert procfs.rlimit(
        "Max open files            {:<20} {:<20} files     \n".format(*words), "Max open files"
    ) == [soft, hard]
