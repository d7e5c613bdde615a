# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the members of etcd, through their JSON gateway, from a node that runs one of them.

The node's own member is asked at its local address, the others at the addresses of etcd's list. The
credential is a client certificate that the node already has.
"""

import json

from ..collectors import registry
from ..collectors.base import Absent, Denied, in_this_network
from ..collectors.node import etcd, instances
from ..shared.errors import PreconditionFailed
from ..system import (
    client_certificates,
    etcd_keys,
    etcd_settings,
    files,
    http_client,
    json_line,
    procfs,
)

PREFIX = "/v3"  # of etcd from 3.4 on
COMPACTION, RANGE = "/kv/compaction", etcd_keys.PATH
DEFRAGMENT, SNAPSHOT = "/maintenance/defragment", "/maintenance/snapshot"
TRANSFER = "/maintenance/transfer-leadership"
GRANT, REVOKE = "/lease/grant", "/lease/revoke"
EACH = 5  # seconds for a question that a member that is well answers at once
COMPACTED = "required revision has been compacted"
OLD = "collect evidence and plan again"


class EtcdError(Exception):
    """A request without the answer that it should have, in one line.

    refused: whether etcd itself refused it, so that nothing was done.
    """

    def __init__(self, text, refused=False):
        super().__init__(text)
        self.refused = refused


class Client:
    """A client of one member; each request has a connection of its own."""

    def __init__(self, url, encryption):
        self.url = url
        self.encryption = encryption

    def ask(self, path, question=None, seconds=EACH):
        """Return the answer to a request, an object; raise EtcdError without one."""
        return _object(self._body(path, question, seconds))

    def _body(self, path, question=None, seconds=EACH):
        try:
            connection = self._connected(seconds)
            try:
                status, body = connection.request(PREFIX + path, _written(question))
            finally:
                connection.close()
        except http_client.HttpError as error:
            raise EtcdError(str(error)) from error
        if status != 200:
            raise EtcdError(f"HTTP {status}{etcd.refusal(body)}", refused=status < 500)
        return body

    def stream(self, path, seconds):
        """Yield the body of an answer piece by piece; raise EtcdError where it ends too soon."""
        try:
            connection = self._connected(seconds)
            try:
                status, parts = connection.streamed(PREFIX + path, b"{}")
                if status != 200:
                    raise EtcdError(f"HTTP {status}", refused=True)
                yield from parts
            finally:
                connection.close()
        except (http_client.HttpError, OSError, ValueError) as error:
            raise EtcdError(files.one_line(error, 200)) from error

    def status(self):
        """Return the status of the member, with the revision of its data."""
        body = self._body(etcd.STATUS)
        status = _read(etcd.status_of, body)
        header = _object(body).get("header")
        revision = None
        if isinstance(header, dict) and str(header.get("revision")).isdecimal():
            revision = int(header["revision"])
        return dict(status, revision=revision)

    def alarms(self):
        """Return [{member_id, alarm}], which needs a quorum."""
        return _read(etcd.alarms, self._body(etcd.ALARMS, {"action": "GET"}))

    def members(self):
        """Return {cluster_id, members} of etcd's list."""
        return _read(etcd.members, self._body(etcd.MEMBERS))

    def _connected(self, seconds):
        _scheme, address, port = etcd.parsed(self.url)
        return http_client.Connection(address, port, seconds, self.encryption)


class EtcdNode:
    """The member of etcd that runs on this node, and the way to it and to the others.

    process: the one of etcd, with the flags that its environment or its file sets.
    """

    def __init__(self, process, reference, pair):
        self.process = process
        self._reference, self._authority_flag = reference
        self._pair = pair

    def client(self, url):
        """Return a client of the member at this URL; a server elsewhere is verified."""
        from ..system import tls

        scheme, address, _port = etcd.parsed(url)
        encryption = None
        if scheme == "https":
            authority = etcd.authority_of(self._reference, self._authority_flag, address)
            certificate, key = self._pair or (None, None)
            try:
                encryption = tls.context(certificate, key, authority)
            except http_client.HttpError as error:
                raise EtcdError(str(error)) from error
        return Client(url, encryption)

    def own_url(self):
        """Return the URL of this node's member that is local."""
        urls = _urls(self.process, ("listen-client-urls", "advertise-client-urls"))
        local_urls = [url for url in urls if etcd.is_local(etcd.parsed(url)[1])]
        return next(iter(local_urls), "https://127.0.0.1:2379")

    @property
    def data_folder(self):
        """Return (the data folder as etcd has it, its path on this node)."""
        folder = procfs.flag(self.process["argv"], "data-dir") or "/var/lib/etcd"
        return folder, f"/proc/{self.process['pid']}/root{folder}"


def processes():
    """Return ([API servers], [etcd]) of this node as the collectors see them."""
    everyone = registry.Context({}, procfs.of_interest(), {})
    everyone.data["instances"] = instances.collect(everyone)
    running = in_this_network(everyone, ("kube-apiserver", "etcd"))
    servers = [process for process in running if process["component"] == "kube-apiserver"]
    stacked = [
        etcd_settings.complete(process) for process in running if process["component"] == "etcd"
    ]
    return servers, stacked


def connect(host):
    """Return (EtcdNode, client of this node's member); raise PreconditionFailed without them."""
    try:
        servers, stacked = processes()
    except (Absent, Denied, OSError) as error:
        raise PreconditionFailed(
            f"the processes of {host} cannot be read ({files.one_line(error)}): run as root"
        ) from error
    if not stacked:
        raise PreconditionFailed(
            f"no etcd runs on {host} now: bring it back first (KM145), then run again"
        )
    reference, flag, _endpoints, pairs = etcd.access(servers, stacked)
    pairs = pairs + etcd.usual_pairs() + etcd.pairs_of(stacked[0], "cert-file", "key-file")
    errors = []
    for pair in list(dict.fromkeys(pairs)) or [None]:
        node = EtcdNode(stacked[0], (reference, flag), pair)
        try:
            client = node.client(node.own_url())
            client.status()
            return node, client
        except EtcdError as error:
            errors.append(str(error))
    raise PreconditionFailed(_unanswered(host, pairs, errors))


def _unanswered(host, pairs, errors):
    """Return why this node's member gives no answer, and what comes first."""
    reason = "; ".join(dict.fromkeys(errors))
    if pairs and all(client_certificates.has_expired(pair[0]) for pair in pairs):
        return (
            f"every client certificate of etcd on {host} has expired ({reason}): renew the"
            " certificates first (KM120), then run again"
        )
    if "HTTP 404" in reason:
        return (
            f"the etcd of {host} answers no JSON ({reason}): it is older than 3.4, has its settings"
            " in a file, or runs with --enable-grpc-gateway=false; free the space by hand, with"
            " etcdctl (KM140)"
        )
    return f"the etcd of {host} does not answer ({reason}): repair it first (KM145), then run again"


def _urls(process, flags):
    for flag in flags:
        urls = etcd.split(procfs.flag(process["argv"], flag))
        if urls:
            return urls
    return []


def _written(question):
    return json.dumps(question or {}).encode("ascii")


def _read(reader, body):
    try:
        return reader(body)
    except http_client.HttpError as error:
        raise EtcdError(str(error)) from error


def _object(body):
    """Return the object of an answer; an empty body is the empty object."""
    try:
        answer = json_line.loads(body.decode("utf-8", "replace") or "{}")
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise EtcdError("the answer is no JSON object")
    return answer
