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
# systemd takes quotes away around a whole word only, and the kubelet none of a manifest's items.
_QUOTED_VALUE = re.compile(r"--[\w.-]{1,80}=(?P<quote>[\"'])[^{\[]*(?P=quote)$")
_SUBCOMMANDS = {
    **{component: component for component in COMPONENTS},
    "apiserver": "kube-apiserver",
    "controller-manager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
}


@dataclass(frozen=True)
class BoolFlag:
    """Effective use of a boolean flag.

    value: its value, None when it does not parse
    index: its index in the list
    """

    value: bool | None
    raw: str
    index: int
    problem: str = ""


def parse_bool(text: str) -> bool | None:
    """Parse a value as strconv.ParseBool does; return None when it does not parse."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    return None


def normalise(name: str) -> str:
    """Return a flag's name as component-base normalises it: `leader-elect` for `leader_elect`."""
    return name.replace("_", "-")


def _split(item: str) -> tuple[str, str | None] | None:
    if not item.startswith("--") or item == "--":
        return None
    name, separator, value = item[2:].partition("=")
    if not separator:
        return normalise(name), None
    return normalise(name), value


def bool_flag(argv: Sequence[str], name: str) -> BoolFlag | None:
    """Return the last use of --name in argv (the last one wins), or None when it is not there.

    A bare boolean flag is true and does not take the next item: `--leader-elect false` leaves a
    stray argument, with which kube-scheduler and kube-controller-manager refuse to start.
    """
    last = None
    for index, item in enumerate(argv):
        split = _split(item)
        if split is None or split[0] != name:
            continue
        following = next(iter(argv[index + 1 : index + 2]), "")
        if split[1] is not None:
            last = _assigned(split[1], item, index)
        elif parse_bool(following) is not None:
            last = BoolFlag(None, f"{item} {following}", index, f"stray argument {following!r}")
        else:
            last = BoolFlag(True, item, index)
    return last


def _assigned(value: str, item: str, index: int) -> BoolFlag:
    parsed = parse_bool(value)
    if parsed is None:
        return BoolFlag(None, item, index, f"{value!r} is no boolean")
    return BoolFlag(parsed, item, index)


def string_flag(argv: Sequence[str], name: str) -> str | None:
    """Return the last value of --name=value or `--name value`, or None."""
    values = string_flags(argv, name)
    if not values:
        return None
    return values[-1]


def string_flags(argv: Sequence[str], name: str) -> list[str]:
    """Return all values of --name=value or `--name value`; in a map or a list each use adds."""
    values = []
    flag = f"--{name}"
    end = len(flag)
    for index, item in enumerate(argv):
        if item[:end].replace("_", "-") != flag or not item.startswith("--"):
            continue
        if item[end : end + 1] == "=":
            values.append(item[end + 1 :])
        elif len(item) == end and index + 1 < len(argv):
            values.append(argv[index + 1])
    return values


def naming(argv: Sequence[str], value: str) -> str:
    """Return the flag that has this value, or has it in a list or a map; "" where none has."""
    for index, item in enumerate(argv):
        split = _split(item)
        if split is None:
            continue
        text = split[1]
        if text is None:
            text = next(iter(argv[index + 1 : index + 2]), "")
        if value in re.split(r"[,=]", text):
            return split[0]
    return ""


def quoted(argv: Sequence[str]) -> list[str]:
    """Return the words whose value begins with a quote: no shell took it away."""
    return [item for item in argv if _QUOTED_VALUE.match(item)]


def joined(argv: Sequence[str]) -> list[str]:
    """Return the arguments that hold more than one flag, or a flag and its value without "="."""
    return [word for word in argv if _JOINED.match(word)]


def component_of(argv: Sequence[str], *fallbacks: str) -> str | None:
    """Return the control-plane component that a command line starts, else of a fallback's name."""
    words = [word.rsplit("/", 1)[-1] for word in argv[:8]]
    for position, word in enumerate(words):
        if word in COMPONENTS:
            return word
        if word == "hyperkube" and position + 1 < len(words):
            return _SUBCOMMANDS.get(words[position + 1])
    names = (_image_name(name) for name in fallbacks)
    return next((name for name in names if name in COMPONENTS), None)


def _image_name(reference: str) -> str:
    name = reference.rsplit("/", 1)[-1].split(":", 1)[0].split("@", 1)[0]
    return re.sub(r"-(amd64|arm64|arm|ppc64le|s390x)$", "", name)


def shell_words(item: str) -> list[str]:
    """Return the words of a `sh -c` line, so that a flag inside one is seen.

    A line that is no shell is split at blanks.
    """
    try:
        return shlex.split(item)
    except ValueError:
        return item.split()


# What stands behind the blank is read as a part of the flag's value, or of its name.
_JOINED = re.compile(r"--[\w-]{1,80}(?:=[^\n]{0,2000}?\s--?[A-Za-z]|\s+\S)")
_VERSION = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]+))?(.*)$")


def parse_version(text: str | None) -> tuple[int, int] | None:
    """Return (major, minor) of a Kubernetes version or image tag such as v1.18.4-tke.5, or None."""
    match = _VERSION.match(text or "")
    if not match:
        return None
    return int(match.group(1)), int(match.group(2))
