# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps k3s or RKE2 from finishing its start, from the last lines of its journal. Pure.

An agent asks its server again and again, and its unit stays in its start. A server that is not up
yet answers later. One that refuses the agent, or whose certificate is not valid, does so until
an operator changes it. A server waits for its own etcd, which no member of another cluster takes,
and which has to know the server by its address.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...parsers import known_message, message_class, message_form, unit_journal
from ...parsers.unit_journal import Said, Start

LONGEST = 300  # characters of a message
OFTEN = 2  # refusals
SILENT = 3  # times that a server gave no answer
READ = 50  # lines of the start, the newest ones
# Classes of an answer that does not change by itself.
LASTING = frozenset(("configuration", "credential"))
# pkg/agent/config/config.go, pkg/agent/run.go and pkg/clientaccess/token.go of k3s; what stands
# before the error differs between releases.
_LOGRUS = re.compile(r'time="[^"]{1,64}" level=(?:info|warning|error) msg="((?:[^"\\]|\\.)*)"')
_ASKED = re.compile(
    # up to 1.20 of k3s
    r"Failed to retrieve agent config: "
    r"|Waiting to retrieve [\w -]{1,40} configuration; server is not ready: |Failed to validate"
    r" connection to cluster at |CA cert validation failed: |token CA hash does not match|Node"
    r" password rejected|failed to get CA certs: |Failed to (?:retrieve agent config|configure"
    r" agent): "
)
# What an agent itself cannot do with the configuration that it has, or got.
_OWN = re.compile(
    r"Failed to (?:retrieve agent config|configure agent): "
    r"|\w{1,20}\"? snapshotter cannot be enabled"
)
_NO_ANSWER = re.compile(
    r"connection refused|connection reset by peer|\bEOF\b|i/o timeout|context deadline exceeded"
    r"|Client\.Timeout|no route to host|network is unreachable|TLS handshake timeout"
)
_BALANCER = re.compile(
    r"Running load balancer (?:\S{1,80} )?\S{1,80} -> \[(?P<address>[^\s\],]{1,200})"
)
_CLUSTER = re.compile(r"cluster at https://(?P<address>[^\s/:]{1,200}(?::\d{1,5})?)(?=[/:\s])")
_SELF = re.compile(r"(?:127\.\d|localhost|\[?::1)")
_DOORS = {"rke2": "9345", "k3s": "6443"}  # at which a server answers to agents, unless told else
# pkg/daemons/agent, pkg/agent/containerd and pkg/agent/tunnel: an agent that has its configuration.
_WENT_ON = re.compile(
    r"Running (?:kubelet|containerd)\b|Connecting to proxy\b|Connection to etcd is ready"
    r"|[Ee]tcd data store connection OK"
)
# Known messages about the machine itself, which asking again does not change.
_OF_MACHINE = frozenset(
    ("k3s-overlay-not-supported", "k3s-node-address-on-no-interface", "k3s-programs-not-unpacked")
)
_REFUSED = "Node password rejected"
_REFUSES = re.compile(r": (401 Unauthorized|403 Forbidden)\s*\Z")
_OPEN = "/cacerts: "  # what a server gives to anyone
# etcd, server/etcdserver/api/rafthttp/stream.go: a member of another cluster at the address of one
_OTHER_CLUSTER = re.compile(r"request sent was ignored by .{0,80}cluster ID mismatch")
_CLUSTERS = re.compile(
    r'"remote-peer-cluster-id":"(?P<there>[0-9a-f]{1,16})".{1,200}'
    r'"local-member-cluster-id":"(?P<here>[0-9a-f]{1,16})"'
)
# pkg/etcd/etcd.go of k3s: the member of the same name, which no other server has, is elsewhere.
_OTHER_ADDRESS = re.compile(
    r"not a member of the etcd cluster\. Found \[(?:[^\]]{0,400} )?(?P<name>[\w.-]{1,120})="
    r"(?P<there>[^\s\]]{1,120})(?: [^]]{0,400})?\], expect: (?P=name)=(?P<here>[^\s\"\\]{1,120})"
)
_COMPARE = (
    "compare both with ip -br address: this server needs the former address (node-ip in config.yaml"
    " where the machine has it), or its member the present one"
)
_MEMBER = (
    "find out which of the two has the data that counts: the one that was restored last"
    " (--cluster-reset). On the other one: stop its unit, move its database away (mv"
    " /var/lib/rancher/k3s/server/db /var/lib/rancher/k3s/server/db.before), see that server: of"
    " its config.yaml names the first one, and start it, so that it joins as a new member. Do not"
    " do that on both"
)
_STRANGER = (
    "see what answers there (curl -vk URL/cacerts, from this machine): a proxy of the environment"
    " of its unit (HTTPS_PROXY without the address in NO_PROXY), a load balancer that asks for a"
    " certificate, or another program; correct that, or the key server of its configuration"
)
_CERTIFICATE = (
    "compare the clocks of both machines (timedatectl), and see the certificate that is served"
    " (openssl s_client -connect ADDRESS:PORT </dev/null | openssl x509 -noout -subject -dates). A"
    " server makes its certificates again with `k3s certificate rotate` or `rke2 certificate"
    " rotate` while its unit is stopped, and the one of its port 6443 or 9345 when server/tls/"
    "dynamic-cert.json below /var/lib/rancher/k3s or /var/lib/rancher/rke2 is moved away before its"
    " start; some releases do so only after an update"
)
_SILENT = (
    "curl -vk https://{address}/cacerts from this machine: a server answers with a certificate."
    " Where it does not, see that the unit of the server runs there, that its firewall and that of"
    " the cloud let port {port} through, and that no proxy of the environment stands between; else"
    " correct the key server in config.yaml of this machine (the address of another machine, with"
    " port {port})"
)
_PASSWORD = (
    "where this machine was installed again, delete the password that the server keeps for its name"
    " (kubectl -n kube-system delete secret NODE.node-password.k3s, with RKE2"
    " NODE.node-password.rke2); where two machines have one name, give it another (node-name, or"
    " with-node-id)"
)
_TOKEN = (
    "give it the token of the cluster that it is to join (of a server"
    " /var/lib/rancher/k3s/server/node-token, or /var/lib/rancher/rke2/server/node-token)"
)


