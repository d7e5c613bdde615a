# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Block devices that have requests and complete none."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import block_devices

# Linux 6.1 has 17 counters, one of 4.4 has 11.
NEW = "%d 0 8 1 %d 0 9 2 %d 3 4 0 0 0 0 %d 5"
OLD = "%d 0 8 1 %d 0 9 2 %d 3 4"
MOUNTS = (
    "36 35 254:17 / /var/lib/etcd rw - ext4 /dev/vdb1 rw\n"
    "37 35 253:0 / /var/lib/a\\040b rw - ext4 /dev/mapper/lab rw\n"
    "38 35 254:0 / / rw - ext4 /dev/vda rw\n"
)


@pytest.fixture
def block(tmp_path):
    def device(name, stat, dev="254:0", suspended=None, part=None):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_text(stat + "\n")
        (folder / "dev").write_text(dev + "\n")
        if part:
            (folder / (name + "1")).mkdir(exist_ok=True)
            (folder / (name + "1") / "dev").write_text(part + "\n")
        if suspended is not None:
            (folder / "dm").mkdir(exist_ok=True)
            (folder / "dm" / "suspended").write_text(suspended + "\n")
            (folder / "dm" / "name").write_text("lab\n")
        return str(tmp_path)

    return device


@pytest.mark.parametrize(
    ("before", "after", "is_silent"),
    [
        (NEW % (1, 2, 3, 4), NEW % (1, 2, 5, 4), True),
        (OLD % (1, 2, 3), OLD % (1, 2, 3), True),
        (NEW % (1, 2, 3, 4), NEW % (2, 2, 3, 4), False),
        (NEW % (1, 2, 3, 4), NEW % (1, 3, 3, 4), False),
        (NEW % (1, 2, 3, 4), NEW % (1, 2, 3, 5), False),
        (NEW % (1, 2, 0, 4), NEW % (1, 2, 3, 4), False),  # its request has only begun
        (NEW % (1, 2, 3, 4), NEW % (1, 2, 0, 4), False),
        ("", "", False),
        ("1 2 3", "1 2 3", False),
    ],
)
def test_what_completes_nothing(block, before, after, is_silent):
    base = block("vdb", before, dev="254:16", part="254:17")
    first = block_devices.states(base)
    block("vdb", after)
    rows = block_devices.silent(first, block_devices.states(base), MOUNTS, base)
    assert [(row["name"], row["mapped"], row["suspended"]) for row in rows] == (
        [("vdb", None, False)] if is_silent else []
    )
    block("vdb", after, dev="254:16")
    for row in block_devices.silent(first, block_devices.states(base), MOUNTS, base):
        assert row["points"] == ["/var/lib/etcd"]


@pytest.mark.parametrize("later", ["1", "0"])
def test_a_suspended_device_counts_no_requests(block, later):
    base = block("dm-0", NEW % (1, 2, 0, 4), dev="253:0", suspended="1")
    first = block_devices.states(base)
    block("dm-0", NEW % (1, 2, 0, 4), dev="253:0", suspended=later)
    rows = block_devices.silent(first, block_devices.states(base), MOUNTS, base)
    row = {
        "name": "dm-0",
        "mapped": "lab",
        "suspended": True,
        "in_flight": 0,
        "points": ["/var/lib/a b"],
    }
    assert rows == ([row] if later == "1" else [])


def test_a_machine_without_block_devices(tmp_path):
    base = str(tmp_path / "none")
    assert block_devices.states(base) == {}
    assert block_devices.silent({}, {}, MOUNTS, base) == []


def test_rows_are_bounded(block, monkeypatch):
    monkeypatch.setattr(block_devices, "MAX_SILENT", 2)
    for number in range(4):
        base = block(f"vd{number}", NEW % (1, 2, 3, 4))
    states = block_devices.states(base)
    assert len(block_devices.silent(states, states, MOUNTS * 9, base)) == 2
    row = block_devices.silent(states, states, MOUNTS * 9, base)[0]
    assert len(row["points"]) == block_devices.MAX_POINTS
