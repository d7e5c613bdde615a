# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a runtime says of itself. The replies are made of the fields of cri-api's api.proto."""

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Absent,
    Context,
    Failed,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import cri
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    cri as cri_call,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system.protobuf import (
    message,
    string,
)

RUNTIME = {"path": "/run/containerd/containerd.sock", "calls": {"v1": 0}, "kind": "other"}
VERSION = string(1, "0.1.0") + string(2, "containerd") + string(3, "v1.6.36")
# As containerd 1.6 marshals pkg/cri/config: the names are its JSON tags.
CONFIG = {
    "containerd": {
        "snapshotter": "overlayfs",
        "defaultRuntimeName": "runc",
        "runtimes": {"runc": {"options": {"SystemdCgroup": True}}, "gvisor": {"options": None}},
    },
    "cni": {"binDir": "/opt/cni/bin", "confDir": "/etc/cni/net.d", "maxConfNum": 1},
    "registry": {"configs": {"reg.example": {"auth": {"password": "hunter2"}}}},
    "sandboxImage": "registry.k8s.io/pause:3.6",
    "systemdCgroup": False,
}
NETWORK = string(1, "NetworkReady") + string(3, "NetworkPluginNotReady") + string(4, "not set up")


def info(**texts):
    return b"".join(message(2, string(1, key) + string(2, value)) for key, value in texts.items())


def status(config=None, load="OK"):
    conditions = message(
        1, message(1, string(1, "RuntimeReady") + b"\x10\x01") + message(1, NETWORK)
    )
    return conditions + info(
        config=json.dumps(CONFIG if config is None else config), lastCNILoadStatus=load
    )


@pytest.fixture
def ask(monkeypatch):
    """Give ask: the answers of a runtime by method, and its evidence."""

    def run(*runtimes, **replies):
        (runtime,) = runtimes or (RUNTIME,)
        answers = {
            "Version": (0, VERSION),
            "Status": (0, status()),
            "RuntimeConfig": (12, b""),
            "ImageStatus": (0, b""),
            "ListPodSandbox": (0, message(1, string(1, "aa")) + message(1, string(1, "bb"))),
            **replies,
        }
        calls = []

        def call(path, method, data, _seconds):
            calls.append((path, method, data))
            return answers[method.rpartition("/")[2]]

        monkeypatch.setattr(cri_call, "call", call)
        data = cri.collect(Context({}, {}, {"runtime": runtime}))
        json.dumps(data)
        return data, calls

    return run


def test_containerd_with_its_effective_configuration(ask):
    data, calls = ask()
    assert (data["name"], data["version"], data["driver"]) == ("containerd", "v1.6.36", None)
    assert data["config"] == {
        "default_runtime": "runc",
        "systemd_cgroup": True,
        "sandbox_image": "registry.k8s.io/pause:3.6",
        "sandbox_image_present": False,
        "sandbox_image_by": "",
        "snapshotter": "overlayfs",
        "conf_dir": "/etc/cni/net.d",
        "bin_dirs": ["/opt/cni/bin"],
        "max_conf_num": 1,
        "default_network": "",
        "pids_limit": None,
        "pids_limit_path": "",
    }
    assert [(row["type"], row["status"], row["message"]) for row in data["conditions"]] == [
        ("RuntimeReady", True, ""),
        ("NetworkReady", False, "not set up"),
    ]
    assert (data["cni_error"], data["sandboxes"], data["files"]) == ("", ["aa", "bb"], [])
    assert "hunter2" not in json.dumps(data)
    assert {path for path, _method, _data in calls} == {RUNTIME["path"]}
    assert ("Status", b"\x08\x01") in [(name.rpartition("/")[2], data) for _p, name, data in calls]


