# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration files of k3s and RKE2: which keys, and which values leave a node."""

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    procfs,
    rancher,
)

CONFIG = """\
# written by hand
token: K10c0ffee::server:topsecret1
agent-token: |-
  topsecret2
  - topsecret3
datastore-endpoint: "mysql://k3s:topsecret4@tcp(192.0.2.1:3306)/k3s"
etcd-s3-secret-key: topsecret5
vpn-auth: name=tailscale,joinKey=topsecret6
secrets-encryption: true
cluster-cidr: 10.42.0.0/16  # of all servers
"disable":
  - traefik
  - servicelb
tls-san: [192.0.2.10, "api.example.org"]
kube-apiserver-arg:
- "feature-gates=A=true,B=false"
- --oidc-client-token=topsecret7
kubelet-arg+:
  - "max-pods=250"
node-label: {a: b}
nothing
"""


def files_of(tmp_path, **texts):
    for name, text in texts.items():
        path = tmp_path / name.replace("__", ".d/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    argv = ["/usr/local/bin/k3s", "server", "--config", str(tmp_path / "config.yaml")]
    return rancher.configuration("k3s", argv)


def test_keys_have_their_lines_and_values(tmp_path):
    (record,) = files_of(tmp_path, config_yaml=CONFIG)
    found = [(row["line"], row["key"], row["value"]) for row in record["settings"]]
    assert (9, "secrets-encryption", "true") in found
    assert (10, "cluster-cidr", "10.42.0.0/16") in found
    assert [row for row in found if row[1] == "disable"] == [
        (12, "disable", "traefik"),
        (13, "disable", "servicelb"),
    ]
    assert (14, "tls-san", "api.example.org") in found
    assert (16, "kube-apiserver-arg", "feature-gates=A=true,B=false") in found
    assert (19, "kubelet-arg", "max-pods=250") in found


def test_no_secret_leaves_the_node(tmp_path):
    records = files_of(tmp_path, config_yaml=CONFIG)
    assert {"token", "datastore-endpoint", "vpn-auth"} <= {
        row["key"] for row in records[0]["settings"]
    }
    assert "topsecret" not in json.dumps(records)


@pytest.mark.parametrize(
    "text",
    [
        "token:\n  topsecret\n",
        "token: >\n  topsecret: a\n  - topsecret\n",
        "K10c0ffee::server:topsecret\n",
        "topsecret: x\n".upper(),
        '{"token": "topsecret"}',
        "  token: topsecret\n",
        "token: topsecret\n  and: topsecret\n",
        "a\0token: topsecret",
        "- topsecret\n",
    ],
)
def test_no_form_of_a_file_gives_a_secret_away(tmp_path, text):
    records = files_of(tmp_path, config_yaml=text)
    assert "topsecret" not in json.dumps(records).lower()


def test_later_files_follow_in_their_order(tmp_path):
    records = files_of(
        tmp_path,
        config_yaml="cni: canal\n",
        config_yaml__20_yaml="cni: cilium\n",
        config_yaml__10_yml="profile: cis\n",
        config_yaml__30_txt="cni: none\n",
    )
    names = [record["path"].rpartition("/")[2] for record in records]
    assert names == ["config.yaml", "10.yml", "20.yaml"]


def test_a_folder_alone_is_read(tmp_path):
    (record,) = files_of(tmp_path, config_yaml__a_yaml="cni: canal\n")
    assert record["error"] is None


def test_what_is_no_yaml_in_blocks_is_said(tmp_path):
    (record,) = files_of(tmp_path, config_yaml='{"cni": "canal"}')
    assert record["settings"] == []
    assert record["error"]


def test_nothing_is_read_where_nothing_is(tmp_path):
    assert files_of(tmp_path) == []


def test_bounds(tmp_path):
    text = "".join(f"node-label-{number}: true\n" for number in range(1000))
    (record,) = files_of(tmp_path, config_yaml=text)
    assert len(record["settings"]) == rancher.MAX_SETTINGS


@pytest.mark.parametrize(
    ("unit", "program"),
    [
        ("k3s.service", "k3s"),
        ("k3s-agent.service", "k3s"),
        ("rke2-server.service", "rke2"),
        ("rke2-agent.service", "rke2"),
        ("kubelet.service", None),
        ("rke2-other.service", None),
    ],
)
def test_whose_unit_it_is(unit, program):
    assert rancher.program(unit) == program


@pytest.mark.parametrize(
    ("program", "text", "path"),
    [
        ("rke2", "cni: canal\n", "/var/lib/rancher/rke2/agent/logs/kubelet.log"),
        ("rke2", "data-dir: /data/rke2\n", "/data/rke2/agent/logs/kubelet.log"),
        ("k3s", "data-dir: /data/k3s\n", None),
        (None, "", None),
    ],
)
def test_where_the_kubelet_of_rke2_writes(tmp_path, program, text, path):
    assert rancher.log_of_kubelet(program, files_of(tmp_path, config_yaml=text)) == path


@pytest.mark.parametrize(
    ("started", "answer", "argv"),
    [
        (1000.5, 'level=info msg="Running kubelet --a --b=c"\n', ["kubelet", "--a", "--b=c"]),
        (None, "x Running kubelet --a\n", []),
        (None, command.Silent("compiled without pattern matching support"), []),
    ],
)
def test_the_command_line_that_k3s_logs_for_its_kubelet(monkeypatch, started, answer, argv):
    asked = []

    def run(words, *_limits):
        asked.extend(words)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(procfs, "started_at", lambda _pid: started)
    assert rancher.kubelet_argv({"name": "k3s.service", "main_pid": 7}, 2) == argv
    # A journal of months is not read up to its beginning.
    assert ("--since=@1000" in asked and "--until=@4600" in asked) is (started is not None)


@pytest.mark.parametrize(("unit", "pid"), [({"main_pid": 7}, 7), ({"main_pid": None}, 0), ({}, 0)])
def test_the_process_of_the_unit_tells_when_it_was_started(monkeypatch, unit, pid):
    asked = []
    monkeypatch.setattr(command, "run", lambda *_arguments: "")
    monkeypatch.setattr(procfs, "started_at", asked.append)
    assert rancher.kubelet_argv({"name": "k3s.service", **unit}, 2) == []
    assert asked == [pid]


def test_only_the_address_of_a_server_leaves_the_node():
    assert set(rancher.PLAIN_VARIABLES) == {"K3S_URL", "RKE2_URL"}


@pytest.mark.parametrize(
    ("name", "text", "expressions", "nvidia"),
    [
        ("config.toml.tmpl", '{{ template "base" . }}\n', True, False),
        ("config-v3.toml.tmpl", 'BinaryName = "/x/nvidia-container-runtime"\n', False, True),
        ("config.toml.tmpl", 'version = 2\npassword = "topsecret"\n', False, False),
    ],
)
def test_the_templates_of_containerd_s_configuration(tmp_path, name, text, expressions, nvidia):
    folder = tmp_path / "agent" / "etc" / "containerd"
    folder.mkdir(parents=True)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / "config.toml").write_text("version = 2\n", encoding="utf-8")
    records = [{"settings": [{"line": 1, "key": "data-dir", "value": str(tmp_path)}]}]
    (found,) = rancher.templates("rke2", records)
    path = str(folder / name)
    assert found == {"path": path, "expressions": expressions, "nvidia": nvidia}
    assert rancher.templates("rke2", [{"settings": []}]) == []
