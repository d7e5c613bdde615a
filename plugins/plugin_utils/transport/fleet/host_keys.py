# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys that a host may show, from the files of known hosts that ssh would read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .options import NotHonoured, Settings

DEFAULT_PORT = 22
RSA = b"ssh-rsa"


@dataclass(frozen=True)
class HostKeys:
    """The keys that one host may show.

    Attributes:
        algorithms: the algorithms that are offered to the host.
        trusts: tells whether a key is one of them.
    """

    algorithms: list[str]
    trusts: Callable[[Any], bool]


def host_keys(settings: Settings, supported: list[str]) -> HostKeys:
    """Return the keys of a host; raise NotHonoured where ssh itself has to decide.

    supported: the algorithms of the options that asyncssh knows
    """
    bits = settings.number("requiredrsasize", 0)
    keys = [key for key in _known(settings) if is_large_enough(key, bits)]
    if keys:
        names = {name.decode("ascii") for key in keys for name in key.sig_algorithms}
        algorithms = [name for name in supported if name in names]
        if not algorithms:
            raise NotHonoured("hostkeyalgorithms: none is of a known host key")
        return HostKeys(algorithms, lambda key: any(key == other for other in keys))
    if settings.accepts_any_key:
        return HostKeys(supported, lambda key: is_large_enough(key, bits))
    raise NotHonoured("the host key is not known")


def is_large_enough(key: Any, bits: int) -> bool:
    """Tell whether a key has the size that RequiredRSASize asks for."""
    return bool(key.algorithm != RSA or key.pyca_key.key_size >= bits)


def _known(settings: Settings) -> list[Any]:
    """Return the keys that the files have for the name of the host; addresses do not count."""
    states = []
    for path in settings.files("userknownhostsfile") + settings.files("globalknownhostsfile"):
        try:
            state = path.stat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise NotHonoured(f"{path}: {error.strerror}") from error
        states.append((path, state.st_mtime_ns, state.st_size))
    port: int | None = settings.number("port", DEFAULT_PORT)
    if port == DEFAULT_PORT:
        port = None
    try:
        keys, *rest = _read(tuple(states)).match(settings.text("hostname").lower(), "", port)
    except (OSError, ValueError) as error:
        raise NotHonoured(f"known hosts: {error}") from error
    if any(rest):
        raise NotHonoured("known hosts: a certificate or a revoked key is named for the host")
    return list(keys)


@lru_cache(maxsize=8)
def _read(states: tuple[tuple[Path, int, int], ...]) -> Any:
    """Return what files of known hosts have; they are read once in each state."""
    import asyncssh

    texts = [path.read_text(encoding="utf-8", errors="replace") for path, *_state in states]
    lines = filter(_is_of_ssh, "\n".join(texts).splitlines())
    return asyncssh.import_known_hosts("\n".join(lines))


def _is_of_ssh(line: str) -> bool:
    """Tell whether the names of a line mean the same for both: asyncssh reads 10.0.0.0/8 as all."""
    names = line.split(None, 1)[:1]
    return not names or names[0].startswith("|") or "/" not in names[0]
