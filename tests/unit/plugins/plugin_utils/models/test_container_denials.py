# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SELinux denies the containers of the cluster's own pods."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import container_denials

LOCK = "exit status 4: Fatal: can't open lock file /run/xtables.lock: Permission denied"
IPTABLES = f"running [/sbin/iptables -C FORWARD --wait]: {LOCK}"
COPY = "cp: can't create '/opt/cni/bin/flannel': Permission denied"
FILE = "container_file_t:s0:c5,c6"


@dataclass(frozen=True)
class Pod:
    namespace: str = "kube-system"
    pod: str = "kube-flannel-ds-7bxkp"
    container: str = "kube-flannel"


def denial(
    program: str = "cp",
    name: str = "bin",
    label: str = "usr_t:s0",
    kind: str = "dir",
    domain: str = "container_t",
    permission: str = "write",
    more: str = "permissive=0",
) -> str:
    return (
        f'type=AVC msg=audit(1.0:2): avc:  denied  {{ {permission} }} for  pid=7 comm="{program}"'
        f' name="{name}" dev="sda9" ino=1 scontext=system_u:system_r:{domain}:s0:c1,c2'
        f" tcontext=system_u:object_r:{label} tclass={kind} {more}"
    )


def document(line: str, enforce: str = "1", *, is_container: bool = False) -> dict[str, object]:
    data = {
        "selinux": {"enforce": enforce, "config": "enforcing"},
        "container": is_container,
        "denials": {"count": 1, "lines": [line], "cut": False, "since": True},
    }
    return {"host": "w1", "collectors": {"boot": {"status": "ok", "data": data}}}


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (COPY, denial()),
        (COPY, denial(name="flannel", kind="file", permission="create")),
        (COPY, denial(name="cni", permission="search")),  # a folder above may not be passed
        (IPTABLES, denial("iptables", "xtables.lock", "iptables_var_run_t:s0", "file")),
        ("open /run/flannel/subnet.env: permission denied", denial("flanneld", "subnet.env")),
        ("[Errno 13] Permission denied: '/opt/cni/bin/flannel' by cp", denial()),
        (
            "flannel: dial unix /run/x.sock: connect: permission denied",
            denial("flannel", "x.sock", kind="sock_file"),
        ),
        (COPY, denial(domain="svirt_lxc_net_t")),
        (COPY, denial(domain="container_init_t")),
    ],
)
def test_a_denial_of_that_file_and_that_program(line: str, row: str) -> None:
    found = container_denials.find(line, Pod(), "w1", (denial("x", "y"), row))
    assert "SELinux of w1" in found.denial.sentence
    assert "audit(1.0:2)" in found.line


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (COPY, denial(name="etc")),  # another folder
        (COPY, denial(name="cni")),  # a folder above is not written to
        (COPY, denial("nginx")),  # another program
        (COPY, denial("")),
        (COPY.replace("Permission denied", "Read-only file system"), denial()),
        ("cp: permission denied", denial()),
        ("flannel: forbidden", denial("flannel")),
    ],
)
def test_another_file_another_program_or_another_error(line: str, row: str) -> None:
    found = container_denials.find(line, Pod(), "w1", (row,))
    assert found == container_denials.FileDenial()


@pytest.mark.parametrize(
    ("row", "line", "words", "absent"),
    [
        (denial(), COPY, "'/opt/cni/bin(/.*)?'", "level"),
        (denial(domain="svirt_lxc_net_t"), COPY, "svirt_lxc_file_t", "container_file_t"),
        (
            denial("iptables", "xtables.lock", "iptables_var_run_t:s0", "file"),
            IPTABLES,
            "privileged: true",
            "semanage",
        ),
        (denial(label=FILE), COPY, "seLinuxOptions.level", "semanage"),
    ],
)
def test_what_is_done_about_it(row: str, line: str, words: str, absent: str) -> None:
    denied = container_denials.find(line, Pod(), "w1", (row,)).denial
    assert words in denied.advice
    assert absent not in denied.advice
    assert ("another container" in denied.sentence) is (FILE in row)


@pytest.mark.parametrize(
    ("evidence", "count"),
    [
        (document(denial()), 1),
        (document(denial(), "0"), 0),
        (document(denial(), is_container=True), 0),
        (document(denial(domain="container_runtime_t")), 0),
        (document(denial(domain="unconfined_service_t")), 0),
        (document(denial(more="permissive=1")), 0),
        ({"host": "w1", "collectors": {}}, 0),
    ],
)
def test_the_denials_of_containers(evidence: dict[str, object], count: int) -> None:
    assert len(container_denials.extract(evidence)) == count
