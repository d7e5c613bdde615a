# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands by which a person looks after etcd, as its installer needs them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...evidence.answers.node.etcd import LocalMember
from ...evidence.document import one_line, shell_name
from ...models.cluster import Cluster, Host

STATIC, UNIT, KUBESPRAY, RKE2, K3S = "static pod", "unit", "kubespray", "RKE2", "k3s"
_RKE2, _K3S = "/var/lib/rancher/rke2", "/var/lib/rancher/k3s/server"
_ENVIRONMENT = "/etc/etcd.env"
_KUBEADM = "/etc/kubernetes/pki/etcd"
_CRICTL = (
    "E=\"crictl exec $(crictl ps -q --name '^etcd$') etcdctl --endpoints=https://127.0.0.1:2379"
)
_NUMBER = "grep -o '\"revision\":[0-9]*' | head -1 | cut -d: -f2"
# Where the user of an installer that runs etcd itself sets its quota.
QUOTA_PLACES = {
    RKE2: "etcd-arg: quota-backend-bytes=... of /etc/rancher/rke2/config.yaml",
    K3S: "etcd-arg: quota-backend-bytes=... of /etc/rancher/k3s/config.yaml",
}


@dataclass(frozen=True)
class Tool:
    """How etcdctl is called on a host.

    setup: a shell line that sets E, to be run there as root. layout: how etcd is installed.
    """

    host: str
    layout: str
    setup: str
    folder: str = "/var/lib/etcd"

    @property
    def begin(self) -> str:
        """Return the words that open an advice with commands."""
        return f"on {self.host}: {self.setup}"

    @property
    def stop(self) -> str:
        """Return the command that stops etcd on a host."""
        return {
            STATIC: "mv /etc/kubernetes/manifests/etcd.yaml /root/",
            RKE2: "systemctl stop rke2-server; rke2-killall.sh",
            K3S: "systemctl stop k3s",
        }.get(self.layout, "systemctl stop etcd")

    @property
    def start(self) -> str:
        """Return the command that starts etcd on a host again."""
        return {
            STATIC: "mv /root/etcd.yaml /etc/kubernetes/manifests/",
            RKE2: "systemctl start rke2-server",
            K3S: "systemctl start k3s",
        }.get(self.layout, "systemctl start etcd")


def tool(cluster: Cluster, preferred: Iterable[Host] = ()) -> Tool:
    """Return how etcdctl is called on the first host that shows it, preferred ones before."""
    hosts = [host for host in (*preferred, *cluster.hosts) if host.etcd_said.local is not None]
    if hosts:
        return _of_host(hosts[0])
    named = next(iter([*preferred, *cluster.members]), None)
    if named is None:
        return _usual("a host of etcd", None)
    return _usual(named.host, named)


def tool_of(host: Host) -> Tool:
    """Return how etcdctl is called on this host."""
    if host.etcd_said.local is not None:
        return _of_host(host)
    return _usual(host.host, host)


def _of_host(host: Host) -> Tool:
    local = host.etcd_said.local or LocalMember()
    settings = local.settings
    folder = _path(settings.get("data-dir") or "/var/lib/etcd", "DATA_DIR")
    layout = _layout(host, local)
    if layout == RKE2:
        return Tool(host.host, layout, _of_rke2(), folder)
    if layout == K3S:
        return Tool(host.host, layout, _of_k3s(), folder)
    if layout == KUBESPRAY:
        return Tool(host.host, layout, _of_kubespray(), folder)
    keys = " ".join(
        f"--{name}={_path(settings.get(flag) or default, name.upper())}"
        for name, flag, default in (
            ("cacert", "trusted-ca-file", f"{_KUBEADM}/ca.crt"),
            ("cert", "cert-file", f"{_KUBEADM}/server.crt"),
            ("key", "key-file", f"{_KUBEADM}/server.key"),
        )
    )
    if layout == STATIC:
        return Tool(host.host, layout, f'{_CRICTL} {keys}"', folder)
    endpoint = "--endpoints=https://127.0.0.1:2379"
    return Tool(host.host, layout, f'E="etcdctl {endpoint} {keys}"', folder)


def _path(path: str, instead: str) -> str:
    """Return a path that an operator may copy into a shell, or the other word."""
    if path.startswith("/") and shell_name(path.replace("/", "_"), ""):
        return path
    return instead


def _layout(host: Host, local: LocalMember) -> str:
    """Return how the etcd of a host is installed."""
    if local.embedded:
        return K3S
    if (local.settings.get("config-file") or "").startswith(_RKE2):
        return RKE2
    if local.static:
        return STATIC
    if _ENVIRONMENT in (host.traces or ()):
        return KUBESPRAY
    return UNIT


def _usual(name: str, host: Host | None) -> Tool:
    """Return how etcdctl is called where nothing was read of an etcd that runs."""
    paths = host.installer if host is not None else ()
    unit = _unit_of(host)
    if host is not None and _ENVIRONMENT in (host.traces or ()):
        return Tool(name, KUBESPRAY, _of_kubespray())
    if unit not in ("", "k3s.service", "rke2-server.service"):
        keys = "--cacert=CA --cert=CERTIFICATE --key=KEY"
        setup = f'E="etcdctl --endpoints=https://127.0.0.1:2379 {keys}" (see {unit})'
        return Tool(name, UNIT, setup)
    if any(path.startswith(("/var/lib/rancher/rke2", "/etc/rancher/rke2")) for path in paths):
        return Tool(name, RKE2, _of_rke2(), f"{_RKE2}/server/db/etcd")
    if any(path.startswith(("/var/lib/rancher/k3s", "/etc/rancher/k3s")) for path in paths):
        return Tool(name, K3S, _of_k3s(), f"{_K3S}/db/etcd")
    keys = f"--cacert={_KUBEADM}/ca.crt --cert={_KUBEADM}/server.crt --key={_KUBEADM}/server.key"
    return Tool(name, STATIC, f'{_CRICTL} {keys}"')


