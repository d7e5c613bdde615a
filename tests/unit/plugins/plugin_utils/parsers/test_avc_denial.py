# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Denials of SELinux, as the audit log has them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import avc_denial

# flatcar/Flatcar#635
LINE = (
    "type=AVC msg=audit(1645434302.212:41): avc:  denied  { write add_name } for  pid=3217"
    ' comm="cp" name="bin" dev="sda9" ino=198'
    " scontext=system_u:system_r:svirt_lxc_net_t:s0:c229,c794"
    " tcontext=system_u:object_r:usr_t:s0 tclass=dir permissive=0"
)


def test_the_fields_of_a_denial() -> None:
    denial = avc_denial.read(LINE)
    assert denial.permissions == ("write", "add_name")
    assert (denial.program, denial.name, denial.file, denial.kind) == ("cp", "bin", "bin", "dir")
    assert (denial.domain, denial.label) == ("svirt_lxc_net_t", "usr_t")
    assert denial.is_enforced


def test_a_file_with_its_path_and_a_permissive_domain() -> None:
    denial = avc_denial.read('avc: denied { open } comm="a b" path="/run/x.lock" permissive=1')
    assert (denial.program, denial.path, denial.file) == ("a b", "/run/x.lock", "x.lock")
    assert not denial.is_enforced


def test_the_parts_of_a_context() -> None:
    context = "system_u:system_r:container_t:s0:c1,c2"
    assert [avc_denial.part(context, number) for number in range(4)] == [
        "system_u",
        "system_r",
        "container_t",
        "s0:c1,c2",
    ]
    assert avc_denial.part("x", 2) == ""


def test_what_is_no_denial_is_empty() -> None:
    denial = avc_denial.read("type=SYSCALL")
    assert (denial.permissions, denial.program, denial.file, denial.domain) == ((), "", "", "")
