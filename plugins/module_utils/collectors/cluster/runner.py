# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evidence of a whole cluster, read from its API on a control-plane node."""

import os
import re
import time

from ...kubeapi import kubeconfig
from ...kubeapi import proxy as api_proxy
from ...kubeapi.client import ApiError, Deadline, one_line
from ...kubeapi.proxy import Door
from ...shared.cluster_key import cluster_key
from ...shared.cordon_annotation import cordon_of
from ..node import journal
from . import (
    config_maps as collect_configs,
)
from . import (
    jobs as collect_jobs,
)
from . import (
    locks as collect_locks,
)
from . import (
    nodes as collect_nodes,
)
from . import (
    pending as collect_pending,
)
from . import (
    pinnable as collect_pinning,
)
from . import (
    pod as collect_pod,
)
from . import (
    rejected as collect_rejected,
)
from . import (
    unmade as collect_unmade,
)

COLLECTORS = (
    "server",
    "endpoints",
    "nodes",
    "kubeadm_config",
    "kubelet_configs",
    "locks",
    "jobs",
    "rejected",
    "pending",
    "pinnable",
    "pod",
    "work",
    "unmade",
)  # it looks for what is not there, and has the time that the others leave
# They read every pod: only asked for where a fault needs them.
DEEP = ("pinnable",)
MAX_SERVERS = 9
REREAD_SECONDS = 1
LABEL = re.compile(
    r"^(kubernetes\.io/hostname|node-role\.kubernetes\.io/.*|kubernetes\.io/role"
    r"|(topology|failure-domain\.beta)\.kubernetes\.io/(zone|region))$"
)


class Skipped(Exception):
    """This kubeconfig's cluster was answered by another host already."""