def _unit_of(host: Host | None) -> str:
    """Return the unit whose journal tells of damaged data, "" where none does."""
    if host is None or host.etcd_damage is None:
        return ""
    source = host.etcd_damage.source
    return shell_name(source, "etcd.service") if source.endswith(".service") else ""


def _of_kubespray() -> str:
    return f"set -a; . {_ENVIRONMENT}; set +a; E=etcdctl"


def _of_rke2() -> str:
    keys = f"{_RKE2}/server/tls/etcd"
    return (
        f"export CRI_CONFIG_FILE={_RKE2}/agent/etc/crictl.yaml PATH=$PATH:{_RKE2}/bin; {_CRICTL}"
        f" --cacert={keys}/server-ca.crt --cert={keys}/server-client.crt"
        f' --key={keys}/server-client.key"'
    )


def _of_k3s() -> str:
    keys = f"{_K3S}/tls/etcd"
    return (
        "install etcdctl of etcd's release (k3s brings none); E=\"etcdctl"
        f" --endpoints=https://127.0.0.1:2379 --cacert={keys}/server-ca.crt"
        f' --cert={keys}/client.crt --key={keys}/client.key"'
    )


def snapshot(at: Tool) -> str:
    """Return the command that saves a snapshot beside etcd's data."""
    if at.layout == K3S:
        return "k3s etcd-snapshot save"
    if at.layout == RKE2:
        return "rke2 etcd-snapshot save"
    return f"$E snapshot save {at.folder}/before.db"


def compact() -> str:
    """Return the command that drops the history up to the current revision."""
    return f"$E compact --physical $($E endpoint status -w json | {_NUMBER})"


def defragment() -> str:
    """Return how the members are defragmented, one after another."""
    return (
        "on the host of one member after another, the leader last ($E endpoint status --cluster"
        " -w table shows it), with E set there too: $E defrag, and wait until $E endpoint status"
        " answers again"
    )


def free_space(at: Tool) -> str:
    """Return the steps that free the space of the databases, from the snapshot to the alarm."""
    return (
        f"{at.begin}; {snapshot(at)}; {compact()}; {defragment()}; then, when each database is"
        " below 80 % of its quota: $E alarm disarm, and $E alarm list must be empty"
    )


def filling() -> str:
    """Return how to see what fills the database."""
    return (
        "see what fills it ($E get /registry --prefix --keys-only | cut -d/ -f3 | sort | uniq -c |"
        " sort -n | tail): events, leases, secrets or a custom resource that something makes"
        " without end"
    )


def most_objects(cluster: Cluster) -> str:
    """Return which resources have the most objects, in words; empty where they were not counted."""
    for host in cluster.hosts:
        rows = host.etcd_said.objects or ()
        counts = sorted(((row.count or 0, row.resource) for row in rows), reverse=True)[:3]
        texts = [f"{one_line(resource, 40)} {count}" for count, resource in counts if count]
        if texts:
            return f". It has the most objects of these: {', '.join(texts)}"
    return ""


def restore(at: Tool) -> str:
    """Return the commands that restore a snapshot on all members, as their installer has it."""
    if at.layout in (K3S, RKE2):
        program = at.layout.lower()
        return (
            f"stop {program} on all servers ({at.stop}); on one: {program} server --cluster-reset"
            f" --cluster-reset-restore-path=SNAPSHOT; {at.start}; on each other server: mv"
            f" {at.folder} {at.folder}.damaged; {at.start}"
        )
    return (
        f"on each member: {at.stop}; mv {at.folder}/member {at.folder}.damaged; etcdutl snapshot"
        " restore SNAPSHOT --name NAME --initial-cluster NAME1=https://ADDRESS1:2380,..."
        " --initial-advertise-peer-urls https://ADDRESS:2380 --data-dir"
        f" {at.folder}.restored (up to etcd 3.5: etcdctl snapshot restore); mv"
        f" {at.folder}.restored/member {at.folder}/; then on all of them: {at.start}"
    )


def replace_member(at: Tool, other: Tool, name: str, id_: str) -> str:
    """Return the commands that give one member its data again from the others."""
    if at.layout in (K3S, RKE2):
        return (
            f"{other.begin}; $E member remove {id_}; on {at.host}: {at.stop}; mv {at.folder}"
            f" {at.folder}.damaged; {at.start}: it joins again"
        )
    return (
        f"on {at.host}: {at.stop}; mv {at.folder}/member {at.folder}.damaged. {other.begin}; $E"
        f" member remove {id_}; $E member add {shell_name(name, 'NAME')}"
        f" --peer-urls=https://ADDRESS:2380. On {at.host}: set --initial-cluster as the last"
        f" command printed it and --initial-cluster-state=existing; {at.start}"
    )
