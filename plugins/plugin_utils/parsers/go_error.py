# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of the kernel and of Go's own packages in a text, and the class that each has. Pure.

They stand inside the errors of a component, and name the cause where those name only what was
being done. What stands in quotes is not read: it may be a name that a user chose. The description
of an error of gRPC is not such a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import errno_message

OF_ERRNO = {
    errno_message.CGROUP: "cgroup",
    errno_message.CPUSET: "cgroup",
    errno_message.WATCHES: "resources",
    errno_message.INSTANCES: "resources",
    errno_message.FILES: "resources",
    errno_message.FILE_MAX: "resources",
    errno_message.KEYRING: "resources",
    errno_message.MOUNTS: "kernel",
    errno_message.KERNEL: "kernel",
    errno_message.DISK: "disk",
}
# One that is not closed reaches to the end.
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\\?$)', re.DOTALL)
_DESCRIPTION = "desc = "
LONGEST = 160  # characters of an error that are quoted
_NESTED = 3  # descriptions in one another
# (what the text has, its class); the first that matches decides.
_TEXTS = tuple(
    (re.compile(text, re.IGNORECASE), meaning)
    for text, meaning in (
        (
            r"\bbind: (?:address already in use|cannot assign requested address|permission denied)",
            "port",
        ),
        # runc's library in kubelets up to 1.22
        (r"\bmountpoint for \S{1,40} not found", "cgroup"),
        (
            r"\bx509: |\bremote error: tls: (?!internal error)"
            r"|\btls: (?:failed to verify|private key does)",
            "credential",
        ),
        (r"\btls: (?:failed to find any PEM|failed to parse|bad certificate)", "credential"),
        # no address was tried: a security module refuses the socket itself
        (r"\bsocket: (?:permission denied|operation not permitted)", "kernel"),
        (r"\bno such host\b|\bserver misbehaving\b", "network"),
        (r"\bno route to host\b|\bnetwork is unreachable\b", "network"),
        (r"\bflag provided but not defined: ", "configuration"),
        (r"\betcdserver: ", "dependency"),
        # bbolt, the database of etcd and containerd, damaged by a power cut (bbolt#705 and #883)
        (
            r"\bassertion failed: Page expected to be: |\bfreepages: failed to get all reachable"
            r" pages|\binvalid freelist page: \d|\bpage \d+ already freed",
            "state_file",
        ),
        (
            r"\bis forbidden: User |\bthe server has asked for the client to provide credentials"
            r"|(?:^|: )Unauthorized$",
            "api",
        ),
    )
)
# Of a configuration's file, where no form does (k8s.io/apimachinery).
_NO_KIND = re.compile(r'\bno kind "" is registered for (?:version|the internal version) ')
# Errors of a file. They name the cause where no form does; a damaged file system always does.
_FILE = re.compile(
    r"\b(?:open|openat|stat|lstat|mkdir|mkdirat|read|write|unlink|unlinkat|remove|rename|chmod"
    r"|chown|readlink|readdirent|fsync|sync|truncate|link|symlink|flock) (?P<path>/[^\s:]{1,255}):"
    r" (?P<damage>input/output error|structure needs cleaning|stale file handle"
    r"|stale NFS file handle)?(?P<denied>permission denied|operation not permitted"
    r"|device or resource busy)?(?:no such file or directory|is a directory|not a directory"
    r"|file exists)?",
    re.IGNORECASE,
)
# Of a file system, in an error that names no path.
_FILE_SYSTEM = re.compile(
    r"\b(?:no space left on device|disk quota exceeded|read-only file system|input/output error"
    r"|structure needs cleaning)[\s.)\]]*$",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(
    r"/pki/|/ssl/|\.(?:crt|key|pem|pub|kubeconfig)$|^/etc/kubernetes/[\w-]+\.conf$"
)
_KERNEL = ("/proc/", "/sys/", "/dev/")
_DIAL = re.compile(
    r"\bdial (?P<net>unix|tcp|udp)[46]? (?P<address>\S{1,255}?): (?:\S+: )?"
    r"(?P<errno>connection refused|connect: |i/o timeout|context deadline exceeded|operation was"
    r" canceled|no such file or directory|permission denied)",
    re.IGNORECASE,
)
_ETCD = re.compile(r":(?:2379|2380|4001)$")
_OF_API = frozenset(("kubelet", "kube-controller-manager", "kube-scheduler"))


@dataclass(frozen=True)
class GoError:
    """Error that names its cause.

    meaning: its class
    text: itself, without what stands around it
    weak: whether it tells only that something else does not answer
    """

    meaning: str
    text: str
    weak: bool = False


def find(text: str, component: str) -> GoError | None:
    """Return the error that decides the class of a component's text, or None."""
    visible = unquoted(text)
    errno = errno_message.about(visible)
    if errno is not None:
        return GoError(OF_ERRNO[errno.kind], f"{errno.subject}: {errno.errno}")
    for pattern, meaning in _TEXTS:
        match = pattern.search(visible)
        if match is not None:
            return GoError(meaning, visible[match.start() :][:LONGEST])
    file = _FILE.search(visible)
    if file is not None and file.group("damage"):
        meaning = _of_path(file.group("path"))
        return GoError("disk" if meaning == "credential" else meaning, file.group())
    dial = _DIAL.search(visible)
    if dial is None:
        return None
    return GoError(_dialled(dial, component), visible[dial.start() :][:LONGEST], weak=True)


def of_file(text: str) -> GoError | None:
    """Return the error of a file in a text that has no other cause, or None."""
    visible = unquoted(text)
    match = _FILE.search(visible)
    if match is None or match.group().endswith(": "):
        return None
    return GoError(_of_path(match.group("path")), match.group())


def of_schema(text: str) -> GoError | None:
    """Return the error of a configuration's file that is of another kind or version, or None."""
    visible = unquoted(text)
    match = _NO_KIND.search(visible)
    if match is None:
        return None
    return GoError("configuration", visible[match.start() :][:LONGEST])


def denied(text: str) -> GoError | None:
    """Return the error of a file that is there and that cannot be read or written, or None.

    It tells that the file system or its permissions are why, and not what the file holds.
    """
    visible = unquoted(text)
    match = _FILE.search(visible)
    if match is not None and match.group("denied"):
        return GoError(_of_path(match.group("path")), match.group())
    end = _FILE_SYSTEM.search(visible)
    if end is None:
        return None
    return GoError("disk", end.group())


def _of_path(path: str) -> str:
    if path.startswith(errno_message.CGROUPS):
        return "cgroup"
    if path.startswith(_KERNEL):
        return "kernel"
    return "credential" if _CREDENTIALS.search(path) else "disk"


def _dialled(dial: re.Match[str], component: str) -> str:
    """Return the class of a connection that was not made."""
    if dial.group("net").lower() == "unix":
        return "runtime" if component == "kubelet" else "dependency"
    if _ETCD.search(dial.group("address")):
        return "network" if component == "etcd" else "dependency"
    return "api" if component in _OF_API else "network"


def unquoted(text: str) -> str:
    """Return a text without what stands in quotes, but with the descriptions of gRPC's errors."""
    for _level in range(_NESTED):
        if f'{_DESCRIPTION}"' not in text:
            break
        text = QUOTED.sub(_described, text)
    return QUOTED.sub('""', text)


def _described(quoted: re.Match[str]) -> str:
    if not quoted.string.endswith(_DESCRIPTION, 0, quoted.start()):
        return '""'
    return re.sub(r"\\(.)", r"\1", quoted.group(1))
