# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector api_load: what keeps an API server busy that is slow or refuses requests.

It reads a few families of the metrics twice, and whose requests wait, with the certificates of
this node. Of a request it keeps the user, the verb and the resource.
"""

import time

from ...system import files, http_client
from ..base import Absent, Failed

EACH, PAUSE = 4, 2.0
MAX_LEVELS, MAX_CLIENTS, MAX_TEXT, MAX_ROWS = 30, 10, 120, 20000
FLOW, INFLIGHT = b"apiserver_flowcontrol_", b"apiserver_current_inflight_requests{"
KEEP = (
    FLOW + b"current_executing_requests{",
    FLOW + b"current_inqueue_requests{",
    FLOW + b"rejected_requests_total{",
    FLOW + b"nominal_limit_seats{",
    FLOW + b"request_concurrency_limit{",  # up to 1.25
    INFLIGHT,
    b"apiserver_dropped_requests_total{",  # where priority and fairness are switched off
    b"apiserver_request_terminations_total{",
)
DUMP = "/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1"
OWN = ("/debug/", "/metrics", "/readyz", "/livez", "/healthz")


def collect(context):
    """Return {servers: [{pid, seconds, levels, clients, terminated, dumped, error}]}."""
    answered = context.data.get("api_server") or {}
    answers = answered.get("servers") or []
    if not answers or not answered.get("used_up"):
        raise Absent("no API server of this node is slow or refuses requests")
    processes = (context.data.get("instances") or {}).get("processes") or []
    context.source = "metrics and waiting requests of the API server"
    servers = [_of_server(context, answer, processes) for answer in answers]
    if all(server["error"] for server in servers):
        raise Failed(servers[0]["error"], {"servers": servers})
    return {"servers": servers}


def _of_server(context, answer, processes):
    """Return the load of one server, by the first credential that it does not refuse."""
    from ...system import client_certificates, tls

    record = {
        "pid": answer["pid"],
        "seconds": None,
        "levels": [],
        "clients": [],
        "terminated": 0,
        "dumped": None,
        "error": "no client certificate to ask with",
    }
    for _path, certificate, key in client_certificates.of_components(context.params, processes):
        try:
            client = tls.context(certificate, key)
            record.update(_loaded(context, answer, client), error=None)
        except http_client.HttpError as error:
            record["error"] = files.one_line(error, 200)
            if str(error) == "timed out":  # another credential gets no answer either
                break
            continue
        break
    return record


def _loaded(context, answer, client):
    """Return the load between two readings, and whose requests wait; HttpError where refused."""
    begun, first = time.monotonic(), _metrics(context, answer, client)
    clients = _dump(context, answer, client)
    time.sleep(min(PAUSE, context.seconds(PAUSE)))
    second = _metrics(context, answer, client)
    return {
        "seconds": round(time.monotonic() - begun, 1),
        "levels": levels(first, second),
        "clients": clients or [],
        "terminated": int(max(0, total(second, TERMINATED) - total(first, TERMINATED))),
        "dumped": clients is not None,
    }


def _get(context, answer, client, path, keep=None):
    connection = http_client.Connection(
        answer["address"], answer["port"], context.seconds(EACH), client
    )
    try:
        status, body = connection.request(path, keep=keep)
    finally:
        connection.close()
    if status != 200:
        raise http_client.HttpError(f"HTTP {status}")
    return body


def _metrics(context, answer, client):
    return samples(_get(context, answer, client, "/metrics", KEEP))


def _dump(context, answer, client):
    """Return whose requests wait or run, None where the server does not tell it."""
    try:
        return clients_of(_get(context, answer, client, DUMP).decode("utf-8", "replace"))
    except http_client.HttpError:
        return None


TERMINATED = "apiserver_request_terminations_total"
DROPPED = "apiserver_dropped_requests_total"


def samples(body):
    """Return [(family, {label: value}, number)] of lines of metrics."""
    rows = []
    for line in body.decode("utf-8", "replace").splitlines():
        family, brace, rest = line.partition("{")
        labels, closed, number = rest.rpartition("}")
        words = number.split()
        if not brace or not closed or not words:
            continue
        try:
            rows.append((family, _labels(labels), float(words[0])))
        except ValueError:
            continue
    return rows


def _labels(text):
    labels = {}
    for part in text.split('",'):
        name, equal, value = part.partition('="')
        if equal:
            labels[name.strip(", ")] = value.rstrip('"')
    return labels


def total(rows, family):
    """Return the sum of a family."""
    return sum(number for name, _labels_of, number in rows if name == family)


def levels(first, second):
    """Return the priority levels, the busiest first, else the two kinds of requests."""
    by_name = _by_level(first, second)
    for name, labels, number in _growth(first, second):
        row = by_name.setdefault(name, _level(name))
        row["rejected"] += int(number)
        reason = files.one_line(labels.get("reason") or "", 40)
        if reason and reason not in row["reasons"]:
            row["reasons"].append(reason)
    if not any(row["running"] or row["waiting"] or row["rejected"] for row in by_name.values()):
        by_name = _by_kind(second)
    rows = sorted(
        by_name.values(), key=lambda row: (-row["rejected"], -row["waiting"], row["name"])
    )
    return rows[:MAX_LEVELS]


def _by_level(first, second):
    """Return {name: level} of what runs and waits; what waits at one reading only is no queue."""
    by_name = {}
    for family, labels, number in second:
        level = labels.get("priority_level")
        if level is not None:
            _add(by_name, files.one_line(level, MAX_TEXT), family, labels, number)
    before = _waiting(first)
    for row in by_name.values():
        row["waiting"] = min(row["waiting"], before.get(row["name"], 0))
    return by_name


def _level(name):
    return {"name": name, "running": 0, "waiting": 0, "limit": None, "rejected": 0, "reasons": []}


def _add(by_name, name, family, labels, number):
    row = by_name.setdefault(name, _level(name))
    if family.endswith("current_executing_requests"):
        row["running"] += int(number)
    elif family.endswith("current_inqueue_requests"):
        row["waiting"] += int(number)
    elif family.endswith(("nominal_limit_seats", "request_concurrency_limit")):
        row["limit"] = int(number)


def _waiting(rows):
    """Return {level: how many requests wait}."""
    counts = {}
    for family, labels, number in rows:
        if family.endswith("current_inqueue_requests"):
            name = files.one_line(labels.get("priority_level") or "", MAX_TEXT)
            counts[name] = counts.get(name, 0) + int(number)
    return counts


def _growth(first, second):
    """Yield (level, labels, how many) of requests that were rejected between two readings."""
    before = {_identity(row): row[2] for row in first}
    for row in second:
        family, labels, number = row
        if not family.endswith("rejected_requests_total") and family != DROPPED:
            continue
        grown = number - before.get(_identity(row), 0.0)
        if grown > 0:
            name = labels.get("priority_level") or labels.get("request_kind") or "requests"
            yield files.one_line(name, MAX_TEXT), labels, grown


def _identity(row):
    return row[0], tuple(sorted(row[1].items()))


def _by_kind(rows):
    """Return the requests that run by their kind, where there is no priority level."""
    by_name = {}
    for family, labels, number in rows:
        if family == "apiserver_current_inflight_requests":
            name = files.one_line(labels.get("request_kind") or "", MAX_TEXT)
            by_name[name] = dict(_level(name), running=int(number))
    return by_name


def clients_of(text):
    """Return [{user, level, verb, resource, requests}] of waiting requests, the most first."""
    lines = text.splitlines()[: MAX_ROWS + 1]
    columns = [name.strip() for name in "".join(lines[:1]).split(",")]
    counts = {}
    for line in lines[1:]:
        key = _client(dict(zip(columns, [cell.strip() for cell in line.split(",")])))
        if key is not None:
            counts[key] = counts.get(key, 0) + 1
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_CLIENTS]
    return [
        dict(zip(("user", "level", "verb", "resource"), key), requests=count) for key, count in rows
    ]


def _client(cells):
    """Return (user, level, verb, resource) of a request, None for one of a probe or our own."""
    user = cells.get("UserName") or cells.get("FlowDistingsher")
    if not user or cells.get("APIPath", "").startswith(OWN):
        return None
    values = (user, cells.get("PriorityLevelName"), cells.get("Verb"), cells.get("Resource"))
    return tuple(files.one_line(value or "", MAX_TEXT) for value in values)
