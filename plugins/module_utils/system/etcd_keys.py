# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions about ranges of etcd's keys; none of them reads a value."""

import posixpath
from binascii import b2a_base64

PATH = "/kv/range"
PREFIX = "/registry"  # of an API server whose flags name no other
# Resources of which a cluster can have very many objects, as their keys begin.
RESOURCES = (
    "events",
    "leases",
    "pods",
    "secrets",
    "configmaps",
    "replicasets",
    "jobs",
    "deployments",
    "endpointslices",
    "services/specs",
    "services/endpoints",
    "serviceaccounts",
    "controllerrevisions",
)


def api_prefix(prefix):
    """Return a prefix as an API server reads it: with one slash before it, and none behind it."""
    return posixpath.normpath("/" + prefix.strip("/"))


def bounds(prefix):
    """Return {key, range_end} of all keys below a prefix, as etcd's gateway has them."""
    key = prefix.encode("utf-8")
    return {"key": _encoded(key), "range_end": _encoded(key[:-1] + bytes([key[-1] + 1]))}


def counting(prefix, resource):
    """Return the question how many objects of a resource there are."""
    return dict(resource_bounds(prefix, resource), count_only=True)


def resource_bounds(prefix, resource):
    """Return {key, range_end} of the objects of a resource, or of all of them for an empty text."""
    return bounds(posixpath.join(api_prefix(prefix), resource, ""))


def count(answer):
    """Return the count of an answer, which etcd leaves out where it is 0; None for no count."""
    text = str(answer.get("count", "0"))
    if text.isdecimal() and len(text) <= 12:
        return int(text)
    return None


def _encoded(data):
    return b2a_base64(data, newline=False).decode("ascii")
