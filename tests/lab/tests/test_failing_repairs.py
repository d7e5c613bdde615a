# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repairs in an unhealthy cluster, and repairs whose component does not come back."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from tests.lab.incidents.scheduler_config_file import CONFIG
from tests.lab.support.repairing import CONSENT, broken, codes, ended, listing, state, untouched
from tests.lab.support.static_pod import (
    MANAGER,
    SCHEDULER,
    election_off,
    ended_long_ago,
    manifest,
    processes,
    wait_election_off,
    wait_flag,
)

WRAPPER = f"""#!/lab/busybox sh
for word; do [ "$word" = --leader-elect=true ] && exit 1; done
exec /usr/local/bin/{MANAGER} "$@"
"""
# The program writes why it ends to a full pipe, so it cannot end before somebody reads the pipe.
HELD = f"""#!/lab/busybox sh
exec 2<>/lab/errors
/lab/busybox dd if=/dev/zero bs=65536 count=1 >&2 2>/dev/null
exec /usr/local/bin/{SCHEDULER} "$@"
"""
READ = (
    "until [ -e /var/lib/kubemend/lock ]; do sleep 0.02; done; exec cat <>/opt/lab-wrapper/errors"
)
ETCD, ASIDE = manifest("etcd"), "/etc/kubernetes/lab-etcd.yaml"


def wrap(cluster, node: str, component: str, script: str) -> str:
    """Put a script, in a directory of the host, before the component's program.

    Return the manifest that starts it, which the caller writes.
    """
    for name, content in (("busybox", Path("/bin/busybox").read_bytes()), (component, script)):
        cluster.write(node, f"/opt/lab-wrapper/{name}", content, mode="755")
    text = cluster.read(node, manifest(component)).decode()
    text = text.replace(f"    - {component}\n", f"    - /lab/{component}\n", 1)
    text = text.replace(
        "    volumeMounts:\n", "    volumeMounts:\n    - mountPath: /lab\n      name: lab\n", 1
    )
    return text.replace(
        "  volumes:\n",
        "  volumes:\n  - hostPath:\n      path: /opt/lab-wrapper\n      type: Directory\n    name:"
        " lab\n",
        1,
    )


def alone(cluster, node: str) -> bool:
    """Return whether the wrapped program is the only one and serves.

    Beside the one that it replaces it can start, fail at the port and be held back.
    """
    first = processes(cluster, node, MANAGER)
    return (
        len(first) == 1
        and first[0][1][0].startswith("/usr/local/bin/")
        and election_off(cluster, node, MANAGER)
        and processes(cluster, node, MANAGER) == first
    )


def test_a_program_that_refuses_the_flag_is_rolled_back(cluster, play):
    path = manifest(MANAGER)
    with broken(cluster, "two-leaders-kcm-only", symptom=False):
        text = wrap(cluster, "m2", MANAGER, WRAPPER)
        cluster.write("m2", path, text)
        cluster.wait(
            lambda: alone(cluster, "m2"), 180, "the wrapped program to be the one that serves"
        )
        before = state(cluster)
        done, report = play(*CONSENT)
        assert (done.returncode, report["exit_reason"]) == (2, "failed"), done.stdout[-3000:]
        (step,) = report["steps"]
        assert step["state"] == "rolled_back", step
        assert "ended again" in step["reason"], step
        assert "runs as before" in step["reason"], step
        assert cluster.read("m2", path).decode() == text
        assert not [name for name in listing(cluster, "m2") if name.startswith(".")]
        assert len(processes(cluster, "m2", MANAGER)) == 1
        assert ("KM101", "m2") in codes(report), done.stdout[-5000:]
        untouched(cluster, before, "m1", "m3", journal=False)


