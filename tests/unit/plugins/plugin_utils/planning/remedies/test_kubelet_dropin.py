# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drop-in adds arguments to a kubelet only where its unit leaves room for them."""

from __future__ import annotations

import base64

from tests.unit.support.kubelet_unit import DROPIN, ENVIRONMENT, argument_files, unit


def test_the_variable_gets_the_arguments_and_the_drop_in_names_its_file():
    files, difference = argument_files(unit('--a="1"'), "--v=2")
    texts = {file["path"]: base64.b64decode(file["data"]).decode() for file in files}
    assert texts == {
        ENVIRONMENT: '# head\nX="--a=\\"1\\" --v=2"\n',
        DROPIN: f"# head\n[Service]\nEnvironmentFile=-{ENVIRONMENT}\n",
    }
    assert [(file["kind"], file["mode"]) for file in files] == [
        ("create", "0600"),
        ("create", "0644"),
    ]
    assert f"+++ {DROPIN} (after)" in difference.splitlines()
