# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of volumes without the label of a container's files."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import volume_labels
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import avc_denial

PATH = "/etc/coredns/Corefile"


def denial(label: str = "var_lib_t", kind: str = "lnk_file", domain: str = "container_t") -> str:
    return (
        'avc:  denied  { read } for  pid=7 comm="coredns" name="Corefile" dev="sda4" ino=1'
        f" scontext=system_u:system_r:{domain}:s0:c1,c2 tcontext=system_u:object_r:{label}:s0"
        f" tclass={kind} permissive=0"
    )


def read(line: str, version: str = "", path: str = PATH) -> tuple[str, str]:
    versions = (("kernel", "5.16.11"), ("containerd", version))
    return volume_labels.read(avc_denial.read(line), path, versions)


@pytest.mark.parametrize(
    ("line", "version", "is_defect"),
    [
        (denial(), "1.6.0", True),
        (denial(), "1.6.3-1.fc36", True),
        (denial("container_var_lib_t"), "v1.6.2", True),
        (denial(), "1.6.4", False),
        (denial(), "1.5.11", False),
        (denial(), "", False),
        (denial(kind="file"), "1.6.0", False),  # what a link leads to has its label
    ],
)
def test_which_releases_label_no_links(line: str, version: str, is_defect: bool) -> None:
    found = read(line, version)
    assert ("install containerd 1.6.4" in found.advice) is is_defect
    assert ("containerd" in found.sentence) is is_defect
    assert "privileged" not in found.advice
    assert found.sentence


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (denial("usr_t"), PATH),
        (denial("iptables_var_run_t"), PATH),
        (denial(), "/var/lib/calico/nodename"),  # a folder of the machine, at its own path
    ],
)
def test_other_files(line: str, path: str) -> None:
    assert not any(read(line, "1.6.0", path))


@pytest.mark.parametrize(
    ("domain", "label"),
    [("container_t", "container_file_t"), ("svirt_lxc_net_t", "svirt_lxc_file_t")],
)
def test_a_volume_is_looked_for_on_the_node(domain: str, label: str) -> None:
    found = read(denial(domain=domain), "1.7.0")
    assert "find /var/lib/kubelet/pods -name Corefile" in found.advice
    assert label in found.advice


def test_a_name_that_a_shell_reads_is_no_word_of_a_command() -> None:
    found = read(denial(), "1.7.0", "/etc/x/$(reboot)")
    assert "reboot" not in found.advice
