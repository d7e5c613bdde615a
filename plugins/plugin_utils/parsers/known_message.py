# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of other programs whose cause is known, one in a line of known_messages/*.tsv. Pure.

A row is there only if a public thread or the source of that program confirms its cause, and if no
other cause leads to the same text. docs/known-messages.md lists them; `python -m tests.docs` writes
it.

    id        a name
    places    who says it: components, `event` (of a pod), `kernel`, or roles of the cluster's pods
    pattern   a regular expression; texts are compared without the backslashes before quotes
    since     the first release of that program where it has this cause, empty for any
    until     the last such release
    cause     what is wrong and where; {group} stands for a group of the pattern
    advice    what to do; {group} stands for a group of the pattern that is safe in a shell,
              [[id]] for an advice of known_advice.tsv, which several messages share
    source    the link that confirms it

Of what a row takes for too old, known_age.py says what it means where a node has it in a newer one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..evidence.document import one_line
from . import known_age, message_table, release_number, release_table
from .known_age import Versions

FOLDER = Path(__file__).with_name("known_messages")
SHARED = Path(__file__).with_name("known_advice.tsv")
COLUMNS = ("id", "places", "pattern", "since", "until", "cause", "advice", "source")
LONGEST, VALUE = 2048, 160  # characters of a text that are read, and of a value that is shown
CACHED = 4096
ANY, EVENT, KERNEL = "any", "event", "kernel"
RUNTIMES = ("containerd", "crio", "dockerd", "cri-dockerd", "runc")
# What a workload, a volume or an object of its own brings about, and no node corrects.
OF_WORKLOADS = frozenset(
    (
        "ceph-pool-missing",
        "cephfs-path-missing",
        "certificate-of-pod-refused",
        "cifs-share-missing",
        "claim-not-usable-by-kubelet",
        "csi-node-outside-of-allowed-topologies",
        "ebs-volume-gone",
        "first-process-killed-at-limit",
        "fs-group-refused",
        "host-name-of-pod-too-long",
        "huge-page-volume-without-request",
        "image-has-too-many-layers",
        "image-in-frozen-registry",
        "image-layers-do-not-match",
        "image-of-bitnami-moved",
        "image-of-kubebuilder-gone",
        "image-schema-1",
        "image-short-name",
        "layer-missing-in-registry",
        "memory-limit-below-use",
        "mount-options-not-for-this-volume",
        "mount-path-not-absolute",
        "mount-point-in-read-only-volume",
        "multus-annotation-not-read",
        "multus-namespace-isolation",
        "not-a-directory-mount",
        "nvidia-libraries-in-image",
        "rbd-image-missing",
        "runtime-class-gone",
        "sriov-without-device",
        "sub-path-of-changed-object",
        "subpath-on-changed-file",
        "sysctl-of-pod-in-host-network",
        "sysctl-of-pod-unknown",
        "token-account-missing",
        "trust-bundles-none-chosen",
        "user-of-image-unknown",
        "volume-empty-and-read-only",
        "volume-marked-for-deletion",
        "volume-of-one-pod-in-use",
        "volume-owner-slow",
        "working-folder-closed-to-user",
        "xfs-for-a-small-volume",
    )
)
# What only the machine or its system brings about, so that one pod that waits for it is enough: no
# name in a workload, no StorageClass and no server elsewhere leads to it.
OF_NODES = frozenset(
    (
        "apparmor-parser-missing",
        "azure-lun-not-there",
        "cifs-charset-module-missing",
        "cifs-module-missing",
        "cpuset-in-kata",
        "cpuset-of-besteffort",
        "cpuset-of-parent",
        "csi-driver-without-folder-of-kubelet",
        "dead-mount-of-docker-volume",
        "docker-thin-pool-full",
        "ebs-device-is-another-volume",
        "fuse-program-ended",
        "iscsi-daemon-not-running",
        "iscsi-initiator-name-missing",
        "iscsi-module-missing",
        "iscsi-tools-missing",
        "kubelet-attaches-volumes-itself",
        "longhorn-device-taken-by-multipath",
        "longhorn-iscsi-login-hangs",
        "loop-devices-used-up",
        "lustre-modules-missing",
        "mayastor-nvme-module-missing",
        "multipath-map-missing",
        "multipathd-not-running",
        "nfs-module-missing",
        "nfs-without-statd",
        "nvidia-driver-not-loaded",
        "nvidia-driver-replaced",
        "nvme-over-tcp-not-loaded",
        "rbd-module-not-loaded",
        "rbd-program-missing",
        "root-mount-not-shared",
        "seccomp-library-too-old",
        "vsphere-disk-without-uuid",
        "zfs-not-in-kernel",
        "zfs-pool-without-input-and-output",
        "zfs-program-missing",
    )
)
# Of the command line of a program. A program that has others within it has settings of its own for
# their flags, which the checks name.
OF_OWN_COMMAND = frozenset(("control-plane-flag-removed",))
# Programs that log what others within them say.
_EMBEDDED = (*message_table.EMBEDDED["k3s"], "k3s", "kube-proxy", "network", "cloud")
_WITHIN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("k3s", "rke2", "k0s", "kubelite"), _EMBEDDED),
    **dict.fromkeys(("dockerd", "cri-dockerd"), ("dockerd", "cri-dockerd", "containerd")),
    "cloud-controller-manager": ("cloud",),
}
_QUOTES = re.compile(r'\\+(?=["\'])')
_SPACES = re.compile(r"(?:\\+[nrt]|\s)+")
_PLACE = re.compile(r"\{([a-z_]{1,20})\}")
_SHARED = re.compile(r"\[\[([a-z0-9-]{1,60})\]\]")
_SAFE = re.compile(r"[A-Za-z0-9@_./:+=,%][A-Za-z0-9@_./:+=,%~-]{0,159}")


