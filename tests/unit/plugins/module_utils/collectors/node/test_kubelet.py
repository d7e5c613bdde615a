# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet: unit, argv, static pod path and configuration from captures and small trees."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import kubelet
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command


def test_values_of_variables_that_are_no_words_of_the_kubelets_stay_on_the_node(tmp_path):
    path = tmp_path / "kubelet.env"
    text = (
        '# a comment\nKUBELET_ARGS="--node-ip=10.0.0.1"\nDB = hunter2 \nFOO="x \\\n  and more"'
        " \nEMPTY=\nMY_TOKEN=hunter3\nLEVEL=--v=2\n"
    )
    path.write_text(text, encoding="utf-8")
    start = (
        "{ path=/usr/bin/kubelet ; argv[]=/usr/bin/kubelet $KUBELET_ARGS ${LEVEL} ;"
        " ignore_errors=no }"
    )
    record = kubelet._start(
        {"ExecStart": [start], "EnvironmentFiles": [f"{path} (ignore_errors=no)"]}
    )["environment_files"][0]
    assert record["text"].split("\n") == [
        "# a comment",
        'KUBELET_ARGS="--node-ip=10.0.0.1"',
        "DB = ******* ",
        "FOO=***" + chr(92),
        "  ********* ",
        "EMPTY=",
        "MY_TOKEN=*******",
        "LEVEL=--v=2",
        "",
    ]
    assert record["size"] == len(text)
    assert record["masked"] == sorted(record["masked"])
    assert [set(record["text"][start:end]) for start, end in record["masked"]] == [{"*"}] * 4
    assert (
        kubelet._start({"EnvironmentFiles": ["/does/not/exist"]})["environment_files"][0]["error"]
        == "missing"
    )


def test_the_folder_of_cni_configuration(tmp_path):
    folder = tmp_path / "net.d"
    assert kubelet.networks(str(folder)) == {"folder": str(folder), "files": [], "error": "missing"}
    folder.mkdir()
    assert kubelet.networks(str(folder)) == {"folder": str(folder), "files": [], "error": None}
    (folder / "10-calico.conflist").write_text("{}")
    (folder / "00-empty.conf").write_text("")
    (folder / "calico-kubeconfig").write_text("secret")
    (folder / "99-gone.json").symlink_to("/nowhere")
    found = kubelet.networks(str(folder))
    assert [(one["name"], one["size"]) for one in found["files"]] == [
        ("00-empty.conf", 0),
        ("10-calico.conflist", 2),
        ("99-gone.json", None),
    ]
    for number in range(60):
        (folder / (f"{number}.conf")).write_text("x")
    assert len(kubelet.networks(str(folder))["files"]) == kubelet.MAX_NETWORKS


CONFIG = "staticPodPath: /etc/kubernetes/manifests\n"


@pytest.mark.parametrize(
    ("flag", "texts", "expected"),
    [
        ("/flag", [CONFIG], ("/flag", "argv")),
        ("rel", [CONFIG], ("/cwd/rel", "argv")),
        (None, [CONFIG], ("/etc/kubernetes/manifests", "config")),
        (None, [CONFIG, "staticPodPath: /dropin\n"], ("/dropin", "config")),
        (None, ['"staticPodPath": "m"\n'], ("/conf/m", "config")),
        (None, ["'staticPodPath' : /q # why\n"], ("/q", "config")),
        (None, ['{"kind": "K", "staticPodPath": "/j"}'], ("/j", "config")),
        (None, ['staticPodPath: ""\n'], (None, None)),
        (None, ["nested:\n  staticPodPath: /no\n"], (None, None)),
        (None, [""], (None, None)),
        (None, ["{broken"], (None, None)),
    ],
)
def test_static_pod_path(flag, texts, expected):
    assert kubelet.static_pods(flag, "/cwd", "/conf/config.yaml", texts) == expected


def test_dropins_in_the_kubelets_order(tmp_path):
    for name in ("20.conf", "10.conf", "15.yaml", "sub/05.conf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert kubelet.dropin_paths(str(tmp_path)) == [
        str(tmp_path / name) for name in ("10.conf", "20.conf", "sub/05.conf")
    ]


