# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector static_pod_paths: what lies at the paths of the host that static pods are given.

The collector reads the manifests as text, without a parser of YAML: it asks for a few paths more
than the controller needs, and opens none of them.
"""

import os
import re
import stat

from ...system import files
from ..base import Absent, Denied

MAX_PATHS = 300
KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "directory"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISBLK, "block device"),
    (stat.S_ISCHR, "character device"),
)
_PATH = r"(/[^\s\"',;]{1,512})"
_HOST = re.compile(r"[\s\"'{-]path[\"']?:\s{0,8}[\"']?" + _PATH)
_MOUNT = re.compile(r"mountPath[\"']?:\s{0,8}[\"']?" + _PATH)
_FLAG = re.compile(r"--[\w-]{2,80}=[\"']?" + _PATH)


def collect(context):
    """Return {paths: [{path, kind}]}: kind is missing or denied where nothing can be told."""
    manifests = context.data.get("manifests")
    if manifests is None:
        if os.geteuid() != 0:
            raise Denied("the manifests, which name the paths, may not be read")
        raise Absent("no folder of static pods")
    context.source = manifests.get("folder")
    paths = []
    for record in manifests.get("files") or ():
        paths += of_manifest(record.get("text") or "")
    paths = list(dict.fromkeys(paths))
    if not paths:
        raise Absent("no static pod names a path of this host")
    context.truncated = len(paths) > MAX_PATHS
    return {"paths": [{"path": path, "kind": kind_of(path)} for path in paths[:MAX_PATHS]]}


def of_manifest(text):
    """Return the paths of the host that a manifest names, and those below them of its flags."""
    flags = _FLAG.findall(text)
    volumes = [path.rstrip("/") or "/" for path in _HOST.findall(text)]
    return list(dict.fromkeys(volumes + _with_mounts(text, flags)))


def of_flag(text, name):
    """Return the paths of the host that may be those of a flag, those by a mount first."""
    return _with_mounts(text, re.findall(f"--{name}=[\"']?" + _PATH, text))[::-1]


def _with_mounts(text, flags):
    """Return paths of flags, and those of the host that the pod's mounts give them."""
    volumes = _HOST.findall(text)
    paths = list(flags)
    for mount in [path.rstrip("/") for path in _MOUNT.findall(text)]:
        for flag in flags:
            if flag == mount or flag.startswith(mount + "/"):
                rest = flag[len(mount) :]
                paths += _below(volumes, mount, rest)
    return list(dict.fromkeys(paths))


def _below(volumes, mount, rest):
    """Return where a file of a mount may lie on the host, for each volume that may be this mount.

    The controller parses the manifest and says which volume it is. A volume of another
    name counts only where the file is there.
    """
    name = os.path.basename(mount)
    candidates = [volume.rstrip("/") for volume in volumes if volume.rstrip("/") != mount]
    return [
        volume + rest
        for volume in candidates
        if os.path.basename(volume) == name or os.path.exists(volume + rest)
    ]


def kind_of(path):
    """Return what lies at a path: links are followed, as a mount does it."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return files.reason(error)
    except ValueError:
        return "missing"
    return next((name for is_kind, name in KINDS if is_kind(mode)), "other")
