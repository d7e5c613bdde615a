# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtime that a kubelet uses: whose its socket is, and what is asked of it."""

import os
import socket
import time
import tracemalloc
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    kubelet_log,
    runtime,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    service_start,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    cri,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    systemd as unit,
)

CONTAINERD = "/run/containerd/containerd.sock"


def kubelet(*argv, **more):
    return dict(
        {
            "argv": ["kubelet", *list(argv)],
            "config": None,
            "config_dropins": [],
            "process": {"pid": 7},
            "unit": {"name": "kubelet.service"},
        },
        **more,
    )


def conf(text):
    return {"text": text}


@pytest.mark.parametrize(
    ("known", "path"),
    [
        (kubelet(), None),
        (kubelet("--container-runtime-endpoint=unix://" + CONTAINERD), CONTAINERD),
        (kubelet("--container-runtime-endpoint", "/run/crio/crio.sock"), "/run/crio/crio.sock"),
        (kubelet("--container-runtime-endpoint=tcp://1.2.3.4:5"), None),
        (kubelet(config=conf("containerRuntimeEndpoint: unix:///run/a.sock\n")), "/run/a.sock"),
        (
            kubelet(
                config=conf("containerRuntimeEndpoint: unix:///run/a.sock\n"),
                config_dropins=[conf('containerRuntimeEndpoint: "unix:///run/b.sock"\n')],
            ),
            "/run/b.sock",
        ),
        (
            kubelet(
                "--container-runtime-endpoint=unix:///run/c.sock",
                config=conf("containerRuntimeEndpoint: unix:///run/a.sock\n"),
            ),
            "/run/c.sock",
        ),
        (kubelet(config=conf(None)), None),
    ],
)
def test_the_endpoint_as_the_kubelet_has_it(known, path):
    assert runtime.endpoint(known) == path


@pytest.mark.parametrize(
    ("named", "family", "docker", "present", "shim", "kind"),
    [
        (CONTAINERD, "kubelet.service", None, (), False, ("containerd", CONTAINERD)),
        (
            "/var/run/containerd/containerd.sock",
            "kubelet.service",
            None,
            (),
            False,
            ("containerd", "/var/run/containerd/containerd.sock"),
        ),
        (
            "/var/run/crio/crio.sock",
            "kubelet.service",
            None,
            (),
            False,
            ("crio", "/var/run/crio/crio.sock"),
        ),
        (
            "/run/cri-dockerd.sock",
            "kubelet.service",
            None,
            (),
            False,
            ("cri-docker", "/run/cri-dockerd.sock"),
        ),
        (
            "/var/run/dockershim.sock",
            "kubelet.service",
            None,
            (),
            True,
            ("docker", "/var/run/docker.sock"),
        ),
        (
            "/run/k3s/containerd/containerd.sock",
            "rke2-agent.service",
            None,
            (),
            False,
            ("embedded", "/run/k3s/containerd/containerd.sock"),
        ),
        (
            "/var/snap/microk8s/common/run/containerd.sock",
            "snap.microk8s.daemon-kubelite.service",
            None,
            (),
            False,
            ("embedded", "/var/snap/microk8s/common/run/containerd.sock"),
        ),
        (
            "/run/k0s/containerd.sock",
            "k0sworker.service",
            None,
            (),
            False,
            ("embedded", "/run/k0s/containerd.sock"),
        ),
        ("/run/isulad.sock", "kubelet.service", None, (), False, ("other", "/run/isulad.sock")),
        (None, "k3s.service", None, ("containerd.service",), False, ("embedded", None)),
        (None, "rke2-server.service", None, (), False, ("embedded", None)),
        (
            None,
            "kubelet.service",
            True,
            ("docker.service",),
            False,
            ("docker", "/var/run/docker.sock"),
        ),
        (
            None,
            "kubelet.service",
            None,
            ("docker.service", "containerd.service"),
            True,
            ("docker", "/var/run/docker.sock"),
        ),
        (None, "kubelet.service", None, ("containerd.service",), False, ("containerd", CONTAINERD)),
        (
            None,
            "kubelet.service",
            None,
            ("docker.service", "containerd.service"),
            False,
            (None, None),
        ),
        (None, "kubelet.service", None, (), False, (None, None)),
    ],
)
def test_whose_the_socket_is(named, family, docker, present, shim, kind):
    assert (
        runtime.kind_of(
            named, family, docker, present, lambda path: shim and path == runtime.DOCKERSHIM
        )
        == kind
    )


