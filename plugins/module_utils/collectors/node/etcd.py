# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector etcd: its members, and the state of the member that answers.

The state has the leader, the alarms and the size of the database. Of a member on this node it has
settings, metrics and the data folder too, also where no credential is accepted.
"""

import os
import time

from ...system import (
    etcd_endpoint,
    etcd_folder,
    etcd_keys,
    etcd_metrics,
    etcd_settings,
    files,
    http_client,
    json_line,
    procfs,
    side_by_side,
)
from ..base import Absent, Failed, in_this_network

MEMBERS, STATUS, ALARMS = etcd_endpoint.MEMBERS, etcd_endpoint.STATUS, etcd_endpoint.ALARMS
QUESTION = b'{"action":"GET"}'
USUAL = ("/etc/kubernetes/pki/apiserver-etcd-client", "/etc/kubernetes/pki/etcd/healthcheck-client")
# k3s runs etcd within its own process, and gives it this file.
EMBEDDED = "/var/lib/rancher/k3s/server/db/etcd"
EMBEDDED_FILE = EMBEDDED + "/config"
EMBEDDED_CLIENT = "/var/lib/rancher/k3s/server/tls/etcd/client"
EMBEDDED_NAMES = ("k3s", "k3s-server")
EACH = 3
HANDSHAKES_SECONDS = 2.5  # for all endpoints together, where the first did not answer
TIMED_OUT = http_client.TIMED_OUT
MAX_ENDPOINTS = 9
MAX_ERRORS, MAX_ALARMS, MAX_TEXT = 20, 50, 200
DEFAULT_QUOTA = 2 * 1024**3  # etcd's own, where the flag is missing or 0
NOSPACE = "NOSPACE"
NEAR = 0.8  # the share of the quota from which on it matters what fills the database
NO_MEMBER = "0"  # how etcd writes that it knows no leader


def collect(context):
    """Return the members as etcd lists them, and the state of the member that answered.

    The command line is no such list: it keeps members that were removed and lacks those that
    were added.
    """
    processes = in_this_network(context, ("kube-apiserver", "etcd"))
    servers = [process for process in processes if process["component"] == "kube-apiserver"]
    stacked = [
        etcd_settings.complete(process) for process in processes if process["component"] == "etcd"
    ] or embedded(context.processes)
    evidence = {
        "api_server": None,
        "endpoint": None,
        "cluster_id": None,
        "members": [],
        "error": None,
        "status": None,
        "alarms": None,
        "health": None,
        "objects": None,
        "local": None,
    }
    process, authority, endpoints, pairs = access(servers, stacked)
    if servers:
        evidence["api_server"] = {
            "etcd_servers": endpoints,
            "etcd_prefix": etcd_keys.api_prefix(
                procfs.flag(process["argv"], "etcd-prefix") or etcd_keys.PREFIX
            ),
        }
    question = _Question(context, evidence, pairs, (process, authority), not servers)
    request = (_failure, question, endpoints or ["http://127.0.0.1:2379"])
    readings = [(_local, context, process, pairs) for process in stacked[:1]]
    failure, *local = side_by_side.results(_called, [request, *readings])
    if local:
        _add_local(context, evidence, stacked[0], local[0])
    if failure is not None:
        raise failure
    return evidence


def _called(function, *arguments):
    return function(*arguments)


def _failure(question, endpoints):
    """Ask the endpoints, and return the error where none of them answered."""
    try:
        question.ask(endpoints)
    except Failed as error:
        return error
    return None


def embedded(processes):
    """Return [the etcd within a k3s of this node] as a process with flags, [] without one."""
    pid = next((pid for pid, comm in processes if comm in EMBEDDED_NAMES), None)
    if pid is None or not os.path.isfile(EMBEDDED_FILE):
        return []
    process = {
        "component": "etcd",
        "pid": pid,
        "started_at": procfs.started_at(pid),
        "argv": ["etcd", "--config-file=" + EMBEDDED_FILE],
    }
    return [etcd_settings.complete(process)]


def access(servers, stacked):
    """Return (process, flag of its CA, endpoints, credentials) that lead to etcd from this node.

    The flags of an API server come before those of etcd. It raises Absent without either.
    """
    if servers:
        process = servers[0]
        endpoints = split(procfs.flag(process["argv"], "etcd-servers"))
        pairs = pairs_of(process, "etcd-certfile", "etcd-keyfile")
        return process, "etcd-cafile", endpoints, pairs
    if stacked:
        process = stacked[0]
        endpoints = split(
            procfs.flag(process["argv"], "listen-client-urls")
            or procfs.flag(process["argv"], "advertise-client-urls")
        )
        pairs = usual_pairs() + pairs_of(process, "cert-file", "key-file")
        return process, "trusted-ca-file", endpoints, pairs
    raise Absent("neither an API server nor etcd runs here")


def _add_local(context, evidence, process, row):
    """Add what is known of this node's etcd alone; its health where no member gave a status.

    The address of metrics has its health too: one that let metrics wait is asked no second time.
    """
    status = evidence["status"]
    if status is None and (row["metrics_error"] or "").endswith(TIMED_OUT):
        evidence["health"] = {"status": None, "body": None, "error": TIMED_OUT}
    elif status is None:
        evidence["health"] = _health(context, process)
    elif is_local(parsed(status["endpoint"])[1]):
        status.update(_quota(status, process))
    evidence["local"] = row


def _local(context, process, pairs):
    """Return settings, metrics and data folder of this node's etcd."""
    settings = etcd_settings.shown(process)
    quota = _quota({"quota": None}, process)
    row = {
        "pid": process["pid"],
        "started_at": process.get("started_at"),
        "uptime_s": _uptime(process),
        "state": procfs.state(process["pid"]),
        "embedded": process["argv"][1:2] == ["--config-file=" + EMBEDDED_FILE],
        "unit": process.get("unit"),
        "static": bool(process.get("static")),
        "settings": settings,
        "quota": quota["quota"],
        "quota_source": quota["quota_source"],
        "folder": None,
        "stalls": etcd_folder.stalls(),
        "throttled": etcd_folder.throttled(process["pid"]),
    }
    row.update(_metrics(context, process, pairs))
    if settings.get("data-dir", "").startswith("/"):
        row["folder"] = etcd_folder.described(
            settings["data-dir"], settings.get("wal-dir"), process["pid"]
        )
    return row


