# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node says of its modules, settings and mounts.

Texts of the kernel, made-up folders, and this very machine.
"""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
    registry,
    runner,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import boot
from tests.unit.support.fake_files import made

# of Linux 6.1, cut short
MODULES = (
    "overlay 163840 98 - Live 0x0000000000000000\nveth 36864 0 - Live 0x0\nbr_netfilter 36864 0 -"
    " Live 0x0\nbridge 311296 1 br_netfilter, Live 0x0\n"
)
FILESYSTEMS = "nodev\tsysfs\nnodev\ttmpfs\n\text4\nnodev\toverlay\n"
BUILTIN = (
    "kernel/fs/ext4/ext4.ko\nkernel/fs/overlayfs/overlay.ko\n"
    "kernel/net/bridge/br_netfilter.ko.zst\nkernel/drivers/i2c/i2c-core.ko\n"
)
MOUNTS = (
    "overlay / overlay ro,relatime,lowerdir=/a:/b 0 0\nproc /proc proc rw 0 0\n/dev/sdb"
    " /var/lib/kubelet ext4 rw,relatime 0 0\ntmpfs /var/lib/kubelet/pods/x tmpfs rw 0 0\n/dev/sdc"
    " /var/lib/kubelet xfs ro 0 0\n\nshort line\n"
)


@pytest.mark.parametrize(
    ("files", "netfilter", "overlay"),
    [
        ({"proc__modules": MODULES}, "loaded", "loaded"),
        ({"proc__modules": "veth 1 0 - Live 0x0\n"}, "absent", "absent"),
        ({"proc__modules": "", "proc__filesystems": FILESYSTEMS}, "absent", "builtin"),
        (
            {"proc__modules": "", "proc__sys__net__bridge__bridge-nf-call-iptables": "1"},
            "builtin",
            "absent",
        ),
        (
            {
                "proc__modules": "",
                "sys__module__br_netfilter__x": "",
                "tree__modules.builtin": BUILTIN,
            },
            "builtin",
            "builtin",
        ),
        # a kernel without modules; nothing at all
        ({"proc__filesystems": FILESYSTEMS}, "absent", "builtin"),
        ({}, None, None),
    ],
)
def test_modules(tmp_path, files, netfilter, overlay):
    root = made(tmp_path, **files)
    found = boot.modules(root + "/proc", root + "/sys", root + "/tree")
    assert found == {"br_netfilter": netfilter, "overlay": overlay}


def test_builtin_names():
    assert boot.builtins(BUILTIN) == {"ext4", "overlay", "br_netfilter", "i2c_core"}
    assert boot.builtins("") == set()


def test_running(tmp_path):
    base = (
        made(
            tmp_path,
            **{"net__ipv4__ip_forward": "1\n", "net__bridge__bridge-nf-call-iptables": "0\n"},
        )
        + "/"
    )
    assert boot.running(base) == {
        "net.ipv4.ip_forward": "1",
        "net.bridge.bridge-nf-call-iptables": "0",
    }
    (tmp_path / "net/bridge/bridge-nf-call-ip6tables").mkdir()  # there, and not to be read
    assert boot.running(base)["net.bridge.bridge-nf-call-ip6tables"] is None


def test_points_are_all_that_is_above():
    assert boot.points({"/var/lib/kubelet": "/data/kubelet", "/var/lib/etcd": None}) == {
        "/",
        "/var",
        "/var/lib",
        "/var/lib/kubelet",
        "/var/lib/etcd",
        "/data",
        "/data/kubelet",
    }


def test_of_a_point_the_last_mount_counts():
    found = boot.mounts(MOUNTS, boot.points({"/var/lib/kubelet": "/var/lib/kubelet"}))
    assert [(one["point"], one["source"], one["options"]) for one in found] == [
        ("/", "overlay", "ro,relatime,lowerdir=/a:/b"),
        ("/var/lib/kubelet", "/dev/sdc", "ro"),
    ]
    assert boot.mounts(None, set()) is None
    assert boot.mounts("", {"/"}) == []


def ext4(tmp_path, **values):
    """Write what the kernel says of one ext4 file system, and return its record."""
    folder = tmp_path / "sys/fs/ext4/dm-0"
    options = tmp_path / "proc/fs/ext4/dm-0/options"
    folder.mkdir(parents=True)
    options.parent.mkdir(parents=True)
    (tmp_path / "proc/uptime").write_text("600.25 100.00\n")
    (tmp_path / "dm-0").write_text("")
    (tmp_path / "lab").symlink_to("dm-0")
    for name, value in values.items():
        (folder / name).write_text(f"{value}\n")
    options.write_text("rw\nbsddf\nerrors=remount-ro\ncommit=5\n")
    record = {"type": "ext4", "source": str(tmp_path / "lab"), "point": "/var/lib/kubelet"}
    (found,) = boot.with_errors(
        [record], str(tmp_path / "sys"), str(tmp_path / "proc"), lambda: 10_000.0
    )
    return found["error_count"], found["error_since_boot"], found["on_error"]


@pytest.mark.parametrize(("last", "since_boot"), [(9_500, True), (9_300, False), ("", None)])
def test_errors_of_ext4_are_of_this_boot_or_of_an_earlier_one(tmp_path, last, since_boot):
    found = ext4(tmp_path, errors_count=55, last_error_time=last)
    assert found == (55, since_boot, "remount-ro")


def test_a_kernel_that_counts_no_errors(tmp_path):
    assert ext4(tmp_path) == (None, None, "remount-ro")


def test_other_file_systems_have_no_count_of_errors():
    record = {"type": "xfs", "source": "/dev/sdb", "point": "/"}
    assert boot.with_errors([dict(record)]) == [record]
    assert boot.with_errors(None) is None


def test_folders(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "gone" / "docker")
    monkeypatch.setattr(
        boot, "FOLDERS", tuple(str(tmp_path / name) for name in ("dangling", "none"))
    )
    assert boot.folders(str(tmp_path / "there") + "/") == {
        str(tmp_path / "there"): os.path.realpath(str(tmp_path / "there")),
        str(tmp_path / "dangling"): os.path.realpath(str(tmp_path / "gone" / "docker")),
        str(tmp_path / "none"): None,
    }
    assert "relative" not in boot.folders("relative")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("ro quiet\n", []),
        (
            "modules-load=br_netfilter,overlay rd.modules_load=nvme",
            [["modules_load", "br_netfilter,overlay"], ["rd.modules_load", "nvme"]],
        ),
        (
            "selinux=0 inst.ks=https://user:word@host enforcing=1",
            [["selinux", "0"], ["enforcing", "1"]],
        ),
    ],
)
def test_of_the_command_line_only_what_matters_here_leaves_the_node(line, kept):
    assert boot.cmdline(line) == kept
    assert boot.cmdline(None) is None


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, {"enforce": None, "config": None}),
        (
            {
                "sys__fs__selinux__enforce": "1",
                "etc__selinux__config": (
                    "# SELINUX=disabled\nSELINUX=Enforcing\nSELINUXTYPE=targeted\n"
                ),
            },
            {"enforce": "1", "config": "enforcing"},
        ),
        (
            {"etc__selinux__config": "SELINUX = x\nSELINUX=permissive\nSELINUX=disabled"},
            {"enforce": None, "config": "disabled"},
        ),
    ],
)
def test_selinux(tmp_path, files, found):
    root = made(tmp_path, **files)
    assert boot.selinux(root + "/sys", root + "/etc") == found


@given(st.text(max_size=300))
def test_whatever_the_kernel_prints(text):
    assert isinstance(boot.mounts(text, {"/"}), list)
    assert isinstance(boot.builtins(text), set)
    assert isinstance(boot.cmdline(text), list)


def test_this_machine():
    found = runner.run({"timeout": 20}, registry.select(["boot"]), [])["boot"]
    assert found["status"] == "ok", found
    data = found["data"]
    assert set(data["modules"]) == set(boot.MODULES)
    assert any(one["point"] == "/" for one in data["mounts"])
    assert "/var/lib/kubelet" in data["folders"]


def test_devices_of_fstab_are_looked_for(tmp_path):
    links = tmp_path / "disk" / "by-uuid"
    links.mkdir(parents=True)
    (links / "aa").touch()
    (tmp_path / "vdb1").touch()
    fstab = (
        "# UUID=cc\nUUID=aa / ext4\nUUID=bb /srv ext4\n/dev/vdb1 /a xfs\n/dev/vdc /b xfs\n"
        'LABEL="a b" /c ext4\nPARTUUID="dd" /d ext4\nserver:/e /e nfs\ntmpfs /tmp tmpfs\n'
        "LABEL=../../vdb1 /f ext4\n"
    )
    assert boot.devices(fstab, str(tmp_path)) == {
        "UUID=aa": True,
        "UUID=bb": False,
        "/dev/vdb1": True,
        "/dev/vdc": False,
        'PARTUUID="dd"': False,
    }
    assert boot.devices(None) is None


def test_a_machine_without_links_of_udev_says_nothing_of_tags(tmp_path):
    assert boot.devices("UUID=aa /srv ext4\n", str(tmp_path)) == {}


@pytest.mark.parametrize(
    ("folder", "unit", "runs"),
    [
        # the names in its own folder differ by its release, and not each user may see them
        ("units", "fapolicyd.service", True),
        ("units", "other.service", False),
        ("none", "other.service", None),
    ],
)
def test_whether_fapolicyd_runs(tmp_path, monkeypatch, folder, unit, runs):
    (tmp_path / "units").mkdir()
    (tmp_path / "units" / f"invocation:{unit}").symlink_to("x")
    monkeypatch.setattr(boot.boot_firewall, "INVOCATIONS", str(tmp_path / folder))
    monkeypatch.setattr(boot.boot_firewall, "GROUPS", ())
    assert boot.collect(base.Context({}, [], {}))["fapolicyd"] is runs


PROFILES = (
    "runc (complain)\n/usr/bin/crun (unconfined)\n/usr/sbin/cupsd (enforce)\n"
    "cri-containerd.apparmor.d (enforce)\nrunc//null-/bin/sh (complain)\nshort\n"
)


@pytest.mark.parametrize(
    ("files", "modes"),
    [
        (
            {"sys__kernel__security__apparmor__profiles": PROFILES},
            {"runc": "complain", "/usr/bin/crun": "unconfined"},
        ),
        ({"sys__kernel__security__apparmor__profiles": ""}, {}),
        ({}, None),
    ],
)
def test_the_modes_of_apparmor_s_profiles(tmp_path, files, modes):
    assert boot.apparmor(made(tmp_path, **files) + "/sys") == modes


RELOADED = (
    "{{ path=/usr/sbin/nft ; argv[]=/usr/sbin/nft -f /etc/nftables.conf ; ignore_errors=no ;"
    " start_time=[{time}] ; stop_time=[{time}] ; pid={pid} ; code={code} ; status={status} }}"
)


@pytest.mark.parametrize(
    ("values", "failed"),
    [
        (("n/a", 0, "(null)", "0/0"), None),
        (("Sun 2026-11-29 12:00:00 UTC", 41, "exited", "0"), False),
        (("Sun 2026-11-29 12:00:00 UTC", 41, "exited", "1"), True),
        (("Sun 2026-11-29 12:00:00 UTC", 41, "killed", "9/KILL"), True),
    ],
)
def test_a_reload_of_nftables(values, failed):
    text = RELOADED.format(**dict(zip(("time", "pid", "code", "status"), values, strict=True)))
    block = {"ExecReload": [text], "StateChangeTimestampMonotonic": ["5000000"]}
    found = boot.reload_of(block)
    assert found["reload_failed"] is failed
    assert found["changed_at"] > 0


def test_an_answer_without_the_unit():
    assert boot.reload_of({}) == {"changed_at": None, "reload_failed": None}


def test_systemd_is_not_asked_where_nftables_is_not_active(tmp_path, monkeypatch):
    monkeypatch.setattr(boot.systemd, "show", None)
    (tmp_path / "run/systemd/units").mkdir(parents=True)
    found = boot.firewalls(None, made(tmp_path, **NFTABLES))
    assert found["nftables"]["active"] is False


NFTABLES = {"usr__lib__systemd__system__nftables.service": "[Service]\n"}


def test_systemd_is_asked_when_nftables_was_reloaded(tmp_path, monkeypatch):
    answer = {"nftables.service": {"StateChangeTimestampMonotonic": ["7000000"]}}
    monkeypatch.setattr(boot.systemd, "show", lambda names, properties, seconds: answer)
    units = tmp_path / "run/systemd/units"
    units.mkdir(parents=True)
    (units / "invocation:nftables.service").symlink_to("0" * 32)
    found = boot.firewalls(lambda most: most, made(tmp_path, **NFTABLES))["nftables"]
    assert found["changed_at"] is not None
    assert found["reload_failed"] is None
