# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evidence of a whole cluster, read from its API on a control-plane node."""

import os
import re
import time

from ...kubeapi import kubeconfig
from ...kubeapi import proxy as kubeapi_proxy
from ...kubeapi.client import ApiError, Deadline
from ...shared.text import one_line
from ...system import http_client, side_by_side
from .. import registry
from ..node import journal
from . import (
    api_services,
    certificate_requests,
    config_maps,
    disruption_budgets,
    jobs,
    locks,
    nodes,
    object_events,
    pending,
    pinnable,
    pod,
    pod_start,
    pod_states,
    rejected,
    unmade,
    webhooks,
)
from .session import PATIENCE_SECONDS, SILENT, TIMED_OUT, Session, Skipped, is_direct, place_of

MAX_SERVERS = 9
MAX_REREADS = 3
REREAD_SECONDS = 1
ETCD_CHECK_SECONDS = 3
MIN_SECONDS_LEFT = 3  # for another read of the locks
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
ENDPOINT_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


class Reader:
    """A reader of one API, whose collectors are methods that return (data, truncated).

    requested: the requested pod; expected: the selector of pods that are to be pinned.
    """

    def __init__(self, session, requested=None, expected=None):
        self.session = session
        self.requested, self.expected = requested, expected
        self.addresses = None
        self.rejections = None
        self.known = None

    @property
    def api(self):
        """Return the API that answered."""
        return self.session.api

    def server(self):
        """Read the address of the API and its version, and the UID unless it is denied."""
        uid = None
        try:
            uid = locks.uid_of(self.api)
        except ApiError as error:
            if error.status != "denied":
                raise
        version = self.session.version
        return {
            "url": self.session.url,
            "git_version": version.get("gitVersion"),
            "major": version.get("major"),
            "minor": version.get("minor"),
            "kube_system_uid": uid,
            "kubectl": self.session.kubectl,
            "kubeconfig": self.session.config,
            "clock": self.api.clock,
        }, False

    def work(self):
        """Read the runs of kubemend that hold this node or work on it."""
        return journal.at_work(), False

    def endpoints(self):
        """Read the addresses of the API servers: Endpoints, else EndpointSlices."""
        try:
            addresses = _addresses_of_endpoints(self.api)
        except ApiError as error:
            if error.status not in ("absent", "denied"):
                raise
            addresses = _addresses_of_slices(self.api)
        self.addresses = sorted(addresses)
        return {"addresses": self.addresses}, False

    def nodes(self):
        """Read the cluster's nodes by name."""
        by_uid, capacities = {}, {}
        for item in self.api.items("/api/v1/nodes"):
            node = nodes.node_of(item)
            by_uid[node["uid"] or node["name"]] = node
            capacities[node["name"]] = nodes.capacity_of(item, node)
        self.known = capacities
        by_name = sorted(by_uid.values(), key=lambda node: node["name"] or "")
        data = {"items": nodes.leased(self.api, by_name), "clock": self.api.clock}
        data["requests"] = certificate_requests.unissued(self.api)
        data["serving_requests"] = certificate_requests.unissued(
            self.api, certificate_requests.SERVING
        )
        return data, False

    def kubeadm_config(self):
        """Read kubeadm's record of the cluster."""
        return config_maps.kubeadm(self.api), False

    def kubelet_configs(self):
        """Read what kubeadm writes into the kubelets' configuration."""
        return config_maps.kubelet(self.api, self.session.version), False

    def cluster_info(self):
        """Read how new nodes find the cluster."""
        return config_maps.cluster_info(self.api), False

    def locks(self):
        """Read the lock objects as each API server shows them, again while their holders differ."""
        addresses = self._addresses()
        proxies = self._proxies(addresses[:MAX_SERVERS])
        servers = [self._locks_at(address, api) for address, api in proxies]
        for _count in range(MAX_REREADS):
            remaining = self.session.deadline.at - time.monotonic()
            if not locks.differ(servers) or remaining < MIN_SECONDS_LEFT:
                break
            time.sleep(REREAD_SECONDS)
            servers = [self._again(server, *proxy) for server, proxy in zip(servers, proxies)]
        return {"servers": servers}, len(addresses) > MAX_SERVERS

    def _proxies(self, addresses):
        """Return [(address, its API, or why it is not asked)] of API servers."""
        if not addresses:  # the API that answered is the only known one
            return [(re.sub(r"^https?://|/.*$", "", self.session.url or ""), self.api)]
        urls = ["https://" + address for address in addresses]
        states = [""] * len(urls)
        if len(urls) > 1 and is_direct(self.session.config, ()):
            states = side_by_side.results(_obstacle, [(url,) for url in urls])
        return [
            (address, state or self.session.open(url))
            for address, url, state in zip(addresses, urls, states)
        ]

    def _again(self, server, address, api):
        if server["error"] and not server["objects"]:
            return server
        return self._locks_at(address, api)

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
            if isinstance(api, str):
                raise ApiError("timeout", api)
            return self._locks_by_any_name(address, api)
        except ApiError as error:
            return {"address": address, "error": str(error), "kube_system_uid": None, "objects": []}

    def _locks_by_any_name(self, address, api):
        """Read by the address, or by the service's name where the certificate lacks the address.

        Every certificate has that name, and kubectl can require it since 1.20.
        """
        try:
            return locks.read(address, api)
        except ApiError as error:
            if "x509: certificate is valid for" not in str(error):
                raise
            first = error
        named = self.session.open("https://" + address, tls_server_name="kubernetes.default.svc")
        try:
            return locks.read(address, named)
        except ApiError as error:
            if "unknown flag" in str(error):
                raise first from None
            raise

    def jobs(self):
        """Read Jobs with more pods than they should have, until the time limit."""
        return jobs.collect(self.api, _is_timeout)

    def rejected(self):
        """Read pods that a kubelet rejected, and the other pods of their nodes."""
        data, cut = rejected.collect(self.api, _is_timeout)
        self.rejections = data["items"]
        return data, cut

    def pending(self):
        """Read pods that no scheduler finds a node for, until the time limit."""
        return pending.collect(
            self.api,
            _is_timeout,
            self.requested,
            self._known("labels"),
            self._known("room"),
            self._known("allocatable"),
        )

    def _known(self, key):
        if self.known is None:
            return None
        return {name: node[key] for name, node in self.known.items()}

    def unmade(self):
        """Read owners whose pods were refused, and nodes that a DaemonSet leaves out."""
        capacities = None
        if self.known is not None:
            capacities = list(self.known.values())
        return unmade.collect(self.api, _is_timeout, capacities)

    def webhooks(self):
        """Read webhooks that fail closed, and whether their services have a ready address."""
        return webhooks.collect(self.api)

    def api_services(self):
        """Read the API groups that other servers serve, and which of them fail."""
        return api_services.collect(self.api)

    def object_events(self):
        """Read the events about Nodes, Services and volumes, until the time limit."""
        return object_events.collect(self.api, _is_timeout)

    def disruption_budgets(self):
        """Read the PodDisruptionBudgets that let no pod go, and which pods they keep."""
        return disruption_budgets.collect(self.api)

    def pod_start(self):
        """Read pods that a kubelet accepted and that do not start, and what it reports of them."""
        return pod_start.collect(self.api, _is_timeout)

    def pod_states(self):
        """Read all pods that have a node, counted by node and state."""
        return pod_states.collect(self.api, _is_timeout)

    def pinnable(self):
        """Read pods and workloads that look meant for CPU pinning and get none."""
        return pinnable.collect(self.api, self.expected, _is_timeout)

    def pod(self):
        """Read the requested pod or a rejected one, with all that happened to its siblings."""
        return pod.collect(self.api, self.requested, self._rejections, _is_timeout)

    def _rejections(self):
        if self.rejections is None:
            self.rejected()
        return self.rejections