def _uptime(process):
    """Return for how many seconds the process runs; None where that is not known."""
    if process.get("started_at") is None:
        return None
    return round(time.time() - process["started_at"], 1)


def _metrics(context, process, pairs):
    """Return {metrics, metrics_url, metrics_error}.

    The address of metrics needs no credential; without one, the address of clients has them too.
    An etcd that does not answer in time is asked no second time.
    """
    errors = []
    for url, certificate, key in _addresses_of_metrics(process, pairs):
        try:
            metrics = _metrics_at(context, url, certificate, key)
            return {"metrics": metrics, "metrics_url": url, "metrics_error": None}
        except http_client.HttpError as error:
            errors.append(f"{url}: {error}")
            if str(error) == TIMED_OUT:
                break
    reason = "; ".join(dict.fromkeys(errors)) or "it has no address of metrics on this node"
    return {"metrics": None, "metrics_url": None, "metrics_error": files.one_line(reason, 300)}


def _addresses_of_metrics(process, pairs):
    """Return [(url, certificate, key)] at which this node's etcd may have metrics."""
    addresses = []
    for flag, keys in (("listen-metrics-urls", []), ("listen-client-urls", pairs)):
        urls = split(procfs.flag(process["argv"], flag))
        local_urls = [url for url in urls if is_local(parsed(url)[1])]
        for pair in (keys or [(None, None)])[:2]:
            addresses += [(url, *pair) for url in local_urls[:1]]
    return addresses


