# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible says of a host with which it could not begin."""

from __future__ import annotations

import re

from ..evidence.document import NEVER_BEGAN, one_line

# What ansible-core puts before the cause, and the place in a file that it shows after it.
_BEFORE, _BEHIND = (
    re.compile(r"(?:(?:Task|Action) failed: )+"),
    re.compile(r"\n\s*\n|\nOrigin: |\. Use `ansible-doc"),
)


def never_began(message: str) -> str:
    """Return Ansible's message as one sentence, without the lines of the file that it points at."""
    cause = _BEHIND.split(_BEFORE.sub("", message.strip(), count=1), maxsplit=1)[0]
    # ansible-core 2.16 says the last of it four times
    cause = one_line(". ".join(dict.fromkeys(cause.split(". "))))
    if cause:
        return f"{NEVER_BEGAN}: {cause}"
    return f"{NEVER_BEGAN}, and did not say why"
