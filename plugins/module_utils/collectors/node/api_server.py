# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector api_server: what the API server of this node answers at its own address.

It asks without a credential first, as every release allows by default for these paths, and with
the administrator's certificate where that is refused. Where a component of the control plane has
a manifest and no process, it tells who listens on the ports of that component.
"""

import _thread
import os
import re
import time

from ...system import component_endpoints, files, http_client, listeners, side_by_side
from ..base import Absent, Denied, in_this_network
from . import component_end

API_SERVER = component_endpoints.API_SERVER
# Seconds for all questions to one server that is at work: each check of etcd takes up to 2.
EACH = 5.5
HANDSHAKE_SECONDS = 3.0  # for the connection and its encryption; what follows is in vain without
SOON_SECONDS = 0.7  # livez is asked for where readyz is not good by then
# A check that fails is asked for again. The server asks etcd once a second at most.
REPETITIONS, PAUSE = 2, 1.2
ENOUGH_SECONDS = 0.7  # for what is still on its way when one answer says that etcd fails
LONG_SECONDS = 2.5  # a version that takes longer than this is late, however late it is
SHORTEST = 1.0  # a server that has less for an answer is not told to wait
MAX_CHECKS = 100  # failed ones that are kept
# No path of a probe: an API server that is overloaded lets it wait, or refuses it.
VERSION = ("version", "/version")
READYZ, LIVEZ = ("readyz", "/readyz?verbose"), ("livez", "/livez?verbose")
TIMED_OUT = "timed out"
NOT_ASKED = {"status": None, "checks": 0, "failed": [], "error": None, "seconds": None}
LEVELS, WAITING = "/debug/api_priority_and_fairness/dump_priority_levels", "WaitingRequests"
SLOW_SECONDS = 1.0
TOO_MANY = 429
# Secure ports by default; etcd's are in its flags.
PORTS = {API_SERVER: 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259, "etcd": 2379}
_SECURE = re.compile(r"--secure-port[=\s\"',]{1,8}([0-9]{1,5})\b")
_LISTEN = re.compile(r"--listen-(?:client|peer)-urls[=\s\"',]{1,8}(\S{1,400})")
_URL_PORT = re.compile(r":([0-9]{1,5})(?![0-9.:\]])")
_CHECK = re.compile(r"\[([+-])\]([\w./-]{1,120})")


def collect(context):
    """Return {servers, ports, unseen, used_up}.

    servers: [{pid, address, port, waiting, livez, readyz, version}], with {status, checks, failed,
    error, seconds} each, and how many requests wait in its queues; ports: [{component, port, pid,
    comm, unit, pod_uid, static}] of components that do not run, unseen: whether a holder may have
    been missed; used_up: whether a server is slow or refuses requests.
    """
    context.source = "livez, readyz and version of the API server"
    processes = (context.data.get("instances") or {}).get("processes") or []
    servers = in_this_network(context, (API_SERVER,))
    if context.data.get("manifests") is None and os.geteuid() != 0:
        raise Denied("this user may not read the manifests, which show the components of this node")
    gone = _not_running(context)
    if not servers and not gone:
        raise Absent("no API server runs here, and no component of a static pod is missing")
    answers = [_ask(context, process, processes) for process in servers]
    ports, complete = _ports(gone)
    used_up = []
    if any(map(_is_overloaded, answers)):
        used_up = ["requests"]
    return {"servers": answers, "ports": ports, "unseen": not complete, "used_up": used_up}


def _not_running(context):
    """Return {component: text of its manifests} of static pods without a process."""
    manifests = context.data.get("manifests") or {}
    running = component_end.static_processes(context)
    missing = [name for name in component_end.named(manifests) if name not in running]
    text = "\n".join(record.get("text") or "" for record in manifests.get("files") or ())
    return {name: text for name in missing if name in PORTS}


def _ports(gone):
    """Return (the holders of the ports of these components, whether each holder was found)."""
    components = {}
    for component, text in gone.items():
        for port in ports_of(component, text):
            components.setdefault(port, component)
    if not components:  # the kernel walks through all connections of the node for it
        return [], True
    inodes = listeners.sockets(components)
    if not inodes:
        return [], True
    rows, complete = listeners.holders(inodes)
    complete = complete and len(rows) == len(inodes)
    return [dict(row, component=components[row["port"]]) for row in rows], complete


def ports_of(component, text):
    """Return the ports on which a component listens, by the text of the manifests."""
    if component == "etcd":
        urls = " ".join(_LISTEN.findall(text))
        ports = {int(port) for port in _URL_PORT.findall(urls)}
        return sorted(ports) or [PORTS[component]]
    if component == API_SERVER:
        return [int(port) for port in _SECURE.findall(text)[:1]] or [PORTS[component]]
    return [PORTS[component]]


def _ask(context, process, processes):
    """Return the answers of one API server, at the first address that takes a connection."""
    from ...system import tls

    record = {"pid": process["pid"], "address": None, "port": None, "waiting": None}
    deadline = time.monotonic() + context.seconds(EACH)
    for address, port, _secure in component_endpoints.doors(API_SERVER, process["argv"]):
        record.update(address=address, port=port)
        record.update(_lasting_answers(address, port, tls.context(), deadline))
        # who takes a connection and says nothing says nothing at its other addresses either
        if _has_answered(record) or record["readyz"]["error"] == TIMED_OUT:
            break
    if record.get("readyz", {}).get("status") in (401, 403):
        record.update(_as_administrator(context, record, processes, deadline))
    if record.get("readyz", {}).get("status") == 200 and not _is_overloaded(record):
        record["waiting"] = _waiting(context, record, processes)
    return record


def _waiting(context, record, processes):
    """Return how many requests wait in the queues of a server; None where it does not tell.

    Each priority level has a queue of its own: what one client floods lets no request without a
    credential wait. Where this very request gets no answer, that is one.
    """
    from ...system import client_certificates, tls

    for _path, certificate, key in client_certificates.of_components(context.params, processes):
        try:
            client = tls.context(certificate, key)
        except http_client.HttpError:
            continue
        seconds = context.seconds(LONG_SECONDS)
        if seconds < SHORTEST:
            return None
        deadline = time.monotonic() + seconds
        address, port = record["address"], record["port"]
        try:
            connection = http_client.Connection(address, port, deadline - time.monotonic(), client)
            try:
                status, body = connection.request(LEVELS)
            finally:
                connection.close()
        except http_client.HttpError as error:
            return 1 if str(error) == TIMED_OUT else None
        if status == TOO_MANY:
            return 1
        if status == 200:
            return waiting_of(body.decode("utf-8", "replace"))
    return None


def waiting_of(text):
    """Return the sum of the column WaitingRequests of the priority levels, None without it."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()[:MAX_CHECKS]]
    if not rows or WAITING not in rows[0]:
        return None
    column = rows[0].index(WAITING)
    cells = [row[column] for row in rows[1:] if len(row) > column]
    return sum(int(cell) for cell in cells if cell.isdigit() and len(cell) < 9)


