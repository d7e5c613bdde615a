# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells the words of an error that follow the name of a secret from the value of that secret.

The module is pure. Programs in Go join errors by colons: "failed to fetch token: serviceaccounts
"web" not found". The name stands in a sentence, a path or a type there, at no place of a key of
YAML, JSON or ini, and what follows begins with words that no secret begins with.
"""

from .redaction_spans import BLANK, line_end_of

# What errors of operating systems, of Go's libraries and of Kubernetes begin with.
BEGINNINGS = (
    "failed to ",
    "Failed to ",
    "error ",
    "unable to ",
    "Unable to ",
    "cannot ",
    "could not ",
    "open /",
    "stat /",
    "lstat /",
    "read /",
    "dial tcp",
    "dial unix",
    "lookup ",
    "Get http",
    'Get "http',
    'Get \\"http',
    "Post http",
    'Post "http',
    'Post \\"http',
    "context deadline exceeded",
    "unexpected status ",
    "unexpected EOF",
    "illegal base64 data ",
    "serviceaccounts ",
    "secrets ",
    "Secret ",
    "etcdserver: ",
    "oidc: ",
    "x509: ",
    "tls: ",
    "rpc error: ",
    "json: ",
    "yaml: ",
    "exec: ",
    "fork/exec /",
    "exit status ",
    "Timeout: ",
    "Internal error occurred: ",
    "no such ",
    "permission denied",
    "the API server does not ",
    "the server ",
    "identity transformer tried ",
    "No OpenIDConnect provider ",
    "The security token included ",
    "Required value",
    # The API server writes this in place of each key of its encryption configuration.
    'Invalid value: "REDACTED": ',
    'Invalid value: \\"REDACTED\\": ',
)
_VOLUME = ('volume "', 'volume \\"')
_ENDINGS = ("Token", "Credential")  # of names of errors
_AROUND = BLANK + "\"'\\,;()[]{}<>"
_OPAQUE, _HEXADECIMAL = 16, 32  # letters from which on a word may be a secret
_HALVES = (6, 16)  # of a bootstrap token


def follow(text, start, mark):
    """Return whether an error follows the name that begins at start, whose colon is at mark."""
    if not text.startswith(": ", mark):
        return False
    if text.endswith(_VOLUME, max(0, start - 12), start):  # the kubelet's words about it
        return True
    before = text[max(0, start - 2) : start]
    if before[-1:] == "/" and _is_status(text[mark + 2 : mark + 6]):
        return True
    if not text.startswith(BEGINNINGS, mark + 2):
        return False
    if before[-1:] in ("*", "/", "]"):  # a type of Go, a path, a field of a list
        return True
    if before[-1:] != " ":
        return False
    if before[:1] == ":":
        return _is_name_of_error(text[start:mark])
    return before[:1].isalnum()


def opaque_words(text, mark, spans):
    """Add the places of the words of an error that may be secrets themselves."""
    offset, end = mark, line_end_of(text, mark)
    spans.spend(end - mark)
    while offset < end:
        begin = offset
        while offset < end and text[offset] not in _AROUND:
            offset += 1
        word = text[begin:offset].rstrip(".:")
        if _is_opaque(word):
            spans.append([begin, begin + len(word)])
        offset += 1


def _is_status(word):
    """Return whether a word is a number of HTTP, as a registry answers to a request."""
    return word[:1] in ("4", "5") and word[:3].isdigit() and word[3:] in ("", " ")


def _is_name_of_error(name):
    return name[:1].isupper() and name != name.upper() and name.endswith(_ENDINGS)


def _is_opaque(word):
    """Return whether a word may be a key or a token: it is no name, no path and no address."""
    if len(word) < _OPAQUE or word[0] in "/*" or "://" in word:
        return False
    if tuple(map(len, word.split("."))) == _HALVES and word.lower() == word:
        return True
    if len(word) >= _HEXADECIMAL and set(word.lower()) <= set("0123456789abcdef"):
        return True
    return word[-1] == "=" or _is_mixed(word)


def _is_mixed(word):
    """Return whether a word has digits, small and large letters."""
    has_digit = any(char.isdigit() for char in word)
    return has_digit and word not in (word.lower(), word.upper())
