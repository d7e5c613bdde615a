# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of a control plane's static pods."""

from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    health_probe,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    component_process,
)

NAME = "kube-scheduler"


def test_only_static_pods_of_this_component_the_youngest_first(monkeypatch):
    """Only the two static pods of the component count, the youngest first.

    A scheduler of another cluster in a pod, one of unknown start, one that is gone, and two
    processes of another component are left out.
    """
    argvs = {
        1: [NAME],
        2: [NAME],
        3: [NAME],
        4: ["kube-apiserver"],
        5: None,
        6: [],
        7: [NAME],
        8: ["kube-apiserver"],
    }
    monkeypatch.setattr(
        component_process.procfs,
        "of_interest",
        lambda: [(pid, NAME) for pid in (1, 2, 3, 5, 6, 7, 8)] + [(4, "kube-apiserver")],
    )

    def argv(pid):
        if argvs[pid] is None:
            raise OSError
        return argvs[pid]

    monkeypatch.setattr(component_process.procfs, "argv", argv)
    monkeypatch.setattr(component_process.procfs, "component", lambda comm, words: words[0])
    monkeypatch.setattr(
        component_process.procfs,
        "cgroup",
        lambda text: {"static": text != "/proc/3/cgroup", "pod_uid": "u"},
    )
    monkeypatch.setattr(component_process.files, "text", lambda path: path)
    monkeypatch.setattr(
        component_process.procfs,
        "ticks",
        lambda pid: {1: 50, 2: 90}.get(pid, None if pid == 7 else 10),
    )
    assert [(found.pid, found.ticks) for found in health_probe.instances(NAME)] == [
        (2, 90),
        (1, 50),
    ]
