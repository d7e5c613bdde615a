# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runtime, kubelet and kernel log of the end of a container, by the texts of their sources."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import restart_journal
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.restart_journal import (
    KubeletEvent,
    RuntimeEvent,
)

ID, SANDBOX = "a" * 64, "b" * 64
AT = 1800000000.5
CONTAINERD = f'{AT} m1 containerd[7]: time="2027-01-15T08:00:00Z" level=info msg="'
CRIO = f'{AT} m1 crio[7]: time="2027-01-15T08:00:00Z" level=info msg="'
KUBELET = f"{AT} m1 kubelet[7]: I0115 08:00:00.000000       7 "
KERNEL = f"{AT} m1 kernel: "
POD = "kube-system/etcd"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (  # containerd 1.6
            CONTAINERD + f'CreateContainer within sandbox \\"{SANDBOX}\\" for'
            " &ContainerMetadata{Name:etcd,Attempt:3,} returns container id"
            f' \\"{ID}\\""',
            RuntimeEvent(AT, "made", ID, "etcd", "", 3, SANDBOX),
        ),
        (  # containerd 2.2, whose CRI API is made by another generator
            CONTAINERD + f'CreateContainer within sandbox \\"{SANDBOX}\\" for name:\\"etcd\\"'
            f'  attempt:12 returns container id \\"{ID}\\""',
            RuntimeEvent(AT, "made", ID, "etcd", "", 12, SANDBOX),
        ),
        (
            CONTAINERD + f'StopContainer for \\"{ID}\\" with timeout 30 (s)"',
            RuntimeEvent(AT, "stop", ID, timeout=30),
        ),
        (  # containerd 2.2
            CONTAINERD + f'received container exit event container_id:\\"{ID}\\" id:\\"{ID}\\"'
            '  pid:70  exit_status:137  exited_at:{seconds:1795719429}"',
            RuntimeEvent(AT, "ended", ID, code=137),
        ),
        (
            CONTAINERD + f"TaskExit event &TaskExit{{ContainerID:{ID},ID:{ID},Pid:7,ExitStatus:1,"
            'ExitedAt:2027-01-15 08:00:00 +0000 UTC,XXX_unrecognized:[],}"',
            RuntimeEvent(AT, "ended", ID, code=1),
        ),
        (  # of a command within the container
            CONTAINERD + f'received container exit event container_id:\\"{ID}\\" id:\\"x\\"'
            '  pid:70  exit_status:1"',
            None,
        ),
        (
            CRIO + f'Created container {ID}: kube-system/etcd-m1/etcd" id=x',
            RuntimeEvent(AT, "made", ID, "etcd", "kube-system/etcd-m1"),
        ),
        (
            CRIO + f'Stopping container: {ID} (timeout: 0s)" id=x',
            RuntimeEvent(AT, "stop", ID, timeout=0),
        ),
        (CONTAINERD + 'StopContainer for \\"short\\" with timeout 30 (s)"', None),
        ("no time", None),
    ],
)
def test_what_a_runtime_logs_of_a_container(line, expected):
    found = restart_journal.runtime_event(line)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.at, found.kind, found.id, found.timeout, found.code) == (
        AT,
        expected.kind,
        expected.id,
        expected.timeout,
        expected.code,
    )
    assert (found.component, found.pod, found.attempt, found.sandbox) == (
        expected.component,
        expected.pod,
        expected.attempt,
        expected.sandbox,
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (  # 1.20 to 1.36
            'prober.go:107] "Probe failed" probeType="Liveness" pod="kube-system/etcd-m1"'
            ' podUID="ab" containerName="etcd" probeResult="failure" output="HTTP probe failed'
            ' with statuscode: 503"',
            KubeletEvent(AT, "liveness", "HTTP probe failed with statuscode: 503"),
        ),
        (
            'kuberuntime_manager.go:1] "Message for Container of pod" containerName="etcd"'
            ' containerStatusID={"Type":"containerd"} pod="kube-system/etcd-m1"'
            ' containerMessage="Container etcd failed startup probe, will be restarted"',
            KubeletEvent(AT, "startup"),
        ),
        (
            'kubelet.go:2826] "SyncLoop (probe)" probe="liveness" status="unhealthy"'
            ' pod="kube-system/etcd-m1"',
            KubeletEvent(AT, "liveness"),
        ),
        (  # 1.14 to 1.19
            'prober.go:124] Liveness probe for "etcd-m1_kube-system(ab):etcd" failed (failure):'
            " Get http://127.0.0.1:2381/health: dial tcp: connection refused",
            KubeletEvent(
                AT, "liveness", "Get http://127.0.0.1:2381/health: dial tcp: connection refused"
            ),
        ),
        (
            'pod_workers.go:191] Error syncing pod ab ("etcd-m1_kube-system(ab)"), skipping: failed'
            ' to "StartContainer" for "etcd" with CrashLoopBackOff: "back-off 2m40s restarting'
            ' failed container=etcd pod=etcd-m1_kube-system(ab)"',
            KubeletEvent(AT, back_off=160.0),
        ),
        (
            'pod_workers.go:1324] "Error syncing pod, skipping" err="failed to \\"StartContainer\\"'
            ' for \\"etcd\\" with CrashLoopBackOff: \\"back-off 20s restarting failed'
            ' container=etcd pod=etcd-m1_kube-system(ab)\\"" pod="kube-system/etcd-m1"',
            KubeletEvent(AT, back_off=20.0),
        ),
        (  # of a container whose startup probe has not been asked yet
            'kubelet.go:2826] "SyncLoop (probe)" probe="startup" status="unhealthy"'
            ' pod="kube-system/etcd-m1"',
            None,
        ),
        # of a user's pod, of another container
        (
            'prober.go:107] "Probe failed" probeType="Liveness" pod="default/etcd-0" podUID="ab"'
            ' containerName="etcd" probeResult="failure" output="x"',
            None,
        ),
        (
            'prober.go:124] Liveness probe for "etcd-0_default(ab):etcd" failed (failure): x',
            None,
        ),
        ('kubelet.go:1] "SyncLoop ADD" pods=["kube-system/etcd-m1"]', None),
        (
            'kuberuntime_manager.go:1] "Message for Container of pod" containerName="etcd"'
            ' containerStatusID={"Type":"containerd"} pod="kube-system/etcd-m1"'
            ' containerMessage="Container etcd definition changed, will be restarted"',
            KubeletEvent(AT, "definition"),
        ),
        (  # of another container of the pod
            'kuberuntime_manager.go:1] "Message for Container of pod" containerName="backup"'
            ' containerStatusID={"Type":"containerd"} pod="kube-system/etcd-m1"'
            ' containerMessage="Container backup definition changed, will be restarted"',
            None,
        ),
        (  # 1.14 to 1.19
            'kuberuntime_manager.go:1] Container "etcd" ({"docker" "ab"}) of pod'
            " etcd-m1_kube-system(ab): Container etcd definition changed, will be restarted",
            KubeletEvent(AT, "definition"),
        ),
        (
            'kuberuntime_manager.go:1] Container "etcd-backup" ({"docker" "ab"}) of pod'
            " etcd-m1_kube-system(ab): Container etcd-backup failed liveness probe, will be"
            " restarted",
            None,
        ),
    ],
)
def test_what_a_kubelet_logs_of_a_container(line, expected):
    found = restart_journal.kubelet_event(KUBELET + line, "etcd", POD)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.kind, found.output, found.back_off) == (
        expected.kind,
        expected.output,
        expected.back_off,
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (  # Linux 4.19 and newer
            [
                "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,"
                f"oom_memcg=/kubepods/podab/{ID},task_memcg=/kubepods/podab/{ID},task=etcd,"
                "pid=70,uid=0",
                "Memory cgroup out of memory: Killed process 70 (etcd) total-vm:1kB, anon-rss:1kB",
            ],
            [("etcd", f"/kubepods/podab/{ID}", True)],
        ),
        (
            [
                "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,"
                "global_oom,task_memcg=/kubepods/podab/cd,task=kube-apiserver,pid=70,uid=0",
                "Out of memory: Killed process 70 (kube-apiserver) total-vm:1kB",
            ],
            [("kube-apiserver", "/kubepods/podab/cd", False)],
        ),
        (  # Linux 3.10 to 4.18
            [
                f"Task in /kubepods/podab/{ID} killed as a result of limit of /kubepods/podab",
                "Memory cgroup out of memory: Kill process 70 (etcd) score 1 or sacrifice child",
                "Killed process 70 (etcd) total-vm:1kB, anon-rss:1kB",
            ],
            [("etcd", f"/kubepods/podab/{ID}", True)],
        ),
        (["Killed process 70 (etcd) total-vm:1kB"], [("etcd", "", None)]),
        (  # a group that is killed as a whole
            [
                "oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/pods/ab,task=sh,pid=70,uid=0",
                "Out of memory: Killed process 70 (sh) total-vm:1kB",
                "Tasks in /pods/ab are going to be killed due to memory.oom.group set",
                "Out of memory (memory.oom.group): Killed process 71 (etcd) total-vm:1kB",
                "Out of memory (memory.oom.group): Killed process 72 (etcd) total-vm:1kB",
                "oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/pods/cd,task=a,pid=73,uid=0",
                "Out of memory: Killed process 73 (a) total-vm:1kB",
                "Out of memory: Killed process 74 (etcd) total-vm:1kB",
            ],
            [
                ("sh", "/pods/ab", False),
                ("etcd", "/pods/ab", False),
                ("etcd", "/pods/ab", False),
                ("a", "/pods/cd", False),
                ("etcd", "", False),
            ],
        ),
        (["something else"], []),
    ],
)
def test_what_the_kernel_logs_of_its_oom_killer(lines, expected):
    kills = restart_journal.oom_kills([KERNEL + line for line in lines])
    assert [(kill.name, kill.within, kill.of_group) for kill in kills] == expected


@pytest.mark.parametrize(("seconds", "within"), [(59, "/pods/ab"), (61, "")])
def test_a_limit_that_was_reached_long_before_is_of_another_victim(seconds, within):
    lines = [
        f"{AT} m1 kernel: oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/pods/ab,task=etcd,pid=7",
        f"{AT + seconds} m1 kernel: Out of memory: Killed process 8 (etcd) total-vm:1kB",
    ]
    (kill,) = restart_journal.oom_kills(lines)
    assert kill.within == within