def _has_answered(record):
    return any(record[name]["status"] is not None for name in ("version", "readyz"))


def _as_administrator(context, record, processes, deadline):
    """Return the answers to the first credential of this node that is let in, else nothing."""
    from ...system import client_certificates, tls

    for _path, certificate, key in client_certificates.of_components(context.params, processes):
        try:
            client = tls.context(certificate, key)
        except http_client.HttpError:
            continue
        answers = _lasting_answers(record["address"], record["port"], client, deadline)
        if answers["readyz"]["status"] not in (None, 401, 403):
            return answers
    return {}


def _lasting_answers(address, port, client, deadline):
    """Return the answers of one server, with the checks that fail every time.

    A slow disk makes the checks of etcd fail for a moment. The server answers probes that follow
    each other closely with an old result.
    """
    answers = _answers(address, port, client, deadline)
    for _repetition in range(REPETITIONS):
        if not _failures(answers) or time.monotonic() + PAUSE + SHORTEST > deadline:
            break
        time.sleep(PAUSE)
        later = _answers(address, port, client, deadline)
        if later["readyz"]["status"] == 200:  # it has the checks of livez too
            return later
        for probe in ("readyz", "livez"):
            answers[probe] = _lasting(answers[probe], later[probe])
    return answers


def _failures(answers):
    return answers["readyz"]["failed"] + answers["livez"]["failed"]