@pytest.mark.skipif(
    os.environ.get("KUBEMEND_TEST_FULL") != "1",
    reason="minutes of waiting: only in the whole matrix",
)
def test_what_is_lost_between_guard_and_restart_is_named(cluster, play):
    """The image goes at the very moment in which the manifest changes.

    Nothing can start the component again.
    """
    path = manifest(MANAGER)
    with broken(cluster, "two-leaders-kcm-only", symptom=False):
        wait_election_off(cluster, "m2", MANAGER)
        images = cluster.exec("m2", "ctr -n k8s.io images ls -q").stdout.decode().split()
        names = " ".join(name for name in images if f"/{MANAGER}" in name)
        image = next(name for name in images if f"/{MANAGER}:" in name)
        cluster.exec("m2", f"ctr -n k8s.io images export /root/lab-image.tar {image}", timeout=120)
        cluster.exec(
            "m2",
            f"systemd-run --unit=lab-thief sh -c 'until grep -q leader-elect=true {path}; do sleep"
            f" 0.02; done; ctr -n k8s.io images rm {names}'",
        )
        try:
            before, text = state(cluster), cluster.read("m2", path)
            done, report = play(*CONSENT)
            assert (done.returncode, report["exit_reason"]) == (2, "failed"), done.stdout[-3000:]
            (step,) = report["steps"]
            assert step["state"] == "failed", step
            assert step["reason"].startswith("component down: "), step
            assert cluster.read("m2", path) == text
            assert processes(cluster, "m2", MANAGER) == []
            untouched(cluster, before, "m1", "m3", journal=False)
        finally:
            cluster.exec(
                "m2",
                "systemctl stop lab-thief 2>/dev/null; ctr -n k8s.io images import"
                " /root/lab-image.tar && rm /root/lab-image.tar",
                timeout=120,
            )


@contextlib.contextmanager
def without_etcd(cluster, node):
    """Stop one etcd member of three, and that node's API server with it."""
    try:
        cluster.exec(node, f"mv {ETCD} {ASIDE}")
        cluster.wait(
            lambda: cluster.exec(node, "pgrep -x etcd", check=False).returncode,
            120,
            f"the etcd of {node} to end",
        )
        yield
    finally:
        cluster.exec(
            node, f"if [ -e {ASIDE} ]; then mv {ASIDE} {ETCD}; fi; systemctl restart kubelet"
        )
        cluster.wait_healthy()


def test_a_lost_member_of_etcd_does_not_hold_up_what_needs_no_quorum(cluster, play):
    with broken(cluster, "two-leaders-kcm-only", symptom=False):
        wait_election_off(cluster, "m2", MANAGER)
        with without_etcd(cluster, "m3"):
            done, report = play(*CONSENT)
            assert [step["state"] for step in report["steps"]] == ["done"], done.stdout[-3000:]
            assert "etcd" in report["plan"][0]["note"], report["plan"]
            assert "m3" in report["plan"][0]["note"], report["plan"]
            assert ("KM101", "m2") not in codes(report)


def test_a_value_that_does_not_parse_is_set_right(cluster, play):
    """Evidence sees the process of one of its starts, which has ended when the step comes."""
    with broken(cluster, "value-does-not-parse", symptom=False):
        try:
            text = wrap(cluster, "m2", SCHEDULER, HELD)
            cluster.exec("m2", "mkfifo /opt/lab-wrapper/errors")
            cluster.exec("m2", ["systemd-run", "--collect", "--unit=lab-read", "sh", "-c", READ])
            cluster.write("m2", manifest(SCHEDULER), text, mtime=ended_long_ago())
            wait_flag(cluster, "m2", SCHEDULER, "--leader-elect=off")
            done, report = play(*CONSENT)
            assert (done.returncode, codes(report), ended(report)) == (0, set(), ["done"]), (
                done.stdout[-3000:]
            )
            wait_flag(cluster, "m2", SCHEDULER, "--leader-elect=true")
        finally:
            cluster.exec(
                "m2", "systemctl stop lab-read; rm -f /opt/lab-wrapper/errors", check=False
            )


def test_a_process_that_is_older_than_its_configuration_is_restarted(cluster, play):
    with broken(cluster, "scheduler-config-file", symptom=False):
        wait_flag(cluster, "m2", SCHEDULER, f"--config={CONFIG}")
        wait_election_off(cluster, "m2", SCHEDULER)
        ((pid, _argv),) = processes(cluster, "m2", SCHEDULER)
        text = cluster.read("m2", CONFIG).replace(b"leaderElect: false", b"leaderElect: true")
        # the same inode, as an editor in place leaves it
        cluster.exec("m2", f"cat >{CONFIG}", input=text)
        done, report = play(*CONSENT)
        assert (done.returncode, codes(report), ended(report)) == (0, set(), ["done"]), done.stdout[
            -3000:
        ]
        assert [(step["remedy"], step["risk"]) for step in report["plan"]] == [("restart", 2)]
        assert processes(cluster, "m2", SCHEDULER)[0][0] != pid
        assert cluster.read("m2", CONFIG) == text
