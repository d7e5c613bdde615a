# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector manifests: the entries of the kubelet's folder of static pods."""

import os

from ...system import files
from ..base import Absent, Denied

MAX_FILES = 200
USUAL, MAX_USUAL = "/etc/kubernetes/manifests", 20
MAX_TEXT = 2 * 1024 * 1024


def collect(context):
    """Return every entry that the kubelet would load: each without a leading dot, backups too."""
    kubelet = context.data.get("kubelet") or {}
    folder = kubelet.get("static_pod_path")
    if not folder:
        if any(
            (record or {}).get("error") == "denied"
            for record in [kubelet.get("config")] + (kubelet.get("config_dropins") or [])
        ):
            raise Denied(
                "the kubelet's configuration, which names the folder of static pods, may not be"
                " read"
            )
        raise Absent("the kubelet has no folder of static pods")
    context.source = folder
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        raise Absent(f"{folder} does not exist") from None
    except NotADirectoryError:
        return dict(
            _read(context, os.path.dirname(folder), [os.path.basename(folder)]), folder=folder
        )
    return _read(context, folder, names)


def _read(context, folder, names):
    ignored = [name for name in names if name.startswith(".")]
    shown = [name for name in names if not name.startswith(".")]
    context.truncated = len(shown) > MAX_FILES
    records, room = [], MAX_TEXT
    for name in shown[:MAX_FILES]:
        record = files.record(os.path.join(folder, name), limit=min(room, files.MAX_TEXT))
        record.update(
            (key, printable(record[key])) for key in ("path", "name", "link") if record[key]
        )
        # A file that is moved in keeps the time of its last write.
        record["ctime"] = files.ctime(os.path.join(folder, name))
        room -= record["size"] if record["text"] else 0
        context.truncated = context.truncated or record["truncated"]
        records.append(record)
    return {
        "folder": folder,
        "files": records,
        "ignored": [printable(name) for name in ignored[:MAX_FILES]],
        "is_mount": os.path.ismount(folder),
        "usual": _usual(folder),
    }


def _usual(folder):
    """Return the names in kubeadm's folder, where the kubelet reads another one."""
    if os.path.realpath(folder) == os.path.realpath(USUAL):
        return []
    try:
        names = sorted(os.listdir(USUAL))
    except OSError:
        return []
    return [printable(name) for name in names if not name.startswith(".")][:MAX_USUAL]


def printable(name):
    r"""Return a file name as text: bytes that are no UTF-8 are shown as \xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