def test_a_runtime_that_tells_its_kubelet_the_driver(ask):
    for number, driver in ((b"", "systemd"), (b"\x08\x01", "cgroupfs"), (b"\x08\x07", None)):
        assert ask(RuntimeConfig=(0, message(1, number)))[0]["driver"] == driver
    assert ask(RuntimeConfig=(0, b""))[0]["driver"] is None


def test_what_is_not_set_is_containerds_default(ask):
    config = {"containerd": {"defaultRuntimeName": "runc", "runtimes": {"runc": {}}}}
    data, _calls = ask(Status=(0, status(config, "cni config load failed: no network config")))
    assert data["config"]["systemd_cgroup"] is False
    assert data["config"]["sandbox_image_present"] is None
    assert data["cni_error"].startswith("cni config load failed")


@pytest.mark.parametrize(
    ("kind", "systemd"),
    [
        ("io.containerd.runc.v2", True),
        ("", True),
        ("io.containerd.runsc.v1", None),
        ("io.containerd.kata.v2", None),
    ],
)
def test_only_the_options_of_runc_have_a_cgroup_driver(kind, systemd):
    default = {"runtimeType": kind, "options": {"SystemdCgroup": True}}
    config = {"containerd": {"defaultRuntimeName": "x", "runtimes": {"x": default}}}
    assert cri.effective(json.dumps(config))["systemd_cgroup"] is systemd


def test_another_runtime_has_no_such_configuration(ask):
    data, _calls = ask(Status=(0, info(config="not json")), ImageStatus=(5, b""))
    assert (data["config"], data["cni_error"]) == (None, None)


def test_networks_of_cri_o_are_those_of_its_last_file(tmp_path):
    folder = tmp_path / "crio.conf.d"
    folder.mkdir()
    (tmp_path / "crio.conf").write_text(
        '[crio.network]\ncni_default_network = "crio"\nnetwork_dir = "/etc/cni/net.d/"\n'
        'plugin_dirs = [ "/opt/cni/bin", "/usr/libexec/cni" ]\n'
        '[crio.image]\ncni_default_network = "of another table"\n'
    )
    (folder / "10-network.conf").write_text('[crio.network]\ncni_default_network = "calico"\n')
    (folder / "05-network.conf").write_text('[crio.network]\ncni_default_network = "flannel"\n')
    found = cri.of_crio(str(tmp_path))
    assert (found["default_network"], found["conf_dir"]) == ("calico", "/etc/cni/net.d/")
    assert found["bin_dirs"] == ["/opt/cni/bin", "/usr/libexec/cni"]
    assert found["systemd_cgroup"] is None


def test_the_image_of_sandboxes_of_cri_o_is_that_of_its_last_file(tmp_path):
    (tmp_path / "crio.conf.d").mkdir()
    last = tmp_path / "crio.conf.d" / "20-image.conf"
    (tmp_path / "crio.conf").write_text('[crio.image]\npause_image = "registry.k8s.io/pause:3.6"\n')
    last.write_text('# x\n[crio.image]\npause_image = "mirror.local/pause:3.9" # ours\n')
    found = cri.of_crio(str(tmp_path))
    assert found["sandbox_image"] == "mirror.local/pause:3.9"
    assert found["sandbox_image_by"] == f"{last}:3"


def test_the_image_of_sandboxes_of_cri_dockerd_is_in_its_arguments(ask):
    unit = {"name": "cri-docker.service", "absent": False}
    runtime = {**RUNTIME, "kind": "cri-docker", "units": [unit]}
    runtime["flags"] = {"pod-infra-container-image": "mirror.local/pause:3.9"}
    data, calls = ask(runtime, Status=(0, status(config={})))
    config = data["config"]
    assert config["sandbox_image"] == "mirror.local/pause:3.9"
    assert "cri-docker.service" in config["sandbox_image_by"]
    assert config["sandbox_image_present"] is False
    assert "ImageStatus" in [method.rpartition("/")[2] for _path, method, _data in calls]
    data, _calls = ask({**runtime, "flags": {}}, Status=(0, status(config={})))
    assert (data["config"]["sandbox_image"], data["config"]["sandbox_image_by"]) == ("", "")