class Reader:
    """One run over one API: how it was reached, and one method for each collector, which returns
    (data, truncated).
    """

    def __init__(self, where, kubectl, deadline, asked=None, expected=None):
        self.where, self.kubectl, self.deadline = where, kubectl, deadline
        # the pod in question, the selector of pods that are to be pinned
        self.asked, self.expected = asked, expected
        self.config = self.url = self.ca = self.version = self.api = None
        self.tried = []
        self.dead = set()
        self.doors = []
        self.addresses = None
        self.refused = None
        self.known = None

    def open(self, server=None, config=None, tls_server_name=None):
        """A door to this server, the kubeconfig's own by default; closed with the rest."""
        made = Door(
            self.where,
            str(len(self.doors)),
            self.kubectl,
            config or self.config,
            self.deadline,
            server,
            tls_server_name,
        )
        self.doors.append(made)
        return made

    def close(self):
        """End every proxy."""
        for made in self.doors:
            made.close()

    def connect(self, configs, skip):
        """The first kubeconfig whose API answers.

        At its own server, often a load balancer, then at this node's own API server.
        """
        for config in configs:
            api = self.open(config=config)
            try:
                url, ca = kubeconfig.view(
                    self.kubectl, config, Deadline(api_proxy.PROBE_SECONDS, self.deadline)
                )
            except ApiError as error:
                self.tried.append(f"{config}: {error}")
                api.close()
                continue
            self.ca = self.ca or ca
            if cluster_key(ca) in skip:
                self.ca = ca
                raise Skipped(cluster_key(ca))
            local = kubeconfig.local_server()
            if url in self.dead:
                api.close()
            elif self._answers(api, config, url, ca):
                return
            if (
                local
                and local not in self.dead
                and self._answers(self.open(local, config), config, local, ca)
            ):
                return
        raise ApiError("error", one_line("; ".join(self.tried) or "no kubeconfig found", 1000))

    def _answers(self, api, config, url, ca):
        try:
            self.version = api.get("/version", seconds=api_proxy.PROBE_SECONDS)
        except ApiError as error:
            if error.code != 403:  # forbidden is an answer: of an API that knows who asks
                self.tried.append(f"{config} ({url}): {error}")
                api.close()
                if error.code is None:  # another kubeconfig will not reach it either
                    self.dead.add(url)
                return False
            self.version = {}
        self.api, self.config, self.url, self.ca = api, config, url, ca
        return True

    def server(self):
        """Where the API was asked, and what it says of itself."""
        try:
            uid = collect_locks.uid_of(self.api)
        except ApiError as error:
            if error.status != "denied":
                raise
            uid = None  # the version was told all the same
        return {
            "url": self.url,
            "git_version": self.version.get("gitVersion"),
            "major": self.version.get("major"),
            "minor": self.version.get("minor"),
            "kube_system_uid": uid,
            "kubectl": self.kubectl,
            "kubeconfig": self.config,
            "clock": self.api.clock,
        }, False

    def work(self):
        """Runs of ours that hold this node or work on it.

        Who asks about other hosts alone does not read its journal.
        """
        return journal.at_work(), False

    def endpoints(self):
        """Addresses of the API servers.

        Endpoints, which every release serves, else EndpointSlices.
        """
        found = set()
        try:
            subsets = (
                self.api.get("/api/v1/namespaces/default/endpoints/kubernetes").get("subsets") or []
            )
            found.update(
                _join(address.get("ip"), port.get("port"))
                for subset in subsets
                for address in subset.get("addresses") or []
                for port in subset.get("ports") or []
            )
        except ApiError as error:
            if error.status not in ("absent", "denied"):
                raise
            query = {"labelSelector": "kubernetes.io/service-name=kubernetes"}
            for item in self.api.items(
                "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", query
            ):
                found.update(
                    _join(address, port.get("port"))
                    for endpoint in item.get("endpoints") or []
                    for address in endpoint.get("addresses") or []
                    for port in item.get("ports") or []
                )
        self.addresses = sorted(found)
        return {"addresses": self.addresses}, False

    def nodes(self):
        """The cluster's nodes by name."""
        found, known = {}, {}
        for item in self.api.items("/api/v1/nodes"):
            node = node_of(item)
            found[node["uid"] or node["name"]] = node
            has = (item.get("status") or {}).get("allocatable") or {}
            most = has.get("pods")
            known[node["name"]] = {
                "name": node["name"],
                "labels": (item.get("metadata") or {}).get("labels") or {},
                "taints": node["taints"],
                "room": int(most) if str(most).isdigit() else None,
                "allocatable": collect_rejected.quantities(has),
            }
        self.known = known
        items = collect_nodes.leased(
            self.api, sorted(found.values(), key=lambda node: node["name"] or "")
        )
        return {"items": items, "clock": self.api.clock}, False

    def kubeadm_config(self):
        """Kubeadm's record of the cluster."""
        return collect_configs.kubeadm(self.api), False

    def kubelet_configs(self):
        """What kubeadm writes into the kubelets' configuration."""
        return collect_configs.kubelet(self.api, self.version), False

    def locks(self):
        """Lock objects as each API server shows them, read again while their holders differ."""
        addresses = self._addresses()
        doors = [(address, self.open("https://" + address)) for address in addresses[:MAX_SERVERS]]
        if not doors:  # the one that answered is the only one known
            doors = [(re.sub(r"^https?://|/.*$", "", self.url or ""), self.api)]
        servers = [self._locks_at(address, api) for address, api in doors]
        for dummy in range(3):
            if not collect_locks.differ(servers) or self.deadline.at - time.monotonic() < 3:
                break
            time.sleep(REREAD_SECONDS)
            servers = [
                (
                    server
                    if server["error"] and not server["objects"]
                    else self._locks_at(address, api)
                )
                for server, (address, api) in zip(servers, doors)
            ]
        return {"servers": servers}, len(addresses) > MAX_SERVERS

    def _addresses(self):
        if self.addresses is None:
            try:
                self.endpoints()
            except ApiError as error:
                if error.status not in ("denied", "absent"):
                    raise
        return self.addresses or []

    def _locks_at(self, address, api):
        try:
            try:
                return collect_locks.read(address, api)
            except ApiError as error:
                if "x509: certificate is valid for" not in str(error):
                    raise
                # its certificate lacks the address; it always carries the service's name (kubectl
                # >= 1.20 can ask for it)
                named = self.open("https://" + address, tls_server_name="kubernetes.default.svc")
                try:
                    return collect_locks.read(address, named)
                except ApiError as second:
                    raise error if "unknown flag" in str(second) else second
        except ApiError as error:
            return {"address": address, "error": str(error), "kube_system_uid": None, "objects": []}

    def jobs(self):
        """Jobs with more pods than they should have.

        What was read until the time limit still proves something.
        """
        return collect_jobs.collect(self.api, _late)

    def rejected(self):
        """Pods that a kubelet rejected, and what else lies on their nodes."""
        data, cut = collect_rejected.collect(self.api, _late)
        self.refused = data["items"]
        return data, cut

    def pending(self):
        """Pods that no scheduler finds a node for.

        What was read until the time limit still proves something.
        """
        labels, room, has = (
            (None if self.known is None else {name: one[key] for name, one in self.known.items()})
            for key in ("labels", "room", "allocatable")
        )
        return collect_pending.collect(self.api, _late, self.asked, labels, room, has)

    def unmade(self):
        """Pods that are not there: who was refused one, and nodes that a DaemonSet leaves out."""
        return collect_unmade.collect(
            self.api, _late, None if self.known is None else list(self.known.values())
        )

    def pinnable(self):
        """Pods and workloads that look meant for CPU pinning and get none.

        What was read until the time limit still proves something.
        """
        return collect_pinning.collect(self.api, self.expected, _late)

    def pod(self):
        """The pod that was asked for, or one of those that were rejected, with all that happened
        to it and to its siblings.
        """
        return collect_pod.collect(
            self.api,
            self.asked,
            lambda: self.rejected()[0]["items"] if self.refused is None else self.refused,
            _late,
        )


