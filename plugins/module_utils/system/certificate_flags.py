# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which flags of a component name certificates, authorities and keys, and the files by default.

The flags of a process come first, then those of its manifest, then the folders of the installers.
"""

CERTIFICATE, AUTHORITY, KEY = "certificate", "authority", "key"
KINDS: "dict[str, dict[str, tuple[str, ...]]]" = {
    "kube-apiserver": {
        CERTIFICATE: (
            "tls-cert-file",
            "kubelet-client-certificate",
            "etcd-certfile",
            "proxy-client-cert-file",
        ),
        AUTHORITY: (
            "client-ca-file",
            "etcd-cafile",
            "requestheader-client-ca-file",
            "kubelet-certificate-authority",
        ),
        KEY: (
            "tls-private-key-file",
            "kubelet-client-key",
            "etcd-keyfile",
            "proxy-client-key-file",
            "service-account-key-file",
            "service-account-signing-key-file",
        ),
    },
    "kube-controller-manager": {
        CERTIFICATE: ("tls-cert-file",),
        AUTHORITY: (
            "root-ca-file",
            "client-ca-file",
            "cluster-signing-cert-file",
            "requestheader-client-ca-file",
        ),
        KEY: (
            "tls-private-key-file",
            "service-account-private-key-file",
            "cluster-signing-key-file",
        ),
    },
    "kube-scheduler": {
        CERTIFICATE: ("tls-cert-file",),
        AUTHORITY: ("client-ca-file",),
        KEY: ("tls-private-key-file",),
    },
    "etcd": {
        CERTIFICATE: ("cert-file", "peer-cert-file"),
        AUTHORITY: ("trusted-ca-file", "peer-trusted-ca-file"),
        KEY: ("key-file", "peer-key-file"),
    },
    "kubelet": {
        CERTIFICATE: ("tls-cert-file",),
        AUTHORITY: ("client-ca-file",),
        KEY: ("tls-private-key-file",),
    },
}
API = "kube-apiserver"
# of kubeadm, which kubespray uses too: (component, flag, file)
USUAL = (
    (API, "tls-cert-file", "apiserver.crt"),
    (API, "tls-private-key-file", "apiserver.key"),
    (API, "kubelet-client-certificate", "apiserver-kubelet-client.crt"),
    (API, "kubelet-client-key", "apiserver-kubelet-client.key"),
    (API, "etcd-certfile", "apiserver-etcd-client.crt"),
    (API, "etcd-keyfile", "apiserver-etcd-client.key"),
    (API, "etcd-cafile", "etcd/ca.crt"),
    (API, "proxy-client-cert-file", "front-proxy-client.crt"),
    (API, "proxy-client-key-file", "front-proxy-client.key"),
    (API, "requestheader-client-ca-file", "front-proxy-ca.crt"),
    (API, "client-ca-file", "ca.crt"),
    (API, "service-account-key-file", "sa.pub"),
    ("etcd", "cert-file", "etcd/server.crt"),
    ("etcd", "key-file", "etcd/server.key"),
    ("etcd", "trusted-ca-file", "etcd/ca.crt"),
    ("etcd", "peer-cert-file", "etcd/peer.crt"),
    ("etcd", "peer-key-file", "etcd/peer.key"),
    ("etcd", "peer-trusted-ca-file", "etcd/ca.crt"),
)
USUAL_FOLDERS = ("/etc/kubernetes/pki", "/etc/kubernetes/ssl")
# kubeadm's probe of etcd had it, and kubeadm renews it still
PROBE = ("etcd", "healthcheck-client", "etcd/healthcheck-client.crt")
# of k3s and RKE2, below their folder
RANCHER_SERVER = (
    (API, "tls-cert-file", "server/tls/serving-kube-apiserver.crt"),
    (API, "kubelet-client-certificate", "server/tls/client-kube-apiserver.crt"),
    (API, "kubelet-certificate-authority", "server/tls/server-ca.crt"),
    (API, "proxy-client-cert-file", "server/tls/client-auth-proxy.crt"),
    (API, "requestheader-client-ca-file", "server/tls/request-header-ca.crt"),
    (API, "client-ca-file", "server/tls/client-ca.crt"),
    (API, "etcd-certfile", "server/tls/etcd/client.crt"),
    (API, "etcd-cafile", "server/tls/etcd/server-ca.crt"),
    (API, "service-account-key-file", "server/tls/service.key"),
    ("etcd", "cert-file", "server/tls/etcd/server-client.crt"),
    ("etcd", "trusted-ca-file", "server/tls/etcd/server-ca.crt"),
    ("etcd", "peer-cert-file", "server/tls/etcd/peer-server-client.crt"),
    ("etcd", "peer-trusted-ca-file", "server/tls/etcd/peer-ca.crt"),
    ("kube-controller-manager", "client-certificate", "server/tls/client-controller.crt"),
    ("kube-scheduler", "client-certificate", "server/tls/client-scheduler.crt"),
)
RANCHER_AGENT = (
    ("kubelet", "tls-cert-file", "agent/serving-kubelet.crt"),
    ("kubelet", "tls-private-key-file", "agent/serving-kubelet.key"),
    ("kubelet", "client-ca-file", "agent/client-ca.crt"),
    ("kubelet", "server-ca", "agent/server-ca.crt"),
)
RANCHER_FOLDERS = {"k3s": "/var/lib/rancher/k3s", "rke2": "/var/lib/rancher/rke2"}
KUBECONFIGS = (
    ("kube-controller-manager", "/etc/kubernetes/controller-manager.conf"),
    ("kube-scheduler", "/etc/kubernetes/scheduler.conf"),
    ("", "/etc/kubernetes/admin.conf"),
    ("", "/etc/kubernetes/super-admin.conf"),
    ("", "/etc/rancher/k3s/k3s.yaml"),
    ("", "/etc/rancher/rke2/rke2.yaml"),
    ("", "/root/.kube/config"),
)


def values(argv, name):
    """Return every value of a flag, which some flags may have several times."""
    given_values = []
    for index, word in enumerate(argv):
        key, equal, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or key.replace("_", "-") != name:
            continue
        if not equal and index + 1 < len(argv):
            value = argv[index + 1]
        given_values.append(value)
    return [value for value in given_values if value]


def argv_of_manifest(text):
    """Return (component, argv) of a static pod's manifest in block style; (None, []) of others."""
    words = [line.strip()[2:].strip() for line in text.splitlines() if line.strip()[:2] == "- "]
    words = [word.strip("\"'") for word in words]
    for index, word in enumerate(words):
        component = word.rpartition("/")[2]
        if component in KINDS:
            return component, words[index + 1 :]
    return None, []


def kind_of(component, flag):
    """Return what the file of a flag is."""
    for kind, flags in KINDS.get(component, {}).items():
        if flag in flags:
            return kind
    if flag.endswith("-ca"):
        return AUTHORITY
    return CERTIFICATE
