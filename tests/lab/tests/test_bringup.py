# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bring-up that was killed half-way.

The next one makes the cluster anew by itself, and until then it says what it found.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.lab.cluster import paths, podman
from tests.lab.cluster.clusters import Cluster
from tests.lab.support.repairing import NEW, RELEASES, own, possible

# The note before kubeadm's first word; what it begins then takes longer than a kill.
BEGUN = b"kubeadm init on"
REBUILT = "is rebuilt: its bring-up was interrupted"


@pytest.mark.parametrize("joined", [0, 1, 2])
def test_a_record_without_all_its_masters_is_no_cluster(tmp_path, monkeypatch, capsys, joined):
    monkeypatch.setattr(paths, "STATE", tmp_path)
    monkeypatch.setattr(
        podman, "containers", lambda *_names: pytest.fail("there is nothing to wait for")
    )
    found = Cluster(NEW, 3, 0, name="half")
    found.state = {
        "subnet": "192.0.2.0/24",
        "k8s": NEW,
        "image": "image",
        "masters": 3,
        "timers": "short",
        "prefix": "",
        "layout": "kubeadm",
    }
    for number in range(3):
        found.new_node("master", {}).joined = number < joined
    assert found._reuse("image") is False
    assert REBUILT in capsys.readouterr().err
    if not joined:
        with pytest.raises(RuntimeError, match="no master of half has joined"):
            found.kubectl("get", "nodes")


def test_what_a_killed_bringup_left_is_made_anew(capfd):
    version = RELEASES[0]
    possible(version)
    name = f"{version}-killed"
    killed = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.lab",
            "up",
            "--k8s",
            version,
            "--name",
            name,
            "--masters",
            "1",
            "--workers",
            "0",
        ],
        cwd=paths.ROOT,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        said = _until_begun(killed)
        assert BEGUN in said[-1], said
        os.killpg(killed.pid, signal.SIGKILL)
    finally:
        killed.kill()
        killed.wait(60)
        killed.stderr.close()
    left = Cluster.find(version, name)
    assert [node.joined for node in left.nodes] == [False]
    assert left.container_states() == {"m1": "running"}
    assert [
        problem
        for problem in left.status()["problems"]
        if "no master of" in problem and "its bring-up was interrupted" in problem
    ], left.status()
    capfd.readouterr()
    with own(Cluster(version, 1, 0, name=name)) as found:
        assert REBUILT in capfd.readouterr().err
        assert [node.joined for node in found.nodes] == [True]
        # A busy machine answers a probe late: a pod may not be ready for a moment.
        found.wait_healthy()
        assert b"m1" in found.kubectl("get", "nodes").stdout
    assert name not in Cluster.known()
    assert podman.containers(name) == {}


def _until_begun(process) -> list:
    """Return the output up to that line or its end."""
    said = []
    for line in process.stderr:
        said.append(line)
        if BEGUN in line:
            break
    return said
