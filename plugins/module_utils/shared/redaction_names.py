# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that mark a secret, and bytes without which a text has no secret."""

PUBLIC = ("true", "false", "null", "~", "")
ENDINGS = (
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "secretkey",
    "accesskey",
    "privatekey",
    "keydata",
    "credential",
    "credentials",
)
ENV_WORDS = (
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "CREDENTIAL",
)
# What the redaction recognises contains one of these.
HINTS = (
    b"token",
    b"secret",
    b"passw",
    b"passphrase",
    b"key-data",
    b"keydata",
    b"apikey",
    b"api_key",
    b"api-key",
    b"access_key",
    b"access-key",
    b"accesskey",
    b"private",
    b"credential",
    b"bearer",
    b"authorization:",
    b"basic ",
    b"eyj",
    b"env:",
    b'env"',
    b"env'",
    b"env :",
)


def secret_key(name):
    """Return whether a key or flag of this name holds a secret itself, not its path or name."""
    if secret_env(name) and name.upper() == name and "_" in name:
        return True
    plain = name.lower().replace("-", "").replace("_", "").replace(".", "")
    return plain.endswith(ENDINGS) and plain not in ("initialclustertoken", "usetoken")


def secret_env(name):
    """Return whether the name of an environment variable looks like that of a secret."""
    name = name.upper().replace("-", "_")
    return any(word in name for word in ENV_WORDS)


def suspicious(data):
    """Return whether there may be a secret in the bytes, rather once too often."""
    lower = data.lower()
    return any(hint in lower for hint in HINTS) or _names_user(lower)


def _names_user(lower):
    """Return whether there is a URL with a user in it."""
    position = lower.find(b"://")
    while position >= 0:
        address = lower[position : position + 512].split(None, 1)[0]
        if b"@" in address:
            return True
        position = lower.find(b"://", position + 3)
    return False