class Node:
    """systemd, and a socket."""

    def __init__(self, path, monkeypatch):
        self.path, self.blocks, self.enabled, self.calls = (
            str(path / "containerd" / "containerd.sock"),
            {},
            "enabled",
            {"v1": 0, "v1alpha2": 0},
        )
        (path / "containerd").mkdir()
        self.listening, self.called = None, []
        monkeypatch.setattr(unit, "show", lambda names, properties, seconds: self.blocks)
        monkeypatch.setattr(unit, "enabled", lambda name: self.enabled)
        monkeypatch.setattr(cri, "version", self.version)

    def version(self, path, of, dummy_seconds):
        self.called.append((path, of))
        return self.calls[of]

    def listen(self):
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(self.path)
        self.listening.listen(5)

    def unit(self, name, **more):
        self.blocks[name] = {
            key: [value]
            for key, value in dict(
                {
                    "Id": name,
                    "LoadState": "loaded",
                    "ActiveState": "active",
                    "SubState": "running",
                    "UnitFileState": "enabled",
                    "MainPID": "7",
                },
                **more,
            ).items()
        }

    def collect(self, known=None):
        context = base.Context(
            {},
            [],
            {"kubelet": known or kubelet("--container-runtime-endpoint=unix://" + self.path)},
        )
        return runtime.collect(context)


@pytest.fixture
def node(tmp_path, monkeypatch):
    found = Node(tmp_path, monkeypatch)
    yield found
    if found.listening:
        found.listening.close()


def test_a_runtime_that_is_well(node):
    node.listen()
    node.unit("containerd.service", WantedBy="multi-user.target docker.service")
    found = node.collect()
    (told,) = found["units"]
    assert (found["kind"], found["socket"], found["asked"], found["error"], found["calls"]) == (
        "containerd",
        "present",
        True,
        None,
        {"v1": 0, "v1alpha2": 0},
    )
    assert (told["name"], told["unit_file_state"], told["wanted_by"], told["trigger"]) == (
        "containerd.service",
        "enabled",
        ["docker.service", "multi-user.target"],
        None,
    )
    assert found["config"] is None


@pytest.mark.parametrize("state", ["inactive", "failed", "activating", "deactivating"])
def test_what_does_not_run_is_not_connected_to(node, state):
    node.listen()
    node.unit("containerd.service", ActiveState=state)
    found = node.collect()
    assert (found["asked"], found["socket"], found["calls"], node.called) == (
        False,
        "present",
        {},
        [],
    )


def test_enabled_is_what_is_enabled_says(node):
    node.unit("containerd.service")
    node.enabled = "disabled"
    assert node.collect()["units"][0]["unit_file_state"] == "disabled"


@pytest.mark.parametrize(
    ("made", "text", "brought"),
    [
        ("multi-user.target.wants/containerd.service", "", True),
        ("multi-user.target.upholds/containerd.service", "", True),
        (
            "multi-user.target.d/10-containerd.conf",
            "[Unit]\nUpholds=docker.service containerd.service\n",
            True,
        ),
        (
            "multi-user.target.d/10-containerd.conf",
            "[Unit]\n#Upholds=containerd.service\nAfter=containerd.service\n",
            False,
        ),
        ("multi-user.target.d/containerd.txt", "Upholds=containerd.service\n", False),
        ("rescue.target.wants/containerd.service", "", False),
    ],
)
def test_a_target_of_a_vendor_brings_what_is_not_enabled(tmp_path, made, text, brought):
    path = tmp_path / "vendor" / made
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert (
        runtime.brings(
            "multi-user.target",
            "containerd.service",
            (str(tmp_path / "none"), str(tmp_path / "vendor")),
        )
        is brought
    )


