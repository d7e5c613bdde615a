# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence without names of hosts and people and without addresses, with the same verdicts.

Two passes: names are gathered over all documents, then each document is rebuilt. The same name is
replaced by the same name in keys, in paths, in log lines, in the name of a pod, in a certificate.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from .addresses import Addresses
from .certificates import BASE64, BLOCK, Certificates, names
from .names import Gathered, Names

OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = re.compile(
    rf"(?<![A-Za-z0-9.])((?:{OCTET}\.){{3}}{OCTET})(?![0-9]|\.[0-9])"
    r"(?:/([0-9]{1,2})(?![0-9]))?"
)
DASHED = re.compile(
    r"(?<![A-Za-z0-9])ip-([0-9]{1,3})-([0-9]{1,3})-([0-9]{1,3})-([0-9]{1,3})(?![0-9])"
)
# The first that matches is taken: a token that may contain others stands before them.
TOKENS = (
    ("pem", BLOCK.pattern),
    ("base64", BASE64.pattern),
    # of a label or taint, an image of the project
    ("key", r"(?:[a-z0-9-]+\.)*(?:kubernetes|k8s)\.io/[A-Za-z0-9_.-]+"),
    (
        "mac",
        r"(?<![0-9A-Fa-f:-])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])"
        r"|(?<![0-9A-Fa-f-])(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f-])",
    ),
    ("ipv4", IPV4.pattern),
    (
        "ipv6",
        r"(?<![A-Za-z0-9_.])(?=[0-9A-Fa-f]*:[0-9A-Fa-f]*:)"
        r"(?:[0-9A-Fa-f:]*:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z_.])"
        r"|[0-9A-Fa-f:]+(?![A-Za-z0-9_]|\.[0-9]))",
    ),
    ("word", r"[A-Za-z0-9]+_?(?:[._-]+[A-Za-z0-9]+_?)*"),
)
SHORT, MAX_CACHED = 200, 100000  # most strings of a fleet are the same short ones
IDENTIFIER = re.compile(r"[A-Za-z_]+\Z")
# whose keys are names that a cluster gives
MAPS = ("nodes", "labels", "annotations", "folders")


