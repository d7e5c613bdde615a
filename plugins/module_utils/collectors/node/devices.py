# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector devices: who answers in the kubelet's device plugin folder, and who has devices.

The folder is a constant of the kubelet, whatever its --root-dir. What a plugin returned for a
container (environment, mounts) counts in the checksum and stays on the node.
"""

import os
import stat

from ...shared.checksum import MAX_ENTRIES, fnv32a
from ...system import files, json_line, procfs
from .. import base

FOLDER = "/var/lib/kubelet/device-plugins"
CHECKPOINT = "kubelet_internal_checkpoint"
KUBELET = "kubelet.sock"
MAX_BYTES = 8 * 1024 * 1024
MAX_SOCKETS = 50
CONNECT_SECONDS = 0.5


def collect(context, folder=FOLDER):
    """Return {folder, kubelet_socket, sockets, checkpoint, running, names}.

    made: when a socket was made, in seconds since the epoch; running: the UIDs of pods that
    were given devices and have a process, None where the checkpoint cannot be read; names:
    namespace/name of the same pods, or the UID without logs.
    """
    context.source = folder
    if not os.path.isdir(folder):
        raise base.Absent(f"{folder} does not exist")
    sockets = []
    for name in sorted(os.listdir(folder)):
        state = os.lstat(os.path.join(folder, name))
        if stat.S_ISSOCK(state.st_mode) and len(sockets) < MAX_SOCKETS:
            sockets.append(
                {
                    "name": name,
                    "made": state.st_mtime,
                    "answers": answers(os.path.join(folder, name)),
                }
            )
    kubelet = [row for row in sockets if row["name"] == KUBELET]
    record = checkpoint(os.path.join(folder, CHECKPOINT), context)
    uids = holders(record)
    pods, pod_names = None, None
    if uids is not None:
        pods, pod_names = sorted(uids), names(uids)
    return {
        "folder": folder,
        "kubelet_socket": kubelet[0] if kubelet else None,
        "sockets": [row for row in sockets if row["name"] != KUBELET],
        "checkpoint": record,
        "running": pods,
        "names": pod_names,
    }


def running(folder=FOLDER):
    """Return the UIDs of the pods that were given devices and have a process now.

    The result is None where the checkpoint of the device manager cannot be read.
    """
    return holders(checkpoint(os.path.join(folder, CHECKPOINT), base.Context({}, [], {})))


def holders(record):
    """Return the UIDs of the pods of a checkpoint that have a process, None where it is not read.

    record: as checkpoint() returns it
    """
    if record is None:
        return set()
    if record["error"]:
        return None
    return alive({entry["pod_uid"] for entry in record["entries"]})


def names(uids, logs="/var/log/pods"):
    """Return namespace/name of each of these pods, or its UID where its folder of logs is gone."""
    pod_names = {}
    try:
        names = os.listdir(logs)
    except OSError:
        names = []
    for name in names:
        namespace, _dummy, rest = name.partition("_")
        pod, _dummy, uid = rest.rpartition("_")
        pod_names[uid] = f"{namespace}/{pod}"
    return sorted(pod_names.get(uid, uid) for uid in uids)


def alive(uids):
    """Return those of these pods that have a process."""
    alive_uids = set()
    for name in os.listdir("/proc") if uids else ():
        if name.isdigit() and alive_uids != uids:
            uid = procfs.cgroup(files.text(f"/proc/{name}/cgroup") or "")["pod_uid"]
            alive_uids.update([uid] if uid in uids else [])
    return alive_uids


def answers(path):
    """Return whether a process listens there: True, False, or None if unknown.

    It connects and sends nothing.
    """
    try:
        import _socket as socket  # the module behind socket, without enum, selectors and re
    except ImportError:
        import socket
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.settimeout(CONNECT_SECONDS)
    try:
        probe.connect(path)
        return True
    except ConnectionRefusedError:
        return False
    except OSError:
        return None
    finally:
        probe.close()


def checkpoint(path, context):
    """Return the entries and whether the checksum is that of them; None without the file."""
    try:
        with os.fdopen(files.opened(path), "rb") as source:
            at = os.fstat(source.fileno()).st_mtime
            data = source.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    record = {
        "path": path,
        "mtime": at,
        "size": len(data),
        "error": None,
        "format": None,
        "checksum": None,
        "entries": [],
        "registered": {},
    }
    if len(data) > MAX_BYTES:
        context.truncated = True
        return dict(record, error=f"more than {MAX_BYTES} bytes")
    try:
        return dict(record, **_parsed(data, context))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return dict(
            record,
            error=files.one_line(
                f"it is not what a kubelet writes ({type(error).__name__}: {error})", 150
            ),
        )


def _parsed(data, context):
    if not data.strip():
        raise ValueError("it is empty")
    record = json_line.loads(data.decode("utf-8"))
    content = record["Data"]
    pod_devices = content.get("PodDeviceEntries")
    entries = [_entry(entry) for entry in pod_devices or []]
    texts = None
    if pod_devices is not None:
        texts = [_printed(entry) for entry in pod_devices]
    devices = content.get("RegisteredDevices")
    if len(entries) > MAX_ENTRIES:
        context.truncated = True
    text = (
        "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)"
        f"{_list(texts)}"
        f" RegisteredDevices:(map[string][]string){_map(devices)}}}"
    )
    has_numa = any(isinstance(entry.get("DeviceIDs"), dict) for entry in pod_devices or [])
    return {
        "format": _format(has_numa, entries),
        "entries": entries[:MAX_ENTRIES],
        "registered": _devices_of_resources(devices),
        "checksum": _checksum(text, record.get("Checksum")),
    }


def _devices_of_resources(registered):
    """Return {resource: its devices} of what plugins registered."""
    return {
        str(name): [str(device) for device in devices or []]
        for name, devices in (registered or {}).items()
    }


def _entry(entry):
    devices = entry.get("DeviceIDs")
    if isinstance(devices, dict):
        by_node = [devices[node] or [] for node in sorted(devices, key=int)]
        devices = [device for row in by_node for device in row]
    return {
        "pod_uid": str(entry["PodUID"]),
        "container": str(entry["ContainerName"]),
        "resource": str(entry["ResourceName"]),
        "devices": [str(device) for device in devices or []],
    }


def _printed(entry):
    """Return an entry as the kubelet prints it for the checksum."""
    import binascii

    response = entry.get("AllocResp")
    if response is not None:
        response = bytearray(binascii.a2b_base64(response))
    return (
        "{{PodUID:(string){} ContainerName:(string){} ResourceName:(string){} DeviceIDs:{}"
        " AllocResp:([]uint8){}}}".format(
            entry["PodUID"],
            entry["ContainerName"],
            entry["ResourceName"],
            _ids(entry.get("DeviceIDs")),
            _list(response),
        )
    )


def _format(numa, entries):
    if numa:
        return "numa"
    if entries:
        return "list"
    return None


def _checksum(text, checksum):
    if not checksum:
        return "absent"
    if fnv32a(text.encode("utf-8")) == checksum:
        return "right"
    return "wrong"


def _list(values):
    """Return a slice as the kubelet's printer shows it; a nil slice differs from an empty one."""
    if values is None:
        return "<nil>"
    return "[{}]".format(" ".join(str(value) for value in values))


def _map(values, key=str):
    if values is None:
        return "<nil>"
    return "map[{}]".format(
        " ".join(f"{name}:{_list(values[name])}" for name in sorted(values, key=key))
    )


def _ids(ids):
    """Return device ids as the kubelet's checksum has them.

    They are a list up to 1.19, and lists by NUMA node since.
    """
    if isinstance(ids, dict):
        return "(checkpoint.DevicesPerNUMA)" + _map(ids, int)
    return "([]string)" + _list(ids)