def _obstacle(url):
    """Return why an API server cannot read locks, or "": it has no etcd, or says nothing.

    Its check of etcd fails by itself after 2 s. Who is not let see it may be well.
    """
    from ...system import tls

    place = place_of(url)
    if place is None:
        return ""
    address, port = place
    answer = http_client.get(address, port, "/readyz/etcd", ETCD_CHECK_SECONDS, tls.context())
    if answer["status"] == 500:
        return "its check etcd fails"
    return SILENT if answer["error"] == TIMED_OUT else ""


def _is_timeout(error):
    return isinstance(error, ApiError) and error.status == "timeout"


def _addresses_of_endpoints(api):
    addresses = set()
    for subset in api.get(ENDPOINTS).get("subsets") or []:
        ports = [port.get("port") for port in subset.get("ports") or []]
        for address in subset.get("addresses") or []:
            addresses.update(_join(address.get("ip"), port) for port in ports)
    return addresses


def _addresses_of_slices(api):
    addresses = set()
    query = {"labelSelector": "kubernetes.io/service-name=kubernetes"}
    for item in api.items(ENDPOINT_SLICES, query):
        ports = [port.get("port") for port in item.get("ports") or []]
        for endpoint in item.get("endpoints") or []:
            for address in endpoint.get("addresses") or []:
                addresses.update(_join(address, port) for port in ports)
    return addresses


