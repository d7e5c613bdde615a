# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of control-plane components, read as pflag reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

# strconv.ParseBool, which pflag uses for boolean flags: nothing else parses ("no", "off", "fAlse"
# do not).
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})

COMPONENTS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "cloud-controller-manager",
    "etcd",
)
_HYPERKUBE = {
    "apiserver": "kube-apiserver",
    "controller-manager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
}


@dataclass(frozen=True)
class BoolFlag:
    """The effective use of a boolean flag. value: None when it does not parse; index.

    Position in the list given.
    """

    value: bool | None
    raw: str
    index: int
    problem: str = ""


def parse_bool(text: str) -> bool | None:
    """The value as strconv.ParseBool reads it; None when it does not parse."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    return None


def normalise(name: str) -> str:
    """`--leader_elect` is `--leader-elect` to every component that uses component-base's flag
    normalisation.
    """
    return name.replace("_", "-")


def _split(item: str) -> tuple[str, str | None] | None:
    if not item.startswith("--") or item == "--":
        return None
    name, sep, value = item[2:].partition("=")
    return normalise(name), (value if sep else None)


def bool_flag(argv: Sequence[str], name: str) -> BoolFlag | None:
    """The last use of --name in argv (the last one wins), or None when the flag is not there.

    A bare boolean flag is true and does not take the next item: `--leader-elect false` leaves a
    stray argument, with which kube-scheduler and kube-controller-manager refuse to start.
    """
    found = None
    for index, item in enumerate(argv):
        split = _split(item)
        if split is None or split[0] != name:
            continue
        value = split[1]
        if value is not None:
            parsed = parse_bool(value)
            found = BoolFlag(
                parsed, item, index, "" if parsed is not None else f"{value!r} is no boolean"
            )
        elif index + 1 < len(argv) and parse_bool(argv[index + 1]) is not None:
            found = BoolFlag(
                None, f"{item} {argv[index + 1]}", index, f"stray argument {argv[index + 1]!r}"
            )
        else:
            found = BoolFlag(True, item, index)
    return found


def string_flag(argv: Sequence[str], name: str) -> str | None:
    """The last value of --name=value or `--name value`, or None."""
    found = string_flags(argv, name)
    return found[-1] if found else None


def string_flags(argv: Sequence[str], name: str) -> list[str]:
    """All values of --name=value or `--name value`.

    Of a map or a list each use adds to those before it.
    """
    found = []
    for index, item in enumerate(argv):
        split = _split(item)
        if split is None or split[0] != name:
            continue
        if split[1] is not None:
            found.append(split[1])
        elif index + 1 < len(argv):
            found.append(argv[index + 1])
    return found


def component_of(argv: Sequence[str], *fallbacks: str) -> str | None:
    """The control-plane component that a command line starts, else the first fallback that is
    the name of one.
    """
    words = [word.rsplit("/", 1)[-1] for word in argv[:8]]
    for position, word in enumerate(words):
        if word in COMPONENTS:
            return word
        if word == "hyperkube" and position + 1 < len(words):
            following = words[position + 1]
            return _HYPERKUBE.get(following, following if following in COMPONENTS else None)
    for name in fallbacks:
        base = re.sub(
            r"-(amd64|arm64|arm|ppc64le|s390x)$",
            "",
            name.rsplit("/", 1)[-1].split(":")[0].split("@")[0],
        )
        if base in COMPONENTS:
            return base
    return None


def shell_words(item: str) -> list[str]:
    """The words of a `sh -c` line, so that a flag inside one is seen.

    The line split at blanks when it is no shell.
    """
    try:
        return shlex.split(item)
    except ValueError:
        return item.split()


_VERSION = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]+))?(.*)$")


def parse_version(text: str | None) -> tuple[int, int] | None:
    """(major, minor) of a Kubernetes version or image tag such as v1.18.4-tke.5.

    None when it is no version.
    """
    match = _VERSION.match(text or "")
    return (int(match.group(1)), int(match.group(2))) if match else None