def test_what_brings_one_is_looked_for_where_it_is_disabled(node, monkeypatch):
    monkeypatch.setattr(
        runtime,
        "brings",
        lambda target, name: (target, name) == ("multi-user.target", "containerd.service"),
    )
    node.unit("containerd.service", UpheldBy="multi-user.target", WantedBy="graphical.target")
    assert node.collect()["units"][0]["brought_by"] == []
    node.enabled = "disabled"
    assert node.collect()["units"][0]["brought_by"] == ["multi-user.target"]
    node.unit("containerd.service")
    assert node.collect()["units"][0]["brought_by"] == []


def test_a_silent_one_is_not_asked_twice(node):
    node.listen()
    node.unit("containerd.service")
    node.calls["v1"] = cri.SILENT
    assert node.collect()["calls"] == {"v1": cri.SILENT}


def test_a_socket_that_nobody_listens_at_and_one_that_is_gone(node):
    node.unit("containerd.service")
    found = node.collect()
    assert (found["socket"], found["asked"]) == ("missing", False)
    node.listen()
    node.listening.close()
    found = node.collect()
    assert (found["socket"], found["asked"], found["error"]) == (
        "present",
        True,
        "Connection refused",
    )
    assert node.called == []


def test_its_configuration_is_read_where_it_refuses_calls(node, tmp_path):
    node.listen()
    (tmp_path / "own.toml").write_text(
        'version = 2\ndisabled_plugins = ["cri"]\n[plugins]\npassword = "secret"\n'
    )
    started = (
        "{ path=/usr/bin/containerd ; argv[]=/usr/bin/containerd --config %s ; ignore_errors=no }"
    )
    node.unit("containerd.service", ExecStart=started % (tmp_path / "own.toml"))
    node.calls = {"v1": 12, "v1alpha2": 12}
    found = node.collect()
    assert found["config"] == {
        "path": str(tmp_path / "own.toml"),
        "disabled_plugins": ["cri"],
        "line": 2,
    }
    assert "secret" not in repr(found)


def test_docker_is_held_by_a_socket_of_systemd(node, monkeypatch):
    monkeypatch.setattr(runtime, "DOCKER_SOCKET", node.path)
    node.listen()
    node.unit("docker.service", ActiveState="inactive")
    node.unit("docker.socket", SubState="listening")
    found = node.collect(kubelet("--container-runtime-endpoint=unix:///var/run/dockershim.sock"))
    assert found["units"][0]["trigger"] == {
        "name": "docker.socket",
        "active_state": "active",
        "unit_file_state": "enabled",
    }
    assert not found["asked"]
    node.unit("docker.service")
    found = node.collect(kubelet("--container-runtime-endpoint=unix:///var/run/dockershim.sock"))
    assert (found["kind"], found["asked"], found["error"], found["calls"]) == (
        "docker",
        True,
        None,
        {},
    )


def test_cri_dockerd_needs_docker(node):
    node.unit("docker.service", ActiveState="failed")
    node.unit("cri-docker.service")
    found = node.collect(kubelet("--container-runtime-endpoint=unix:///run/cri-dockerd.sock"))
    assert [one["name"] for one in found["units"]] == [
        "docker.service",
        "cri-docker.service",
    ]
    assert not found["asked"]


START = "{ path=/usr/bin/cri-dockerd ; argv[]=/usr/bin/cri-dockerd %s ; ignore_errors=no }"


