# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of etcd: where kubeadm, kubespray and RKE2 give them, and what evidence may have."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    etcd_settings,
    files,
    procfs,
)

RKE2 = """advertise-client-urls: https://10.0.0.1:2379
client-transport-security:
  cert-file: /srv/client.crt
  client-cert-auth: true
  key-file: /srv/client.key
  trusted-ca-file: /srv/ca.crt
data-dir: /var/lib/rancher/rke2/server/db/etcd
listen-metrics-urls: http://127.0.0.1:2381
name: m1-0a1b2c3d
peer-transport-security:
  cert-file: /srv/peer.crt
  trusted-ca-file: /srv/peer-ca.crt
"""
ENVIRONMENT = "\0".join(
    (
        "ETCD_DATA_DIR=/var/lib/etcd",
        "ETCD_QUOTA_BACKEND_BYTES=1000",
        "ETCD_CERT_FILE=/etc/ssl/etcd/ssl/member-m1.pem",
        "ETCD_PEER_CERT_FILE=/etc/ssl/etcd/ssl/peer-m1.pem",
        "ETCDCTL_PASSWORD=hunter2",
        "ETCD_AUTH_TOKEN=secret",
        "HOME=/root",
    )
)


@pytest.fixture
def node(monkeypatch):
    """Give the texts that a process sees: its environment, and one file."""
    texts = {"environ": ENVIRONMENT, "file": RKE2}
    monkeypatch.setattr(
        procfs, "files_of_proc", lambda pid, name, proc="/proc": texts[name].encode()
    )
    monkeypatch.setattr(files, "read", lambda path, limit, root=None: texts["file"].encode())
    return texts


def completed(*argv):
    return etcd_settings.complete({"pid": 7, "argv": ["etcd", *argv]})


def test_an_environment_is_read_like_flags(node):
    process = completed("--name=m1")
    assert procfs.flag(process["argv"], "data-dir") == "/var/lib/etcd"
    assert etcd_settings.shown(process) == {
        "name": "m1",
        "data-dir": "/var/lib/etcd",
        "quota-backend-bytes": "1000",
        "cert-file": "/etc/ssl/etcd/ssl/member-m1.pem",
    }


@pytest.mark.parametrize(
    ("argv", "certificate", "authority"),
    [
        ([], "/etc/ssl/etcd/ssl/peer-m1.pem", None),
        (["--config-file=/etc/etcd/config"], "/srv/peer.crt", "/srv/peer-ca.crt"),
    ],
)
def test_the_certificates_for_peers(node, argv, certificate, authority):
    """They are no settings of the evidence: the collector of certificates reads them."""
    process = completed(*argv)
    assert procfs.flag(process["argv"], "peer-cert-file") == certificate
    assert procfs.flag(process["argv"], "peer-trusted-ca-file") == authority
    assert "peer-cert-file" not in etcd_settings.shown(process)


def test_a_flag_counts_before_its_variable(node):
    assert procfs.flag(completed("--data-dir=/srv")["argv"], "data-dir") == "/srv"


def test_no_other_variable_gets_into_the_evidence(node):
    assert "secret" not in str(completed()["argv"])
    assert "hunter2" not in str(completed()["argv"])


def test_a_configuration_file_replaces_the_environment(node):
    values = etcd_settings.shown(completed("--config-file=/etc/etcd/config"))
    assert values["data-dir"] == "/var/lib/rancher/rke2/server/db/etcd"
    assert values["cert-file"] == "/srv/client.crt"
    assert values["trusted-ca-file"] == "/srv/ca.crt"
    assert "quota-backend-bytes" not in values


def test_the_section_of_peers_is_not_that_of_clients():
    text = (
        RKE2.partition("client-transport-security")[0]
        + "peer-transport-security:\n  cert-file: /p\n"
    )
    assert "cert-file" not in etcd_settings.of_file(text)


def test_what_cannot_be_read_sets_nothing(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(13, "denied")

    monkeypatch.setattr(procfs, "files_of_proc", refuse)
    monkeypatch.setattr(files, "read", refuse)
    assert completed("--name=m1")["argv"] == ["etcd", "--name=m1"]
    assert completed("--config-file=/x")["argv"] == ["etcd", "--config-file=/x"]
