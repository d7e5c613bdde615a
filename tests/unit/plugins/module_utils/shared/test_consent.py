# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of kubemend_allow."""

import re

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import consent


def test_every_word_is_in_the_list_once() -> None:
    words = [
        value for name, value in vars(consent).items() if name.isupper() and isinstance(value, str)
    ]
    assert sorted(consent.WORDS) == sorted(words)
    assert len(set(consent.WORDS)) == len(consent.WORDS)


def test_every_word_can_be_typed_as_one() -> None:
    assert all(re.match(r"[a-z_]+\Z", word) for word in consent.WORDS)
