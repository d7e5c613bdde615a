# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a node as collectors read them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    file_record,
)
from tests.unit.support import answers

CONFIG = answers.recorded("v1.36.3-kubelet-masked", "w1", "kubelet")["config"]
SYMLINK = answers.recorded("v1.36.3-address-gone", "m1", "boot")["modules_files"][0]
KUBECONFIG = answers.recorded("v1.36.3-healthy", "m1", "instances")["processes"][0]["kubeconfig"]


def test_a_file_with_its_text():
    record = answers.typed(file_record.FileRecord, CONFIG)
    assert (record.path, record.name) == ("/var/lib/kubelet/config.yaml", "config.yaml")
    assert (record.kind, record.link, record.error) == ("file", None, None)
    assert (record.mode, record.uid, record.gid) == ("0644", 0, 0)
    assert record.size == len(record.text) == 1283
    assert record.sha256 == CONFIG["sha256"]
    assert (record.masked, record.truncated, record.binary) == ((), False, False)


def test_a_link_keeps_what_it_points_to():
    record = answers.typed(file_record.FileRecord, SYMLINK)
    assert (record.kind, record.link) == ("symlink", "../modules")
    assert record.mtime == 1795504004.0


def test_secrets_are_byte_spans():
    assert answers.typed(file_record.FileRecord, KUBECONFIG).masked == ((3421, 5657),)
    decoded = answers.changed(file_record.FileRecord, KUBECONFIG, "masked", 0, value=[3421])
    assert (decoded.malformed, decoded.answer.masked) == (("masked[0]",), ())


@pytest.mark.parametrize(
    ("masked", "spans"),
    [([[1, 4], (5, 6)], ((1, 4), (5, 6))), ([[1], [1, "4"], 7], ()), ("text", ()), (None, ())],
)
def test_masked_spans_are_two_numbers_each(masked, spans):
    assert decode.decode(file_record.FileRecord, {"masked": masked}).answer.masked == spans


def test_a_file_that_is_missing_is_of_no_kind():
    raw = {"path": "/etc/default/zramswap", "error": "missing"}
    record = answers.typed(file_record.FileRecord, raw)
    assert (record.kind, record.error, record.text) == ("other", "missing", None)


@pytest.mark.parametrize(
    ("field", "value", "default"),
    [("mode", 420, None), ("truncated", 0, False), ("kind", None, "other"), ("text", [], None)],
)
def test_a_field_of_another_type_has_its_default(field, value, default):
    decoded = answers.changed(file_record.FileRecord, CONFIG, field, value=value)
    assert decoded.malformed == (field,)
    assert getattr(decoded.answer, field) == default
    assert decoded.answer.path == CONFIG["path"]


def test_a_certificate_that_cannot_be_read():
    raw = {"path": "/var/lib/kubelet/pki/kubelet-client-current.pem", "error": "denied"}
    certificate = answers.typed(file_record.CertificateFile, raw)
    assert (certificate.pem, certificate.error) == (None, "denied")
    decoded = decode.decode(file_record.CertificateFile, {**raw, "pem": ["a", "b"]})
    assert (decoded.malformed, decoded.answer.pem) == (("pem",), None)


def test_lines_and_assignments_name_their_file():
    line = answers.typed(
        file_record.SettingLine,
        {"path": "/etc/pam.d/sshd", "line": 40, "text": "session required pam_limits.so"},
    )
    assert (line.path, line.line, line.text) == (
        "/etc/pam.d/sshd",
        40,
        "session required pam_limits.so",
    )
    decoded = decode.decode(
        file_record.Assignment, {"path": "/etc/x", "key": "net.a", "value": 1, "line": "3"}
    )
    assert decoded.malformed == ("line", "value")
    assert decoded.answer == file_record.Assignment(path="/etc/x", key="net.a")


def test_a_folder_that_could_not_be_read():
    unread = answers.typed(file_record.Unread, {"path": "/etc/firewalld", "error": "denied"})
    assert (unread.path, unread.error) == ("/etc/firewalld", "denied")
