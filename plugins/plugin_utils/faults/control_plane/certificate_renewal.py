# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the certificates of a host are renewed and loaded, by its installer and release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...models import installer
from ...models.certificates import (
    API,
    ETCD,
    KUBELET,
    MANAGER,
    SCHEDULER,
    HostCertificates,
    Used,
)
from ...models.cluster import Host
from ...models.control_plane import ControlPlane
from ...parsers import x509_certificate

# kubeadm's name of the certificate that a flag of a component names
NAMES = {
    (API, "tls-cert-file"): "apiserver",
    (API, "kubelet-client-certificate"): "apiserver-kubelet-client",
    (API, "etcd-certfile"): "apiserver-etcd-client",
    (API, "proxy-client-cert-file"): "front-proxy-client",
    (ETCD, "cert-file"): "etcd-server",
    (ETCD, "peer-cert-file"): "etcd-peer",
    (ETCD, "healthcheck-client"): "etcd-healthcheck-client",
}
KUBECONFIGS = ("admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf")
ORDER = (ETCD, API, MANAGER, SCHEDULER)
FOLDERS = ("/etc/kubernetes/pki/", "/etc/kubernetes/ssl/")
USUAL = FOLDERS[0]
SHORT = (1, 20)  # up to 1.19 the command is below `alpha`
BACKUP = "keep a copy of /etc/kubernetes first"
RANCHER = {"k3s": ("k3s", "k3s.service"), "RKE2": ("rke2", "rke2-server.service")}


def advice(
    host: Host, document: Mapping[str, Any], certificates: HostCertificates, uses: Iterable[Used]
) -> str:
    """Return how these certificates are renewed, and which components load them in which order."""
    expired = list(uses)
    owner = installer.owner_of(document)
    if owner in RANCHER:
        return _of_rancher(*RANCHER[owner])
    if owner:
        return f"{owner} renews them: see its own documentation for how to make it do so now"
    kubelets = [use for use in expired if use.component == KUBELET]
    rest = [use for use in expired if use.component != KUBELET]
    parts = [_of_kubeadm(host, certificates, rest)] if rest else []
    if kubelets:
        parts.append(_of_kubelet(kubelets))
    return "; ".join(parts)


def _of_rancher(program: str, unit: str) -> str:
    return (
        f"systemctl restart {unit}, one server after the other: {program} renews at its start what"
        f" ends within 90 days; where it does not, {program} certificate rotate while the unit is"
        " stopped. On agents restart their unit after the servers"
    )


def _of_kubeadm(host: Host, certificates: HostCertificates, uses: list[Used]) -> str:
    names = [name for name in map(name_of, uses) if name]
    if len(names) < len(uses):
        return (
            "have the authority that signed them sign new ones with the same names (openssl x509"
            " -noout -text -in FILE), put them in their places, and restart"
            f" {_in_order(uses)}, one after the other"
        )
    if not has_keys(certificates, uses):
        return (
            "the key of the authority that signed them is not on this host: kubemend and kubeadm"
            f" cannot renew them. Have that authority sign new ones for {', '.join(names)}, with"
            f" the same names (kubeadm certs generate-csr makes requests), and restart"
            f" {_in_order(uses)}, one after the other"
        )
    commands = "; ".join(f"{command(host, uses)} {name}" for name in dict.fromkeys(names))
    return f"{BACKUP}; {commands}; then {restart(uses)}"


def name_of(use: Used) -> str | None:
    """Return kubeadm's name of a certificate in the places where kubeadm has it."""
    name = use.place.rpartition("/")[2]
    if use.flag == "kubeconfig":
        return name if name in KUBECONFIGS else None
    if not use.place.startswith(FOLDERS):
        return None
    return NAMES.get((use.component, use.flag))


def has_keys(certificates: HostCertificates, uses: list[Used]) -> bool:
    """Tell whether the key of each authority is here, as far as its file is known."""
    for use in uses:
        signers = [
            authority
            for authority in certificates.authorities
            if x509_certificate.is_signed(use.chain, authority.chain)
        ]
        if signers and not any(authority.key_beside for authority in signers):
            return False
    return True


def command(host: Host, uses: Iterable[Used] = ()) -> str:
    """Return the command of kubeadm that renews a certificate, without its name."""
    version = release(host.control_plane)
    verb = "kubeadm certs renew"
    if version is not None and version < SHORT:
        verb = "kubeadm alpha certs renew"
    folders = {folder_of(use) for use in uses} - {"", USUAL}
    if folders:
        return f"{verb} --cert-dir {min(folders).rstrip('/')}"
    return verb


def folder_of(use: Used) -> str:
    """Return kubeadm's folder that a certificate is in, or ""."""
    return next((folder for folder in FOLDERS if use.place.startswith(folder)), "")


def release(plane: ControlPlane | None) -> tuple[int, int] | None:
    """Return the release of the components of a host, None where it is not known."""
    if plane is None:
        return None
    versions = [process.version for process in plane.processes if process.component != ETCD]
    versions += [use.version for use in plane.files if use.component != ETCD]
    return max((version for version in versions if version), default=None)


def _in_order(uses: Iterable[Used]) -> str:
    components = {use.component for use in uses}
    return ", ".join(component for component in ORDER if component in components) or "their users"


def restart(uses: Iterable[Used]) -> str:
    """Return how the components load what was renewed."""
    users = {use.component for use in uses}
    components = [component for component in ORDER if component in users]
    if not components:
        return "nothing has to be restarted; renew the copies that people have too"
    order = components[0]
    if len(components) > 1:
        order = f"{', '.join(components)}, one after the other in this order"
    return (
        f"restart {order}: move its manifest out of the folder of static pods for 20 s and back"
        " (systemctl restart where it is a unit), and wait until it is healthy. One control-plane"
        " node after the other"
    )


def _of_kubelet(uses: Iterable[Used]) -> str:
    paths = ", ".join(dict.fromkeys(use.place for use in uses))
    if paths.endswith("kubelet-server-current.pem"):
        return (
            "see whether the kubelet's request for another serving certificate waits (kubectl get"
            " csr), and approve it where it is of this machine (kubectl certificate approve NAME)"
        )
    if paths.endswith("kubelet.crt"):
        return (
            f"move {paths} and its key away, and restart the kubelet, which signs another one"
            " itself"
        )
    return f"renew {paths} where it was made, and restart the kubelet"
