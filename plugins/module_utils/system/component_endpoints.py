# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a control-plane component answers, and what its healthz and its configz say."""

from . import http_client, json_line, procfs

# secure port; insecure port and its flags, gone since 1.24
PORTS = {"kube-scheduler": (10259, 10251), "kube-controller-manager": (10257, 10252)}
API_SERVER = "kube-apiserver"
CHECK = "leaderElection"


def doors(component, argv):
    """Return [(address, port, TLS)] where a component may answer, by its argv.

    The caller uses the first endpoint that answers.
    """
    if component == API_SERVER:
        return _of_server(argv)
    secure, insecure = PORTS[component]
    return _secure_doors(argv, secure) + _insecure_doors(argv, insecure)


def _secure_doors(argv, default):
    port = procfs.flag(argv, "secure-port") or str(default)
    if not port.isdigit() or port == "0":
        return []
    address = http_client.reachable(procfs.flag(argv, "bind-address"))
    endpoints = [(address, int(port), True)]
    if address == "::1":
        endpoints.append(("127.0.0.1", int(port), True))
    return endpoints


def _insecure_doors(argv, default):
    """Return the door of the port without TLS, where the argv or the version may open one."""
    port, address = procfs.flag(argv, "port"), procfs.flag(argv, "address")
    if port != "0" and (port or address):
        number = int(port) if (port or "").isdigit() else default
        return [(http_client.reachable(address), number, False)]
    if port is None:
        return [("127.0.0.1", default, False)]
    return []


def _of_server(argv):
    port = procfs.flag(argv, "secure-port") or "6443"
    addresses = [http_client.reachable(procfs.flag(argv, "bind-address"))]
    addresses += [
        host
        for host in (procfs.flag(argv, "advertise-address"), "127.0.0.1")
        if host and host not in addresses
    ]
    return [(address, int(port), True) for address in addresses if port.isdigit()]


def has_check(body):
    """Return whether healthz?verbose lists leader election; None when it lists no checks."""
    lines = (body or "").splitlines()
    checks = [line for line in lines if line.startswith(("[+]", "[-]"))]
    return any(line[3:].startswith(CHECK) for line in checks) if checks else None


def configz(status, body):
    """Return the leader election of /configz, in the names that the version gives it."""
    if status != 200:
        return {"status": status, "leader_election": None, "error": f"HTTP {int(status)}"}
    try:
        whole = json_line.loads(body.decode("utf-8", "replace"))
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
    """Return a member of an object by its name in lower case.

    Kubernetes 1.18 capitalizes names that 1.36 does not.
    """
    if isinstance(value, dict):
        for key in value:
            if key.lower() == name:
                return value[key]
    return None
