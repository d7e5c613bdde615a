# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence without the names of hosts and people and without addresses, that still judges the same.

Two passes: what is to be replaced is gathered over all documents, then each is made again. The same
name is replaced by the same name wherever it stands, in keys, in paths, in log lines, in the name
of a pod, in a certificate.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .addresses import Addresses
from .certificates import BASE64, BLOCK, Certificates, names
from .names import Gathered, Names

IPV4 = re.compile(
    r"(?<![A-Za-z0-9.])((?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9]))(?![0-9]|\.[0-9])"
    r"(?:/([0-9]{1,2})(?![0-9]))?"
)
DASHED = re.compile(
    r"(?<![A-Za-z0-9])ip-([0-9]{1,3})-([0-9]{1,3})-([0-9]{1,3})-([0-9]{1,3})(?![0-9])"
)
# The first that fits is taken: what may hold the others inside stands before them.
TOKENS = (
    ("pem", BLOCK.pattern),
    ("base64", BASE64.pattern),
    # of a label or taint, an image of the project
    ("key", r"(?:[a-z0-9-]+\.)*(?:kubernetes|k8s)\.io/[A-Za-z0-9_.-]+"),
    (
        "mac",
        r"(?<![0-9A-Fa-f:-])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])|(?<![0-9A-Fa-f-])(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f-])",
    ),
    ("ipv4", IPV4.pattern),
    (
        "ipv6",
        r"(?<![A-Za-z0-9_.])(?=[0-9A-Fa-f]*:[0-9A-Fa-f]*:)"
        r"(?:[0-9A-Fa-f:]*:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z_.])|[0-9A-Fa-f:]+(?![A-Za-z0-9_]|\.[0-9]))",
    ),
    ("word", r"[A-Za-z0-9]+_?(?:[._-]+[A-Za-z0-9]+_?)*"),
)
SHORT, HELD = 200, 100000  # most strings of a fleet are the same short ones
IDENTIFIER = re.compile(r"[A-Za-z_]+\Z")
# whose keys are what a cluster calls its things
MAPS = ("nodes", "labels", "annotations", "folders")


