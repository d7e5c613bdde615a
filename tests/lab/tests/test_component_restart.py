# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A component that was restarted: the audit says why, and is silent about what was meant."""

from __future__ import annotations

import contextlib
import re

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.component_restart import (
    FOLLOW_SECONDS,
)
from tests.lab.support.static_pod import (
    MANAGER,
    SCHEDULER,
    manifest,
    processes,
    restart,
    set_flag,
)


def told(report: dict, node: str, component: str) -> list[dict]:
    """Return what the report says of the ends of a component."""
    return [
        item
        for item in report["findings"]
        if (item["host"], item["component"]) == (node, component)
        and item["code"] in ("KM114", "KM117")
    ]


def starts(cluster, node: str, component: str) -> set[str]:
    """Return what tells each start of a component's container from the others.

    Its log file and inode: a process that ends at once is hardly ever seen.
    """
    found = cluster.exec(
        node,
        f"find /var/log/pods/kube-system_{component}-{node}_*/{component} -printf '%p %i\\n'",
        check=False,
    )
    return {line for line in found.stdout.decode().splitlines() if ".log " in line}


def wait_restarted(cluster, node: str, component: str, before: set[str], timeout: float = 240):
    cluster.wait(
        lambda: starts(cluster, node, component) - before,
        timeout,
        f"another start of {component} on {node}",
    )


@contextlib.contextmanager
def edited(cluster, node: str, component: str, change):
    """Change a manifest, and put its bytes back at the end."""
    path = manifest(component)
    former = cluster.read(node, path)
    before = starts(cluster, node, component)
    try:
        cluster.write(node, path, change(former.decode()))
        wait_restarted(cluster, node, component, before)
        yield
    finally:
        before = starts(cluster, node, component)
        cluster.write(node, path, former)
        cluster.exec(node, ["systemctl", "restart", "kubelet"])  # it forgets its back-off
        wait_restarted(cluster, node, component, before)
        cluster.wait_healthy()


def little_memory(text: str) -> str:
    """Return a manifest whose container may have less memory than its program needs.

    One that does not lead lives with 16 MiB.
    """
    return re.sub(
        r"(?m)^(\s*)resources:\n",
        r"\1resources:\n\1  limits:\n\1    memory: 12Mi\n",
        text,
        count=1,
    )


def wrong_port(text: str) -> str:
    """Return a manifest whose liveness probe asks a port at which nobody listens."""
    liveness = text[text.index("livenessProbe:") :]
    liveness = liveness[: liveness.index("name: ")]
    changed = re.sub(r"port: \S+", "port: 10999", liveness)
    changed = re.sub(r"periodSeconds: \d+", "periodSeconds: 2", changed)
    changed = re.sub(r"failureThreshold: \d+", "failureThreshold: 2", changed)
    return text.replace(liveness, changed)


def wait_no_excuse(cluster, node: str) -> None:
    """Wait until no start of etcd or of the API server explains that a probe fails."""
    ages = ["ps", "-o", "etimes=", "-C", "etcd,kube-apiserver"]
    cluster.wait(
        lambda: min(map(int, cluster.exec(node, ages).stdout.split())) > FOLLOW_SECONDS,
        FOLLOW_SECONDS + 60,
        f"etcd and the API server of {node} to have run for {FOLLOW_SECONDS} s",
        every=3,
    )


def test_a_process_that_was_killed(cluster, play):
    before = starts(cluster, "m1", SCHEDULER)
    victims = [str(pid) for pid, _argv in processes(cluster, "m1", SCHEDULER)]
    cluster.exec("m1", ["kill", "-9", *victims])
    wait_restarted(cluster, "m1", SCHEDULER, before)
    _done, report = play()
    (one,) = told(report, "m1", SCHEDULER)
    assert "SIGKILL" in one["summary"], one


@pytest.mark.parametrize(
    ("change", "words"), [(little_memory, "OOM killer"), (wrong_port, "liveness")]
)
def test_what_ends_it_again_and_again(cluster, play, change, words):
    if change is wrong_port:
        wait_no_excuse(cluster, "m1")
    with edited(cluster, "m1", MANAGER, change):
        before = starts(cluster, "m1", MANAGER)
        wait_restarted(cluster, "m1", MANAGER, before)
        _done, report = play()
        (one,) = told(report, "m1", MANAGER)
        assert words in one["summary"], one


def test_what_an_operator_restarts_is_no_finding(cluster, play):
    restart(cluster, "m2", SCHEDULER)
    with edited(cluster, "m2", MANAGER, lambda text: set_flag(text, "v", "3")):
        _done, report = play()
    assert not told(report, "m2", SCHEDULER)
    assert not told(report, "m2", MANAGER)
