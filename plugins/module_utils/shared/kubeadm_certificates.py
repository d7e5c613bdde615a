# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificates that kubeadm renews by their names, their files, and who loads them."""

KUBERNETES = "/etc/kubernetes"
FOLDERS = (KUBERNETES + "/pki", KUBERNETES + "/ssl")
API, MANAGER, SCHEDULER = "kube-apiserver", "kube-controller-manager", "kube-scheduler"
ETCD = "etcd"
# Who is restarted, in this order. etcd is not: it reads its files again at each handshake.
LOADERS = (API, MANAGER, SCHEDULER)
FIRST_MINOR, PLAIN_MINOR = 15, 20  # of kubeadm: the first that renews one; up to 1.19 with `alpha`


class KubeadmCertificate:
    """One certificate of kubeadm.

    file: its path below the folder of certificates, without an ending; None of a kubeconfig.
    authority: the path of its authority there, without an ending.
    loader: the component that uses it.
    """

    __slots__ = ("authority", "file", "loader", "name")

    def __init__(self, name, file, authority, loader):
        self.name = name
        self.file = file
        self.authority = authority
        self.loader = loader

    def paths(self, folder):
        """Return its files in the order in which they are written: the key comes first."""
        if self.file is None:
            return [f"{KUBERNETES}/{self.name}"]
        return [f"{folder}/{self.file}.key", f"{folder}/{self.file}.crt"]

    def authority_paths(self, folder):
        """Return the certificate and the key of its authority."""
        return [f"{folder}/{self.authority}.crt", f"{folder}/{self.authority}.key"]


_ROWS = (
    KubeadmCertificate("etcd-server", "etcd/server", "etcd/ca", ETCD),
    KubeadmCertificate("etcd-peer", "etcd/peer", "etcd/ca", ETCD),
    KubeadmCertificate("etcd-healthcheck-client", "etcd/healthcheck-client", "etcd/ca", None),
    KubeadmCertificate("apiserver", "apiserver", "ca", API),
    KubeadmCertificate("apiserver-kubelet-client", "apiserver-kubelet-client", "ca", API),
    KubeadmCertificate("apiserver-etcd-client", "apiserver-etcd-client", "etcd/ca", API),
    KubeadmCertificate("front-proxy-client", "front-proxy-client", "front-proxy-ca", API),
    KubeadmCertificate("admin.conf", None, "ca", None),
    KubeadmCertificate("super-admin.conf", None, "ca", None),
    KubeadmCertificate("controller-manager.conf", None, "ca", MANAGER),
    KubeadmCertificate("scheduler.conf", None, "ca", SCHEDULER),
)
CERTIFICATES = {row.name: row for row in _ROWS}
ORDER = tuple(CERTIFICATES)


def all_paths(folder):
    """Return the files of all certificates, which a restart is meant to load."""
    return [path for row in _ROWS for path in row.paths(folder)]


def loaders(names):
    """Return the components that are restarted to load these certificates, in their order."""
    users = {CERTIFICATES[name].loader for name in names}
    return [component for component in LOADERS if component in users]
