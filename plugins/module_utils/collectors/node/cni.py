# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector cni: the CNI configurations of a node, their programs, and host-local's reservations.

Of a configuration only names and types leave the node, and paths of files that are not there.
"""

import os
import time

from ...system import files, json_line, procfs, rancher
from ..base import Absent, Failed

FOLDER, PROGRAMS, STATE = "/etc/cni/net.d", "/opt/cni/bin", "/var/lib/cni/networks"
PODS, ASIDE = "/var/log/pods", ".cilium_bak"
ENDINGS = (".conf", ".conflist", ".json")
HOST_LOCAL, FLANNEL, FLANNEL_SUBNET = "host-local", "flannel", "/run/flannel/subnet.env"
MAX_FILES, MAX_SIZE, MAX_PLUGINS, MAX_PROGRAMS, MAX_RESERVED, MAX_NAMES = (
    20,
    65536,
    20,
    600,
    5000,
    3,
)
MAX_RANGES, MAX_CONTENT, MAX_CONTAINERS = 20, 512, 5000
HTTP_OK = 200
# What a plugin reads of its own; what follows them in a configuration may be a secret.
FILE_KEYS = ("kubeconfig", "etcd_ca_cert_file", "etcd_cert_file", "etcd_key_file")
MAX_MISSING = 5
YOUNG_SECONDS = 600  # an address of a pod that is being made
SKIPPED = ("lock", "last_reserved_ip")


def collect(context):
    """Return {folder, files, aside, multus, bin_dirs, programs, error, reservations}.

    files: in the order in which a runtime takes them; aside: the names of those that Cilium put
    aside; multus: whether a pod of Multus is on the node; bin_dirs: None where they are not known;
    programs: the names in them; reservations: of host-local, for the networks of the files.
    """
    kubelet, runtime = context.data.get("kubelet"), context.data.get("runtime") or {}
    if not kubelet:
        raise Absent("no kubelet")
    answered = _answered(kubelet, runtime, context)
    config = answered.get("config") or {}
    argv = kubelet.get("argv") or []
    folder = config.get("conf_dir") or procfs.flag(argv, "cni-conf-dir") or FOLDER
    context.source = folder
    records, error = configurations(folder)
    bin_dirs = _bin_dirs(config, runtime, argv)
    sandboxes = answered.get("sandboxes")
    if _is_docker(runtime) and _uses_host_local(records):
        sandboxes = docker_containers(runtime.get("path"), context.seconds(3))
    return {
        "folder": files.one_line(folder, 253),
        "error": error,
        "files": records,
        "aside": aside(folder),
        "multus": has_multus(PODS),
        "bin_dirs": bin_dirs,
        "programs": programs(bin_dirs),
        "reservations": reservations(records, sandboxes, time.time()),
    }


def _answered(kubelet, runtime, context):
    """Return what the runtime says of itself, {} where it says nothing."""
    if runtime.get("kind") == "embedded":
        return _of_embedded(kubelet, runtime, context)
    return context.data.get("cri") or {}


def _of_embedded(kubelet, runtime, context):
    """Return what the runtime of k3s or RKE2 says of itself; raise Absent where it does not."""
    unit, path = kubelet.get("unit") or {}, runtime.get("path")
    if path is None and rancher.program(unit.get("name")):
        path = rancher.RUNTIME
    if path is None or not os.path.exists(path):
        raise Absent("the runtime is part of another program, which has folders of its own")
    from . import cri  # the collectors of other nodes do without it here

    answer = cri.of_embedded(path, context)
    if answer is None or answer["config"] is None:
        raise Failed(f"the runtime at {files.one_line(path, 200)} does not answer")
    return answer


def _is_docker(runtime):
    """Return whether the kubelet itself uses docker, and that runs."""
    return runtime.get("kind") == "docker" and bool(runtime.get("asked"))


def _uses_host_local(records):
    return any(ipam["type"] == HOST_LOCAL for record in records for ipam in record["ipam"])


def docker_containers(path, seconds):
    """Return the ids of all containers of docker, None where it does not tell, or has too many.

    Up to 1.23 a kubelet may use docker itself: a sandbox is a container there.
    """
    from ...system import http_client

    try:
        connection = http_client.Connection(path or "/", 0, seconds)
        try:
            status, body = connection.request("/containers/json?all=1")
        finally:
            connection.close()
        rows = json_line.loads(body.decode("utf-8", "replace"))
        if status != HTTP_OK or not _is_list(rows) or len(rows) > MAX_CONTAINERS:
            return None
        return [_word(row["Id"]) for row in rows]
    except (http_client.HttpError, ValueError, TypeError, KeyError):
        return None


def _bin_dirs(config, runtime, argv):
    """Return where the runtime looks for the programs, None where that is not known."""
    if config.get("bin_dirs"):
        return config["bin_dirs"]
    if runtime.get("kind") == "docker":
        return [procfs.flag(argv, "cni-bin-dir") or PROGRAMS]
    return None


def configurations(folder):
    """Return (the records of a folder's configurations in their order, why it was not listed)."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(ENDINGS))
    except OSError as error:
        return [], files.reason(error)
    return [_configuration(folder, name) for name in names[:MAX_FILES]], None


def aside(folder):
    """Return the names of the configurations that Cilium renamed, as another plugin's."""
    names = [name for name in files.names(folder) if name.endswith(ASIDE)]
    return [files.one_line(name, 120) for name in sorted(names)[:MAX_FILES]]


def has_multus(pods=PODS):
    """Return whether the node has a pod of Multus, by the folders of logs of its pods.

    A folder is NAMESPACE_POD_UID; the pod of RKE2 is rke2-multus-*.
    """
    return any("multus" in name.partition("_")[2] for name in files.names(pods))


def _configuration(folder, name):
    record = {
        "name": files.one_line(name, 120),
        "size": None,
        "mtime": None,
        "uid": None,
        "network": "",
        "plugins": [],
        "ipam": [],
        "missing": [],
        "error": None,
    }
    path = os.path.join(folder, name)
    try:
        state = os.stat(path)
        record.update(size=state.st_size, mtime=state.st_mtime, uid=state.st_uid)
        _fill(record, _parsed(files.read(path, MAX_SIZE)))
    except OSError as error:
        record["error"] = files.reason(error)
    except ValueError:
        record["error"] = "it is no JSON object"
    return record


def _parsed(data):
    value = json_line.loads(data.decode("utf-8", "replace"))
    if not isinstance(value, dict):
        raise ValueError
    return value


def _fill(record, config):
    record["network"] = _word(config.get("name"))
    listed = config.get("plugins")
    plugins = [plugin for plugin in listed if isinstance(plugin, dict)] if _is_list(listed) else []
    for plugin in (plugins or [config])[:MAX_PLUGINS]:
        record["plugins"].append(_word(plugin.get("type")))
        if plugin.get("type") == FLANNEL:
            record["ipam"].append(_of_flannel())
        record["missing"] += _missing(plugin)[:MAX_MISSING]
        ipam = plugin.get("ipam")
        if isinstance(ipam, dict) and ipam.get("type"):
            record["ipam"].append(_ipam(ipam))


def _missing(plugin):
    """Return the paths that a plugin is told to read and that are not there."""
    tables = [plugin, plugin.get("kubernetes"), plugin.get("ipam")]
    if isinstance(plugin.get("ipam"), dict):
        tables.append(plugin["ipam"].get("kubernetes"))
    paths = []
    for table in filter(_is_table, tables):
        paths += [table.get(key) for key in FILE_KEYS]
    texts = [path for path in paths if isinstance(path, str)]
    return [_word(path) for path in dict.fromkeys(texts) if _is_missing(path)]


def _is_table(value):
    return isinstance(value, dict)


def _is_missing(path):
    if not path.startswith("/"):
        return False
    try:
        os.stat(path)
    except ValueError:  # a byte of zero
        return False
    except OSError as error:
        return files.reason(error) == "missing"
    return False


def _of_flannel(path=FLANNEL_SUBNET):
    """Return the management of addresses that flannel gives to the plugin bridge."""
    subnets = []
    for line in (files.text(path, 4096) or "").split("\n"):
        key, _equals, value = line.partition("=")
        if key == "FLANNEL_SUBNET":
            subnets.append(_word(value.strip()))
    return {"type": HOST_LOCAL, "data_dir": "", "subnets": subnets}


def _is_list(value):
    return isinstance(value, list)


def _ipam(ipam):
    """Return {type, data_dir, subnets} of one plugin's management of addresses."""
    subnets = [ipam.get("subnet")]
    for group in ipam.get("ranges") if _is_list(ipam.get("ranges")) else ():
        rows = group if _is_list(group) else ()
        subnets += [row.get("subnet") for row in rows if isinstance(row, dict)]
    return {
        "type": _word(ipam["type"]),
        "data_dir": _word(ipam.get("dataDir")),
        "subnets": [_word(subnet) for subnet in subnets if isinstance(subnet, str)][:MAX_RANGES],
    }


def _word(value):
    return files.one_line(value, 253) if isinstance(value, str) else ""


def programs(folders):
    """Return the names of the programs in these folders, None where one is not known whole."""
    if folders is None:
        return None
    names = set()
    for folder in folders:
        try:
            names.update(os.listdir(folder))
        except OSError as error:
            if files.reason(error) != "missing":
                return None
    if len(names) > MAX_PROGRAMS:  # a cut list would lack programs that are there
        return None
    return sorted(files.one_line(name, 120) for name in names)


def reservations(records, sandboxes, now, state=STATE):
    """Return [{network, folder, addresses, held, leaked, empty, oldest, names, truncated}].

    held: reserved for a sandbox that the runtime has; leaked: for one that it does not have, and
    not of late. Both are None where its sandboxes are not known.
    """
    rows, folders = [], set()
    for record in records:
        for ipam in record["ipam"]:
            folder = os.path.join(ipam["data_dir"] or state, record["network"])
            if ipam["type"] == HOST_LOCAL and record["network"] and folder not in folders:
                folders.add(folder)
                rows.append(_reserved(record["network"], folder, sandboxes, now))
    return [row for row in rows if row is not None]


def _reserved(network, folder, sandboxes, now):
    """Return the reservations of one network, None where its folder does not exist."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    none_yet = None if sandboxes is None else 0
    row = {
        "network": network,
        "folder": files.one_line(folder, 253),
        "addresses": 0,
        "held": none_yet,
        "leaked": none_yet,
        "empty": 0,
        "oldest": None,
        "names": [],
        "truncated": len(names) > MAX_RESERVED,
    }
    ids = frozenset(sandboxes or ())
    for name in names[:MAX_RESERVED]:
        if not name.startswith(SKIPPED):
            _count(row, os.path.join(folder, name), ids, now)
    return row


def _count(row, path, ids, now):
    """Count one reservation: its file has the sandbox's id in its first line."""
    try:
        changed = os.stat(path).st_mtime
        owner = files.read(path, MAX_CONTENT).decode("utf-8", "replace").split("\n")[0].strip()
    except OSError:
        return  # it was released meanwhile
    row["addresses"] += 1
    if owner in ids:
        row["held"] += 1
    if now - changed < YOUNG_SECONDS:
        return
    if not owner:
        row["empty"] += 1
    elif row["leaked"] is None or owner in ids:
        return
    else:
        row["leaked"] += 1
    row["oldest"] = min(row["oldest"] or changed, changed)
    if len(row["names"]) < MAX_NAMES:
        row["names"].append(files.one_line(os.path.basename(path), 80))