def _join(address, port):
    if ":" in str(address):
        address = f"[{address}]"
    return f"{address}:{port}"


def record(status, data=None, truncated=False, source=None, started=None, error=None):
    """Return the evidence of one collector."""
    spent = 0
    if started is not None:
        spent = round((time.monotonic() - started) * 1000)
    return {
        "status": status,
        "truncated": truncated,
        "data": data,
        "source": source,
        "duration_ms": spent,
        "error": error,
    }


def _run(reader, collector, source):
    started = time.monotonic()
    try:
        reader.session.deadline.remaining()
        data, truncated = collector.run(reader)
        return record("ok", data, truncated, source, started)
    except ApiError as error:
        return record(error.status, None, False, source, started, str(error))
    except Exception as error:  # pylint: disable=broad-except
        # an answer of an unexpected shape costs this collector only
        message = one_line(f"{type(error).__name__}: {error}")
        return record("error", None, False, source, started, message)


def collect(params):
    """Return the document of this cluster: the evidence of its API, or why there is none.

    `status` is ok, error or skipped.
    """
    started = time.monotonic()
    deadline = Deadline(max(2.0, float(params.get("timeout") or 30) - 1))
    collectors = _select(params)
    document = {
        "schema": "kubemend.evidence/1",
        "kind": "cluster",
        "status": "ok",
        "reason": "",
        "ca": None,
        "collectors": {},
        "collected_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    try:
        kubectl, configs = _clients(params)
        with kubeapi_proxy.folder() as directory:
            patience = float(params.get("request_timeout") or PATIENCE_SECONDS)
            session = Session(directory, kubectl, deadline, patience)
            try:
                _fill(document, session, configs, collectors, params)
            finally:
                session.close()
                if session.ca:
                    document["ca"] = {"pem": session.ca}
    except Skipped as skipped:
        document.update(status="skipped", reason=f"another host answered for cluster {skipped}")
    except ApiError as error:
        document.update(status="error", reason=str(error))
        document["collectors"] = {
            collector.name: record(error.status, error=str(error)) for collector in collectors
        }
    document["duration_ms"] = round((time.monotonic() - started) * 1000)
    return document


def _select(params):
    collectors = registry.select_api(params.get("collectors"), params.get("deep"))
    if params.get("pod"):
        return collectors
    return [collector for collector in collectors if collector.name != "pod"]


def _clients(params):
    """Return (kubectl, the kubeconfigs to try); raise ApiError where one is missing."""
    kubectl = kubeconfig.find_kubectl(params.get("kubectl"))
    requested = params.get("kubeconfig")
    if requested and not os.access(requested, os.R_OK):
        raise ApiError("error", f"{requested} cannot be read")
    if not kubectl and params.get("kubectl"):
        raise ApiError("error", "{} cannot be executed".format(params["kubectl"]))
    if not kubectl:
        raise ApiError("error", "kubectl was not found")
    if requested:
        return kubectl, [requested]
    return kubectl, [path for path in kubeconfig.KUBECONFIGS if os.access(path, os.R_OK)]


def _fill(document, session, configs, collectors, params):
    session.connect(configs, params.get("skip_clusters") or [])
    reader = Reader(session, params.get("pod"), params.get("expect_pinning"))
    source = f"{session.url} as {session.config}"
    for collector in collectors:
        document["collectors"][collector.name] = _run(reader, collector, source)