def test_cri_o_without_files_has_its_defaults(tmp_path):
    found = cri.of_crio(str(tmp_path / "missing"))
    assert (found["default_network"], found["conf_dir"], found["bin_dirs"]) == ("", "", [])
    assert (found["pids_limit"], found["pids_limit_path"]) == (None, "")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("1024", 1024),
        ("-1", -1),
        ("4_096 # of databases", 4096),
        ('"many"', None),
        ("9" * 30, None),
    ],
)
def test_the_limit_of_processes_of_cri_o(tmp_path, text, limit):
    path = tmp_path / "crio.conf"
    path.write_text(f"[crio.image]\npids_limit = 7\n[crio.runtime]\npids_limit = {text}\n")
    found = cri.of_crio(str(tmp_path))
    assert (found["pids_limit"], found["pids_limit_path"]) == (limit, f"{path}:4")


def test_cri_o_has_its_configuration_in_files(ask, monkeypatch):
    monkeypatch.setattr(cri, "of_crio", lambda: {"sandbox_image": "", "default_network": "calico"})
    data, _calls = ask({**RUNTIME, "kind": "crio"}, Status=(0, status(config={})))
    assert data["config"]["default_network"] == "calico"


def test_a_runtime_without_an_answer(ask):
    for runtime in (None, {"calls": {}}, {"calls": {"v1": 12, "v1alpha2": "no answer"}}):
        with pytest.raises(Absent):
            ask(runtime)
    with pytest.raises(Failed):
        ask(Status=("no answer", b""))
    assert ask(ListPodSandbox=("no answer", b""))[0]["sandboxes"] is None


def test_sandboxes_are_bounded(ask, monkeypatch):
    monkeypatch.setattr(cri, "MAX_SANDBOXES", 1)
    assert ask()[0]["sandboxes"] is None


def test_the_lines_of_the_configuration_and_its_imports(tmp_path):
    folder = tmp_path / "conf.d"
    folder.mkdir()
    (folder / "b.toml").write_text("[x.'io.containerd.cri.v1.runtime'.y]\nSystemdCgroup = true\n")
    (folder / "c.toml").write_text('[a.runc]\nruntime_type = "io.containerd.runc.v1"\n')
    path = tmp_path / "config.toml"
    path.write_text('version = 3\nimports = ["conf.d/*.toml", "/none/*"]\nsandbox_image = "a"\n')
    first, second, third = cri.configuration_files(str(path))
    assert (first["version"], first["error"]) == (3, None)
    assert first["lines"] == [{"line": 3, "table": "", "key": "sandbox_image", "value": '"a"'}]
    assert second["lines"][0]["table"] == "x.io.containerd.cri.v1.runtime.y"
    row = {"line": 2, "table": "a.runc", "key": "runtime_type", "value": '"io.containerd.runc.v1"'}
    assert third["lines"] == [row]
    (missing,) = cri.configuration_files(str(tmp_path / "none.toml"))
    assert missing["error"] == "missing"


def test_a_few_mirrors_are_shown_without_their_passwords(tmp_path):
    text = 'version = 2\n[x.registry.configs.a]\nendpoint = ["https://b"]\n'
    for name in "abcde":
        text += f'[x.registry.mirrors."{name}.io"]\nendpoint = ["https://me:secret@{name}.io"]\n'
    path = tmp_path / "config.toml"
    path.write_text(text + "[x.registry]\nconfig_path = '/c'\n")
    (record,) = cri.configuration_files(str(path))
    mirrors, rest = record["lines"][:-1], record["lines"][-1]
    assert [line["table"] for line in mirrors] == [
        f"x.registry.mirrors.{name}.io" for name in "abc"
    ]
    assert not any("secret" in line["value"] for line in mirrors)
    assert rest["key"] == "config_path"
