# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the host is."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    system,
)
from tests.unit.support import answers

SYSTEM = answers.recorded("v1.36.3-healthy", "m1", "system")


def test_a_host_of_debian():
    host = answers.typed(system.System, SYSTEM)
    assert (host.hostname, host.kernel) == ("m1", "6.18.44-fc-v669")
    assert host.machine_id == "5272effaea3f4789ad3f56c22d67045d"
    assert host.boot_id == "0b264f45-3e3e-472c-a9ab-99998b1819d0"
    assert (host.os_release.id, host.os_release.version_id) == ("debian", "12")
    assert host.os_release.pretty_name == "Debian GNU/Linux 12 (bookworm)"
    assert (host.cgroup, host.addresses) == ("hybrid", ("10.89.0.11",))
    assert (host.uptime_s, host.clock) == (4763.37, 1795257184.8038194)


def test_a_version_of_a_distribution_is_a_text():
    decoded = answers.changed(system.System, SYSTEM, "os_release", "version_id", value=12)
    assert decoded.malformed == ("os_release.version_id",)
    assert (decoded.answer.os_release.version_id, decoded.answer.os_release.id) == (None, "debian")


@pytest.mark.parametrize("value", ["1795257184", float("nan"), True])
def test_a_clock_that_is_no_time_is_unknown(value):
    decoded = answers.changed(system.System, SYSTEM, "clock", value=value)
    assert (decoded.malformed, decoded.answer.clock) == (("clock",), None)
    assert decoded.answer.uptime_s == 4763.37


def test_an_uptime_may_be_a_whole_number():
    decoded = answers.changed(system.System, SYSTEM, "uptime_s", value=4763)
    assert (decoded.malformed, decoded.answer.uptime_s) == ((), 4763)


def test_an_address_that_is_no_text_is_dropped():
    decoded = answers.changed(system.System, SYSTEM, "addresses", value=["10.89.0.11", 10])
    assert decoded.malformed == ("addresses[1]",)
    assert decoded.answer.addresses == ("10.89.0.11",)