def _metrics_at(context, url, certificate, key):
    from ...system import tls

    scheme, address, port = parsed(url)
    if scheme == "https":
        encryption = tls.context(certificate, key)
    else:
        encryption = None
    return etcd_metrics.read(address, port, context.seconds(EACH), encryption)


class _Question:
    """The question for the members, with each credential at one endpoint after another.

    is_one: whether the endpoints are addresses of one process, which is asked no second time when
    it says nothing. An etcd without quorum takes connections and no handshake.
    """

    def __init__(self, context, evidence, pairs, trust, is_one=False):
        self.context, self.evidence = context, evidence
        self.pairs, self.trust, self.is_one = pairs or [(None, None)], trust, is_one
        self.errors = []

    def ask(self, endpoints):
        """Ask until one endpoint answers, those on this node first; raise Failed where none does.

        Where the first does not answer, those that take no handshake are left out.
        """
        ordered = sorted(endpoints, key=lambda url: not is_local(parsed(url)[1]))[:MAX_ENDPOINTS]
        if self._is_answered(ordered[0]):
            return
        following = ordered[1:]
        if self.is_one and self.errors[-1].endswith(TIMED_OUT):
            following = []
        if not any(self._is_answered(url) for url in self._awake(following)):
            self.evidence["error"] = "; ".join(dict.fromkeys(self.errors))
            raise Failed(self.evidence["error"], self.evidence)

    def _awake(self, endpoints):
        """Return the endpoints but those with TLS that say nothing to a handshake."""
        secure = [url for url in endpoints if parsed(url)[0] == "https"]
        if not secure:
            return endpoints
        from ...system import served_certificates

        places = [parsed(url)[1:] for url in secure]
        answers = served_certificates.read(places, self.context.seconds(HANDSHAKES_SECONDS))
        silent = [url for url, answer in zip(secure, answers) if answer["error"] == TIMED_OUT]
        self.errors += [f"{url}: {TIMED_OUT}" for url in silent]
        return [url for url in endpoints if url not in silent]

    def _is_answered(self, url):
        """Return whether an endpoint gave its list of members to one of the credentials."""
        for pair in self.pairs:
            try:
                self._read(url, pair)
                return True
            except http_client.HttpError as error:
                self.errors.append(f"{url}: {error}")
                # another credential makes no difference to who says nothing, or wants none
                if str(error) == TIMED_OUT or not url.startswith("https:"):
                    break
        return False

    def _read(self, url, pair):
        """Read the members at an endpoint; HttpError without an answer."""
        client = self._client(url, pair)
        # both go through consensus, and wait for it as long as the other
        listed = [(_members, client)]
        if _add_status(client, self.evidence, url):
            listed.append((_alarms, client))
        answer, *raised = side_by_side.results(_called, listed)
        if raised:
            self.evidence["alarms"] = raised[0]
        if isinstance(answer, http_client.HttpError):
            raise answer
        self.evidence.update(answer, endpoint=url)
        _add_objects(client, self.evidence, self.context)
        self.context.source = url

    def _client(self, url, pair):
        scheme, address, port = parsed(url)
        process, flag = self.trust
        certificate, key = pair

        def secure(protocols):
            if scheme != "https":
                return None
            from ...system import tls

            return tls.context(certificate, key, authority_of(process, flag, address), protocols)

        return etcd_endpoint.EtcdEndpoint(address, port, secure, lambda: self.context.seconds(EACH))


def _members(client):
    """Return the members, or the error of that question."""
    try:
        status, body = client.post(MEMBERS)
        if status == 200:
            return members(body)
        return http_client.HttpError(f"HTTP {status}{refusal(body)}")
    except http_client.HttpError as error:
        return error


def _alarms(client):
    """Return the alarms, None where they are not told: the errors of the status name them too."""
    try:
        status, body = client.post(ALARMS, QUESTION)
        return alarms(body) if status == 200 else None
    except http_client.HttpError:
        return None