def test_the_arguments_of_cri_dockerd(node):
    node.unit("docker.service")
    argv = "--container-runtime-endpoint fd:// --pod-infra-container-image=mirror/pause:3.9 --x=y"
    node.unit("cri-docker.service", ExecStart=START % argv)
    known = kubelet("--container-runtime-endpoint=unix:///run/cri-dockerd.sock")
    assert node.collect(known)["flags"] == {
        "container-runtime-endpoint": "fd://",
        "pod-infra-container-image": "mirror/pause:3.9",
    }
    node.blocks.clear()
    assert node.collect(known)["flags"] == {}


def test_where_runtimes_listen_is_told_where_the_kubelet_s_socket_is_missing(node, tmp_path):
    place = str(tmp_path / "other.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
        holder.bind(place)
        holder.listen(1)
        node.unit("crio.service", MainPID=str(os.getpid()))
        (found,) = node.collect()["serving"]
        assert found["unit"] == "crio.service"
        assert place in found["paths"]
        node.listen()
        assert node.collect()["serving"] == []


def test_sockets_of_other_protocols_are_no_cri(node, monkeypatch):
    paths = ["/run/containerd/containerd.sock.ttrpc", "/run/docker.sock", "/run/docker/a.sock"]
    monkeypatch.setattr(runtime.listeners, "unix_paths", lambda pid: [*paths, "/run/a.sock"])
    node.unit("containerd.service")
    assert node.collect()["serving"] == [{"unit": "containerd.service", "paths": ["/run/a.sock"]}]
    node.unit("containerd.service", MainPID="0")
    assert node.collect()["serving"] == []


@pytest.mark.parametrize("state", ["active", "inactive"])
def test_cri_dockerd_as_kubespray_names_it(node, state):
    node.path = str(node.path).replace("containerd/containerd.sock", "cri-dockerd.sock")
    node.listen()
    node.unit("docker.service")
    node.unit("cri-dockerd.service", ActiveState=state)
    node.unit("cri-dockerd.socket", SubState="listening")
    found = node.collect()
    assert [one["name"] for one in found["units"]] == [
        "docker.service",
        "cri-dockerd.service",
    ]
    assert found["asked"] is (state == "active")
    assert found["units"][1]["trigger"]["name"] == "cri-dockerd.socket"
    assert "cri-dockerd.service" in service_start.RUNTIMES
    assert "cri-dockerd.service" in kubelet_log.RUNTIMES


def test_of_two_names_the_one_that_runs(node):
    assert runtime.names_of("cri-docker", {}) == [
        "docker.service",
        "cri-docker.service",
    ]
    assert runtime.names_of("crio", {}) == ["crio.service"]
    node.unit("cri-docker.service", ActiveState="inactive")
    node.unit("cri-dockerd.service", ActiveState="inactive")
    assert runtime.names_of("cri-docker", node.blocks) == ["docker.service", "cri-docker.service"]
    node.unit("cri-dockerd.service")
    assert runtime.names_of("cri-docker", node.blocks) == ["docker.service", "cri-dockerd.service"]


def test_a_socket_whose_unit_has_another_name_is_not_connected_to(node):
    node.path = str(node.path).replace("containerd/containerd.sock", "cri-dockerd.sock")
    node.listen()
    node.unit("docker.service")
    found = node.collect()
    assert (found["socket"], found["asked"], node.called) == ("present", False, [])


def test_a_slow_node_has_more_time_to_name_its_units(node, monkeypatch):
    asked = []
    monkeypatch.setattr(unit, "show", lambda *question: asked.append(question[2]) or node.blocks)
    known = {"kubelet": kubelet("--container-runtime-endpoint=unix://" + node.path)}
    runtime.collect(base.Context({}, [], known, time.monotonic() + 100, 4.0))
    assert asked == [20.0]


def test_a_runtime_within_another_program_is_let_alone(node, monkeypatch):
    monkeypatch.setattr(unit, "show", None)
    found = node.collect(
        kubelet("--container-runtime-endpoint=unix:///run/k3s/containerd/containerd.sock")
    )
    assert (found["kind"], found["units"], found["socket"], found["asked"]) == (
        "embedded",
        [],
        None,
        False,
    )


def test_what_cannot_be_told(node, monkeypatch):
    assert node.collect(kubelet())["kind"] is None
    with pytest.raises(base.Absent):
        runtime.collect(base.Context({}, [], {"kubelet": None}))

    def silent(*dummy):
        raise command.CommandError("systemctl: it said nothing")

    monkeypatch.setattr(unit, "show", silent)
    with pytest.raises(base.Failed):
        node.collect()


@pytest.mark.parametrize(
    ("text", "names", "line"),
    [
        ('disabled_plugins = ["cri"]\n', ["cri"], 1),
        ("disabled_plugins = []\n", [], 1),
        ('#disabled_plugins = ["cri"]\n', [], None),
        (
            (
                'version = 3\n\ndisabled_plugins = [\n  "io.containerd.grpc.v1.cri", # no ]'
                " here\n  'io.containerd.cri.v1.runtime',\n]\n[a]\n"
            ),
            ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"],
            3,
        ),
        ('[debug]\ndisabled_plugins = ["cri"]\n', [], None),
        ("disabled_plugins = [", [], 1),
        ("", [], None),
    ],
)
def test_which_plugins_are_disabled(tmp_path, text, names, line):
    path = tmp_path / "config.toml"
    path.write_text(text)
    assert runtime.plugins(str(path)) == {
        "path": str(path),
        "disabled_plugins": names,
        "line": line,
    }
    assert runtime.plugins(str(tmp_path / "none"))["disabled_plugins"] is None


@pytest.mark.parametrize(
    ("name", "known", "path"),
    [
        ("containerd.service", kubelet(), CONTAINERD),
        ("containerd.service", kubelet("--container-runtime-endpoint=/run/crio/crio.sock"), None),
        (
            "crio.service",
            kubelet("--container-runtime-endpoint=/run/crio/crio.sock"),
            "/run/crio/crio.sock",
        ),
        ("crio.service", kubelet(), None),
        (
            "docker.service",
            kubelet("--container-runtime-endpoint=/run/cri-dockerd.sock"),
            "/var/run/docker.sock",
        ),
        (
            "cri-docker.service",
            kubelet("--container-runtime-endpoint=/run/cri-dockerd.sock"),
            "/run/cri-dockerd.sock",
        ),
        (
            "cri-dockerd.service",
            kubelet("--container-runtime-endpoint=/run/cri-dockerd.sock"),
            "/run/cri-dockerd.sock",
        ),
        (
            "containerd.service",
            kubelet("--container-runtime-endpoint=/run/k3s/containerd/containerd.sock"),
            None,
        ),
    ],
)
def test_where_a_unit_answers(name, known, path):
    assert runtime.socket_of(name, known) == path


# -- one that ended
# --------------------------------------------------------------------------------------------------

JOURNAL = """\
2026-11-22T18:00:03+0000 w1 systemd[1]: containerd.service: Main process exited, code=exited, \
status=1/FAILURE
2026-11-22T18:00:02+0000 w1 containerd[9]: \tmain.go:7 +0x1
2026-11-22T18:00:02+0000 w1 containerd[9]: containerd: failed to load TOML: \
/etc/containerd/config.toml: password = hunter2hunter2
2026-11-22T18:00:01+0000 w1 containerd[9]: time="x" level=info msg="starting containerd"
-- Boot 0123 --
"""


@pytest.mark.parametrize(
    ("state", "asks"),
    [
        ({"ActiveState": "failed", "Result": "exit-code"}, True),
        ({"ActiveState": "activating", "SubState": "auto-restart"}, True),
        ({"ActiveState": "inactive", "Result": "exit-code"}, True),
        ({"ActiveState": "inactive", "Result": "success"}, False),
        ({}, False),
    ],
)
def test_the_last_words_of_one_that_ended(node, monkeypatch, state, asks):
    asked = []
    monkeypatch.setattr(command, "run", lambda argv, *more: asked.append(argv) or JOURNAL)
    node.unit("containerd.service", **state)
    told = node.collect()["units"][0]["said"]
    assert bool(asked) == asks
    assert not asks or asked[0][-2:] == ["-u", "containerd.service"]
    assert [line.partition("]: ")[2].partition(" /etc")[0] for line in told] == (
        [
            'time="x" level=info msg="starting containerd"',
            "containerd: failed to load TOML:",
            "main.go:7 +0x1",
        ]
        if asks
        else []
    )


def test_a_journal_that_may_not_be_read_says_nothing(node, monkeypatch):
    def run(*dummy):
        raise command.Silent("journalctl: it said nothing")

    monkeypatch.setattr(command, "run", run)
    node.unit("containerd.service", ActiveState="failed", Result="exit-code")
    assert node.collect()["units"][0]["said"] == []


@pytest.mark.parametrize(
    ("data", "valid"),
    [
        (b"\0" * 32768, False),
        (b"\1" * 2000, False),
        (b"", True),
        (b"\0" * 16 + b"\xed\xda\x0c\xed" + b"\0" * 4000, True),
        (b"\0" * (4096 + 16) + b"\xed\xda\x0c\xed", True),
        (b"\0" * (65536 + 16) + b"\xed\xda\x0c\xed", True),
        (b"\xed\xda\x0c\xed", False),
    ],
)
def test_a_database_of_containerd_has_a_header_in_one_of_its_first_pages(tmp_path, data, valid):
    path = tmp_path / runtime.METADATA
    path.parent.mkdir()
    path.write_bytes(data)
    assert runtime.metadata(str(tmp_path)) == {"path": str(path), "size": len(data), "valid": valid}
    assert runtime.metadata(str(tmp_path / "other")) is None


def test_no_more_of_a_database_is_read_than_its_headers(tmp_path):
    """It may be of gigabytes, on a node that has little left; here of holes."""
    path = tmp_path / runtime.METADATA
    path.parent.mkdir()
    with Path(path).open("wb") as file:
        file.seek((1024 << runtime.PAGES) + runtime.AT)
        file.write(runtime.MAGIC)
        file.truncate(1 << 33)
    tracemalloc.start()
    try:
        assert runtime.metadata(str(tmp_path)) == {
            "path": str(path),
            "size": 1 << 33,
            "valid": True,
        }
        assert tracemalloc.get_traced_memory()[1] < 100000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("text", "emptied"), [("", True), ("\n", False), (None, False)])
