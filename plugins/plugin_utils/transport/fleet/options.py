# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ssh options in force for a host, as `ssh -G` prints them, and those that asyncssh honours.

An option that has OpenSSH's own default is honoured. Of all others only those that are listed here
are: what an operator sets and this does not know leads to the ssh client.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

Options = dict[str, tuple[str, ...]]
UNCHECKED = ("no", "off", "false", "accept-new")
NOWHERE = ("/dev/null", "none")
PUBLIC_KEY = "publickey"
KERBEROS = ("gssapi-with-mic", "gssapi-keyex")
NO = ("no", "false", "none")


class NotHonoured(Exception):
    """asyncssh does not do what ssh does for this host; the text says which option or file."""


def parse(text: str) -> Options:
    """Return what `ssh -G` prints, with the values of an option in their order."""
    options: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _mark, value = line.strip().partition(" ")
        if name:
            options.setdefault(name.lower(), []).append(value.strip())
    return {name: tuple(values) for name, values in options.items()}


def _accept(_values: tuple[str, ...]) -> bool:
    return True


def _is_off(values: tuple[str, ...]) -> bool:
    return all(value.lower() in NO for value in values)


def _is_plain_path(values: tuple[str, ...]) -> bool:
    """Tell whether no value has a token or a variable that ssh would replace."""
    return not any("%" in value or "${" in value for value in values)


def _is_of_keys(values: tuple[str, ...]) -> bool:
    return all(PUBLIC_KEY in value.split(",") for value in values)


def _is_number(values: tuple[str, ...]) -> bool:
    return all(value.isdigit() for value in values)


def _names_variables(values: tuple[str, ...]) -> bool:
    return not any(value.startswith("-") for value in values)


def _is_usual_agent(values: tuple[str, ...]) -> bool:
    return all(value in ("none", "SSH_AUTH_SOCK") for value in values)


def _has_no_ticket(values: tuple[str, ...]) -> bool:
    return _is_off(values) or not _may_have_ticket()


def _may_have_ticket() -> bool:
    """Tell whether ssh may log in by Kerberos: keys would come after it."""
    if "KRB5CCNAME" in os.environ:
        return True
    klist = shutil.which("klist")
    if klist is None:
        return False
    try:
        return subprocess.run([klist, "-s"], check=False, timeout=5).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return True


# What a login by asyncssh takes over (login.py, identities.py, host_keys.py).
TAKEN_OVER: dict[str, Callable[[tuple[str, ...]], bool]] = {
    "hostname": _accept,
    "port": _is_number,
    "user": _accept,
    "addressfamily": _accept,
    "connecttimeout": _accept,
    "serveraliveinterval": _is_number,
    "serveralivecountmax": _is_number,
    "sendenv": _names_variables,
    "identityfile": _is_plain_path,
    "identitiesonly": _accept,
    "identityagent": _is_usual_agent,
    "preferredauthentications": _is_of_keys,
    "userknownhostsfile": _is_plain_path,
    "globalknownhostsfile": _is_plain_path,
    "stricthostkeychecking": _accept,
    "requiredrsasize": _is_number,
    "ciphers": _accept,
    "macs": _accept,
    "kexalgorithms": _accept,
    "hostkeyalgorithms": _accept,
    "pubkeyacceptedalgorithms": _accept,
    "gssapiauthentication": _has_no_ticket,
}
# What has no effect on one command that runs after a login by a key, over a host key that is known.
WITHOUT_EFFECT = frozenset(
    (
        "host",
        "batchmode",
        "kbdinteractiveauthentication",
        "challengeresponseauthentication",
        "passwordauthentication",
        "numberofpasswordprompts",
        "gssapikexalgorithms",
        "gssapirenewalforcesrekey",
        "gssapitrustdns",
        "hostbasedacceptedalgorithms",
        "hashknownhosts",
        "updatehostkeys",
        "fingerprinthash",
        "visualhostkey",
        "loglevel",
        "logverbose",
        "compression",
        "controlmaster",
        "controlpath",
        "controlpersist",
        "forwardx11trusted",
        "xauthlocation",
        "escapechar",
    )
)


def refusal(options: Options, defaults: Options) -> str:
    """Return the first option in force that asyncssh does not honour; empty where it does all."""
    for name in sorted(options.keys() | defaults.keys()):
        values = options.get(name, ())
        if values == defaults.get(name, ()) or name in WITHOUT_EFFECT:
            continue
        if name not in TAKEN_OVER or not TAKEN_OVER[name](values):
            return " ".join((name, *values))
    return ""


@dataclass(frozen=True)
class Settings:
    """The options of one host in the form in which a login takes them."""

    options: Options

    def text(self, name: str) -> str:
        """Return the value of an option that has one."""
        return " ".join(self.options.get(name, ()))

    def number(self, name: str, default: int) -> int:
        """Return the value of an option that is a number."""
        value = self.text(name)
        if value.isdigit():
            return int(value)
        return default

    def supported(self, name: str, algorithms: Iterable[bytes]) -> list[str]:
        """Return the algorithms of an option that asyncssh knows, in the order of the option."""
        names = {algorithm.decode("ascii") for algorithm in algorithms}
        chosen = [word for word in self.text(name).split(",") if word in names]
        if not chosen:
            raise NotHonoured(f"{name}: asyncssh knows none of them")
        return chosen

    def files(self, name: str) -> list[Path]:
        """Return the files that an option names in one line."""
        return [Path(word) for word in self.text(name).split() if word not in NOWHERE]

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that are sent."""
        patterns = [word for value in self.options.get("sendenv", ()) for word in value.split()]
        return {
            name: value
            for name, value in variables.items()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        }

    @property
    def accepts_any_key(self) -> bool:
        """Tell whether an unknown host key is accepted and kept nowhere."""
        return (
            self.text("stricthostkeychecking") in UNCHECKED
            and self.text("userknownhostsfile") in NOWHERE
        )


def arguments(line: list[str]) -> list[str]:
    """Return the command line that prints the options in force for the one of a client.

    Raises NotHonoured where the program is a script, which may do anything.
    """
    program = shutil.which(line[0])
    if program is None or _is_script(program):
        raise NotHonoured(f"{line[0]} is no ssh of OpenSSH")
    return [program, "-G", *line[1:-1]]


def _is_script(program: str) -> bool:
    try:
        with Path(program).open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True
