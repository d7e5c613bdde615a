# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which release of systemd knows which setting of networkd."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import networkd_settings


@pytest.mark.parametrize(("release", "count"), [(0, 0), (245, 0), (246, 1), (248, 1), (249, 2)])
def test_the_settings_of_a_release(release: int, count: int) -> None:
    assert networkd_settings.known_keys(release) == networkd_settings.KEYS[:count]


def test_the_file_is_read_after_those_with_numbers() -> None:
    assert networkd_settings.FILE.startswith("/etc/systemd/networkd.conf.d/99-zz")