def test_a_configuration_of_containerd_of_no_bytes(node, tmp_path, text, emptied):
    config = tmp_path / "config.toml"
    if text is not None:
        config.write_text(text)
    node.listen()
    node.unit(
        "containerd.service",
        ExecStart=f"{{ path=/x ; argv[]=/x --config {config} ; ignore_errors=no }}",
    )
    assert node.collect()["emptied"] == (str(config) if emptied else None)
    assert runtime.emptied(str(tmp_path)) is None


def test_it_is_looked_at_where_containerd_refuses_calls(node, tmp_path):
    config, root = tmp_path / "config.toml", tmp_path / "root"
    (root / "io.containerd.metadata.v1.bolt").mkdir(parents=True)
    (root / runtime.METADATA).write_bytes(b"\0" * 100)
    config.write_text(f'version = 2\nroot = "{root}"\n[plugins]\nroot = "/no"\n')
    node.listen()
    node.unit(
        "containerd.service",
        ExecStart=f"{{ path=/x ; argv[]=/x --config {config} ; ignore_errors=no }}",
    )
    assert node.collect()["metadata"] is None
    node.calls = {"v1": 12, "v1alpha2": 12}
    assert node.collect()["metadata"] == {
        "path": str(root / runtime.METADATA),
        "size": 100,
        "valid": False,
    }


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ('root = "/data/c"\n', "/data/c"),
        ("root='/data/c' # ours\n", "/data/c"),
        ('[plugins]\nroot = "/x"\n', None),
        ('root = "c"\n', None),
        ("root =\n", None),
        ('rooted = "/x"\n', None),
    ],
)
def test_the_folder_that_the_configuration_names(tmp_path, text, root):
    (tmp_path / "c.toml").write_text(text)
    assert runtime.root_of(str(tmp_path / "c.toml")) == root
    assert runtime.root_of(str(tmp_path / "gone")) is None