def _add_status(client, evidence, url):
    """Add the status of the first member that answers, and return whether to ask for its alarms.

    Without a leader they are not asked for, because that question needs consensus.
    """
    if evidence["status"] is not None:
        return False
    try:
        status, body = client.post(STATUS)
    except http_client.Refused:
        return False  # the member list says why too
    if status != 200:
        return False  # before 3.3, or a proxy of another kind: the member list still says why
    try:
        evidence["status"] = dict(status_of(body), endpoint=url)
    except http_client.HttpError:
        return False
    return evidence["status"]["leader"] != NO_MEMBER


def _add_objects(client, evidence, context):
    """Add the number of objects of some resources, where the database is full, and in deep runs.

    etcd counts keys and reads no value. It needs consensus for that.
    """
    status = evidence["status"]
    if status is None or status["leader"] == NO_MEMBER:
        return
    if not context.params.get("deep") and not _is_full(status, evidence["alarms"]):
        return
    prefix = (evidence["api_server"] or {}).get("etcd_prefix") or etcd_keys.PREFIX
    rows = []
    try:
        for resource in etcd_keys.RESOURCES:
            question = json_line.dumps(etcd_keys.counting(prefix, resource)).encode("ascii")
            code, body = client.post(etcd_keys.PATH, question)
            if code != 200:
                return
            rows.append({"resource": resource, "count": etcd_keys.count(_object(body, "count"))})
    except http_client.HttpError:
        return
    evidence["objects"] = rows


def _is_full(status, raised):
    """Tell whether an alarm NOSPACE is raised, or the database is near the quota that it tells."""
    if any(alarm["alarm"] == NOSPACE for alarm in raised or []):
        return True
    if any(NOSPACE in error for error in status["errors"]):
        return True
    size, quota = status["db_size"] or 0, status["quota"] or 0
    return quota > 0 and size >= NEAR * quota


def _health(context, process):
    """Return the answer of etcd's /health, which needs no credential; None without a local URL.

    The URL is one of --listen-metrics-urls.
    """
    for url in split(procfs.flag(process["argv"], "listen-metrics-urls")):
        scheme, address, port = parsed(url)
        if scheme == "http" and is_local(address):
            return http_client.get(address, port, "/health", context.seconds(EACH))
    return None


def _quota(status, process):
    """Return the quota of the member on this node.

    It is that of the status (3.6), else that of the flag, else the default.
    """
    if status["quota"]:
        return {"quota": status["quota"] if status["quota"] > 0 else None, "quota_source": "status"}
    value = procfs.flag(process["argv"], "quota-backend-bytes")
    if value is None:  # the environment or a file may set another
        return {"quota": DEFAULT_QUOTA, "quota_source": "default"}
    number = _number(value)
    if number is None or number < 0:  # below 0 etcd keeps no quota
        return {"quota": None, "quota_source": "flag"}
    return {"quota": number or DEFAULT_QUOTA, "quota_source": "flag"}


def status_of(body):
    """Return the values of maintenance/status.

    The gateway's JSON has numbers of 64 bits as strings, and leaves out what is 0 or empty.
    """
    answer = _object(body, "status")
    if not isinstance(answer.get("version"), str):
        raise http_client.HttpError("the answer is no status")
    if isinstance(answer.get("header"), dict):
        header = answer.get("header")
    else:
        header = {}
    if isinstance(answer.get("errors"), list):
        errors = answer.get("errors")
    else:
        errors = []
    return {
        "version": _short(answer.get("version")),
        "member_id": _id(header.get("member_id")),
        "cluster_id": _id(header.get("cluster_id")),
        "leader": _id(answer.get("leader")) or NO_MEMBER,
        "raft_term": _number(answer.get("raftTerm")),
        "raft_index": _number(answer.get("raftIndex")),
        "db_size": _number(answer.get("dbSize")),
        "db_size_in_use": _number(answer.get("dbSizeInUse")),
        "quota": _number(answer.get("dbSizeQuota")),
        "learner": answer.get("isLearner") is True,
        "errors": [_short(error) for error in errors[:MAX_ERRORS]],
    }


