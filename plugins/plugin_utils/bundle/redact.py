# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redaction of a bundle, pure: asterisks for whatever looks like a secret, byte for byte.

Collectors redact their own answers. This is the last pass, over every string and every key of a
document, by the collectors' rules and by forms that reveal a secret anywhere. A text that keeps its
length keeps the positions in evidence, so that verdicts do not change.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ...module_utils.shared import redacted_bytes, redaction_names

# (hints, of which one must occur, in lower case; the form). The secret is the group named s, else
# the whole match.
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
        # A shorter token too, unless it is a word that texts use with this name.
        (
            (b"bearer",),
            rb"(?i)\bbearer["
            rb" \t]+(?!(?:realm|error|scope|charset)=|(?:tokens?|auth[a-z]*|realm|challenges?"
            rb"|schemes?|methods?|headers?|credentials?|strings?|prefix|formats?"
            rb"|failed|invalid|missing|required)\.?(?![A-Za-z0-9+/_.~=-]))"
            rb"(?P<s>(?=[A-Za-z]*[0-9+/_~=-])[A-Za-z0-9+/_.~=-]{4,}|[A-Za-z.]{6,})",
        ),
        ((b"@",), rb"://(?P<s>[^\s/@?#\"'\\*]+)@"),
        # A password with characters that no URL may have there, even if it begins like a port: that
        # is the path of a host only after an address, or before the digest of an image.
        (
            (b"@",),
            rb"://(?P<s>(?!(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|localhost):[0-9]{1,5}[/?#])"
            rb"[^\s/@?#\"'\\\[\]:*]{0,128}:[^\s/@?#\"'\\]{0,128}[/?#]"
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
                rb" \t]{0,8}\\?(?P<q>[\"'])[^:/\"'\\*\r\n]{1,128}:(?!//)"
                rb"(?P<s>[^\r\n]{1,256}?)\\?(?P=q)"
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
            rb"Environment=[\"']?[A-Za-z_][A-Za-z0-9_]*="
            rb"(?P<s>(?!-|\$|[0-9.]+(?:\s|\Z|[\"']))[^\s\"']+)",
        ),
    )
)
# "-----BEGIN " of a PEM block in base64
ENCODED = re.compile(rb"(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi[A-Za-z0-9+/=]{16,}")
LINE = re.compile(
    # K3S_URL and RKE2_URL: the address of a server, which may hold a user like any other URL
    rb"^[ \t]*(?:export[ \t]+)?(?!(?:K3S|RKE2)_URL=[\"']?https?://[^@\s]*$)"
    rb"[A-Za-z_][A-Za-z0-9_]*=[ \t]*(?P<s>[^\r\n]*?)[ \t]*$",
    re.M,
)
# Harmless values in the environment file of a unit: flags, which checks read; numbers and switches.
HARMLESS = re.compile(
    rb"[\"']?(?:-.*|\$.*|[0-9.]*|true|false|yes|no|on|off|info|warn|error|debug)[\"']?\Z", re.I
)
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*\Z")
PAIR = re.compile(r"(?![0-9]+:[0-9]+\Z)[^\s:/]+:(?!//).")
# options of curl and similar programs, which have a password after a colon
USERS = ("-u", "--user", "--proxy-user")
PLACES = ("/", "./", "http://", "https://", "unix://")  # the path or address of a secret is none
ASTERISK = ord("*")


