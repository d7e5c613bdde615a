# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What several tests of captures need."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import private_root


@pytest.fixture
def trial_folder(tmp_path, monkeypatch):
    """Return the mount point of the private roots of one test, whose files are below /tmp."""
    place = tmp_path / "run" / "trial"
    monkeypatch.setattr(private_root, "MOUNT_POINT", str(place))
    monkeypatch.setattr(private_root, "EMPTY", ("/run",))
    monkeypatch.setattr(private_root, "SYSTEM", ("/proc", "/sys", "/dev", "/run"))
    return place
