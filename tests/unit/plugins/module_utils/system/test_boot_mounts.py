# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of fstab whose source is not there: which a boot waits for, and which are not known."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import boot_mounts


def absent(tmp_path, text, container=False, crypttab=""):
    (tmp_path / "dev/disk/by-uuid").mkdir(parents=True, exist_ok=True)
    (tmp_path / "dev/disk/by-uuid/1234-abcd").touch()
    (tmp_path / "dev/sda1").touch()
    (tmp_path / "srv/data").mkdir(parents=True, exist_ok=True)
    return boot_mounts.absent(text, container, crypttab, root=str(tmp_path))


@pytest.mark.parametrize(
    "line",
    [
        "UUID=ffff-0000 /data ext4 defaults 0 2",
        'UUID="ffff-0000" /data ext4 defaults 0 2',
        "/dev/sdz9 /data xfs defaults 0 0",
        "/dev/mapper/vg-data /data xfs",
        "/dev/my\\040disk /data xfs",
    ],
)
def test_sources_that_are_not_there(tmp_path, line):
    rows, unknown = absent(tmp_path, f"# static\n\n{line}\n")
    assert [(row["line"], row["point"]) for row in rows] == [(3, "/data")]
    assert unknown == 0


@pytest.mark.parametrize(
    "line",
    [
        "UUID=1234-abcd /data ext4 defaults 0 2",
        "/dev/sda1 /data ext4 defaults 0 2",
        "/srv/data /var/lib/kubelet none bind 0 0",
        "# UUID=ffff-0000 /data ext4 defaults 0 2",
        "UUID=ffff-0000 /data ext4 nofail 0 2",
        "UUID=ffff-0000 /data ext4 defaults,noauto 0 2",
        "UUID=ffff-0000 /data ext4 x-systemd.automount 0 2",
        "UUID=ffff-0000 /data ext4 _netdev 0 2",
        "UUID=ffff-0000 none swap sw 0 0",
        "UUID=ffff-0000 / ext4 defaults 0 1",
        "server:/export /data nfs4 defaults 0 0",
        "//server/share /data cifs username=u,password=geheim 0 0",
        "tmpfs /tmp tmpfs size=2g 0 0",
        "rpool/data /data zfs defaults 0 0",
        "/run/later/made /data none bind 0 0",
        "/srv/gone /var/lib/kubelet none bind 0 0",
        "/srv/my\\040disk /my\\040disk none rbind",
        "UUID=../../../srv/gone /data ext4 defaults 0 2",
        "UUID= /data ext4 defaults 0 2",
        "/dev/sdz9",
        "",
    ],
)
def test_lines_that_a_boot_does_not_wait_for_or_finds(tmp_path, line):
    assert absent(tmp_path, line) == ([], 0)


def test_a_container_has_no_devices_of_its_own(tmp_path):
    text = "/dev/sdz9 /data ext4\n/srv/gone /mnt none bind\n"
    assert absent(tmp_path, text, container=True) == ([], 1)


def test_a_machine_without_links_of_labels(tmp_path):
    assert absent(tmp_path, "LABEL=data /data ext4\n") == ([], 1)


def test_a_path_with_a_null_byte(tmp_path):
    assert absent(tmp_path, "/dev/go\0ne /mnt ext4\n") == ([], 1)


def test_a_device_that_crypttab_opens_at_the_boot(tmp_path):
    crypttab = "# names\nsecret /dev/sda1 none luks\n"
    assert absent(tmp_path, "/dev/mapper/secret /data ext4\n", crypttab=crypttab) == ([], 0)


def test_no_option_leaves_the_node_and_rows_are_bounded(tmp_path):
    line = "/dev/sdz9 /data{} ext4 password=geheim 0 0\n"
    rows, _unknown = absent(tmp_path, "".join(line.format(number) for number in range(50)))
    assert len(rows) == boot_mounts.MAX_ROWS
    assert "geheim" not in str(rows)


def test_control_characters_do_not_leave_the_node(tmp_path):
    rows, _unknown = absent(tmp_path, "/dev/sdz9 /da\x1b[31mta ext4 defaults 0 0\n")
    assert "\x1b" not in rows[0]["point"]