def _late(error):
    return isinstance(error, ApiError) and error.status == "timeout"


def _join(address, port):
    return "{}:{}".format(f"[{address}]" if ":" in str(address) else address, port)


def node_of(item):
    """The values of a Node that tell who it is and how it does."""
    meta, spec, status = (
        item.get("metadata") or {},
        item.get("spec") or {},
        item.get("status") or {},
    )
    info, labels = status.get("nodeInfo") or {}, meta.get("labels") or {}
    ready = [
        entry.get("status")
        for entry in status.get("conditions") or []
        if entry.get("type") == "Ready"
    ]
    roles = (
        "node-role.kubernetes.io/control-plane",
        "node-role.kubernetes.io/master",
        "node-role.kubernetes.io/controlplane",
    )
    return {
        "name": meta.get("name"),
        "uid": meta.get("uid"),
        "machine_id": info.get("machineID"),
        "system_uuid": info.get("systemUUID"),
        "boot_id": info.get("bootID"),
        "kubelet_version": info.get("kubeletVersion"),
        "addresses": [
            {"type": one.get("type"), "address": one.get("address")}
            for one in status.get("addresses") or []
        ],
        "control_plane": (
            any(role in labels for role in roles) or labels.get("kubernetes.io/role") == "master"
        ),
        "labels": {name: value for name, value in labels.items() if LABEL.match(name)},
        "ready": ready[0] if ready else "Unknown",
        "unschedulable": bool(spec.get("unschedulable")),
        "cordon": cordon_of(item),
        "created": meta.get("creationTimestamp"),
        "taints": collect_nodes.taints_of(item),
        "conditions": collect_nodes.conditions_of(item),
        "devices": collect_rejected.resources_of(item),
    }


def record(status, data=None, truncated=False, source=None, started=None, error=None):
    """What became of one collector."""
    spent = 0 if started is None else int(round((time.monotonic() - started) * 1000))
    return {
        "status": status,
        "truncated": truncated,
        "data": data,
        "source": source,
        "duration_ms": spent,
        "error": error,
    }


def _run(reader, name, source):
    started = time.monotonic()
    try:
        reader.deadline.left()
        data, truncated = getattr(reader, name)()
        return record("ok", data, truncated, source, started)
    except ApiError as error:
        return record(error.status, None, False, source, started, str(error))
    except Exception as error:  # pylint: disable=broad-except
        # an answer of a shape that nobody foresaw costs this collector only
        return record(
            "error",
            None,
            False,
            source,
            started,
            one_line(f"{type(error).__name__}: {error}"),
        )


def collect(params):
    """The document of this cluster: what the API says, or why it does not.

    `status` is ok, error or skipped.
    """
    started = time.monotonic()
    deadline = Deadline(max(2.0, float(params.get("timeout") or 30) - 1))
    chosen = params.get("collectors") or [
        name for name in COLLECTORS if params.get("deep") or name not in DEEP
    ]
    wanted = [name for name in COLLECTORS if name in chosen]
    wanted = [name for name in wanted if name != "pod" or params.get("pod")]
    document = {
        "schema": "kubemend.evidence/1",
        "kind": "cluster",
        "status": "ok",
        "reason": "",
        "ca": None,
        "collectors": {},
        "collected_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    kubectl = kubeconfig.find_kubectl(params.get("kubectl"))
    asked = params.get("kubeconfig")
    configs = (
        [asked] if asked else [path for path in kubeconfig.KUBECONFIGS if os.access(path, os.R_OK)]
    )
    reader = None
    try:
        if asked and not os.access(asked, os.R_OK):
            raise ApiError("error", f"{asked} cannot be read")
        if not kubectl:
            raise ApiError(
                "error",
                (
                    "kubectl was not found"
                    if not params.get("kubectl")
                    else "{} cannot be executed".format(params["kubectl"])
                ),
            )
        with api_proxy.folder() as where:
            reader = Reader(
                where, kubectl, deadline, params.get("pod"), params.get("expect_pinning")
            )
            try:
                reader.connect(configs, params.get("skip_clusters") or [])
                source = f"{reader.url} as {reader.config}"
                for name in wanted:
                    document["collectors"][name] = _run(reader, name, source)
            finally:
                reader.close()
    except Skipped as skipped:
        document.update(status="skipped", reason=f"another host answered for cluster {skipped}")
    except ApiError as error:
        document.update(status="error", reason=str(error))
        document["collectors"] = {name: record(error.status, error=str(error)) for name in wanted}
    document["ca"] = {"pem": reader.ca} if reader and reader.ca else None
    document["duration_ms"] = int(round((time.monotonic() - started) * 1000))
    return document
