# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node says of firewalld, ufw and SELinux's denials.

Made-up folders, and this very machine.
"""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import boot
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    boot_firewall,
)
from tests.unit.support.fake_files import made

AVC = (
    'type=AVC msg=audit({0}.364:{1}): avc:  denied  {{ read }} for  pid=2017 comm="{2}" name="pki"'
    ' dev="dm-0" ino=1 scontext=system_u:system_r:{3}:s0'
    " tcontext=unconfined_u:object_r:user_home_t:s0 tclass=dir permissive={4}\n"
)


def test_nothing_is_read_where_neither_is_installed(tmp_path):
    # What a removed package leaves behind says ENABLED=yes for ever.
    assert boot_firewall.collect(made(tmp_path, etc__ufw__ufw__conf="ENABLED=yes\n")) == {}


FIREWALLD = {
    "usr__lib__systemd__system__firewalld.service": "[Unit]\n",
    "etc__firewalld__firewalld.conf": "DefaultZone=public\n",
    "etc__firewalld__zones__public.xml": "<zone/>",
    "usr__lib__firewalld__zones__public.xml": "<zone/>",
    "usr__lib__firewalld__services__kubelet.xml": "<service/>",
    "usr__lib__firewalld__services__ssh.xml": "<service/>",
}


def test_firewalld_of_this_node(tmp_path):
    root = made(tmp_path, etc__systemd__system__multi_user="", **FIREWALLD)
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir()
    (wants / "firewalld.service").symlink_to("/usr/lib/systemd/system/firewalld.service")
    (tmp_path / "run/systemd/units").mkdir(parents=True)
    found = boot_firewall.collect(root)["firewalld"]
    assert (found["active"], found["enabled"], found["masked"], found["zones"]) == (
        False,
        True,
        False,
        [],
    )
    assert [one["path"] for one in found["files"]] == [
        "/etc/firewalld/firewalld.conf",
        "/etc/firewalld/direct.xml",
        "/etc/firewalld/zones/public.xml",
        "/usr/lib/firewalld/zones/public.xml",
        "/usr/lib/firewalld/services/kubelet.xml",
    ]
    assert [one["error"] for one in found["files"]] == [
        None,
        "missing",
        None,
        None,
        None,
    ]
    assert found["files"][0]["text"] == "DefaultZone=public\n"
    # it leads nowhere, as systemd makes them
    (tmp_path / "run/systemd/units/invocation:firewalld.service").symlink_to("c0ffee")
    (tmp_path / "etc/systemd/system/firewalld.service").symlink_to("/dev/null")
    found = boot_firewall.collect(root)["firewalld"]
    assert (found["active"], found["masked"]) == (True, True)


def test_of_more_files_than_are_read_nothing_is_known(tmp_path):
    root = made(
        tmp_path,
        **dict(
            FIREWALLD,
            **{f"etc__firewalld__zones__z{number}.xml": "<zone/>" for number in range(100)},
        ),
    )
    found = boot_firewall.collect(root)["firewalld"]["files"]
    assert len(found) == boot_firewall.MAX_FILES
    assert (found[0]["text"], found[0]["error"]) == (
        None,
        "one of more than 80 files",
    )


def test_an_old_systemd_has_the_process_alone(tmp_path):
    assert boot_firewall.active("firewalld.service", str(tmp_path)) is None
    made(tmp_path, **{"sys__fs__cgroup__systemd__system.slice__sshd.service__cgroup.procs": "1\n"})
    assert boot_firewall.active("firewalld.service", str(tmp_path)) is False
    assert boot_firewall.active("ufw.service", str(tmp_path)) is None
    made(
        tmp_path,
        **{"sys__fs__cgroup__systemd__system.slice__firewalld.service__cgroup.procs": "712\n"},
    )
    assert boot_firewall.active("firewalld.service", str(tmp_path)) is True


def test_zones_of_interfaces_and_nothing_else_of_those_files(tmp_path):
    root = made(
        tmp_path,
        **{
            "etc__sysconfig__network-scripts__ifcfg-eth0": 'DEVICE=eth0\nZONE="internal"\n',
            "etc__sysconfig__network-scripts__route-eth0": "ZONE=other\n",
            "etc__NetworkManager__system-connections__a.nmconnection": (
                "[connection]\nid=a\nzone=trusted\n[wifi-security]\npsk=secret\n"
            ),
        },
    )
    unread = []
    assert boot_firewall.bound(root, unread) == ["internal", "trusted"]
    assert unread == []


def test_a_profile_that_is_root_s_is_told(tmp_path, monkeypatch):
    root = made(tmp_path, etc__NetworkManager__system_connections="", **FIREWALLD)
    folder = "/etc/NetworkManager/system-connections"
    made(tmp_path, **{"etc__NetworkManager__system-connections__a.nmconnection": "zone=trusted\n"})
    (tmp_path / "etc/NetworkManager/system-connections/folder").mkdir()
    whole, listed = boot_firewall.files.read, boot_firewall.os.listdir

    def read(path, limit=1, root=None):
        if path.endswith(".nmconnection"):
            raise PermissionError(13, "Permission denied")
        return whole(path, limit, root)

    def names(path):
        if path.endswith("network-scripts"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(boot_firewall.files, "read", read)
    monkeypatch.setattr(boot_firewall.os, "listdir", names)
    assert boot_firewall.collect(root)["firewalld"]["unread"] == [
        {"path": "/etc/sysconfig/network-scripts", "error": "denied"},
        {"path": folder + "/a.nmconnection", "error": "denied"},
    ]


def test_a_script_of_ufw_and_whether_it_runs(tmp_path):
    root = made(
        tmp_path,
        lib__systemd__system__ufw__service="",
        **{
            "lib__systemd__system__ufw.service": "[Unit]\n",
            "etc__ufw__before.init": "iptables\n",
            "etc__ufw__after.rules": "*filter\n",
        },
    )
    (tmp_path / "etc/ufw/before.init").chmod(0o750)
    found = {one["path"]: one for one in boot_firewall.collect(root)["ufw"]["files"]}
    assert found["/etc/ufw/before.init"]["executable"] is True
    assert found["/etc/ufw/after.init"]["error"] == "missing"
    assert found["/etc/ufw/after.rules"]["text"] == "*filter\n"
    assert set(boot_firewall.RULES + boot_firewall.SCRIPTS) == set(found)
    (tmp_path / "etc/ufw/before.init").chmod(0o640)
    assert [
        one["executable"]
        for one in boot_firewall.collect(root)["ufw"]["files"]
        if one["path"] == "/etc/ufw/before.init"
    ] == [False]


def test_denials_since_the_boot(tmp_path):
    log = tmp_path / "audit.log"
    proc = made(tmp_path / "proc", uptime="600.00 1.00\n")
    lines = [
        (100, 1, "kubelet", "kubelet_t", 0),
        (1000, 2, "kubelet", "kubelet_t", 0),
        (1001, 3, "sh", "container_t", 0),
        (1002, 4, "kubelet", "kubelet_t", 1),
    ]
    log.write_text(
        "type=SYSCALL msg=audit(99.1:0): x\n"
        + "".join(AVC.format(*one) for one in lines)
        + "type=AVC msg=audit(nonsense\n\xff\n"
    )
    found = boot_firewall.denials(proc, str(log), lambda: 1200.0)
    assert (found["count"], found["cut"], found["error"]) == (2, False, None)
    assert [line[19:25] for line in found["lines"]] == ["1000.3", "1001.3"]
    assert boot_firewall.denials(proc, str(tmp_path / "none"))["error"] == "missing"
    assert boot_firewall.denials(str(tmp_path / "none"), str(log))["error"] is not None
    assert boot_firewall.denials(proc, str(tmp_path))["error"] is not None  # a folder


def entry(when):
    return f"type=USER_START msg=audit({when}.1:7): pid=1\n"


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        # booted at 600: what the log itself reaches back to; what it was rotated to; whether there
        # is more
        ([entry(500) + entry(700)], (0, False, True)),
        ([entry(700)], (0, False, True)),
        ([""], (0, False, False)),
        ([entry(500)], (0, False, False)),
        (
            [entry(700), entry(500) + AVC.format(650, 1, "kubelet", "kubelet_t", 0)],
            (1, False, True),
        ),
        (["", entry(500) + AVC.format(650, 1, "kubelet", "kubelet_t", 0)], (1, False, True)),
        (["", entry(500)], (0, False, False)),
        ([entry(700), entry(650)], (0, False, True)),
        ([entry(700), entry(650), entry(640)], (0, True, True)),
        (
            [entry(500) + entry(700), AVC.format(650, 1, "kubelet", "kubelet_t", 0)],
            (0, False, True),
        ),
    ],
)
def test_after_a_rotation_the_log_before_it_too(tmp_path, logs, expected):
    proc = made(tmp_path / "proc", uptime="600.00 1.00\n")
    for number, text in enumerate(logs):
        (tmp_path / ("audit.log" + (f".{number}" if number else ""))).write_text(text)
    found = boot_firewall.denials(proc, str(tmp_path / "audit.log"), lambda: 1200.0)
    assert (found["count"], found["cut"], found["since"]) == expected
    assert found["error"] is None
    assert found["path"] == str(tmp_path / "audit.log")


def test_a_rotated_log_that_cannot_be_read_is_named(tmp_path):
    proc = made(tmp_path / "proc", uptime="600.00 1.00\n")
    (tmp_path / "audit.log").write_text(entry(700))
    (tmp_path / "audit.log.1").mkdir()
    found = boot_firewall.denials(proc, str(tmp_path / "audit.log"), lambda: 1200.0)
    assert found["error"] is not None
    assert found["path"] == str(tmp_path / "audit.log.1")


def test_of_a_long_log_the_end(tmp_path):
    log = tmp_path / "audit.log"
    proc = made(tmp_path / "proc", uptime="600.00 1.00\n")
    log.write_text(
        "".join(AVC.format(1000, number, "kubelet", "kubelet_t", 0) for number in range(3000))
    )
    found = boot_firewall.denials(proc, str(log), lambda: 1200.0)
    assert (len(found["lines"]), found["cut"]) == (boot_firewall.MAX_LINES, True)
    assert 500 < found["count"] < 3000
    assert ":2999)" in found["lines"][-1]


@pytest.mark.parametrize("key", ["firewall", "denials"])
def test_this_machine(key):
    context = base.Context({}, [], {})
    assert key in boot.collect(context)


@pytest.mark.parametrize(
    ("path", "text", "version"),
    [
        ("python3.6/site-packages", "DAEMON_NAME = \"x\"\nVERSION = '0.9.11'\n", "0.9.11"),
        ("python3.13/site-packages", 'VERSION = "2.3.1"\n', "2.3.1"),
        ("python3/dist-packages", "VERSION = '1.3.3'\n", "1.3.3"),
        ("python2.7/site-packages", "VERSION = '0.6.3'\n", "0.6.3"),
        ("python3/dist-packages", "VERSION = '@PACKAGE_VERSION@'\n", None),
    ],
)
def test_the_release_of_firewalld(tmp_path, path, text, version):
    place = tmp_path / "usr/lib" / path / "firewall/config/__init__.py"
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert boot_firewall.version(str(tmp_path)) == version


def test_the_release_of_a_firewalld_that_is_not_active_is_not_read(tmp_path):
    (tmp_path / "run/systemd/units").mkdir(parents=True)
    found = boot_firewall.collect(made(tmp_path, **FIREWALLD))["firewalld"]
    assert (found["active"], found["version"], found["since"]) == (False, None, None)
