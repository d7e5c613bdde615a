# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of k3s and RKE2: the keys in their files, and few of their values.

A file may hold the cluster's token, and the password of its data store. What leaves the node is
the name and the line of each key, and the values of those that hold no secret.
"""

import os

from . import command, files, procfs, yaml_scalars

UNITS = {
    "k3s.service": "k3s",
    "k3s-agent.service": "k3s",
    "rke2-server.service": "rke2",
    "rke2-agent.service": "rke2",
}
MAX_FILES, MAX_SETTINGS, MAX_SIZE, MAX_VALUE, MAX_KEY = 16, 120, 128 * 1024, 253, 60
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
ARGUMENTS = "-arg"  # kubelet-arg, kube-apiserver-arg and so on: flags of a component
# Keys whose values are no secret. Of others only "true" and "false" leave the node.
PLAIN = frozenset(
    (
        *("cluster-cidr", "service-cidr", "cluster-dns", "cluster-domain", "cni", "profile"),
        *("service-node-port-range", "egress-selector-mode", "flannel-backend", "flannel-iface"),
        *("data-dir", "disable", "node-name", "node-ip", "node-external-ip", "bind-address"),
        *("advertise-address", "tls-san", "resolv-conf", "snapshotter", "pause-image", "server"),
        *("container-runtime-endpoint", "no-deploy", "cloud-provider-name", "audit-policy-file"),
        *("kube-proxy-mode", "private-registry", "lb-server-port", "https-listen-port"),
        *("token-file", "agent-token-file", "cluster-reset-restore-path"),
    )
)
# Of the files of their units' environment: the address of the server, which is no secret.
PLAIN_VARIABLES = ("K3S_URL", "RKE2_URL")
RUNTIME = "/run/k3s/containerd/containerd.sock"  # of RKE2 too
LOGS = "agent/logs/kubelet.log"
# k3s logs it at each start, once it has the server's answer: an agent may wait for that.
LOGGED, LOGGED_SECONDS = 'msg="Running kubelet ', 3600
CONTAINERD_LOG = "agent/containerd/containerd.log"
# With containerd 2 the first one counts, and the second one where that is missing.
TEMPLATES = ("config-v3.toml.tmpl", "config.toml.tmpl")
TEMPLATE_FOLDER = "agent/etc/containerd"


def program(unit):
    """Return the program whose unit this is, None for any other unit."""
    return UNITS.get(unit)


def kubelet_argv(unit, seconds):
    """Return the command line that k3s logs for the kubelet within it; an empty list without one.

    It is that of the running process, else of the last one. Where journalctl was built without
    patterns, none is found.

    unit: systemd's properties of k3s' unit
    """
    started = procfs.started_at(unit.get("main_pid") or 0)
    window = []
    if started is not None:
        window = [f"--since=@{int(started)}", f"--until=@{int(started) + LOGGED_SECONDS}"]
    journal = ["journalctl", "--no-pager", "--all", "-q", "-r", "-o", "cat", "-n", "1", *window]
    try:
        text = command.run([*journal, "-g", LOGGED, "-u", unit["name"]], seconds, MAX_SIZE)
    except command.CommandError:
        return []
    line = text.partition(LOGGED)[2].partition('"')[0].partition("\n")[0]
    return ["kubelet", *line.split()] if line else []


def configuration(name, argv):
    """Return [{path, error, settings: [{line, key, value}]}] of a program's files in their order.

    argv: of its unit, which may name another file.
    """
    path = procfs.flag(argv, "config") or f"/etc/rancher/{name}/config.yaml"
    folder = path + ".d"
    names = sorted(file for file in files.names(folder) if file.endswith((".yaml", ".yml")))
    paths = [path, *(os.path.join(folder, file) for file in names)]
    records = [_file(file) for file in paths[:MAX_FILES]]
    return [record for record in records if record["error"] != "missing"]


def _file(path):
    record = {"path": files.one_line(path, 253), "error": None, "settings": []}
    try:
        text = files.read(path, MAX_SIZE).decode("utf-8", "replace")
    except OSError as error:
        record["error"] = files.reason(error)
        return record
    if text.lstrip()[:1] in ("{", "["):
        record["error"] = "it is not in the block style of YAML"
        return record
    record["settings"] = [
        {"line": line, "key": files.one_line(key, 80), "value": _shown(key, value)}
        for line, key, value in list(rows(text))[:MAX_SETTINGS]
    ]
    return record


def rows(text):
    """Yield (line, key, value) of each scalar at the top level and in a list below it.

    A key whose value is none of both comes with the value None.
    """
    key = None
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.strip()
        if not plain or plain.startswith("#"):
            continue
        if plain.startswith("- ") and key is not None:
            yield number, key, yaml_scalars.scalar(plain[2:])
        elif line[0] not in " \t-":
            name, _colon, value = plain.partition(":")
            key = _key(name, value)
            if key is not None and value.strip():
                yield from ((number, key, part) for part in _values(value.strip()))


def _key(name, value):
    """Return the key that a line gives, None of a line that gives none."""
    # "key+" adds to what an earlier file has
    key = name.strip().strip("\"'").rstrip("+")
    if len(key) > MAX_KEY or not key or not LETTERS.issuperset(key):
        return None
    return key if value[:1] in ("", " ", "\t") else None


def _values(value):
    """Return the scalars of a value in its line."""
    if value.startswith("[") and value.endswith("]"):
        return [yaml_scalars.scalar(part) for part in value[1:-1].split(",")]
    return [yaml_scalars.scalar(value)]


def _shown(key, value):
    """Return a value that holds no secret, else None."""
    if value is None or value in ("true", "false"):
        return value
    if key.endswith(ARGUMENTS):
        return files.one_line(files.masked_argv(["--" + value.lstrip("-")])[0][2:], MAX_VALUE)
    if key in PLAIN:
        return files.masked_line(value, MAX_VALUE)
    return None


def log_of_kubelet(name, records):
    """Return the file in which a kubelet writes that runs beside its program, else None.

    records: the program's configuration
    """
    if name != "rke2":
        return None  # k3s runs it as a part of itself
    return os.path.join(_data_folder(name, records), LOGS)


def log_of_containerd(name, records):
    """Return the file in which containerd of k3s or RKE2 writes, else None."""
    if name not in ("k3s", "rke2"):
        return None
    return os.path.join(_data_folder(name, records), CONTAINERD_LOG)


def templates(name, records):
    """Return [{path, expressions, nvidia}] of the templates of containerd's configuration.

    expressions: whether it is a template at all, and no whole configuration; nvidia: whether it
    names NVIDIA's runtime. Its text may have passwords of registries, and stays on the node.
    """
    records_of_templates = []
    folder = os.path.join(_data_folder(name, records), TEMPLATE_FOLDER)
    for path in (os.path.join(folder, entry) for entry in TEMPLATES):
        text = files.text(path, MAX_SIZE)
        if text is not None:
            row = {"path": files.one_line(path, 253), "expressions": "{{" in text}
            records_of_templates.append(dict(row, nvidia="nvidia-container-runtime" in text))
    return records_of_templates


def _data_folder(name, records):
    """Return the data-dir of k3s or RKE2."""
    folder = f"/var/lib/rancher/{name}"
    for record in records:
        for row in record["settings"]:
            if row["key"] == "data-dir" and row["value"]:
                folder = row["value"]
    return folder
