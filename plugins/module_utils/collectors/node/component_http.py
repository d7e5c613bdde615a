# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector component_http: what schedulers and controller managers report over HTTP."""

import time

from ...system import files, http_client, yaml_scalars
from ...system.component_endpoints import PORTS, configz, doors, has_check
from ..base import Absent, in_this_network

METRICS = (b"leader_election_master_status{", b"kubernetes_build_info{")
# after its start a component answers 403 for some seconds: its client CA is still on the way
YOUNG, PATIENCE, PAUSE = 20, 10, 0.5
# Seconds for an answer at first, and once more where the API server of the component answers: one
# that does not lets the component wait that asks it whether a client may read.
SOON_SECONDS, EACH = 1.5, 5
SERVER_SECONDS = 1.5
TIMED_OUT = "timed out"
NO_CLIENT = "no client certificate to ask with"
EXPIRED = "each client certificate to ask with has expired"


def collect(context):
    """Return what each scheduler and controller manager of this node reports of itself."""
    everyone = (context.data.get("instances") or {}).get("processes") or []
    processes = in_this_network(context, PORTS)
    if not processes:
        raise Absent("no scheduler or controller manager in this node's network")
    from ...system import client_certificates as credentials
    from ...system import side_by_side, tls

    context.source = "healthz, configz and metrics of the processes"
    every = list(credentials.of_components(context.params, everyone))
    usable = [client for client in every if not credentials.has_expired(client[1])]
    patience = time.monotonic() + PATIENCE  # for all of them together
    components = side_by_side.results(
        _asked, [(process, list(usable), context, tls.context, patience) for process in processes]
    )
    for record in components:
        if every and not usable and record["configz"]["error"] == NO_CLIENT:
            _fail(record, EXPIRED)
    return {"components": components}


def _asked(process, usable, context, tls, patience):
    """Return what a component reports, asked with more patience where that is not in vain."""
    record = _ask(process, usable, lambda: context.seconds(SOON_SECONDS), tls, patience)
    if _has_timed_out(record) and _is_served(process, context, tls):
        record = _ask(process, usable, lambda: context.seconds(EACH), tls, patience)
    return record


def _has_timed_out(record):
    return any(record[part]["error"] == TIMED_OUT for part in ("healthz", "configz", "metrics"))


def _is_served(process, context, tls):
    """Return whether the API server of a component is well, or not known by its address."""
    place = _server(process)
    if place is None:
        return True
    address, port = place
    answer = http_client.get(address, port, "/readyz", context.seconds(SERVER_SECONDS), tls())
    return answer["status"] not in (None, 500)


def _server(process):
    """Return (address, port) of the API server of a component; None for a name."""
    text = (process.get("kubeconfig") or {}).get("text") or ""
    url = yaml_scalars.anywhere(text, "server") or ""
    host, colon, port = url.rpartition("://")[2].rstrip("/").rpartition(":")
    host = host.strip("[]")
    if not url.startswith("https://") or not colon or not port.isdigit():
        return None
    if not host.replace(".", "").isdigit() and ":" not in host:
        return None
    return host, int(port)


def _ask(process, usable, seconds, tls, patience):
    record = {
        "component": process["component"],
        "pid": process["pid"],
        "address": None,
        "port": None,
        "healthz": {"status": None, "body": None, "error": "it serves on no port"},
        "leader_election_check": None,
        "configz": {"status": None, "leader_election": None, "error": "not asked"},
        "metrics": {
            "status": None,
            "leader_election_master_status": None,
            "git_version": None,
            "error": "not asked",
        },
        "credential": None,
    }
    secure = _find_door(record, process, seconds, tls)
    if record["healthz"]["error"]:
        _fail(record, record["healthz"]["error"])
        return record
    if record["healthz"]["status"] in (200, 500):
        record["leader_election_check"] = has_check(record["healthz"]["body"])
    credentials, client = [(None, None, None)], None
    if secure:
        credentials, client = usable, tls
    while not _is_let_in(record, credentials, client, seconds):
        if not _is_young_and_refused(record, process):
            break
        if time.monotonic() + PAUSE > patience or not seconds():
            break
        time.sleep(PAUSE)
    if not credentials:
        _fail(record, NO_CLIENT)
    return record


def _find_door(record, process, seconds, tls):
    """Ask healthz at each address until one answers; return whether that is by TLS."""
    secure = False
    for address, port, secure in doors(process["component"], process["argv"]):
        client = None
        if secure:
            client = tls()
        healthz = http_client.get(address, port, "/healthz?verbose", seconds(), client)
        record.update(address=address, port=port, healthz=healthz)
        if healthz["error"] is None:
            break
    return secure


def _is_let_in(record, credentials, tls, seconds):
    return any(
        _inside(record, path, certificate, key, tls, seconds())
        for path, certificate, key in credentials
    )


def _is_young_and_refused(record, process):
    """Return whether the component refuses because its client CA may still be on the way."""
    if record["configz"]["status"] not in (401, 403) or not process["started_at"]:
        return False
    return time.time() - process["started_at"] < YOUNG + PATIENCE


def _fail(record, reason):
    for part in ("configz", "metrics"):
        record[part]["error"] = reason


def _inside(record, path, certificate, key, tls, seconds):
    """Read configz and metrics with one credential, and return whether that was accepted."""
    try:
        connection = http_client.Connection(
            record["address"], record["port"], seconds, tls(certificate, key) if tls else None
        )
    except http_client.HttpError as error:
        for part in ("configz", "metrics"):
            record[part]["error"] = str(error)
        return False
    inside = False
    try:
        status, body = connection.request("/configz")
        record["configz"] = configz(status, body)
        if status in (401, 403):
            record["metrics"].update(status=status, error=record["configz"]["error"])
            return False
        inside, record["credential"] = True, path
        record["metrics"] = metrics(*connection.request("/metrics", keep=METRICS))
    except http_client.HttpError as error:
        record["metrics" if inside else "configz"]["error"] = str(error)
    finally:
        connection.close()
    return inside


def metrics(status, body):
    """Return leader_election_master_status by lock name, and the version, from these metrics."""
    record = {
        "status": status,
        "leader_election_master_status": None,
        "git_version": None,
        "error": None,
    }
    if status != 200:
        record["error"] = f"HTTP {status}"
        return record
    for line in body.decode("utf-8", "replace").splitlines():
        if line.startswith("leader_election_master_status{"):
            name, value = _label(line, "name"), line.rpartition("}")[2].split()
            if name and value:
                record["leader_election_master_status"] = (
                    record["leader_election_master_status"] or {}
                )
                record["leader_election_master_status"][name] = int(float(value[0]))
        elif line.startswith("kubernetes_build_info{"):
            record["git_version"] = _label(line, "git_version") or _label(line, "gitVersion")
    return record


def _label(line, name):
    for mark in ("{" + name + '="', "," + name + '="'):
        begin = line.find(mark)
        if begin >= 0:
            return files.one_line(line[begin + len(mark) :].split('"', 1)[0], 100)
    return None