def _lasting(before, later):
    """Return the later answer of a probe with what failed in both, else the one before."""
    if later["status"] is None or not before["failed"]:
        return before
    failed = [name for name in before["failed"] if name in later["failed"]]
    return dict(later, failed=failed)


def _answers(address, port, client, deadline):
    """Return {version, readyz, livez} of one server, asked for side by side.

    livez has no check that readyz lacks: it is asked for where readyz is not good at once. What
    tells no more is not waited for.
    """
    begun = time.monotonic()
    questions = _Questions(address, port, client, deadline)
    questions.ask(*READYZ)
    questions.ask(*VERSION)
    questions.wait(_is_readyz_known, begun + SOON_SECONDS)
    if questions.status("readyz") != 200:
        questions.ask(*LIVEZ)
    questions.wait(_is_decided, deadline)
    limit = time.monotonic() + ENOUGH_SECONDS
    if questions.status("readyz") == 200:
        limit = begun + LONG_SECONDS
    questions.wait(_is_complete, min(limit, deadline))
    return dict({"livez": dict(NOT_ASKED)}, **questions.ended(begun))


def _is_complete(answers):
    return None not in answers.values()


def _is_readyz_known(answers):
    return answers["readyz"] is not None


def _is_decided(answers):
    """Return whether one answer says that etcd fails, or that all is well, or each is there."""
    if any(answer and "etcd" in answer["failed"] for answer in answers.values()):
        return True
    return (answers["readyz"] or {}).get("status") == 200 or _is_complete(answers)


class _Questions:
    """Requests to one server, each in a thread and over a connection of its own."""

    def __init__(self, address, port, client, deadline):
        self.place, self.client, self.deadline = (address, port), client, deadline
        self.answers = {}
        self.bell = side_by_side.Bell()

    def ask(self, name, path):
        """Send a request, without waiting for its answer."""
        self.answers[name] = None
        _thread.start_new_thread(self._work, (name, path))

    def _work(self, name, path):
        try:
            self.answers[name] = _answer(self.place, self.client, self.deadline, path)
        finally:
            self.bell.ring()

    def wait(self, is_enough, until):
        """Wait until the answers are enough, or until this time."""
        while not is_enough(self.answers):
            seconds = until - time.monotonic()
            if seconds <= 0:
                return
            self.bell.wait(seconds)

    def status(self, name):
        """Return the status of an answer, None where there is none yet."""
        return (self.answers[name] or {}).get("status")

    def ended(self, begun):
        """Return the answers; one that is not there has timed out."""
        seconds = round(time.monotonic() - begun, 3)
        late = dict(NOT_ASKED, failed=[], error=TIMED_OUT, seconds=seconds)
        return {name: answer or dict(late) for name, answer in self.answers.items()}


def _answer(place, client, deadline, path):
    """Return {status, checks, failed, error, seconds} of one request."""
    answer = dict(NOT_ASKED, failed=[])
    begun = time.monotonic()
    try:
        seconds = min(HANDSHAKE_SECONDS, max(0.1, deadline - begun))
        address, port = place
        connection = http_client.Connection(address, port, seconds, client)
        connection.end = deadline
        try:
            answer["status"], body = connection.request(path)
        finally:
            connection.close()
        checks = _CHECK.findall(body[:65536].decode("utf-8", "replace"))
        failed = [name for sign, name in checks if sign == "-"]
        answer.update(checks=len(checks), failed=failed[:MAX_CHECKS])
    except http_client.HttpError as refused:
        answer["error"] = files.one_line(refused, 200)
    answer["seconds"] = round(time.monotonic() - begun, 3)
    return answer


def _is_overloaded(record):
    """Return whether a server that is well by its probes lets other requests wait or refuses.

    Where nothing answers, or etcd fails, the load is not the cause.
    """
    if not _is_well(record):
        return False
    if record.get("waiting"):
        return True
    version = record.get("version") or {}
    return version.get("status") == TOO_MANY or (version.get("seconds") or 0) >= SLOW_SECONDS


def _is_well(record):
    """Return whether one of the probes is answered, and none says that etcd fails."""
    probes = [record.get(name) or {} for name in ("readyz", "livez")]
    if any("etcd" in probe.get("failed", ()) for probe in probes):
        return False
    return any(probe.get("status") is not None for probe in probes)
