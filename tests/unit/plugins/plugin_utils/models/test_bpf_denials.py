# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BPF that SELinux denies privileged containers."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import bpf_denials


def denial(
    domain: str = "spc_t", kind: str = "bpf", right: str = "prog_run", more: str = "permissive=0"
) -> str:
    return (
        f'type=AVC msg=audit(1.0:2): avc:  denied  {{ {right} }} for  pid=5 comm="bpftool"'
        f" scontext=system_u:system_r:{domain}:s0"
        f" tcontext=system_u:system_r:container_runtime_t:s0 tclass={kind} {more}"
    )


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        (denial(), True),
        (denial(right="map_create"), True),
        (denial("container_t"), False),  # a workload
        (denial("container_runtime_t"), False),  # told of the runtime itself
        (denial(kind="file"), False),
        (denial(more="permissive=1"), False),
        ("no denial", False),
    ],
)
def test_which_lines_are_of_privileged_containers(line: str, is_one: bool) -> None:
    assert bpf_denials.of_privileged((line,)) == ((line,) if is_one else ())


def test_what_they_mean() -> None:
    found = bpf_denials.read((denial(), denial(right="map_read")))
    assert "bpftool may not map_read, prog_run" in found.sentence
    assert "2.164.1" in found.advice
    assert not any(bpf_denials.read(()))