@dataclass(frozen=True)
class Row:
    """One message with its cause.

    wording: the advice as the table has it, with the names of what messages share
    """

    id: str
    places: frozenset[str]
    pattern: re.Pattern[str]
    since: str
    until: str
    cause: str
    advice: str
    source: str
    wording: str = ""

    def has(self, release: str | None) -> bool:
        """Tell whether a release has the message for this cause; one that is not known may."""
        number = release_number.parse(release)
        if number is None:
            return True
        return _begins(self.since) <= number and (not self.until or number < _ends(self.until))


@dataclass(frozen=True)
class Known:
    """What a text means.

    advice: what to do, and the link that confirms it
    is_of_pods: whether events of pods have it too, so that it may concern one pod
    """

    id: str
    cause: str
    advice: str
    is_of_pods: bool = False

    @property
    def is_of_workload(self) -> bool:
        """Tell whether it says nothing of the node on which it is said."""
        return self.id in OF_WORKLOADS

    @property
    def clause(self) -> str:
        """Return the cause as it stands within a sentence."""
        if self.cause[1:2].islower():
            return self.cause[:1].lower() + self.cause[1:]
        return self.cause


def _begins(release: str) -> release_number.ReleaseNumber:
    return release_number.parse(f"{release}-rc0" if release else "0") or (0, 0, 0, 0)


def _ends(release: str) -> release_number.ReleaseNumber:
    """Return the first number that is after a release: a minor one stands for all its patches."""
    major, minor, patch, _candidate = release_number.parse(release) or (0, 0, 0, 0)
    if release.count(".") < 2:
        return (major, minor + 1, 0, 0)
    return (major, minor, patch + 1, 0)


@dataclass(frozen=True)
class Shared:
    """An advice that several messages share, and what it is about."""

    title: str
    advice: str