def test_plugins_that_containerd_did_not_load_at_its_start(monkeypatch):
    commands = []

    def run(argv, *_limits):
        commands.append(argv)
        return (
            'a m1 containerd[1]: msg="failed to load plugin x" error="skip plugin"\n'
            'b m1 containerd[1]: msg="failed to load plugin y" error="password=hunter2"\n'
            "c m1 containerd[1]: started\n"
        )

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(runtime.procfs, "started_at", lambda pid: 1000.5 if pid == 7 else None)
    unit = {"name": "containerd.service", "main_pid": 7}
    (line,) = runtime.plugin_failures(unit, 3)
    assert "failed to load plugin y" in line
    assert "hunter2" not in line
    assert commands[0][-2:] == ["--since=@999", "--until=@1060"]
    assert runtime.plugin_failures({**unit, "main_pid": 0}, 3) is None

    def silent(*_arguments):
        raise command.Silent("journalctl: it said nothing")

    monkeypatch.setattr(command, "run", silent)
    assert runtime.plugin_failures(unit, 3) is None


def test_a_secret_at_the_cut_of_a_plugins_line_is_masked_as_a_whole(monkeypatch):
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJ" + "A" * 60 + "." + "B" * 60
    head = 'a m1 containerd[1]: msg="failed to load plugin y" error="'
    line = head + "x" * (runtime.LONGEST_PLUGIN - len(head) - 20) + " " + token
    monkeypatch.setattr(runtime.command, "run", lambda *dummy: line)
    monkeypatch.setattr(runtime.procfs, "started_at", lambda dummy: 1000.5)
    (kept,) = runtime.plugin_failures({"name": "containerd.service", "main_pid": 7}, 3)
    assert "eyJ" not in kept