class Anonymizer:
    """The replacements of one bundle.

    The secret is of this bundle alone and never kept, so that names cannot be tried out.
    """

    def __init__(self, documents: Iterable[Mapping[str, Any]], secret: bytes) -> None:
        gathered, addresses = _gather(documents)
        self._secret = secret
        self._names = Names(gathered)
        self._ids = {name: self._id(name) for name in gathered.ids}
        self._tokens = _token_pattern([*self._names.odd, *self._ids])
        self._addresses = Addresses(sorted(addresses), random.Random(secret))
        self._cache: dict[str, str] = {}
        self._certificates = Certificates(self.text, secret)

    def document(self, mapping: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document of evidence, or any other mapping, with other names."""
        renamed: dict[str, Any] = self._walk(mapping, "")
        return renamed

    def text(self, string: str) -> str:
        """Return a string with other names."""
        if string in self._cache:
            return self._cache[string]
        text = self._tokens.sub(self._token, string)
        if len(string) <= SHORT and len(self._cache) < MAX_CACHED:
            self._cache[string] = text
        return text

    def _token(self, match: re.Match[str]) -> str:
        kind, text = str(match.lastgroup), match.group()
        if kind == "word":
            before = match.string[max(0, match.start() - 2) : match.start()]
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
        if kind == "ipv4":
            return self._ipv4(IPV4.match(match.string, match.start()))
        return self._ipv6(text)

    def _word(self, text: str, in_path: bool) -> str:
        if not text:
            return ""
        address = IPV4.search(text)
        if address:
            before, after = text[: address.start()], text[address.end() :]
            return self._word(before, in_path) + self._ipv4(address) + self._word(after, in_path)
        replaced = self._names.word(text, in_path)
        if replaced != text:
            return replaced
        return DASHED.sub(self._dashed, text)

    def _dashed(self, match: re.Match[str]) -> str:
        octets = [int(octet) for octet in match.groups()]
        if max(octets) > 255:
            return match.group()
        address = self._addresses.ipv4(".".join(map(str, octets)))
        return "ip-" + address.replace(".", "-")

    def _ipv4(self, match: re.Match[str] | None) -> str:
        if match is None:
            return ""
        address, prefix = match.groups()
        if prefix is None:
            return self._addresses.ipv4(address)
        if int(prefix) > 32:
            return f"{self._addresses.ipv4(address)}/{prefix}"
        return f"{self._addresses.network(address, int(prefix))}/{prefix}"

    def _ipv6(self, text: str) -> str:
        before = after = ""
        if text.startswith(":") and not text.startswith("::"):
            before = ":"
        if text.endswith(":") and not text.endswith("::"):
            after = ":"
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
            return self._string(value, key)
        if isinstance(value, Mapping):
            if isinstance(value.get("text"), str) and "masked" in value:
                return self._file(value)
            return {self._key(name, key): self._walk(item, name) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._walk(item, key) for item in value]
        return value

    def _string(self, value: str, key: str) -> str:
        if value and key.startswith("sha256"):
            return self._digest(value)
        return self.text(value)

    def _key(self, name: str, parent: str) -> str:
        if IDENTIFIER.match(name) and parent not in MAPS:
            return name
        return self.text(name)

    def _file(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Replace names in a file's record: its size and redacted spans follow the text."""
        data = record["text"].encode("utf-8", "surrogatepass")
        new = {
            name: self._walk(item, name)
            for name, item in record.items()
            if name not in ("text", "masked")
        }
        try:
            new_data, spans = self._moved(data, record["masked"])
        except (TypeError, ValueError):
            new_data, spans = self._bytes(data), record["masked"]
        new["text"], new["masked"] = new_data.decode("utf-8", "surrogatepass"), spans
        if new.get("size") == len(data):
            new["size"] = len(new_data)
        return {name: new[name] for name in record}

    def _moved(self, data: bytes, spans: Any) -> tuple[bytes, list[list[int]]]:
        """Replace names between the redacted spans, and return the new positions of the spans."""
        new_data, moved, done = b"", [], 0
        for start, end in sorted(spans or ()):
            new_data += self._bytes(data[done:start])
            moved.append([len(new_data), len(new_data) + end - start])
            new_data += data[start:end]
            done = end
        return new_data + self._bytes(data[done:]), moved

    def _bytes(self, data: bytes) -> bytes:
        return self.text(data.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")

    def _digest(self, text: str) -> str:
        """Replace the digest of original bytes, with which a missing name could be tried out."""
        return hmac.new(self._secret, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def _id(self, name: str) -> str:
        """Return another id of the same form; with dashes or without it is the same machine."""
        digits = iter(self._digest(name.lower().replace("-", "")))
        new = "".join(next(digits, "0") if char.isalnum() else char for char in name[:64])
        if name != name.lower():
            return new.upper()
        return new


def _gather(documents: Iterable[Mapping[str, Any]]) -> tuple[Gathered, set[str]]:
    """Return the names and the IPv4 addresses of all documents."""
    gathered = Gathered()
    addresses: set[str] = set()
    for document in documents:
        gathered.add_document(document)
        text = "\n".join(_strings(document))
        gathered.add_text(text)
        addresses.update(match.group(1) for match in IPV4.finditer(text))
        for name, is_host, authority in names(text):
            if IPV4.fullmatch(name):
                addresses.add(name)
            elif not authority and ":" not in name:  # an address of IPv6 is one in texts too
                gathered.add_certificate_name(name, is_host)
    return gathered, addresses


def _token_pattern(odd_names: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of all tokens; odd names match no other token, the longest is first."""
    tokens = chain(TOKENS)
    odd = "|".join(re.escape(name) for name in sorted(odd_names, key=len, reverse=True))
    if odd:
        tokens = chain([("odd", odd)], TOKENS)
    return re.compile("|".join(f"(?P<{name}>{form})" for name, form in tokens), re.A)


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