@functools.cache
def shared() -> Mapping[str, Shared]:
    """Return what messages share, by its name."""
    lines = SHARED.read_text(encoding="utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {name: Shared(title, advice.rstrip(".")) for name, title, advice in rows}


def with_shared(advice: str, values: Mapping[str, str]) -> str:
    """Return an advice with these values of what it shares with others."""
    return _SHARED.sub(lambda match: values[match.group(1)], advice)


@functools.cache
def files() -> Mapping[str, tuple[Row, ...]]:
    """Return the rows of each file, by its name without suffix."""
    return {path.stem: tuple(_read(path)) for path in sorted(FOLDER.glob("*.tsv"))}


def _read(path: Path) -> Iterable[Row]:
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        name, places, pattern, since, until, cause, advice, source = line.split("\t")
        yield Row(
            name,
            frozenset(places.split(",")),
            re.compile(pattern),
            since,
            until,
            cause.rstrip("."),
            with_shared(advice.rstrip("."), {name: row.advice for name, row in shared().items()}),
            source,
            advice.rstrip("."),
        )


@functools.cache
def _of_places(places: frozenset[str]) -> tuple[Row, ...]:
    """Return the rows of texts that are said at one of these places."""
    names = {ANY, *places}
    supervised = names.union(*(_WITHIN.get(place, ()) for place in places))
    rows = [row for file in files().values() for row in file]
    return tuple(
        row
        for row in rows
        if not row.places.isdisjoint(names if row.id in OF_OWN_COMMAND else supervised)
    )


def find(
    places: Iterable[str], text: str, release: str | None = None, versions: Versions = ()
) -> Known | None:
    """Return the known cause of a text that is said at one of these places, or None.

    Where several rows match, the one that matches most of it counts.

    release: that of the program that says it, None where it is not known
    versions: those of the kernel and the runtime of its node, where they are known
    """
    return _find(frozenset(places), plain(text), release, versions)


def first(
    places: Iterable[str],
    texts: Iterable[str],
    release: str | None = None,
    *,
    is_of_program: bool = False,
    versions: Versions = (),
) -> Known | None:
    """Return the cause of the first of these texts that is known, or None.

    versions: those of the kernel and the runtime of the node, where they are known
    is_of_program: whether the texts are to tell what is wrong with the program that says them
    """
    names = frozenset(places)
    rows = (find(names, text, release, versions) for text in texts if text)
    causes = (row for row in rows if row is not None)
    return next((row for row in causes if not (is_of_program and row.is_of_workload)), None)


def plain(text: str) -> str:
    """Return a text as patterns are compared with it."""
    return _SPACES.sub(" ", _QUOTES.sub("", text[:LONGEST]))


@functools.lru_cache(maxsize=CACHED)
def _find(
    places: frozenset[str], text: str, release: str | None, versions: Versions
) -> Known | None:
    matches = ((row, row.pattern.search(text)) for row in _of_places(places) if row.has(release))
    hits = [(_fitting(row, match, versions), match) for row, match in matches if match is not None]
    hits = [(row, match) for row, match in hits if row.cause]
    if not hits:
        return None
    row, match = max(hits, key=lambda hit: len(hit[1].group()))
    values = {name: value or "" for name, value in match.groupdict().items()}
    shown = {name: one_line(value, VALUE) for name, value in values.items()}
    safe = {name: _in_shell(name, value) for name, value in values.items()}
    advice = f"{_filled(row.advice, safe)} (see {row.source})"
    is_of_pods = not row.places.isdisjoint((EVENT, ANY))
    cause = _filled(row.cause, shown) + _last_release(places & row.places, values)
    return Known(row.id, cause, advice, is_of_pods)


def _fitting(row: Row, match: re.Match[str], versions: Versions) -> Row:
    """Return a row as it holds with these releases; without a cause where it does not."""
    age = known_age.refuted(row.id, match, versions)
    return row if age is None else replace(row, cause=age.cause, advice=age.advice)


def _last_release(components: frozenset[str], values: Mapping[str, str]) -> str:
    """Return up to which release a flag or a feature gate was there, as a clause, or ""."""
    flag, gate = values.get("flag", ""), values.get("gate", "")
    releases = [release_table.last_release(release_table.FLAG, name, flag) for name in components]
    releases.append(release_table.last_release(release_table.GATE, "", gate))
    last = next((release for release in releases if release is not None), None)
    if last is None:
        return ""
    return f". The last release that has it is {last[0]}.{last[1]}"


def _in_shell(name: str, value: str) -> str:
    """Return a value that an operator may copy into a shell, else its name in capitals."""
    return name.upper() if value and not _SAFE.fullmatch(value) else value


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda match: values.get(match.group(1), match.group()), text)
