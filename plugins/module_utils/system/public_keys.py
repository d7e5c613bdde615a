# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The digest of the public key of a PEM file, also of one that holds the private key.

Two files with the same digest have the same pair of keys. Nothing private is kept or returned: of
a private key only the public numbers beside it are read. Nodes have no library for DER, of which
this needs only lengths and nesting.
"""

import binascii

from .files import sha256

INTEGER, BITS, OCTETS, OBJECT, SEQUENCE = 0x02, 0x03, 0x04, 0x06, 0x30
CURVE, POINT = 0xA0, 0xA1  # of a private key of an elliptic curve
VERSION = 0xA0  # of a certificate
RSA = bytes.fromhex("300d06092a864886f70d0101010500")
ELLIPTIC = bytes.fromhex("06072a8648ce3d0201")
CURVES = (
    (bytes.fromhex("06082a8648ce3d030107"), "ECDSA-P256"),
    (bytes.fromhex("06052b81040022"), "ECDSA-P384"),
)
BEGIN, END = "-----BEGIN ", "-----END "
MAX_BLOCKS = 16


class KeyFileError(ValueError):
    """A file without a public key that can be read; the text never quotes the file."""


def digests(text):
    """Return the SHA-256 of each public key of a PEM text, as SubjectPublicKeyInfo in DER.

    It raises KeyFileError where the text has no key, or one whose public part is not in it.
    """
    keys = [_digest(label, body) for label, body in blocks(text) if label in READERS]
    if not keys:
        raise KeyFileError("no key in it")
    return keys


def algorithm(info):
    """Return the algorithm and length of a SubjectPublicKeyInfo as kubeadm writes them, or ""."""
    (_tag, kind, _content), (_tag, _whole, key) = parts_of(info)[:2]
    if kind == RSA:
        modulus = parts_of(key[1:])[0][2]
        return f"RSA-{int.from_bytes(modulus, 'big').bit_length()}"
    return next((name for curve, name in CURVES if curve in kind), "")


def blocks(text):
    """Yield (label, bytes) of the PEM blocks."""
    position = 0
    for _count in range(MAX_BLOCKS):
        begin = text.find(BEGIN, position)
        if begin < 0:
            return
        label, dashes, rest = text[begin + len(BEGIN) :].partition("-----")
        end = rest.find(END)
        if not dashes or end < 0:
            raise KeyFileError("a block without an end")
        position = len(text) - len(rest) + end
        yield label, _bytes(rest[:end])


def _bytes(body):
    lines = [line.strip() for line in body.splitlines()]
    try:
        return binascii.a2b_base64("".join(line for line in lines if ":" not in line))
    except (ValueError, UnicodeEncodeError):
        raise KeyFileError("a block that is no base64") from None


def _digest(label, data):
    try:
        return sha256(READERS[label](data)).hexdigest()
    except KeyFileError:
        raise
    except (ValueError, IndexError):
        raise KeyFileError("a key of a form that is not read") from None


def _item(data, position=0):
    """Return (tag, begin of the content, end) of the item of DER at a position."""
    tag, length, begin = data[position], data[position + 1], position + 2
    if length & 0x80:
        count = length & 0x7F
        if not 0 < count <= 4:
            raise ValueError("length")
        length = int.from_bytes(data[begin : begin + count], "big")
        begin += count
    if begin + length > len(data):
        raise ValueError("cut")
    return tag, begin, begin + length


def parts_of(data):
    """Return [(tag, whole item, content)] of a sequence's items."""
    tag, position, end = _item(data)
    if tag != SEQUENCE:
        raise ValueError("no sequence")
    parts = []
    while position < end:
        tag, begin, stop = _item(data, position)
        parts.append((tag, data[position:stop], data[begin:stop]))
        position = stop
    return parts


def wrapped(tag, content):
    """Return an item of DER with this content."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _info(algorithm, key):
    return wrapped(SEQUENCE, algorithm + wrapped(BITS, b"\0" + key))


def _same(data):
    parts_of(data)
    return data


def _rsa_public(data):
    parts_of(data)
    return _info(RSA, data)


def _rsa_private(data):
    numbers = [whole for tag, whole, _content in parts_of(data) if tag == INTEGER]
    return _info(RSA, wrapped(SEQUENCE, numbers[1] + numbers[2]))


def _ec_private(data, algorithm=None):
    parts = {tag: content for tag, _whole, content in parts_of(data)}
    if algorithm is None:
        algorithm = wrapped(SEQUENCE, ELLIPTIC + parts.get(CURVE, b""))
    if POINT not in parts:
        raise KeyFileError("a key without its public part")
    return wrapped(SEQUENCE, algorithm + parts[POINT])


def _private(data):
    parts = parts_of(data)
    algorithm, inner = parts[1][1], parts[2][2]
    if algorithm == RSA:
        return _rsa_private(inner)
    if ELLIPTIC in algorithm:
        return _ec_private(inner, algorithm)
    raise KeyFileError("a key without its public part")


def _encrypted(_data):
    raise KeyFileError("an encrypted key")


def _of_certificate(data):
    fields = parts_of(parts_of(data)[0][1])
    first = 6 if fields[0][0] == VERSION else 5
    return fields[first][1]


READERS = {
    "PUBLIC KEY": _same,
    "RSA PUBLIC KEY": _rsa_public,
    "CERTIFICATE": _of_certificate,
    "RSA PRIVATE KEY": _rsa_private,
    "EC PRIVATE KEY": _ec_private,
    "PRIVATE KEY": _private,
    "ENCRYPTED PRIVATE KEY": _encrypted,
}