def test_the_proxy_of_the_process_that_runs_plugins(node, monkeypatch):
    known = {"HTTPS_PROXY": "http://proxy.example.org:3128"}
    monkeypatch.setattr(runtime.kubelet_process, "proxy_of", lambda pid: {**known, "pid": pid})
    node.unit("containerd.service", MainPID="71")
    assert node.collect()["proxy"] == {**known, "pid": 71}
    node.unit("containerd.service", MainPID="0")
    assert node.collect()["proxy"] is None


def process(tmp_path, pid, comm, unit):
    folder = tmp_path / str(pid)
    folder.mkdir()
    (folder / "comm").write_text(f"{comm}\n")
    (folder / "cgroup").write_text(f"0::/system.slice/{unit}\n")


def test_the_containerd_of_k3s_is_a_process_of_its_unit(tmp_path, monkeypatch):
    process(tmp_path, 5, "containerd", "containerd.service")
    process(tmp_path, 7, "k3s-server", "k3s.service")
    process(tmp_path, 19, "containerd", "k3s.service")
    (tmp_path / "self").mkdir()
    assert runtime._within_unit("k3s.service", str(tmp_path)) == 19
    assert runtime._within_unit("rke2-agent.service", str(tmp_path)) is None
    monkeypatch.setattr(runtime, "_within_unit", lambda unit: None)
    assert runtime.proxy_of([], runtime.EMBEDDED, "k3s.service") is None
    units = [{"absent": False, "main_pid": os.getpid()}]
    assert runtime.proxy_of(units, runtime.DOCKER, "kubelet.service") is None
    assert runtime.proxy_of(units, runtime.CRIO, "kubelet.service") is not None