class Anonymous:
    """One replacement for one bundle. secret.

    Of this bundle alone, never kept, so that nobody can try names out.
    """

    def __init__(self, documents: Iterable[Mapping[str, Any]], secret: bytes) -> None:
        gathered, seen = Gathered(), set()
        for document in documents:
            gathered.structured(document)
            whole = "\n".join(_strings(document))
            gathered.spoken(whole)
            seen.update(found.group(1) for found in IPV4.finditer(whole))
            for name, is_host, authority in names(whole):
                if IPV4.fullmatch(name):
                    seen.add(name)
                elif not authority:
                    (gathered.hosts if is_host else gathered.people).add(name.lstrip("*."))
        self._secret = secret
        self._names = Names(gathered)
        self._ids = {name: self._id(name) for name in gathered.ids}
        odd = sorted([*self._names.odd, *self._ids], key=len, reverse=True)
        tokens = ([("odd", "|".join(re.escape(name) for name in odd))] if odd else []) + list(
            TOKENS
        )
        self._tokens = re.compile("|".join(f"(?P<{name}>{form})" for name, form in tokens), re.A)
        self._addresses = Addresses(sorted(seen), random.Random(secret))
        self._told: dict[str, str] = {}
        self._certificates = Certificates(self.text, secret)

    def document(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A document of evidence, or any other mapping, with other names."""
        return self._walk(given, "")

    def text(self, given: str) -> str:
        """A string with other names."""
        if len(given) > SHORT:
            return self._tokens.sub(self._token, given)
        if given not in self._told and len(self._told) < HELD:
            self._told[given] = self._tokens.sub(self._token, given)
        return self._told[given] if given in self._told else self._tokens.sub(self._token, given)

    def _token(self, found: re.Match[str]) -> str:
        kind, text = str(found.lastgroup), found.group()
        if kind == "word":
            before = found.string[max(0, found.start() - 2) : found.start()]
            return self._word(text, before.endswith("/") and before != "//")
        if kind == "key":
            return text
        if kind == "odd":
            return self._names.odd.get(text) or self._ids[text]
        if kind == "pem":
            return self._certificates.pem(text)
        if kind == "base64":
            return self._certificates.encoded(text)
        if kind == "mac":
            return self._addresses.mac(text)
        return (
            self._ipv4(IPV4.match(found.string, found.start()))
            if kind == "ipv4"
            else self._ipv6(text)
        )

    def _word(self, text: str, in_path: bool) -> str:
        inside = IPV4.search(text)
        if inside:
            before, after = text[: inside.start()], text[inside.end() :]
            return (
                (self._word(before, in_path) if before else "")
                + self._ipv4(inside)
                + (self._word(after, in_path) if after else "")
            )
        made = self._names.word(text, in_path)
        return DASHED.sub(self._dashed, made) if made == text else made

    def _dashed(self, found: re.Match[str]) -> str:
        if any(int(octet) > 255 for octet in found.groups()):
            return found.group()
        return "ip-" + self._addresses.ipv4(
            ".".join(str(int(octet)) for octet in found.groups())
        ).replace(".", "-")

    def _ipv4(self, found: re.Match[str] | None) -> str:
        if found is None:
            return ""
        address, prefix = found.group(1), found.group(2)
        if prefix is None or int(prefix) > 32:
            return self._addresses.ipv4(address) + (f"/{prefix}" if prefix else "")
        return f"{self._addresses.network(address, int(prefix))}/{prefix}"

    def _ipv6(self, text: str) -> str:
        before = ":" if text.startswith(":") and not text.startswith("::") else ""
        after = ":" if text.endswith(":") and not text.endswith("::") else ""
        core = text[len(before) : len(text) - len(after)]
        if "::" not in core and core.count(":") != 7:
            return text
        try:
            ipaddress.IPv6Address(core)
        except ValueError:
            return text
        return before + self._addresses.ipv6(core) + after

    def _walk(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return self._digest(value) if key.startswith("sha256") and value else self.text(value)
        if isinstance(value, Mapping):
            if isinstance(value.get("text"), str) and "masked" in value:
                return self._file(value)
            return {self._key(name, key): self._walk(item, name) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._walk(item, key) for item in value]
        return value

    def _key(self, name: str, parent: str) -> str:
        return name if IDENTIFIER.match(name) and parent not in MAPS else self.text(name)

    def _file(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A file's record: its size and the places of what is masked in it follow the text."""
        data, spans = record["text"].encode("utf-8", "surrogatepass"), record["masked"]
        found = {
            name: self._walk(item, name)
            for name, item in record.items()
            if name not in ("text", "masked")
        }
        try:
            made, moved, done = b"", [], 0
            for start, end in sorted(spans or ()):
                made += self._bytes(data[done:start])
                moved.append([len(made), len(made) + end - start])
                made, done = made + data[start:end], end
            made += self._bytes(data[done:])
        except (TypeError, ValueError):
            made, moved = self._bytes(data), spans
        found["text"], found["masked"] = made.decode("utf-8", "surrogatepass"), moved
        if found.get("size") == len(data):
            found["size"] = len(made)
        return {name: found[name] for name in record}

    def _bytes(self, data: bytes) -> bytes:
        return self.text(data.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")

    def _digest(self, digest: str) -> str:
        """Another for what is the digest of true bytes.

        With it a missing name could be tried out.
        """
        return hmac.new(self._secret, digest.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def _id(self, name: str) -> str:
        """Another id of the same form; with dashes or without it is the same machine."""
        digits = iter(
            hmac.new(
                self._secret,
                name.lower().replace("-", "").encode("utf-8", "replace"),
                hashlib.sha256,
            ).hexdigest()
        )
        made = "".join(next(digits, "0") if char.isalnum() else char for char in name[:64])
        return made.upper() if name != name.lower() else made


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, (list, tuple)):
            waiting += item
