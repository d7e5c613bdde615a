# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No secret in what is given away, pure: asterisks for whatever looks like one, byte for byte.

Collectors mask what they read, each in its place. This is the last door, for all of it: every
string of a document and every key, by the collectors' own rules and by forms that give a secret
away wherever it stands. What keeps its length keeps the places that evidence tells of, so that
verdicts do not change.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ...module_utils.shared import redaction_names

# (one of these must be in it, in lower case; the form). A group named s is the secret; without one
# the whole of it is.
FORMS = tuple(
    (hints, re.compile(form))
    for hints, form in (
        # AWS, by its names
        (
            (b"akia", b"asia", b"aroa", b"aida"),
            rb"(?<![A-Za-z0-9])(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        ),
        ((b"aiza",), rb"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{30,}"),  # Google
        ((b"ya29.",), rb"(?<![A-Za-z0-9])ya29\.[A-Za-z0-9_-]{20,}"),
        # GitHub, GitLab, Slack, Vault, npm, Docker, Stripe, DigitalOcean
        ((b"gh",), rb"(?<![A-Za-z0-9])gh[opsur]_[A-Za-z0-9]{20,}"),
        ((b"github_pat_",), rb"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{20,}"),
        ((b"gl",), rb"(?<![A-Za-z0-9])gl(?:pat|rt|ptt|dt)-[A-Za-z0-9_.-]{16,}"),
        ((b"xox",), rb"(?<![A-Za-z0-9])xox[a-z]-[A-Za-z0-9-]{10,}"),
        ((b"hvs.", b"hvb."), rb"(?<![A-Za-z0-9])hv[sb]\.[A-Za-z0-9_-]{20,}"),
        (
            (b"npm_", b"dckr_", b"k_live_", b"dop_v1_", b"sk-"),
            rb"(?<![A-Za-z0-9])(?:npm_|dckr_pat_|sk_live_|rk_live_|dop_v1_|sk-)[A-Za-z0-9_-]{20,}",
        ),
        # a JSON web token, cut or not
        (
            (b"eyj",),
            rb"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?",
        ),
        ((b"==",), rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}=="),  # an account key of Azure
        (
            (b"sig=", b"key="),
            rb"(?i)(?:sig|AccountKey|SharedAccessKey)=(?P<s>[A-Za-z0-9%+/=_-]{16,})",
        ),
        # a bootstrap token
        ((b".",), rb"(?<![A-Za-z0-9.-])[a-z0-9]{6}\.[a-z0-9]{16}(?![A-Za-z0-9.-])"),
        (
            (b"authorization",),
            (
                rb"(?i)authorization[\"'\\]*[ \t]*[:=][ \t]*[\[{\"'\\ ]*(?:[a-z]+"
                rb" +)?(?P<s>[^\s\"'\],\\}*]+)"
            ),
        ),
        ((b"bearer", b"basic"), rb"(?i)\b(?:bearer|basic)[ \t]+(?P<s>[A-Za-z0-9+/_.~=-]{12,})"),
        # A shorter one too, where it is no word that is said of them.
        (
            (b"bearer",),
            rb"(?i)\bbearer["
            rb" \t]+(?!(?:realm|error|scope|charset)=|(?:tokens?|auth[a-z]*|realm|challenges?|schemes?|methods?|headers?|credentials?"
            rb"|strings?|prefix|formats?|failed|invalid|missing|required)\.?(?![A-Za-z0-9+/_.~=-]))"
            rb"(?P<s>(?=[A-Za-z]*[0-9+/_~=-])[A-Za-z0-9+/_.~=-]{4,}|[A-Za-z.]{6,})",
        ),
        ((b"@",), rb"://(?P<s>[^\s/@?#\"'\\*]+)@"),
        # A password with what no URL may have there, also where it begins as a port does: that is the
        # path of a host only where what stands before it is
        # an address, or where what follows is the digest of an image.
        (
            (b"@",),
            rb"://(?P<s>(?!(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|localhost):[0-9]{1,5}[/?#])[^\s/@?#\"'\\\[\]:*]{0,128}:[^\s/@?#\"'\\]{0,128}[/?#]"
            rb"[^\s@\"'\\]{0,128})@(?!sha(?:256|512):)",
        ),
        # curl and its like: a user and a password, but not the numbers of a user and a group.
        (
            (b"-u",),
            rb"(?<![^\s\"'=,\[(])(?:-u|--(?:proxy-)?user)[="
            rb" \t\"',\\]{0,8}(?![0-9]+:[0-9]+(?![^\s\"',]))[^\s:/\"'\\*]{1,128}:"
            rb"(?!//|\**(?:[\s\"'\\]|\Z))(?P<s>(?:[^\s\"'\\]|\\(?![\"']))+)",
        ),
        (
            (b"-u",),
            (
                rb"(?<![^\s\"'=,\[(])(?:-u|--(?:proxy-)?user)[="
                rb" \t]{0,8}\\?(?P<q>[\"'])[^:/\"'\\*\r\n]{1,128}:(?!//)(?P<s>[^\r\n]{1,256}?)\\?(?P=q)"
            ),
        ),
        *(
            (
                (b"pass", b"pwd"),
                rb"(?i)(?:password|passwd|passphrase|pwd)[ \t]+\\?"
                + quote
                + rb"(?P<s>(?:[^\\\r\n"
                + quote
                + rb"]|\\(?!"
                + quote
                + rb"))+)",
            )
            for quote in (b'"', b"'")
        ),
        (
            (b"pass", b"pwd", b"pw", b"secret", b"token", b"key"),
            (
                rb"(?i)(?:password|passwd|passphrase|pass|pwd|_pw|secret|token|api_?key)[\"']?["
                rb" \t]*[=:][ \t]*[\"']?(?P<s>[^\s\"'&;,*]{4,})"
            ),
        ),
        (
            (b"auth", b"key-data"),
            (
                rb"(?i)(?:_authtoken|client-key-data|\"auth\"|\bauth)[\"']?[ \t]*[:=]["
                rb" \t]*[\"']?(?P<s>[A-Za-z0-9+/=_-]{8,})"
            ),
        ),
        (
            (b"environment=",),
            rb"Environment=[\"']?[A-Za-z_][A-Za-z0-9_]*=(?P<s>(?!-|\$|[0-9.]+(?:\s|\Z|[\"']))[^\s\"']+)",
        ),
    )
)
# "-----BEGIN " of a PEM block in base64
ENCODED = re.compile(rb"(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi[A-Za-z0-9+/=]{16,}")
LINE = re.compile(
    rb"^[ \t]*(?:export[ \t]+)?[A-Za-z_][A-Za-z0-9_]*=[ \t]*(?P<s>[^\r\n]*?)[ \t]*$", re.M
)
# What a file of a unit's environment may say: flags, as the judgement reads them; numbers and
# switches.
HARMLESS = re.compile(
    rb"[\"']?(?:-.*|\$.*|[0-9.]*|true|false|yes|no|on|off|info|warn|error|debug)[\"']?\Z", re.I
)
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*\Z")
PAIR = re.compile(r"(?![0-9]+:[0-9]+\Z)[^\s:/]+:(?!//).")
# of curl and its like, which have a password behind a colon
USERS = ("-u", "--user", "--proxy-user")
PLACES = ("/", "./", "http://", "https://", "unix://")  # the path or address of a secret is none


def document(given: dict[str, Any]) -> dict[str, Any]:
    """The same without secrets; nothing of what was given is changed."""
    return _walk(given, "")


def text(given: str) -> str:
    """One string without secrets, of the same length in UTF-8."""
    return _masked(given)[0]


def _masked(given: str, environment: bool = False) -> tuple[str, list[list[int]]]:
    return _short(given, environment) if len(given) < 256 else _looked_at(given, environment)


@lru_cache(maxsize=16384)
def _short(given: str, environment: bool) -> tuple[str, list[list[int]]]:
    return _looked_at(given, environment)


def _looked_at(given: str, environment: bool) -> tuple[str, list[list[int]]]:
    data = given.encode("utf-8", "surrogatepass")
    covered, spans = redaction_names.masked(data)
    spans = [list(span) for span in spans] + _forms(covered)
    if environment:
        spans += [
            list(found.span("s"))
            for found in LINE.finditer(covered)
            if not HARMLESS.match(found["s"])
        ]
    if not spans:
        return given, []
    # Not length by length of characters: a character of several bytes becomes as many asterisks.
    held = bytearray(covered)
    for start, end in spans:
        for place in range(start, end):
            if held[place] not in b"\r\n":
                held[place] = 42
    return bytes(held).decode("utf-8", "surrogatepass"), spans


def _forms(data: bytes) -> list[list[int]]:
    lower = data.lower()
    spans = [
        list(found.span("s" if "s" in form.groupindex else 0))
        for hints, form in FORMS
        if any(hint in lower for hint in hints)
        for found in form.finditer(data)
    ]
    return spans + [
        list(found.span())
        for found in (ENCODED.finditer(data) if b"ls0tls1crudjti" in lower else ())
        if _private(found.group())
    ]


def _private(encoded: bytes) -> bool:
    """Is it more than certificates? What cannot be read is taken for a key."""
    try:
        return b"PRIVATE KEY" in base64.b64decode(encoded[: len(encoded) // 4 * 4], validate=True)
    except (ValueError, binascii.Error):
        return True


def _walk(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return _string(value, key)
    if isinstance(value, Mapping):
        return _record(value, key)
    if isinstance(value, (list, tuple)):
        return _items(list(value), key)
    return value


def _string(value: str, key: str) -> str:
    if (
        value
        and redaction_names.secret_key(key)
        and value.lower() not in redaction_names.PUBLIC
        and not value.startswith(PLACES)
    ):
        return "*" * len(value.encode("utf-8", "surrogatepass"))
    return text(value)


def _record(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    below = "password" if key in ("env", "environment") or redaction_names.secret_key(key) else None
    found = {text(name): _walk(item, below or name) for name, item in value.items()}
    name = value.get("name")
    if (
        isinstance(name, str)
        and isinstance(value.get("value"), str)
        and (redaction_names.secret_env(name) or VARIABLE.match(name))
    ):
        found["value"] = "*" * len(value["value"].encode("utf-8", "surrogatepass"))
    held = value.get("text")
    if isinstance(held, str) and isinstance(value.get("masked"), list):
        # A file: its bytes that are no longer the true ones are told, so that nobody edits across
        # them.
        found["text"], spans = _masked(held, key == "environment_files")
        known = [
            span for span in value["masked"] if isinstance(span, (list, tuple)) and len(span) == 2
        ]
        found["masked"] = _joined([*map(list, known), *spans]) if spans else value["masked"]
    return found


def _items(values: list[Any], key: str) -> list[Any]:
    if (
        len(values) == 2
        and all(isinstance(item, str) for item in values)
        and redaction_names.secret_env(values[0])
        and VARIABLE.match(values[0])
    ):
        return [values[0], "*" * len(values[1])]
    walked = [_walk(item, key) for item in values]
    for place in range(1, len(values)):
        before, item = values[place - 1], values[place]
        if (
            isinstance(before, str)
            and isinstance(item, str)
            and before.startswith("-")
            and "=" not in before
            and redaction_names.secret_key(before)
            and not item.startswith(("-", *PLACES))
            and item not in redaction_names.PUBLIC
        ):
            walked[place] = "*" * len(item.encode("utf-8", "surrogatepass"))
        elif before in USERS and isinstance(item, str) and PAIR.match(item):
            name, mark, secret = item.partition(":")
            walked[place] = name + mark + "*" * len(secret.encode("utf-8", "surrogatepass"))
    return walked


def _joined(spans: list[list[Any]]) -> list[list[Any]]:
    if not all(isinstance(place, int) for span in spans for place in span):
        return spans
    joined: list[list[int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        elif end > start:
            joined.append([start, end])
    return joined
