# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program gets into a node as `podman exec` would put it there."""

from __future__ import annotations

import subprocess

import pytest

from tests.lab.cluster import podman

SEEN = (
    "grep -v '^0::' /proc/self/cgroup; env | sort; ulimit -n; ulimit -p; id; pwd; umask; ls /proc"
)


def test_it_has_the_groups_limits_and_environment_that_podman_gives(cluster):
    node = cluster.node("w1")
    ours = podman.execute(node.container, ["sh", "-c", SEEN], 60, True, None)
    theirs = podman.podman("exec", node.container, "sh", "-c", SEEN, timeout=60)

    def lines(done: subprocess.CompletedProcess) -> list[str]:
        # Processes of the node come and go.
        return [line for line in done.stdout.decode().splitlines() if not line.isdigit()]

    assert lines(ours) == lines(theirs)


def test_its_status_its_input_and_a_node_that_is_restarted(cluster):
    node = cluster.node("w1")
    done = podman.execute(node.container, ["sh", "-c", "cat; exit 3"], 60, False, b"read")
    assert (done.returncode, done.stdout) == (3, b"read")
    with pytest.raises(RuntimeError, match="ended with 3"):
        podman.execute(node.container, ["sh", "-c", "exit 3"], 60, True, None)
    inside = podman.INSIDE[node.container]
    podman.INSIDE[node.container] = podman.Inside(inside.pid, "0", "")
    podman.execute(node.container, ["true"], 60, True, None)
    assert podman.INSIDE[node.container] == inside


def test_a_group_that_refuses_a_program_is_an_error(cluster, monkeypatch):
    monkeypatch.setattr(podman, "control_groups", lambda _own, _group: ("/nowhere",))
    with pytest.raises(RuntimeError, match="nowhere"):
        podman.execute(cluster.node("w1").container, ["true"], 60, True, None)


def test_a_node_keeps_its_hardware_address_when_it_is_started_again(cluster):
    node = cluster.node("w1")
    seen = podman.execute(node.container, ["cat", "/sys/class/net/eth0/address"], 60, True, None)
    assert seen.stdout.decode().strip() == podman.hardware_address(node.ip)


def test_a_container_that_does_not_run():
    done = podman.execute("kubemend-none", ["true"], 60, False, None)
    assert done.returncode == podman.NOT_RUNNING
    with pytest.raises(RuntimeError, match="does not run"):
        podman.execute("kubemend-none", ["true"], 60, True, None)


@pytest.mark.parametrize(
    ("folders", "lines", "found"),
    [
        (
            ["cpu/g", "systemd/g"],
            ["2:cpu:/g/init.scope", "1:name=systemd:/g/x"],
            ["cpu/g", "systemd/g"],
        ),
        (["cpu/g", "unified/g/x"], ["2:cpu:/g", "0::/g/x"], ["cpu/g", "unified/g/x"]),
        (["g/init.scope"], ["0::/g/init.scope"], ["g/init.scope"]),
        ([], ["2:cpu:/g"], []),
    ],
    ids=["version 1", "hybrid", "version 2", "not mounted"],
)
def test_the_control_groups_of_a_container(monkeypatch, tmp_path, folders, lines, found):
    monkeypatch.setattr(podman, "CGROUPS", tmp_path)
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "cgroup.procs").touch()
    if folders == ["g/init.scope"]:
        (tmp_path / "cgroup.controllers").touch()
    assert podman.control_groups(lines, "/g") == tuple(str(tmp_path / one) for one in found)
