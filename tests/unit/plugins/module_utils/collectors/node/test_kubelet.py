# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet: unit, argv, static pod path and configuration from captures and small trees."""

import json
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import kubelet
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    systemd,
    yaml_scalars,
)

FIXTURES = Path(__file__).resolve().parents[5] / "fixtures"


def test_unit_of_a_real_node(capture):
    blocks = systemd.parse(capture("systemctl-show.txt"))
    found, missing = [systemd.unit(block) for block in blocks]
    assert missing is None
    assert found["name"] == "kubelet.service"
    assert found["active_state"] == "active"
    assert found["unit_file_state"] == "enabled"
    assert found["need_daemon_reload"] is False
    assert found["main_pid"] > 1
    assert found["drop_in_paths"] == ["/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"]


def test_command_line_of_a_stopped_kubelet(capture):
    """Systemd's own view of the unit, with the environment files of the node."""
    block = systemd.parse(capture("systemctl-show.txt"))[0]
    files = {
        "/var/lib/kubelet/kubeadm-flags.env": capture("kubeadm-flags.env"),
        "/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--v=4 --x='a b'\n",
    }
    argv = systemd.command_line(block, files.get)
    assert argv[:4] == [
        "/usr/bin/kubelet",
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--config=/var/lib/kubelet/config.yaml",
    ]
    assert argv[-2:] == ["--v=4", "--x=a b"]
    assert not any("$" in item for item in argv)


def test_command_line_of_kubesprays_stopped_kubelet_is_that_of_the_running_one():
    """Captured from a node of that layout.

    A line that goes on inside quotes, variables that nothing sets.
    """
    capture = FIXTURES / "node" / "v1.36.3" / "kubespray"
    block = systemd.parse((capture / "systemctl-show.txt").read_text(encoding="utf-8"))[0]
    variables = {
        "/etc/kubernetes/kubelet.env": (capture / "kubelet.env").read_text(encoding="utf-8")
    }
    recorded = (
        FIXTURES / "recorded" / "v1.36.3-kubespray-scheduler-config-file" / "evidence" / "m3.json"
    ).read_text(encoding="utf-8")
    running = json.loads(recorded)["collectors"]["kubelet"]["data"]
    assert systemd.command_line(block, variables.get) == running["process"]["argv"]
    assert (running["unit"]["fragment_path"], running["unit"]["drop_in_paths"]) == (
        "/etc/systemd/system/kubelet.service",
        [],
    )
    assert (running["config"]["path"], running["static_pod_path"]) == (
        "/etc/kubernetes/kubelet-config.yaml",
        "/etc/kubernetes/manifests",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1\nB='x y'\n# C=1\n;D=1\nE=\"q\"\n", {"A": "1", "B": "x y", "E": "q"}),
        ("A=1 \\\n2\n", {"A": "1 2"}),
        ("broken\n=x\n", {}),
        ("A=--x='a b' --y=\"c\"\n", {"A": "--x='a b' --y=\"c\""}),
    ],
)
def test_environment_file(text, expected):
    assert systemd.environment_file(text) == expected


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


def test_braces_are_one_word_and_dollars_are_kept():
    block = {
        "ExecStart": ["{ path=/k ; argv[]=/k ${A} $A x$$y ${NO} ; ignore_errors=no }"],
        "Environment": ['"A=b c"'],
    }
    assert systemd.command_line(block, lambda path: None) == ["/k", "b c", "b", "c", "x$y", ""]
    assert systemd.command_line({}, None) == []


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        # 219: RHEL 7
        (
            "A=1 B=--x=y\\x20--z='a\\x20b' C=caf\\xc3\\xa9\\x5cn",
            {"A": "1", "B": "--x=y --z='a b'", "C": "caf\u00e9\\n"},
        ),
        # 252
        ('"B=--x=y --z=\\"a b\\"" A=1', {"B": '--x=y --z="a b"', "A": "1"}),
        ('A=1 "B=b c"', {"A": "1", "B": "b c"}),
        # 239: RHEL 8
        ("[unprintable] A=1", {"A": "1", "B": "b c", "C": "3 4", "D": ""}),
        ("", {}),
    ],
)
def test_variables_as_systemd_shows_them(shown, expected):
    """What has a blank in it is escaped by an old systemd.

    Kept to itself by a later one (then its files say it), and quoted since.
    """
    texts = {
        "/u": (
            '[Unit]\nEnvironment=X=1\n[Service]\nEnvironment=Y=1\nEnvironment=\nEnvironment="B=b c"'
            " A=2\n#Environment=Z=1\n"
        ),
        "/d": (
            "[Service]\nEnvironment=A=1 \\\n 'C=3 4'\nEnvironment"
            " =D=\nEnvironmentFile=/e\n[Install]\nEnvironment=X=2\n"
        ),
    }
    assert (
        systemd.environment(
            {"Environment": [shown], "FragmentPath": ["/u"], "DropInPaths": ["/d /gone"]}, texts.get
        )
        == expected
    )


def test_an_old_systemd_ends_no_unit_after_its_files():
    """220 to 230 say an empty line after them, 219 does not.

    None of both calls them by the property's own name.
    """
    for text in (
        (
            "EnvironmentFile=/a (ignore_errors=yes)\nEnvironmentFile=/b"
            " (ignore_errors=no)\n\nId=x\n\nMainPID=5\nId=y\\x5cx2dz\n"
        ),
        (
            "EnvironmentFile=/a (ignore_errors=yes)\nEnvironmentFile=/b"
            " (ignore_errors=no)\nId=x\n\n\nMainPID=5\nId=y\\x2dz\n"
        ),
    ):
        first, second = systemd.parse(text)
        assert first["Id"] == ["x"]
        assert systemd.environment_paths(first) == ["/a", "/b"]
        assert second == {"MainPID": ["5"], "Id": ["y\\x2dz"]}
    assert len(systemd.parse("EnvironmentFile=/a\n\n\nId=y\n")) == 2


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


def test_static_pod_path_of_a_real_node(capture):
    assert (
        yaml_scalars.top(capture("kubelet-config.yaml"), "staticPodPath")
        == "/etc/kubernetes/manifests"
    )


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        (
            "users:\n- name: a\n  user:\n    client-certificate: /a.pem\n",
            "client-certificate",
            "/a.pem",
        ),
        ("user:\n    client-certificate-data: QUJD\n", "client-certificate", None),
        ('{"user":{"client-certificate":"/a b.pem"}}', "client-certificate", "/a b.pem"),
        ("users: [{user: {client-certificate: /a.pem, x: y}}]", "client-certificate", "/a.pem"),
        ("- client-certificate: '/q'\n", "client-certificate", "/q"),
        ("certificate-authority: ca.crt\n", "certificate-authority", "ca.crt"),
        ("", "x", None),
    ],
)
def test_scalar_anywhere(text, key, expected):
    assert yaml_scalars.anywhere(text, key) == expected


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
