# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates that name a host or a person, rebuilt with other names.

Public key, dates, serial number and purpose of the certificate stay; the signature is of a
throwaway key. A certificate without such a name stays byte for byte, so that the authority of a
cluster is still the same.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# Imported here, not at first use, as in evidence.py.
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
NODE_USER = "system:node:"


def names(text: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield (name, whether it is a host's, whether it is an authority's) of all certificates.

    Certificates in base64 within the text count too.
    """
    blocks = BLOCK.findall(text)
    for encoded in BASE64.findall(text):
        blocks += BLOCK.findall(_decoded(encoded) or "")
    for block in blocks:
        try:
            certificate = x509.load_pem_x509_certificate(block.encode("ascii"))
            named = [(name, False) for name in _common_names(certificate)]
            authority, alternatives = _extensions(certificate)
        except UNREADABLE:
            continue
        for name, is_host in _host_names(named + alternatives):
            yield name, is_host, authority


def _host_names(names: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Yield (name, whether it is a host's), without names of system users but nodes."""
    for name, is_host in names:
        if name.startswith(NODE_USER):
            yield name[len(NODE_USER) :], True
        elif ":" not in name or is_host:
            yield name, is_host or "." in name


def _common_names(certificate: Any) -> list[str]:
    return [str(item.value) for item in certificate.subject if item.oid == NameOID.COMMON_NAME]


def _extensions(certificate: Any) -> tuple[bool, list[tuple[str, bool]]]:
    authority, alternatives = False, []
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.BasicConstraints):
            authority = bool(extension.value.ca)
        elif isinstance(extension.value, x509.SubjectAlternativeName):
            alternatives = [
                (str(name.value), True)
                for name in extension.value
                if isinstance(name, (x509.DNSName, x509.IPAddress))
            ]
    return authority, alternatives


class Certificates:
    """The rebuilt certificates of one bundle; `replace` returns another name for a name."""

    def __init__(self, replace: Replace, secret: bytes) -> None:
        self._replace, self._secret = replace, secret
        self._rebuilt: dict[str, str] = {}
        self._key = None
        if Ed25519PrivateKey:
            seed = hashlib.sha256(b"key" + secret).digest()
            self._key = Ed25519PrivateKey.from_private_bytes(seed)

    def pem(self, block: str) -> str:
        """Return the block, with other names if it names a host or a person."""
        plain = "".join(block[len(BEGIN) : -len(END)].split())
        if plain not in self._rebuilt:
            self._rebuilt[plain] = self._rebuild(block, plain)
        return self._rebuilt[plain]

    def encoded(self, text: str) -> str:
        """Replace the names in base64 of a PEM text; unreadable text is replaced as a whole."""
        decoded = _decoded(text)
        if decoded is None or "CERTIFICATE" not in decoded:
            return base64.b64encode(self._opaque(text)).decode("ascii")
        changed = BLOCK.sub(lambda match: self.pem(match.group()), decoded)
        if changed == decoded:
            return text
        return base64.b64encode(changed.encode("utf-8")).decode("ascii")

    def _rebuild(self, block: str, plain: str) -> str:
        try:
            old = x509.load_pem_x509_certificate(block.encode("ascii"))
            subject, issuer = self._name(old.subject), self._name(old.issuer)
            extensions = [(self._extension(item.value), item.critical) for item in old.extensions]
            former = [(item.value, item.critical) for item in old.extensions]
            if (subject, issuer, extensions) == (old.subject, old.issuer, former):
                return block
            builder = x509.CertificateBuilder(
                issuer, subject, old.public_key(), max(old.serial_number, 1)
            )
            builder = builder.not_valid_before(_date(old, "not_valid_before"))
            builder = builder.not_valid_after(_date(old, "not_valid_after"))
            for value, critical in extensions:
                builder = builder.add_extension(value, critical)
            signed = builder.sign(self._key, None).public_bytes(Encoding.PEM)
            text: str = signed.decode("ascii")
            return text
        except UNREADABLE:
            # It cannot be read anywhere, and its names cannot be found.
            return f"{BEGIN}\n{base64.b64encode(self._opaque(plain)).decode('ascii')}\n{END}\n"

    def _opaque(self, text: str) -> bytes:
        return hashlib.sha256(self._secret + text.encode("utf-8", "replace")).digest()

    def _name(self, name: Any) -> Any:
        return x509.Name(
            [
                x509.RelativeDistinguishedName([self._attribute(item) for item in part])
                for part in name.rdns
            ]
        )

    def _attribute(self, attribute: Any) -> Any:
        if not isinstance(attribute.value, str):
            return attribute
        new = self._replace(attribute.value)
        if new == attribute.value:
            return attribute
        return x509.NameAttribute(attribute.oid, new[:64])

    def _extension(self, value: Any) -> Any:
        if isinstance(value, x509.SubjectAlternativeName):
            return x509.SubjectAlternativeName([self._general(name) for name in value])
        if (
            isinstance(value, x509.AuthorityKeyIdentifier)
            and value.authority_cert_issuer is not None
        ):
            return x509.AuthorityKeyIdentifier(
                value.key_identifier,
                [self._general(name) for name in value.authority_cert_issuer],
                value.authority_cert_serial_number,
            )
        if isinstance(value, x509.AuthorityInformationAccess):
            return x509.AuthorityInformationAccess(
                [
                    x509.AccessDescription(item.access_method, self._general(item.access_location))
                    for item in value
                ]
            )
        return value

    def _general(self, name: Any) -> Any:
        if isinstance(name, x509.DirectoryName):
            return x509.DirectoryName(self._name(name.value))
        if isinstance(name, x509.IPAddress):
            return type(name)(type(name.value)(self._replace(str(name.value))))
        if isinstance(name, (x509.DNSName, x509.UniformResourceIdentifier, x509.RFC822Name)):
            return type(name)(self._replace(name.value))
        return name


def _date(certificate: Any, name: str) -> Any:
    # An old cryptography returns it without a time zone, which is UTC too.
    return getattr(certificate, f"{name}_utc", None) or getattr(certificate, name)


def _decoded(encoded: str) -> str | None:
    try:
        return base64.b64decode(encoded, validate=True).decode("ascii")
    except ValueError:
        return None
