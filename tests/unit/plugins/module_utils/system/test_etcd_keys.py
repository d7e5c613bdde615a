# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions about ranges of etcd's keys."""

import base64

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import etcd_keys


def test_a_prefix_ends_before_the_next_one():
    bounds = etcd_keys.bounds("/registry/pods/")
    assert base64.b64decode(bounds["key"]) == b"/registry/pods/"
    assert base64.b64decode(bounds["range_end"]) == b"/registry/pods0"


def test_counting_reads_no_value():
    question = etcd_keys.counting("/registry", "events")
    assert question["count_only"] is True
    assert base64.b64decode(question["key"]) == b"/registry/events/"


@pytest.mark.parametrize(
    ("answer", "count"),
    [({"count": "12"}, 12), ({}, 0), ({"count": "-1"}, None), ({"count": "9" * 13}, None)],
)
def test_a_count_is_a_number(answer, count):
    assert etcd_keys.count(answer) == count


@pytest.mark.parametrize(
    ("prefix", "begin"), [("//a//b/", "/a/b/"), ("/", "/"), ("registry", "/registry/")]
)
def test_objects_below_a_prefix(prefix, begin):
    assert base64.b64decode(etcd_keys.resource_bounds(prefix, "")["key"]).decode() == begin
    assert base64.b64decode(etcd_keys.resource_bounds(prefix, "x")["key"]).decode() == begin + "x/"


@pytest.mark.parametrize("prefix", ["/registry", "registry", "/registry/"])
def test_a_prefix_is_read_as_an_api_server_reads_it(prefix):
    question = etcd_keys.counting(prefix, "services/specs")
    assert base64.b64decode(question["key"]) == b"/registry/services/specs/"
