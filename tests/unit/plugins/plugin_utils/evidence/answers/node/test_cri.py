# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the container runtime says of itself."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import cri
from tests.unit.support import answers, cri_evidence


@pytest.fixture
def raw(world):
    return cri_evidence.cri(world)


def test_its_configuration_and_files(raw):
    answer = answers.typed(cri.Cri, raw)
    assert (answer.name, answer.driver) == ("containerd", None)
    assert (answer.config.systemd_cgroup, answer.config.bin_dirs) == (True, ("/opt/cni/bin",))
    assert answer.files[0].version == 2


def test_another_runtime_has_no_such_configuration(raw):
    decoded = answers.changed(cri.Cri, raw, "config", value=None)
    assert (decoded.malformed, decoded.answer.config) == ((), None)
    decoded = answers.changed(cri.Cri, raw, "sandboxes", value=None)
    assert (decoded.malformed, decoded.answer.sandboxes) == ((), None)


def test_a_value_of_another_type_is_unknown(raw):
    decoded = answers.changed(cri.Cri, raw, "config", "systemd_cgroup", value="true")
    assert decoded.malformed == ("config.systemd_cgroup",)
    assert decoded.answer.config.systemd_cgroup is None
