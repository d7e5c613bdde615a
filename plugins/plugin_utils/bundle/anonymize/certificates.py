# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates that name a host or a person, made again with other names.

Public key, dates, serial number and what the certificate is for stay; the signature is a throwaway
key's. A certificate that names nobody stays byte for byte, so that a cluster's authority is still
the same.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

# Here, not where it is used, as in evidence.py.
try:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import NameOID
except ImportError:
    x509 = Ed25519PrivateKey = Encoding = NameOID = None

BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
BLOCK = re.compile(rf"{BEGIN}[A-Za-z0-9+/=\s]*?{END}")
BASE64 = re.compile(r"(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi[A-Za-z0-9+/]{16,}={0,2}")
UNREADABLE: tuple[type[Exception], ...] = (ValueError, TypeError, AttributeError, OverflowError)
if x509 is not None:
    UNREADABLE += (x509.DuplicateExtension, x509.UnsupportedGeneralNameType, UnsupportedAlgorithm)
Replace = Callable[[str], str]


def names(text: str) -> Iterator[tuple[str, bool, bool]]:
    """(a name, whether a host's, whether an authority's) of each certificate in a text, embedded
    ones too.
    """
    blocks = BLOCK.findall(text)
    for encoded in BASE64.findall(text):
        blocks += BLOCK.findall(_decoded(encoded) or "")
    for block in blocks:
        try:
            certificate = x509.load_pem_x509_certificate(block.encode("ascii"))
            named = [
                (str(item.value), False)
                for item in certificate.subject
                if item.oid == NameOID.COMMON_NAME
            ]
            authority, others = _extensions(certificate)
        except UNREADABLE:
            continue
        for name, is_host in named + others:
            if name.startswith("system:node:"):
                yield name[len("system:node:") :], True, authority
            elif ":" not in name or is_host:
                yield name, is_host or "." in name, authority


def _extensions(certificate: Any) -> tuple[bool, list[tuple[str, bool]]]:
    authority, found = False, []
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.BasicConstraints):
            authority = bool(extension.value.ca)
        elif isinstance(extension.value, x509.SubjectAlternativeName):
            found = [
                (str(one.value), True)
                for one in extension.value
                if isinstance(one, (x509.DNSName, x509.IPAddress))
            ]
    return authority, found


class Certificates:
    """One replacement for one bundle. replace: what is done with a name."""

    def __init__(self, replace: Replace, secret: bytes) -> None:
        self._replace, self._secret = replace, secret
        self._made: dict[str, str] = {}
        self._key = (
            Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"key" + secret).digest())
            if Ed25519PrivateKey
            else None
        )

    def pem(self, block: str) -> str:
        """The block, with other names where it names somebody."""
        plain = "".join(block[len(BEGIN) : -len(END)].split())
        if plain not in self._made:
            self._made[plain] = self._anew(block, plain)
        return block if self._made[plain] == block else self._made[plain]

    def encoded(self, text: str) -> str:
        """Base64 of a PEM text, likewise; what cannot be read is replaced as a whole."""
        held = _decoded(text)
        if held is None or "CERTIFICATE" not in held:
            return base64.b64encode(self._opaque(text)).decode("ascii")
        changed = BLOCK.sub(lambda found: self.pem(found.group()), held)
        return (
            text if changed == held else base64.b64encode(changed.encode("utf-8")).decode("ascii")
        )

    def _anew(self, block: str, plain: str) -> str:
        try:
            old = x509.load_pem_x509_certificate(block.encode("ascii"))
            subject, issuer = self._name(old.subject), self._name(old.issuer)
            extensions = [(self._extension(item.value), item.critical) for item in old.extensions]
            if (
                subject == old.subject
                and issuer == old.issuer
                and [item.value for item in old.extensions] == [value for value, _c in extensions]
            ):
                return block
            builder = x509.CertificateBuilder(
                issuer, subject, old.public_key(), max(old.serial_number, 1)
            )
            builder = builder.not_valid_before(_date(old, "not_valid_before")).not_valid_after(
                _date(old, "not_valid_after")
            )
            for value, critical in extensions:
                builder = builder.add_extension(value, critical)
            return builder.sign(self._key, None).public_bytes(Encoding.PEM).decode("ascii")
        except UNREADABLE:
            # Nobody can read it, here or there, and what it holds cannot be looked at.
            return f"{BEGIN}\n{base64.b64encode(self._opaque(plain)).decode('ascii')}\n{END}\n"

    def _opaque(self, text: str) -> bytes:
        return hashlib.sha256(self._secret + text.encode("utf-8", "replace")).digest()

    def _name(self, name: Any) -> Any:
        return x509.Name(
            [
                x509.RelativeDistinguishedName([self._attribute(one) for one in part])
                for part in name.rdns
            ]
        )

    def _attribute(self, one: Any) -> Any:
        if not isinstance(one.value, str):
            return one
        new = self._replace(one.value)
        return one if new == one.value else x509.NameAttribute(one.oid, new[:64])

    def _extension(self, value: Any) -> Any:
        if isinstance(value, x509.SubjectAlternativeName):
            return x509.SubjectAlternativeName([self._general(one) for one in value])
        if (
            isinstance(value, x509.AuthorityKeyIdentifier)
            and value.authority_cert_issuer is not None
        ):
            return x509.AuthorityKeyIdentifier(
                value.key_identifier,
                [self._general(one) for one in value.authority_cert_issuer],
                value.authority_cert_serial_number,
            )
        if isinstance(value, x509.AuthorityInformationAccess):
            return x509.AuthorityInformationAccess(
                [
                    x509.AccessDescription(one.access_method, self._general(one.access_location))
                    for one in value
                ]
            )
        return value

    def _general(self, one: Any) -> Any:
        if isinstance(one, x509.DirectoryName):
            return x509.DirectoryName(self._name(one.value))
        if isinstance(one, x509.IPAddress):
            return type(one)(type(one.value)(self._replace(str(one.value))))
        if isinstance(one, (x509.DNSName, x509.UniformResourceIdentifier, x509.RFC822Name)):
            return type(one)(self._replace(one.value))
        return one


def _date(certificate: Any, name: str) -> Any:
    """Of an old cryptography without a time zone, which is UTC too."""
    return getattr(certificate, f"{name}_utc", None) or getattr(certificate, name)


def _decoded(encoded: str) -> str | None:
    try:
        return base64.b64decode(encoded, validate=True).decode("ascii")
    except ValueError:
        return None
