# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from pathlib import Path

import pytest

NODE = Path(__file__).resolve().parents[3] / "fixtures" / "node"


@pytest.fixture(params=["v1.18.4", "v1.36.3"])
def capture(request):
    """Read a capture of a real node of each version."""

    def read(name):
        return (NODE / request.param / name).read_text(encoding="utf-8")

    read.version = request.param
    return read