def document(source: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a document without secrets."""
    clean: dict[str, Any] = _redact(source, "")
    return clean


def text(string: str) -> str:
    """Return a string without secrets, of the same length in UTF-8."""
    return _redact_text(string)[0]


def _redact_text(string: str, environment: bool = False) -> tuple[str, list[list[int]]]:
    """Return the redacted string and the spans of its secrets."""
    if len(string) < 256:
        return _redact_short(string, environment)
    return _redact_uncached(string, environment)


@lru_cache(maxsize=16384)
def _redact_short(string: str, environment: bool) -> tuple[str, list[list[int]]]:
    return _redact_uncached(string, environment)


def _redact_uncached(string: str, environment: bool) -> tuple[str, list[list[int]]]:
    data = string.encode("utf-8", "surrogatepass")
    redacted, masked_spans = redacted_bytes.masked(data)
    spans = [*map(list, masked_spans), *_form_spans(redacted)]
    if environment:
        spans += [
            list(line.span("s"))
            for line in LINE.finditer(redacted)
            if not HARMLESS.match(line["s"])
        ]
    if not spans:
        return string, []
    # By bytes, not by characters: a character of several bytes becomes as many asterisks.
    result = bytearray(redacted)
    for start, end in spans:
        for place in range(start, end):
            if result[place] not in b"\r\n":
                result[place] = ASTERISK
    return bytes(result).decode("utf-8", "surrogatepass"), spans


def _form_spans(data: bytes) -> list[list[int]]:
    lower = data.lower()
    spans: list[list[int]] = []
    for hints, form in FORMS:
        if not any(hint in lower for hint in hints):
            continue
        group: str | int = 0
        if "s" in form.groupindex:
            group = "s"
        spans += [list(match.span(group)) for match in form.finditer(data)]
    if b"ls0tls1crudjti" in lower:
        encoded = filter(_has_private_key, ENCODED.finditer(data))
        spans += [list(match.span()) for match in encoded]
    return spans


def _has_private_key(match: re.Match[bytes]) -> bool:
    """Return whether base64 is more than certificates. Unreadable text is taken for a key."""
    encoded = match.group()
    try:
        return b"PRIVATE KEY" in base64.b64decode(encoded[: len(encoded) // 4 * 4], validate=True)
    except (ValueError, binascii.Error):
        return True


def _redact(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return _redact_value(value, key)
    if isinstance(value, Mapping):
        return _redact_record(value, key)
    if isinstance(value, (list, tuple)):
        return _redact_list(list(value), key)
    return value


def _redact_value(value: str, key: str) -> str:
    if not value or not redaction_names.secret_key(key):
        return text(value)
    if value.lower() in redaction_names.PUBLIC or value.startswith(PLACES):
        return text(value)
    return _asterisks(value)


def _asterisks(secret: str) -> str:
    return "*" * len(secret.encode("utf-8", "surrogatepass"))


def _redact_record(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    if key in ("env", "environment") or redaction_names.secret_key(key):
        redacted = {text(name): _redact(item, "password") for name, item in value.items()}
    else:
        redacted = {text(name): _redact(item, name) for name, item in value.items()}
    if isinstance(value.get("value"), str) and _is_variable(value.get("name")):
        redacted["value"] = _asterisks(value["value"])
    if isinstance(value.get("text"), str) and isinstance(value.get("masked"), list):
        redacted.update(_redact_file(value, key == "environment_files"))
    return redacted


def _is_variable(name: Any) -> bool:
    if not isinstance(name, str):
        return False
    return bool(redaction_names.secret_env(name) or VARIABLE.match(name))


def _redact_file(record: Mapping[str, Any], environment: bool) -> dict[str, Any]:
    """Redact a file. The spans of redacted bytes are kept, so that no step edits across them."""
    redacted, spans = _redact_text(record["text"], environment)
    masked = record["masked"]
    if spans:
        pairs = [list(span) for span in masked if isinstance(span, (list, tuple))]
        masked = _joined([pair for pair in pairs if len(pair) == 2] + spans)
    return {"text": redacted, "masked": masked}


def _redact_list(values: list[Any], key: str) -> list[Any]:
    if _is_secret_pair(values):
        return [values[0], "*" * len(values[1])]
    redacted = [_redact(item, key) for item in values]
    for place, (before, item) in enumerate(pairwise(values), 1):
        if not isinstance(item, str):
            continue
        if _is_secret_argument(before, item):
            redacted[place] = _asterisks(item)
        elif before in USERS and PAIR.match(item):
            name, colon, password = item.partition(":")
            redacted[place] = name + colon + _asterisks(password)
    return redacted


def _is_secret_pair(values: list[Any]) -> bool:
    """Return whether a list is the name and the value of a secret variable."""
    if len(values) != 2 or not all(isinstance(item, str) for item in values):
        return False
    return bool(redaction_names.secret_env(values[0]) and VARIABLE.match(values[0]))


def _is_secret_argument(option: Any, argument: str) -> bool:
    """Return whether an argument is the secret that the option before it expects."""
    if not isinstance(option, str) or not option.startswith("-") or "=" in option:
        return False
    if argument.startswith(("-", *PLACES)) or argument in redaction_names.PUBLIC:
        return False
    return bool(redaction_names.secret_key(option))


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
