# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector component_http."""

import time

from ...system import files, procfs
from ...system import http_client as web
from ...system import json_line as jsonline
from ..base import Absent, in_this_network

# secure port; insecure port and its flags, gone since 1.24
PORTS = {"kube-scheduler": (10259, 10251), "kube-controller-manager": (10257, 10252)}
API_SERVER = "kube-apiserver"
CHECK = "leaderElection"
METRICS = (b"leader_election_master_status{", b"kubernetes_build_info{")
# after its start a component answers 403 for some seconds: its client CA is still on the way
YOUNG, PATIENCE, PAUSE = 20, 10, 0.5
EACH = 5


def collect(context):
    """Return what each scheduler and controller manager of this node reports of itself."""
    everyone = (context.data.get("instances") or {}).get("processes") or []
    asked = in_this_network(context, PORTS)
    if not asked:
        raise Absent("no scheduler or controller manager in this node's network")
    from ...system import client_certificates as credentials
    from ...system import tls

    context.source = "healthz, configz and metrics of the processes"
    usable = list(credentials.of_components(context.params, everyone))
    components = []
    patience = time.monotonic() + PATIENCE  # for all of them together
    for process in asked:
        found = _ask(process, usable, context, tls.context, patience)
        # the one that was let in goes first at the next component
        usable.sort(key=lambda one, path=found["credential"]: one[0] != path)
        components.append(found)
    return {"components": components}


def _ask(process, usable, context, tls, patience):
    found = {
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
    secure = _find_door(found, process, context, tls)
    if found["healthz"]["error"]:
        _fail(found, found["healthz"]["error"])
        return found
    if found["healthz"]["status"] in (200, 500):
        found["leader_election_check"] = has_check(found["healthz"]["body"])
    credentials, client = [(None, None, None)], None
    if secure:
        credentials, client = usable, tls
    while not _is_let_in(found, credentials, client, context):
        if not _is_young_and_refused(found, process):
            break
        if time.monotonic() + PAUSE > patience or not context.seconds(EACH):
            break
        time.sleep(PAUSE)
    if not credentials:
        _fail(found, "no client certificate to ask with")
    return found


def _find_door(found, process, context, tls):
    """Ask healthz at each address until one answers; return whether that is by TLS."""
    secure = False
    for address, port, secure in doors(process["component"], process["argv"]):
        seconds = context.seconds(EACH)
        client = None
        if secure:
            client = tls()
        healthz = web.get(address, port, "/healthz?verbose", seconds, client)
        found.update(address=address, port=port, healthz=healthz)
        if healthz["error"] is None:
            break
    return secure


def _is_let_in(found, credentials, tls, context):
    return any(
        _inside(found, path, certificate, key, tls, context.seconds(EACH))
        for path, certificate, key in credentials
    )


def _is_young_and_refused(found, process):
    """Return whether the component refuses because its client CA may still be on the way."""
    if found["configz"]["status"] not in (401, 403) or not process["started_at"]:
        return False
    return time.time() - process["started_at"] < YOUNG + PATIENCE


def _fail(found, reason):
    for part in ("configz", "metrics"):
        found[part]["error"] = reason


def _inside(found, path, certificate, key, tls, seconds):
    """Configz and metrics by one credential; False when it is refused or cannot be used."""
    try:
        connection = web.Connection(
            found["address"], found["port"], seconds, tls(certificate, key) if tls else None
        )
    except web.HttpError as error:
        for part in ("configz", "metrics"):
            found[part]["error"] = str(error)
        return False
    inside = False
    try:
        status, body = connection.request("/configz")
        found["configz"] = configz(status, body)
        if status in (401, 403):
            found["metrics"].update(status=status, error=found["configz"]["error"])
            return False
        inside, found["credential"] = True, path
        found["metrics"] = metrics(*connection.request("/metrics", keep=METRICS))
    except web.HttpError as error:
        found["metrics" if inside else "configz"]["error"] = str(error)
    finally:
        connection.close()
    return inside


def doors(component, argv):
    """Where it may answer: [(address, port, TLS)], as its argv says.

    The first that answers counts.
    """
    if component == API_SERVER:
        return _of_server(argv)
    secure, insecure = PORTS[component]
    found = []
    port = procfs.flag(argv, "secure-port") or str(secure)
    if port.isdigit() and port != "0":
        address = web.reachable(procfs.flag(argv, "bind-address"))
        found.append((address, int(port), True))
        if address == "::1":
            found.append(("127.0.0.1", int(port), True))
    port = procfs.flag(argv, "port")
    if port != "0" and (port or procfs.flag(argv, "address")):
        found.append(
            (
                web.reachable(procfs.flag(argv, "address")),
                int(port) if (port or "").isdigit() else insecure,
                False,
            )
        )
    elif port is None:
        found.append(("127.0.0.1", insecure, False))
    return found


def _of_server(argv):
    port = procfs.flag(argv, "secure-port") or "6443"
    addresses = [web.reachable(procfs.flag(argv, "bind-address"))]
    addresses += [
        one
        for one in (procfs.flag(argv, "advertise-address"), "127.0.0.1")
        if one and one not in addresses
    ]
    return [(address, int(port), True) for address in addresses if port.isdigit()]


def has_check(body):
    """Is leader election among the checks of healthz?verbose? None when that lists no checks."""
    lines = (body or "").splitlines()
    checks = [line for line in lines if line.startswith(("[+]", "[-]"))]
    return any(line[3:].startswith(CHECK) for line in checks) if checks else None


def configz(status, body):
    """The leader election of /configz, in the names that the version gives it."""
    if status != 200:
        return {"status": status, "leader_election": None, "error": "HTTP %d" % status}
    try:
        whole = jsonline.loads(body.decode("utf-8", "replace"))
    except ValueError:
        return {"status": status, "leader_election": None, "error": "the answer is no JSON"}
    part = _member(whole, "componentconfig") or _member(
        _member(whole, "kubecontrollermanager.config.k8s.io"), "generic"
    )
    part = _member(part, "leaderelection")
    error = None if isinstance(part, dict) else "no leader election in it"
    return {
        "status": status,
        "leader_election": part if isinstance(part, dict) else None,
        "error": error,
    }


def _member(value, name):
    """A member of an object by its name without regard to case.

    1.18 capitalises what 1.36 does not.
    """
    if isinstance(value, dict):
        for key in value:
            if key.lower() == name:
                return value[key]
    return None


def metrics(status, body):
    """leader_election_master_status by lock name, and the version, of the lines that were kept."""
    found = {
        "status": status,
        "leader_election_master_status": None,
        "git_version": None,
        "error": None,
    }
    if status != 200:
        found["error"] = f"HTTP {status}"
        return found
    for line in body.decode("utf-8", "replace").splitlines():
        if line.startswith("leader_election_master_status{"):
            name, value = _label(line, "name"), line.rpartition("}")[2].split()
            if name and value:
                found["leader_election_master_status"] = (
                    found["leader_election_master_status"] or {}
                )
                found["leader_election_master_status"][name] = int(float(value[0]))
        elif line.startswith("kubernetes_build_info{"):
            found["git_version"] = _label(line, "git_version") or _label(line, "gitVersion")
    return found


def _label(line, name):
    for mark in ("{" + name + '="', "," + name + '="'):
        begin = line.find(mark)
        if begin >= 0:
            return files.one_line(line[begin + len(mark) :].split('"', 1)[0], 100)
    return None