def test_configuration_from_argv(tmp_path, monkeypatch):
    monkeypatch.setattr(kubelet, "_healthz", lambda argv, texts: None)
    (tmp_path / "config.yaml").write_text("staticPodPath: manifests\n")
    (tmp_path / "kubelet.conf").write_text(
        "users:\n- user:\n    client-certificate: c.pem\nclusters:\n- cluster:"
        " {certificate-authority: ca.crt}\n"
    )
    key, certificate = (
        f"-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n"
        for kind, text in (("EC PRIVATE KEY", "SECRET"), ("CERTIFICATE", "QUJD"))
    )
    (tmp_path / "c.pem").write_text(key + certificate)
    found = kubelet._configuration(
        ["kubelet", "--config=config.yaml", "--kubeconfig", str(tmp_path / "kubelet.conf")],
        str(tmp_path),
    )
    assert found["static_pod_path"] == str(tmp_path / "manifests")
    assert found["client_certificate"]["pem"] == certificate
    assert found["ca"] == {"path": str(tmp_path / "ca.crt"), "pem": None, "error": "missing"}
    assert "SECRET" not in repr(found)


@pytest.mark.parametrize(
    ("said", "expected"), [("enabled\n", "enabled"), ("masked\n", "masked"), (None, "disabled")]
)
def test_whether_it_is_enabled_is_asked_of_its_files(tmp_path, monkeypatch, said, expected):
    """After an enable without a reload systemd 252 goes on showing the UnitFileState of before."""
    program = tmp_path / "systemctl"
    shown = "Id=kubelet.service\\nLoadState=loaded\\nActiveState=active\\nUnitFileState=disabled\\n"
    told = f"echo {said.strip()}" if said else "echo Failed >&2; exit 1"
    program.write_text(
        f"#!/bin/sh\ncase $1 in show) printf '{shown}';; *) {told};; esac\n", encoding="utf-8"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert kubelet.collect(base.Context({}, [], {}))["unit"]["unit_file_state"] == expected


@pytest.mark.parametrize(
    ("error", "deadline", "is_failed"),
    [
        (command.Late("systemctl did not end within 5 s"), 9e9, True),
        (command.Late("systemctl did not end within 5 s"), None, False),  # a step goes on
        (command.Silent("systemctl: System has not been booted with systemd"), 9e9, False),
        (None, 9e9, False),
    ],
)
def test_a_kubelet_whose_unit_is_not_told_in_time_is_no_kubelet_without_one(
    monkeypatch, error, deadline, is_failed
):
    process = {"pid": 1, "raw": ["/usr/bin/kubelet"]}
    monkeypatch.setattr(kubelet, "here", lambda _processes, _seconds: (dict(process), {}, error))
    try:
        data = kubelet.collect(base.Context({}, [], {}, deadline))
    except base.Failed as failure:
        assert is_failed
        data = failure.data
    else:
        assert not is_failed
    assert (data["process"], data["unit"]) == ({"pid": 1}, None)


@pytest.mark.parametrize(
    ("unit", "program"),
    [("k3s-agent.service", "k3s"), ("rke2-server.service", "rke2"), ("kubelet.service", None)],
)
def test_the_configuration_of_a_distribution_is_read(tmp_path, monkeypatch, unit, program):
    logged = (
        'time="2026-11-29T13:39:39Z" level=info msg="Running kubelet --a=1 --b-token=topsecret1"'
    )

    def run(argv, *_limits):
        assert argv[-2:] == ["-u", "k3s-agent.service"]
        return logged + "\n"

    monkeypatch.setattr(command, "run", run)
    path = tmp_path / "config.yaml"
    path.write_text("token: topsecret\nkubelet-arg:\n- max-pods=5\n", encoding="utf-8")
    start = f"{{ path=/k ; argv[]=/k server --config {path} ; ignore_errors=no }}"
    context = base.Context({}, [], {}, None)
    found, argv = kubelet._distribution({"name": unit}, {"ExecStart": [start]}, context)
    assert argv == (["kubelet", "--a=1", "--b-token=topsecret1"] if program == "k3s" else [])
    if program is None:
        assert found is None
        return
    assert "topsecret" not in str(found)
    assert found["program"] == program
    assert [row["value"] for row in found["files"][0]["settings"]] == [None, "max-pods=5"]


@pytest.mark.parametrize(
    ("inner", "used"), [(["kubelet", "--a"], ["kubelet", "--a"]), ([], ["k3s", "server"])]
)
def test_the_kubelet_within_k3s_has_a_command_line_of_its_own(monkeypatch, inner, used):
    asked = []

    def configuration(argv, _folder):
        asked.append(argv)
        return {}

    block = {"Id": ["k3s.service"], "LoadState": ["loaded"]}
    process = {"pid": 1, "raw": ["k3s", "server"]}
    monkeypatch.setattr(kubelet, "here", lambda *_arguments: (process, block, None))
    monkeypatch.setattr(kubelet, "_distribution", lambda *_arguments: (None, inner))
    monkeypatch.setattr(kubelet, "_configuration", configuration)
    data = kubelet.collect(base.Context({}, [], {}, None))
    assert (asked, data["argv"]) == ([used], ["k3s", "server"])
