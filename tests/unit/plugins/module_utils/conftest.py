# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import os
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import files
from tests.unit.support.fake_systemctl import replace_systemctl

NODE = Path(__file__).resolve().parents[3] / "fixtures" / "node"


@pytest.fixture(params=["v1.18.4", "v1.36.3"])
def capture(request):
    """Read a capture of a real node of each version."""

    def read(name):
        return (NODE / request.param / name).read_text(encoding="utf-8")

    read.version = request.param
    return read


@pytest.fixture
def systemctl(monkeypatch):
    """Return (the commands that systemctl got, its answers by subcommand)."""
    return replace_systemctl(monkeypatch)


@pytest.fixture
def pages(monkeypatch):
    """Let one read give at most so many bytes, as the kernel does it with a page."""
    read, size = os.read, [4096]
    monkeypatch.setattr(
        files.os, "read", lambda descriptor, count: read(descriptor, min(count, size[0]))
    )
    return size


@pytest.fixture
def mountinfo():
    with Path("/proc/self/mountinfo").open(encoding="utf-8", errors="backslashreplace") as file:
        return file.read()
