# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of an etcd that runs on this node: flags, environment or configuration file.

etcd reads a configuration file instead of flags and environment, and a flag before the variable of
its name. kubespray gives it an environment, RKE2 and k3s a file.
"""

from . import files, procfs, yaml_scalars

# What evidence may have of an etcd; a password or a token is none of them.
SHOWN = (
    "name",
    "data-dir",
    "wal-dir",
    "quota-backend-bytes",
    "auto-compaction-mode",
    "auto-compaction-retention",
    "snapshot-count",
    "heartbeat-interval",
    "election-timeout",
    "initial-cluster",
    "initial-cluster-state",
    "initial-advertise-peer-urls",
    "advertise-client-urls",
    "listen-client-urls",
    "listen-peer-urls",
    "listen-metrics-urls",
    "force-new-cluster",
    "unsafe-no-fsync",
    "config-file",
    "trusted-ca-file",
    "cert-file",
    "key-file",
)
# Keys of the sections of clients and of peers in a configuration file.
OF_CLIENTS = ("trusted-ca-file", "cert-file", "key-file")
SECTION, PEERS = "client-transport-security", "peer-transport-security"
# What the collector of certificates looks at too.
OF_PEERS = ("peer-trusted-ca-file", "peer-cert-file", "peer-key-file")
MAX_VALUE, MAX_FILE, MAX_ENVIRONMENT = 1000, 65536, 262144


def complete(process):
    """Return the process with flags for what its environment or its configuration file sets."""
    argv = list(process["argv"])
    path = procfs.flag(argv, "config-file")
    if path:
        values = of_file(_text(path, process["pid"]))
    else:
        values = of_environment(_environment(process["pid"]))
    added = [
        f"--{name}={value}" for name, value in values.items() if procfs.flag(argv, name) is None
    ]
    return dict(process, argv=argv + added)


def shown(process):
    """Return {flag: value} of the settings that evidence may have."""
    values = {name: procfs.flag(process["argv"], name) for name in SHOWN}
    return {
        name: files.one_line(value, MAX_VALUE)
        for name, value in values.items()
        if value is not None
    }


def of_environment(text):
    """Return {flag: value} of the variables of etcd, ETCD_DATA_DIR for --data-dir."""
    variables = dict(line.partition("=")[::2] for line in text.split("\0"))
    values = {
        name: variables.get("ETCD_" + name.upper().replace("-", "_"))
        for name in (*SHOWN, *OF_PEERS)
    }
    return {name: value for name, value in values.items() if value}


def of_file(text):
    """Return {flag: value} of a configuration file in YAML."""
    values = {name: yaml_scalars.top(text, name) for name in SHOWN if name not in OF_CLIENTS}
    section, peers = _section(text, SECTION), _section(text, PEERS)
    values.update((name, yaml_scalars.anywhere(section, name)) for name in OF_CLIENTS)
    values.update(("peer-" + name, yaml_scalars.anywhere(peers, name)) for name in OF_CLIENTS)
    return {name: value for name, value in values.items() if value}


def _section(text, name):
    """Return the indented lines below a key of the top level."""
    lines, is_inside = [], False
    for line in text.splitlines():
        if line[:1] not in ("", " ", "\t", "#"):
            is_inside = line.split(":")[0].strip("\"' ") == name
        elif is_inside:
            lines.append(line)
    return "\n".join(lines)


def _text(path, pid):
    try:
        return files.read(path, MAX_FILE, f"/proc/{pid}/root").decode("utf-8", "replace")
    except OSError:
        return ""


def _environment(pid):
    try:
        raw = procfs.files_of_proc(pid, "environ")[:MAX_ENVIRONMENT]
    except OSError:
        return ""
    return raw.decode("utf-8", "replace")
