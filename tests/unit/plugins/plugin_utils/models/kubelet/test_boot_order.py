# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that began at boot before its runtime, and that nothing starts again."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

CLOCK, UPTIME = 1_800_000_000.0, 900.0
# clearlinux/distribution#1004, of 1.15
LINE = (
    "F0712 09:30:11.651868     391 server.go:273] failed to run Kubelet: failed to create kubelet:"
    " failed to get docker version: Cannot connect to the Docker daemon at"
    " unix:///var/run/docker.sock. Is the docker daemon running?"
)


# k3s-io/k3s#367
NO_ADDRESS = (
    'time="2019-04-17T14:17:49-07:00" level=fatal msg="flannel exited: failed to find IPv4 address'
    ' for interface ens224"'
)


def broken(
    world: Any,
    *,
    state: str = "failed",
    ago: float = 880,
    after: Any = (),
    line: str = LINE,
) -> None:
    """Let the kubelet of w1 have ended because docker did not answer, or with another line."""
    collectors = world.documents["w1"]["collectors"]
    kubelet = collectors["kubelet"]["data"]
    ended = {"sub_state": "failed", "result": "exit-code", "exec_main_status": 255}
    if state == "activating":
        ended["sub_state"] = "auto-restart"
    kubelet["unit"].update(active_state=state, **ended)
    kubelet.update(process=None, argv_source="unit")
    collectors["system"]["data"]["uptime_s"] = UPTIME
    when = f"{datetime.fromtimestamp(CLOCK - ago, tz=timezone.utc):%Y-%m-%dT%H:%M:%S}+0000 w1"
    exited = "kubelet.service: Main process exited, code=exited, status=255/EXCEPTION"
    lines = [f"{when} kubelet[391]: {line}", f"{when} systemd[1]: {exited}"]
    unit = {"name": "kubelet.service", "load_state": "loaded", "active_state": state, **ended}
    unit["after"] = after if after is None else ["basic.target", *after]
    runtime = {"units": [{"name": "docker.service", "active_state": "active"}]}
    answers = {"kubelet_end": {"unit": "kubelet.service", "lines": lines}, "runtime": runtime}
    answers["unit_start"] = {"units": [unit]}
    for name, data in answers.items():
        collectors[name] = {"status": "ok", "data": data}


def told(world: Any) -> Any:
    (finding,) = world.judge(faults={"KM502"}).findings
    return finding


def test_nothing_orders_the_kubelet_after_its_runtime(world):
    broken(world)
    finding = told(world)
    assert "After=docker.service" in finding.summary
    assert "After=docker.service" in finding.remedy


@pytest.mark.parametrize(
    "changes",
    [
        {"after": ("docker.service",)},
        {"after": None},  # an older release collected
        {"ago": 100},  # long after the boot
        {"ago": 1000},  # before it
        {"state": "activating"},  # systemd starts it again
    ],
)
def test_another_reason_is_not_called_the_order(world, changes):
    broken(world, **changes)
    assert "After=" not in told(world).summary


def test_a_runtime_that_does_not_run_is_the_fault_itself(world):
    broken(world)
    world.data("w1", "runtime")["units"][0]["active_state"] = "failed"
    assert "After=" not in told(world).summary


def test_a_kubelet_that_was_started_before_its_network(world):
    broken(world, line=NO_ADDRESS)
    finding = told(world)
    assert "before ens224 had an address" in finding.summary
    assert "After=network-online.target" in finding.remedy


@pytest.mark.parametrize("changes", [{"ago": 100}, {"state": "activating"}])
def test_a_network_that_went_later_is_no_order(world, changes):
    broken(world, line=NO_ADDRESS, **changes)
    assert "network-online.target" not in told(world).remedy


@pytest.mark.parametrize("enforce", ["1", "0"])
def test_a_file_that_selinux_denies_to_the_kubelet(world, enforce):
    line = 'E0712 09:30:11.651868     391 run.go:74] "command failed" err="failed to load kubelet'
    line += ' config file, path: /etc/k.yaml, error: open /etc/k.yaml: permission denied"'
    broken(world, line=line)
    world.data("w1", "boot").update(selinux={"enforce": enforce, "config": "enforcing"})
    told_at = [hit for hit in world.judge().findings if "/etc/k.yaml" in hit.summary]
    assert [hit.code for hit in told_at if "SELinux enforces" in hit.summary] == ["KM502"] * int(
        enforce
    )
