# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel lists comes a page at a time.

Mounts and tasks behind the first one are seen too.
"""

import os
from pathlib import Path
from types import SimpleNamespace

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Context,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    instances,
    pinning,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    preconditions,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import files


def test_a_file_of_proc_is_read_to_its_end():
    with Path("/proc/self/maps").open("rb") as file:
        size = len(file.read())
    assert size > os.sysconf("SC_PAGE_SIZE"), "of a process this small the test shows nothing"
    assert len(files.whole("/proc/self/maps")) > 0.9 * size
    assert files.whole("/proc/self/nowhere") is None
    assert len(files.whole("/proc/self/maps", 10)) == 10


def test_the_mounts_of_the_host_are_read_whole(monkeypatch, pages, mountinfo):
    pages[0] = 64
    asked = []
    monkeypatch.setattr(
        instances, "flag_files", lambda pid, argv, mounts: asked.append(mounts) or []
    )
    monkeypatch.setattr(instances.procfs, "argv", lambda pid: ["kube-scheduler"])
    instances.collect(Context({}, [(os.getpid(), "kube-scheduler")], {}))
    preconditions._pending(
        {"expect": {"component": "kube-scheduler"}},
        SimpleNamespace(pid=os.getpid(), started_at=1.0, argv=["kube-scheduler"]),
        "m2",
    )
    assert len(mountinfo) > 64
    assert asked == [mountinfo, mountinfo]


def test_the_hierarchy_of_cpusets_is_found_behind_many_mounts(monkeypatch, pages, mountinfo):
    pages[0] = 64
    asked = []
    monkeypatch.setattr(pinning, "_hierarchy", asked.append)
    pinning._containers(Context({}, [], {}), {})
    assert asked == [mountinfo]


def test_all_tasks_of_a_container_are_looked_at(tmp_path, pages):
    (tmp_path / "cgroup.threads").write_text("".join(f"{one}\n" for one in range(10000, 11000)))
    assert len(pinning._listed(str(tmp_path))) == 1000
