# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the mask of a unit lies."""

from ansible_collections.kubemend.remediation.plugins.module_utils.system import unit_mask

UNIT = "kubelet.service"


def test_where_the_mask_lies(tmp_path):
    etc, lib = tmp_path / "etc/systemd/system", tmp_path / "usr/lib/systemd/system"
    lib.mkdir(parents=True)
    (etc / "multi-user.target.wants").mkdir(parents=True)
    (lib / UNIT).write_text("[Service]\n")
    (etc / UNIT).symlink_to("/dev/null")
    (etc / "sshd.service").write_text("")
    (etc / "mine.service").symlink_to("../mine")
    assert unit_mask.facts(UNIT, str(tmp_path)) == {
        "links": [{"path": "/etc/systemd/system/" + UNIT, "to": "/dev/null"}],
        "file": "/usr/lib/systemd/system/" + UNIT,
        "wanted": False,
    }
    (etc / "multi-user.target.wants" / UNIT).symlink_to("/lib/systemd/system/" + UNIT)
    assert unit_mask.facts(UNIT, str(tmp_path))["wanted"] is True
    empty = [{"path": "/etc/systemd/system/sshd.service", "to": None}]
    assert unit_mask.facts("sshd.service", str(tmp_path)) == {
        "links": empty,
        "file": None,
        "wanted": False,
    }
    assert unit_mask.facts("mine.service", str(tmp_path))["links"] == []
    assert unit_mask.facts(UNIT, "/nowhere") == {"links": [], "file": None, "wanted": False}
