# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What errors of decoders mean."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import decode_error


@pytest.mark.parametrize(
    ("text", "field", "given", "wanted"),
    [
        (
            "json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of"
            " type int32",
            "maxPods",
            "a text",
            "a number",
        ),
        (
            "json: cannot unmarshal number into Go struct field KubeletConfiguration.cgroupDriver"
            " of type string",
            "cgroupDriver",
            "a number",
            "a text",
        ),
        (
            "json: cannot unmarshal object into Go struct field KubeSchedulerConfiguration.profiles"
            " of type []v1.KubeSchedulerProfile",
            "profiles",
            "a map",
            "a list",
        ),
        (
            "json: cannot unmarshal string into Go value of type map[string]interface {}",
            "a field",
            "a text",
            "a map",
        ),
        # sealos#984, a kubelet of 1.17
        (
            'v1beta1.KubeletConfiguration.CgroupsPerQOS: CgroupDriver: ReadString: expects " or n,'
            ' but found 1, error found in #10 byte of ...|pDriver":1|...',
            "CgroupDriver",
            "a number",
            "a text",
        ),
    ],
)
def test_a_value_of_another_type(text, field, given, wanted):
    found = decode_error.find(text)
    assert field in found.clause
    assert found.clause.index(given) < found.clause.index(wanted)
    assert found.advice


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("error converting YAML to JSON: yaml: line 12: did not find expected key", "line 12"),
        ("yaml: line 3: mapping values are not allowed in this context", "line 3"),
        ("yaml: line 5: found character that cannot start any token", "cannot start any token"),
        (
            'yaml: unmarshal errors: line 4: mapping key "a" already defined at line 2',
            "already defined at line 2",
        ),
    ],
)
def test_a_file_that_is_no_yaml(text, words):
    assert words in decode_error.find(text).clause


@pytest.mark.parametrize(
    "text",
    [
        "",
        "unknown field",
        "json: cannot unmarshal string into Go struct field A.b of type string",
        "yaml: line 3: x",
        "cannot unmarshal " * 400,
    ],
)
def test_what_tells_nothing_of_a_field(text):
    assert decode_error.find(text) is None
