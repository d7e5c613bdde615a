# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a certificate that a renewal compares, read from its DER without a library."""

import calendar
import time

from . import public_keys
from .files import sha256

VERSION, EXTENSIONS = 0xA0, 0xA3
SHORT_TIME, LONG_TIME = 0x17, 0x18
NAMES = bytes.fromhex("0603551d11")  # the extension subjectAltName
LONG_FORM = "%Y%m%d%H%M%SZ"
CERTIFICATE = "CERTIFICATE"


class CertificateFields:
    """The fields of one certificate.

    begins, ends: in seconds since the epoch.
    algorithm: of its key and the key's length, as kubeadm writes it: RSA-2048, ECDSA-P256.
    key: the SHA-256 of its public key, as public_keys.digests() returns it of a private one.
    names: its alternative names, each as it is written.
    subject_values: (object, value) of its subject, whatever kind of text has the value.
    digest: the SHA-256 of the whole certificate.
    """

    def __init__(self, data):
        fields = public_keys.parts_of(public_keys.parts_of(data)[0][1])
        first = 1 if fields[0][0] == VERSION else 0
        self.serial = int.from_bytes(fields[first][2], "big")
        self.issuer = bytes(fields[first + 2][1])
        self.begins, self.ends = (
            _seconds(tag, content)
            for tag, _whole, content in public_keys.parts_of(fields[first + 3][1])
        )
        self.subject = bytes(fields[first + 4][1])
        self.subject_values = _values(fields[first + 4][1])
        self.algorithm = public_keys.algorithm(bytes(fields[first + 5][1]))
        self.key = sha256(fields[first + 5][1]).hexdigest()
        self.names = _names(fields[first + 6 :])
        self.digest = sha256(data).hexdigest()


def first(text):
    """Return the fields of the first certificate of a PEM text; ValueError where it has none."""
    try:
        for label, data in public_keys.blocks(text):
            if label == CERTIFICATE:
                return CertificateFields(data)
    except IndexError:
        raise ValueError("a certificate of a form that is not read") from None
    raise ValueError("no certificate in it")


def date_text(seconds):
    """Return a date as findings write it."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def _seconds(tag, content):
    text = bytes(content).decode("ascii")
    if tag == SHORT_TIME:  # two digits of the year, from 1950 on
        text = ("19" if text[:2] >= "50" else "20") + text
    elif tag != LONG_TIME:
        raise ValueError("no time")
    return calendar.timegm(time.strptime(text, LONG_FORM))


def _values(name):
    values = set()
    for _tag, _whole, content in public_keys.parts_of(name):
        sequence = public_keys.wrapped(public_keys.SEQUENCE, content)
        for _tag, pair, _content in public_keys.parts_of(sequence):
            kind, value = public_keys.parts_of(pair)[:2]
            values.add((bytes(kind[1]), bytes(value[2])))
    return frozenset(values)


def _names(fields):
    for tag, _whole, content in fields:
        if tag != EXTENSIONS:
            continue
        for _tag, whole, extension in public_keys.parts_of(content):
            if extension.startswith(NAMES):
                names = public_keys.parts_of(public_keys.parts_of(whole)[-1][2])
                return frozenset(bytes(name) for _tag, name, _content in names)
    return frozenset()
