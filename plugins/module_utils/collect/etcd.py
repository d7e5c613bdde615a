# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: collector etcd."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible_collections.kubemend.remediation.plugins.module_utils.collect import files, jsonline, procfs, web
from ansible_collections.kubemend.remediation.plugins.module_utils.collect.spec import Absent, Failed, in_this_network

PATHS = ("/v3/cluster/member/list", "/v3beta/cluster/member/list")  # the second for etcd 3.3
USUAL = ("/etc/kubernetes/pki/apiserver-etcd-client", "/etc/kubernetes/pki/etcd/healthcheck-client")
EACH = 3
MAX_ENDPOINTS = 9


def collect(context):
    """The members as etcd itself counts them: argv keeps retired ones and adds none."""
    everyone = in_this_network(context, ("kube-apiserver", "etcd"))
    servers = [one for one in everyone if one["component"] == "kube-apiserver"]
    stacked = [one for one in everyone if one["component"] == "etcd"]
    found = {"api_server": None, "endpoint": None, "cluster_id": None, "members": [], "error": None}
    if servers:
        argv = servers[0]["argv"]
        endpoints = split(procfs.flag(argv, "etcd-servers"))
        found["api_server"] = {"etcd_servers": endpoints, "etcd_prefix": procfs.flag(argv, "etcd-prefix") or "/registry"}
        process, authority = servers[0], "etcd-cafile"
        pairs = _pairs_of(process, "etcd-certfile", "etcd-keyfile")
    elif stacked:
        process, authority = stacked[0], "trusted-ca-file"
        endpoints = split(procfs.flag(process["argv"], "listen-client-urls") or procfs.flag(process["argv"], "advertise-client-urls"))
        pairs = _usual_pairs() + _pairs_of(process, "cert-file", "key-file")
    else:
        raise Absent("neither an API server nor etcd runs here")
    return _asked(context, found, endpoints or ["http://127.0.0.1:2379"], pairs, process, authority)


def _asked(context, found, endpoints, pairs, process, authority):
    """Ask one endpoint after another, those on this node first, with one credential after another."""
    from ansible_collections.kubemend.remediation.plugins.module_utils.collect import tls
    errors = []
    pairs = pairs or [(None, None)]
    for url in sorted(endpoints, key=lambda url: not is_local(parsed(url)[1]))[:MAX_ENDPOINTS]:
        scheme, address, port = parsed(url)
        for certificate, key in pairs if scheme == "https" else [(None, None)]:
            try:
                encryption = tls.context(certificate, key, _authority(process, authority, address)) if scheme == "https" else None
                status, body = _post(address, port, encryption, context)
                if status != 200:
                    raise web.HttpError("HTTP %d" % status)
                found.update(members(body), endpoint=url)
                context.source = url
                return found
            except web.HttpError as error:
                errors.append("%s: %s" % (url, error))
    found["error"] = "; ".join(dict.fromkeys(errors)) or "no endpoint to ask"
    raise Failed(found["error"], found)


def _post(address, port, encryption, context):
    status, body = None, b""
    for path in PATHS:
        connection = web.Connection(address, port, context.seconds(EACH), encryption)
        try:
            status, body = connection.request(path, b"{}")
        finally:
            connection.close()
        if status != 404:
            break
    return status, body


def _pairs_of(process, certificate_flag, key_flag):
    from ansible_collections.kubemend.remediation.plugins.module_utils.collect import credentials
    try:
        pair = credentials.of_process(process, certificate_flag, key_flag)
    except OSError:
        return []
    return [pair[1:]] if pair else []


def _usual_pairs():
    found = []
    for base in USUAL:
        try:
            found.append((files.read(base + ".crt", 262144), files.read(base + ".key", 262144)))
        except OSError:
            continue
    return found


def _authority(process, flag, address):
    """What proves a server of another machine; on this one nothing needs proof."""
    path = None if is_local(address) else procfs.flag(process["argv"], flag)
    if not path:
        return None
    try:
        return files.read(path, 262144, "/proc/%d/root" % process["pid"])
    except OSError:
        return None


def split(value):
    """The URLs of a flag."""
    return [part for part in (value or "").split(",") if part]


def parsed(url):
    """(scheme, address, port) of http(s)://host:port."""
    scheme, dummy, rest = url.rpartition("://")
    rest = rest.split("/", 1)[0]
    host, colon, port = rest.rpartition(":")
    if not colon or not port.isdecimal() or len(port) > 5:
        host, port = rest, "2379"
    return scheme or "http", web.reachable(host), int(port)


def is_local(address):
    """Does this address belong to this machine? Asked of the kernel: may one listen on it?"""
    if address == "localhost":
        return True
    probe = web.socket.socket(web.socket.AF_INET6 if ":" in address else web.socket.AF_INET, web.socket.SOCK_DGRAM)
    try:
        probe.bind((address, 0))
        return True
    except OSError:
        return False
    finally:
        probe.close()


def members(body):
    """{cluster_id, members} of the gateway's JSON; ids are strings there."""
    try:
        answer = jsonline.loads(body.decode("utf-8", "replace"))
        listed = answer["members"]
        return {"cluster_id": _text(answer["header"].get("cluster_id")), "members": [
            {"id": _text(one.get("ID")), "name": one.get("name") or "", "peer_urls": list(one.get("peerURLs") or []),
             "client_urls": list(one.get("clientURLs") or []), "learner": bool(one.get("isLearner"))} for one in listed]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise web.HttpError("the answer is no member list")


def _text(value):
    return None if value is None else str(value)