@dataclass(frozen=True)
class Wait:
    """What a start waits for that does not come by itself.

    message: what the server answers; clause: what that means; line: the line of the journal
    is_whole: whether clause and advice tell more than what is known of the message alone
    """

    message: str
    clause: str
    advice: str
    line: str
    is_whole: bool = False


def find(lines: Sequence[str], server: str = "") -> Wait | None:
    """Return what the newest start waits for, or None. Never raises.

    lines: as `journalctl -u UNIT -o short-iso` prints them
    server: the address of the server in the configuration, where no line has it any more
    """
    starts = unit_journal.starts(lines)
    if not starts or starts[-1].exit is not None:
        return None
    for line in starts[-1].lines[: -READ - 1 : -1]:
        if _OTHER_CLUSTER.search(line.text):
            return _of_another_cluster(line)
        member = _OTHER_ADDRESS.search(line.text)
        if member is not None:
            return _at_another_address(line, member)
        logged = _LOGRUS.match(line.text)
        if logged is None:
            continue
        if _WENT_ON.match(logged.group(1)):
            return None
        if _ASKED.search(logged.group(1)):
            text = re.sub(r"\\(.)", r"\1", logged.group(1))
            return _wait_for_server(starts[-1], line, text, server)
    return None


def _wait_for_server(start: Start, line: Said, text: str, server: str) -> Wait | None:
    """Return what a line about a question to a server tells, None where it may pass."""
    refused = _REFUSES.search(text)
    if refused is None:
        return _wait(line, text) or _own(line, text) or _silent(start, line, text, server)
    if _times(start, refused.group(1)) < OFTEN:
        return None  # one that is starting itself may refuse before it knows anyone
    return _answered(line, text, refused.group(1))


