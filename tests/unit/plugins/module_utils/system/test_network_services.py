# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What files tell systemd-networkd and NetworkManager of interfaces of others."""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import network_services


@pytest.fixture
def root(tmp_path):
    def write(path, text=""):
        target = tmp_path / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    write("/usr/lib/systemd/system/systemd-networkd.service")
    write("/usr/lib/systemd/system/NetworkManager.service")
    return tmp_path, write


def test_what_is_not_installed(tmp_path):
    assert network_services.networkd(str(tmp_path)) is None
    assert network_services.network_manager(str(tmp_path)) is None


def test_a_drop_in_replaces_the_vendors_of_the_same_name(root):
    path, write = root
    write("/etc/systemd/networkd.conf", "[Network]\n#ManageForeignRoutes=yes\nSpeedMeter=no\n")
    write("/usr/lib/systemd/networkd.conf", "[Network]\nManageForeignRoutes=no\n")
    write("/usr/lib/systemd/networkd.conf.d/50-a.conf", "[Network]\nManageForeignRoutes=no\n")
    write("/etc/systemd/networkd.conf.d/50-a.conf", "[Network]\nManageForeignRoutes=yes\n")
    write(
        "/run/systemd/networkd.conf.d/10-b.conf",
        "[Network]\nManageForeignRoutingPolicyRules = no\n",
    )
    found = network_services.networkd(str(path))
    assert [(row["path"], row["key"], row["value"]) for row in found["rows"]] == [
        ("/run/systemd/networkd.conf.d/10-b.conf", "ManageForeignRoutingPolicyRules", "no"),
        ("/etc/systemd/networkd.conf.d/50-a.conf", "ManageForeignRoutes", "yes"),
    ]
    assert found["since"] is None


def test_the_link_of_a_start_has_its_time(root):
    path, _write = root
    folder = path / "run/systemd/units"
    folder.mkdir(parents=True)
    link = folder / "invocation:systemd-networkd.service"
    link.symlink_to("0" * 32)
    os.utime(link, (1800000000, 1800000000), follow_symlinks=False)
    found = network_services.networkd(str(path))
    assert (found["active"], found["since"]) == (True, 1800000000)
    assert network_services.network_manager(str(path))["active"] is False


def test_interfaces_that_network_manager_leaves_alone(root):
    path, write = root
    write("/etc/NetworkManager/NetworkManager.conf", "[main]\nplugins=keyfile\n")
    write(
        "/etc/NetworkManager/conf.d/rke2.conf",
        "[keyfile]\nunmanaged-devices+=interface-name:flannel*;interface-name:cali*\n",
    )
    write(
        "/usr/lib/NetworkManager/conf.d/10-x.conf",
        "[device-x]\nmatch-device=interface-name:cni*\nmanaged=0\n[connection]\npsk=hunter2\n",
    )
    found = network_services.network_manager(str(path))
    assert [(row["section"], row["key"]) for row in found["rows"]] == [
        ("[device-x]", "match-device"),
        ("[device-x]", "managed"),
        ("[keyfile]", "unmanaged-devices+"),
    ]
    assert "hunter2" not in str(found)


def test_a_file_that_cannot_be_read_is_told(root):
    path, _write = root
    (path / "etc/NetworkManager/conf.d/a.conf").mkdir(parents=True)
    assert network_services.network_manager(str(path))["unread"]


@pytest.mark.parametrize(
    ("folder", "name", "release"),
    [
        ("/usr/lib/systemd", "libsystemd-shared-249.so", 249),  # Ubuntu 22.04
        ("/lib/systemd", "libsystemd-shared-247.so", 247),  # Debian 11
        ("/usr/lib/x86_64-linux-gnu/systemd", "libsystemd-shared-252.so", 252),  # Debian 12
        ("/usr/lib/systemd", "libsystemd-shared-252-32.el9_4.7.so", 252),  # RHEL 9
        ("/usr/lib64/systemd", "libsystemd-shared-257.so", 257),
        ("/usr/lib/systemd", "libsystemd-shared-2570.so", None),
        ("/usr/lib/systemd", "systemd-networkd", None),
        ("/usr/lib/modules/systemd", "libsystemd-shared-252.so", None),
    ],
)
def test_the_release_of_systemd(root, folder, name, release):
    path, write = root
    write(f"{folder}/{name}")
    assert network_services.systemd_version(str(path)) == release
    assert network_services.networkd(str(path))["systemd"] == release


def test_the_last_row_of_the_section_counts():
    rows = network_services.rows_of(
        "/x",
        "[Network]\nManageForeignRoutes=yes\n[DHCPv4]\nManageForeignRoutes=no\n"
        "[Network]\nManageForeignRoutes=off\n#ManageForeignRoutes=yes\n",
        ("ManageForeignRoutes",),
    )
    (row,) = network_services.counting(rows).values()
    assert (row["line"], row["value"]) == (6, "off")
