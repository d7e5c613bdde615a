# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What killed runs of the lab left is removed, and nothing else."""

from __future__ import annotations

import json
import subprocess
import time
from types import SimpleNamespace

import pytest

from tests.gate import machine, runner
from tests.gate.stages import lab
from tests.lab import __main__ as command
from tests.lab.cluster import bringup, clusters, kernel, paths, podman, store, vm
from tests.lab.support.repairing import own

NODE = "kubemend-0a1b2c-v1.36.3-m1"


class Podman:
    """podman with these containers and volumes."""

    def __init__(self):
        self.containers: dict[str, dict[str, str]] = {}
        self.volumes: dict[str, float] = {}
        self.used: set[str] = set()
        self.calls: list[list[str]] = []

    def __call__(self, *argv, **_more):
        self.calls.append([str(word) for word in argv])
        words = self.calls[-1]
        printed = ""
        if words[:1] == ["ps"]:
            printed = json.dumps([self._container(name) for name in self.containers])
        elif words[:1] == ["rm"]:
            assert "-v" in words, "volumes without a name stay behind"
            for name in words[words.index("-v") + 1 :]:
                del self.containers[name]
        elif words[:2] == ["volume", "ls"]:
            names = set(self.volumes)
            if "dangling=true" in words:
                names -= self.used
            printed = "".join(f"{int(self.volumes[name])} {name}\n" for name in sorted(names))
        elif words[:2] == ["volume", "rm"]:
            for name in words[2:]:
                del self.volumes[name]
        return subprocess.CompletedProcess(words, 0, printed.encode(), b"")

    def _container(self, name):
        labels = self.containers[name]
        return {"Names": [name], "State": "running", "Labels": labels, "Networks": ["net"]}

    def node(self, name, root, cluster="v1.36.3"):
        label = podman.LABEL
        self.containers[name] = {
            label: "1",
            f"{label}.root": str(root),
            f"{label}.cluster": cluster,
        }


@pytest.fixture
def here(monkeypatch, tmp_path):
    """Return a podman beside a lab that keeps its records in a folder of this test."""
    made = Podman()
    monkeypatch.setattr(podman, "podman", made)
    monkeypatch.setattr(podman, "note", lambda _text: None)
    monkeypatch.setattr(clusters, "note", lambda _text: None)
    monkeypatch.setattr(paths, "STATE", tmp_path / ".lab")
    monkeypatch.setattr(vm, "remove_orphans", lambda: None)
    monkeypatch.setattr(kernel, "restore_if_last", lambda: None)
    return made


def record(root, cluster, **more):
    folder = root / ".lab" / cluster
    folder.mkdir(parents=True)
    state = {
        "k8s": "v1.36.3",
        "masters": 1,
        "workers": 0,
        "timers": "short",
        "name": cluster,
        "prefix": "",
        "layout": "kubeadm",
        "nodes": [],
        **more,
    }
    (folder / "state.json").write_text(json.dumps(state))


def test_a_node_has_volumes_whose_names_are_the_labs_and_goes_with_them(here):
    podman.run_node(NODE, "m1", "image", "net", "10.0.0.2", "v1.36.3")
    run = here.calls[-1]
    mounts = dict(run[i + 1].split(":") for i, word in enumerate(run) if word == "-v")
    assert tuple(mounts.values()) == podman.VOLUMES
    assert all(podman.OF_LAB.fullmatch(name) for name in mounts)
    podman.run_node(NODE, "m1", "image", "net", "10.0.0.2", "v1.36.3")
    assert not set(mounts) & {word.partition(":")[0] for word in here.calls[-1]}
    others = [NODE + "0-a1b2c3-etcd", "data", "a" * 64]
    here.volumes = dict.fromkeys([*mounts, *others], time.time())
    here.node(NODE, "/")
    podman.remove_containers([NODE])
    assert sorted(here.volumes) == sorted(others)
    assert here.containers == {}


