# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs in a private root, for the tests of it and of what runs in it."""

import os
import subprocess

import pytest

UNSHARE = ["unshare", "--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "true"]


def _may_unshare():
    if os.geteuid() != 0:
        return False
    return subprocess.run(UNSHARE, capture_output=True, check=False).returncode == 0


NEEDS_NAMESPACES = pytest.mark.skipif(not _may_unshare(), reason="needs root that may unshare")


def program(folder, text, name="containerd"):
    """Write a script that stands in for a program, and return its path."""
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)