def _of_another_cluster(line: Said) -> Wait:
    """Return that the etcd of a server and the member that it asks are of two clusters."""
    message = "request sent was ignored by remote peer due to cluster ID mismatch"
    clause = "its etcd has the data of another cluster than the member that it asks"
    ids = _CLUSTERS.search(line.text)
    if ids is not None:
        clause += f" ({ids.group('here')} here, {ids.group('there')} there)"
    return Wait(message, clause, _MEMBER, line.raw, is_whole=True)


def _at_another_address(line: Said, member: re.Match[str]) -> Wait:
    """Return that etcd knows a server by another address than it has."""
    there, here = member.group("there"), member.group("here")
    clause = "its etcd has it as a member at another address"
    message = f"{member.group('name')} is at {there}, and the server looks for it at {here}"
    return Wait(message[:LONGEST], clause, _COMPARE, line.raw)


def _times(start: Start, answer: str) -> int:
    """Return how many of the last lines tell of this answer."""
    return sum(answer in line.text for line in start.lines[-READ:])


def _wait(line: Said, text: str) -> Wait | None:
    """Return what a line tells, None where it may pass or is not known."""
    row = known_message.find(("k3s", "rke2"), text)
    if row is not None and row.id in _OF_MACHINE:
        return Wait(text[-LONGEST:], row.clause, row.advice, line.raw, is_whole=True)
    reading = message_form.read(text, "k3s")
    if reading is None or reading.weak:
        return None
    words = message_class.CLASSES[reading.meaning]
    message = reading.text[:LONGEST]
    if message.startswith(_REFUSED):
        clause = "its server knows another machine by this name"
        return Wait(message, clause, _PASSWORD, line.raw)
    if reading.meaning not in LASTING:
        return None
    if reading.key == "token":
        return Wait(message, words.clause, _TOKEN, line.raw)
    if reading.meaning == "credential":
        return Wait(message, words.clause, _CERTIFICATE, line.raw)
    return Wait(message, words.clause, words.advice, line.raw)


def _own(line: Said, text: str) -> Wait | None:
    """Return that an agent cannot work with its configuration, None where it waits for another."""
    if not _OWN.search(text) or _NO_ANSWER.search(text):
        return None
    clause = "it cannot work with its configuration on this machine"
    return Wait(text[:LONGEST], clause, "correct what that line names", line.raw)


def _silent(start: Start, line: Said, text: str, server: str) -> Wait | None:
    """Return which server gives no answer again and again, None where that may be a pause."""
    lines = [row for row in start.lines[-READ:] if _ASKED.search(row.text)]
    if len([row for row in lines if _NO_ANSWER.search(row.text)]) < SILENT:
        return None
    if not _NO_ANSWER.search(text):
        return None
    port = _DOORS.get(line.name, "6443")
    address = _asked(start) or server or f"SERVER:{port}"
    clause, is_whole = f"its server {address} does not answer", True
    if _SELF.match(address):
        clause += ", which is this machine itself: the key server has to name a server's machine"
    elif line.name == "rke2" and not address.endswith(f":{port}"):
        clause += f": servers of RKE2 answer to agents at port {port}"
    else:
        is_whole = False
    advice = _SILENT.format(address=address, port=port)
    return Wait(text[-LONGEST:], clause, advice, line.raw, is_whole)


def _asked(start: Start) -> str:
    """Return the address of the server that an agent asks, or ""."""
    for row in reversed(start.lines):
        named = _BALANCER.search(row.text) or _CLUSTER.search(row.text)
        if named is not None:
            return named.group("address")
    return ""


def _answered(line: Said, text: str, status: str) -> Wait:
    """Return what an answer of HTTP means that refuses: asking again does not change it."""
    message = text[-LONGEST:]
    if _OPEN in text:
        clause = "what answers at the address of its server is none, or stands before it"
        return Wait(message, clause, _STRANGER, line.raw)
    return Wait(message, f"its server refuses its token ({status})", _TOKEN, line.raw)
