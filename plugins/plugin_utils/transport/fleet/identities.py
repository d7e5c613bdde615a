# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys that log in: those of the agent, and files without a passphrase."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .host_keys import is_large_enough
from .options import NotHonoured, Settings

TOO_OPEN = 0o077  # ssh ignores such a file
HARDWARE = b"sk-"


def agent_path(settings: Settings, environment: Mapping[str, str]) -> str:
    """Return the socket of the agent whose keys ssh would offer; empty where it would not."""
    if settings.text("identitiesonly") == "yes" or settings.text("identityagent") == "none":
        return ""
    return environment.get("SSH_AUTH_SOCK", "")


def file_keys(settings: Settings, has_agent: bool) -> list[Any]:
    """Return the keys of the files that exist.

    Raises NotHonoured where a file needs more than to be read; with an agent, a file with a
    passphrase is left to it.
    """
    bits = settings.number("requiredrsasize", 0)
    keys = []
    for value in settings.options.get("identityfile", ()):
        if value.lower() == "none":
            continue
        key = _key(_expanded(value), has_agent)
        if key is not None and is_large_enough(key, bits):
            keys.append(key)
    return keys


def _expanded(value: str) -> Path:
    """Return a path as ssh reads it, which does not look at HOME."""
    if value.startswith("~/"):
        return Path(pwd.getpwuid(os.getuid()).pw_dir) / value[2:]
    return Path(value)


def _key(path: Path, has_agent: bool) -> Any:
    import asyncssh

    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotHonoured(f"identityfile {path}: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise NotHonoured(f"identityfile {path} is no file")
    if status.st_uid == os.getuid() and status.st_mode & TOO_OPEN:
        raise NotHonoured(f"identityfile {path} may be read by others")
    if Path(f"{path}-cert.pub").exists():
        raise NotHonoured(f"identityfile {path} has a certificate")
    try:
        key = asyncssh.read_private_key(path)
    except (OSError, ValueError) as error:  # with a passphrase, or a public key
        if has_agent:
            return None
        raise NotHonoured(f"identityfile {path}: {error}") from error
    if key.algorithm.startswith(HARDWARE):
        raise NotHonoured(f"identityfile {path} is a key of hardware")
    return key
