# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that load a ruleset, by files as their packages bring them."""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import rule_loaders

# Those of Debian 12 and of RHEL 9.
DEBIAN = """[Unit]
Description=nftables
Wants=network-pre.target
Before=network-pre.target shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f /etc/nftables.conf
ExecReload=/usr/sbin/nft -f /etc/nftables.conf
ExecStop=/usr/sbin/nft flush ruleset

[Install]
WantedBy=sysinit.target
"""
RED_HAT = """[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/nft -f /etc/sysconfig/nftables.conf
ExecReload=/sbin/nft 'flush ruleset; include "/etc/sysconfig/nftables.conf";'
ExecStop=/sbin/nft flush ruleset
"""
UNIT = "/usr/lib/systemd/system/nftables.service"
STARTED = 1800000000


@pytest.fixture
def root(tmp_path):
    def write(path, text):
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    return tmp_path, write


def start(path, name):
    """Let systemd have started a unit."""
    folder = path / "run/systemd/units"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / f"invocation:{name}.service"
    link.symlink_to("0" * 32)
    os.utime(link, (STARTED, STARTED), follow_symlinks=False)


def rows(record):
    return [(row["path"], row["line"], row["text"]) for row in record["lines"]]


def test_nothing_is_installed(tmp_path):
    assert rule_loaders.collect(str(tmp_path)) == {}


def test_files_of_an_inactive_service_are_not_read(root):
    path, write = root
    (path / "run/systemd/units").mkdir(parents=True)
    write(UNIT, DEBIAN)
    write("/etc/nftables.conf", "flush ruleset\n")
    assert rule_loaders.collect(str(path)) == {
        "nftables": {
            "active": False,
            "since": None,
            "enabled": False,
            "enabled_at": None,
            "masked": False,
            "lines": [],
            "unread": [],
        }
    }


def test_the_package_of_debian(root):
    path, write = root
    write(UNIT, DEBIAN)
    write("/etc/nftables.conf", "#!/usr/sbin/nft -f\n# flush ruleset\n\nflush ruleset\n")
    wants = path / "etc/systemd/system/sysinit.target.wants"
    wants.mkdir(parents=True)
    (wants / "nftables.service").symlink_to(UNIT)
    os.utime(wants / "nftables.service", (1700000000,) * 2, follow_symlinks=False)
    start(path, "nftables")
    found = rule_loaders.collect(str(path))["nftables"]
    assert (found["active"], found["since"]) == (True, STARTED)
    assert (found["enabled"], found["enabled_at"]) == (True, 1700000000)
    assert rows(found) == [
        (UNIT, 9, "ExecStart=/usr/sbin/nft -f /etc/nftables.conf"),
        (UNIT, 10, "ExecReload=/usr/sbin/nft -f /etc/nftables.conf"),
        (UNIT, 11, "ExecStop=/usr/sbin/nft flush ruleset"),
        ("/etc/nftables.conf", 4, "flush ruleset"),
    ]


def test_included_files_and_drop_ins(root):
    path, write = root
    write(UNIT, RED_HAT)
    write("/usr/lib/systemd/system/nftables.service.d/10-a.conf", "[Service]\nExecStop=/bin/x\n")
    write("/etc/systemd/system/nftables.service.d/10-a.conf", "[Service]\nExecStop=\n")
    write("/etc/sysconfig/nftables.conf", '#include "/etc/x.nft"\ninclude "/etc/nftables/*.nft"\n')
    write("/etc/nftables/main.nft", 'include "more.nft"\ntable inet a {\n}\n')
    write("/etc/more.nft", "  flush  ruleset ;\n")
    start(path, "nftables")
    found = rule_loaders.collect(str(path))["nftables"]
    assert rows(found)[3:] == [
        ("/etc/systemd/system/nftables.service.d/10-a.conf", 2, "ExecStop="),
        ("/etc/sysconfig/nftables.conf", 2, 'include "/etc/nftables/*.nft"'),
        ("/etc/nftables/main.nft", 1, 'include "more.nft"'),
        ("/etc/more.nft", 1, "flush ruleset ;"),
    ]


def test_files_that_include_each_other_are_read_once(root):
    path, write = root
    write(UNIT, DEBIAN)
    write("/etc/nftables.conf", 'include "/etc/nftables.conf"\n')
    start(path, "nftables")
    assert len(rows(rule_loaders.collect(str(path))["nftables"])) == 4


def test_a_file_that_cannot_be_read(root):
    path, write = root
    write(UNIT, DEBIAN)
    (path / "etc/nftables.conf").mkdir(parents=True)
    start(path, "nftables")
    found = rule_loaders.collect(str(path))["nftables"]
    assert [row["path"] for row in found["unread"]] == ["/etc/nftables.conf"]


def test_tables_of_netfilter_persistent(root):
    path, write = root
    write("/lib/systemd/system/netfilter-persistent.service", "[Service]\n")
    write("/etc/iptables/rules.v4", "# by hand\n*filter\n:INPUT DROP [0:0]\nCOMMIT\n*nat\nCOMMIT\n")
    write(
        "/etc/default/netfilter-persistent",
        "# IPTABLES_RESTORE_NOFLUSH=yes\nIP6TABLES_RESTORE_NOFLUSH=yes\n",
    )
    start(path, "netfilter-persistent")
    assert rows(rule_loaders.collect(str(path))["netfilter-persistent"]) == [
        ("/etc/iptables/rules.v4", 2, "*filter"),
        ("/etc/iptables/rules.v4", 5, "*nat"),
        ("/etc/default/netfilter-persistent", 2, "IP6TABLES_RESTORE_NOFLUSH=yes"),
    ]


def test_a_service_without_a_process_on_an_old_systemd(root):
    path, write = root
    write("/usr/lib/systemd/system/iptables.service", "[Service]\n")
    (path / "sys/fs/cgroup/systemd/system.slice").mkdir(parents=True)
    assert rule_loaders.collect(str(path))["iptables"]["active"] is None