@pytest.mark.parametrize(
    ("name", "age", "is_used", "is_removed"),
    [
        (f"{NODE}-a1b2c3-etcd", 3600, False, True),
        (f"{NODE}-a1b2c3-containerd", 3600, False, True),
        (f"{NODE}-a1b2c3-kubelet", 3600, True, False),
        (f"{NODE}-a1b2c3-etcd", 60, False, False),  # its node may be made at this moment
        (f"{NODE}-etcd", 3600, False, False),
        ("a" * 64, 3600, False, False),
        ("kubemend-data", 3600, False, False),
        (f"my-{NODE}-a1b2c3-etcd", 3600, False, False),
    ],
)
def test_volumes_of_the_lab_without_a_node(here, name, age, is_used, is_removed):
    here.volumes = {name: time.time() - age}
    here.used = {name} if is_used else set()
    podman.remove_orphans()
    assert (name not in here.volumes) is is_removed


def test_nodes_of_clusters_that_nothing_records(here, tmp_path):
    record(tmp_path, "v1.36.3")
    here.node("kept", tmp_path)
    here.node("made-again", tmp_path, "v1.36.3-killed")
    here.node("gone", tmp_path / "none")
    podman.remove_orphans()
    assert list(here.containers) == ["kept"]
    assert ["network", "rm", "-f", "net"] in here.calls


@pytest.mark.parametrize(
    ("is_temporary", "is_locked", "is_removed"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_clusters_of_killed_tests(here, tmp_path, monkeypatch, is_temporary, is_locked, is_removed):
    record(tmp_path, "own", temporary=is_temporary)
    here.node("own-m1", tmp_path, "own")
    lock = paths.STATE / "own.lock"
    if is_locked:
        monkeypatch.setattr(clusters.Cluster, "down", lambda _own: pytest.fail("a run has it"))
    with store.locked(lock if is_locked else paths.STATE / "other.lock", "x"):
        clusters.remove_leftovers()
    assert (clusters.Cluster.known() == []) is is_removed
    assert (here.containers == {}) is is_removed


def test_a_cluster_of_one_test_says_so_and_is_locked_while_it_lives(here, monkeypatch):
    found = clusters.Cluster("v1.36.3", 1, 0, name="own")
    seen = []

    def up(cluster):
        seen.append((cluster.temporary, store.is_held(cluster.lock)))
        return cluster

    monkeypatch.setattr(clusters.Cluster, "up", up)
    with own(found) as cluster:
        assert cluster is found
        assert store.is_held(found.lock)
    assert seen == [(True, True)]
    assert not store.is_held(found.lock)


def test_the_record_says_whether_a_cluster_is_of_one_test(here, monkeypatch):
    monkeypatch.setattr(clusters, "remove_leftovers", lambda: here.calls.append(["leftovers"]))
    monkeypatch.setattr(clusters, "ensure_host", lambda: None)
    monkeypatch.setattr(clusters, "version_unavailable_reason", lambda _version: None)
    monkeypatch.setattr(clusters.images, "node_image", lambda _version: "image")
    monkeypatch.setattr(clusters.images, "pause_image", lambda _version: "pause")
    monkeypatch.setattr(clusters.kernel, "raise_limits", lambda: None)
    monkeypatch.setattr(clusters, "run", lambda _words: None)
    monkeypatch.setattr(podman, "create_network", lambda *_words: "10.9.0.0/24")
    monkeypatch.setattr(bringup, "parallel", _killed)
    found = clusters.Cluster("v1.36.3", 1, 0, name="own")
    found.temporary = True
    with pytest.raises(KeyboardInterrupt):
        found.up()
    assert ["leftovers"] in here.calls
    assert clusters.Cluster.find(None, "own").state["temporary"] is True


def _killed(*_words):
    raise KeyboardInterrupt


def test_the_command_and_the_gate_remove_what_is_left(here, monkeypatch, tmp_path):
    cleaned = []
    monkeypatch.setattr(command, "remove_leftovers", lambda: cleaned.append(1))
    monkeypatch.setattr(command.host, "unavailable_reason", lambda: None)
    monkeypatch.setattr(command, "shutil", SimpleNamespace(which=lambda _name: "/bin/podman"))
    assert command.main(["clean"]) == 0
    assert cleaned == [1]
    monkeypatch.setattr(command.host, "unavailable_reason", lambda: "no root")
    assert command.main(["clean"]) == 0
    assert cleaned == [1]
    monkeypatch.setattr(machine, "OUTPUT", tmp_path)
    order = []
    context = runner.Context("lab")
    monkeypatch.setattr(context, "run", lambda words, **_more: order.append(words[-1]))
    monkeypatch.setattr(lab, "pytest", lambda *_words, **_more: order.append("pytest"))
    lab.lab(context)
    assert order == ["clean", "pytest"]