def alarms(body):
    """Return [{member_id, alarm}] of the list of alarms, an empty one where none is raised."""
    listed = _object(body, "list of alarms").get("alarms")
    return [
        {"member_id": _id(alarm.get("memberID")), "alarm": _short(alarm.get("alarm") or "NONE")}
        for alarm in (listed if isinstance(listed, list) else [])[:MAX_ALARMS]
        if isinstance(alarm, dict)
    ]


def refusal(body):
    """Return the reason of a refusal by etcd, behind a colon; empty without one."""
    try:
        answer = _object(body, "refusal")
    except http_client.HttpError:
        return ""
    reason = answer.get("error") or answer.get("message")
    if isinstance(reason, str):
        return ": " + _short(reason)
    return ""


def _object(body, subject):
    try:
        answer = json_line.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise http_client.HttpError(f"the answer is no {subject}")
    return answer


def _short(value):
    return files.one_line(str(value), MAX_TEXT)


def _id(value):
    """Return an id as text, None where it is none or 0."""
    number = _number(value)
    if number:
        return str(number)
    return None


def _number(value):
    """Return a whole number of at most 64 bits, however it is written; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or len(str(value)) > 20:
        return None
    try:
        number = int(value)
    except ValueError:
        return None
    if abs(number) < 1 << 64:
        return number
    return None


def pairs_of(process, certificate_flag, key_flag):
    """Return [(certificate, key)] that two flags of a process name, if they can be read."""
    from ...system import client_certificates

    try:
        pair = client_certificates.of_process(process, certificate_flag, key_flag)
    except OSError:
        return []
    if pair:
        return [pair[1:]]
    return []


def usual_pairs():
    """Return [(certificate, key)] of the client certificates that installers write."""
    pairs = []
    for base in (*USUAL, EMBEDDED_CLIENT):
        try:
            pairs.append((files.read(base + ".crt", 262144), files.read(base + ".key", 262144)))
        except OSError:
            continue
    return pairs


def authority_of(process, flag, address):
    """Return the CA that verifies a server of another machine, None for this one."""
    if is_local(address):
        path = None
    else:
        path = procfs.flag(process["argv"], flag)
    if not path:
        return None
    try:
        return procfs.file_of(process["pid"], path, 262144)
    except OSError:
        return None


def split(value):
    """Return the URLs of a flag."""
    return [part for part in (value or "").split(",") if part]


def parsed(url):
    """Return (scheme, address, port) of http(s)://host:port."""
    scheme, _dummy, rest = url.rpartition("://")
    rest = rest.split("/", 1)[0]
    host, colon, port = rest.rpartition(":")
    if not colon or not port.isdecimal() or len(port) > 5:
        host, port = rest, "2379"
    return scheme or "http", http_client.reachable(host), int(port)


def is_local(address):
    """Return whether this address belongs to this host: whether the kernel lets it listen there."""
    if address == "localhost":
        return True
    probe = http_client.socket.socket(
        http_client.socket.AF_INET6 if ":" in address else http_client.socket.AF_INET,
        http_client.socket.SOCK_DGRAM,
    )
    try:
        probe.bind((address, 0))
        return True
    except OSError:
        return False
    finally:
        probe.close()


def members(body):
    """Return {cluster_id, members} of the gateway's JSON; ids are strings there."""
    try:
        answer = json_line.loads(body.decode("utf-8", "replace"))
        listed = answer["members"]
        return {
            "cluster_id": _text(answer["header"].get("cluster_id")),
            "members": [
                {
                    "id": _text(member.get("ID")),
                    "name": member.get("name") or "",
                    "peer_urls": list(member.get("peerURLs") or []),
                    "client_urls": list(member.get("clientURLs") or []),
                    "learner": bool(member.get("isLearner")),
                }
                for member in listed
            ],
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise http_client.HttpError("the answer is no member list") from None


def _text(value):
    if value is None:
        return None
    return str(value)
