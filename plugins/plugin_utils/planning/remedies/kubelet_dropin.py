# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files under /run that add arguments to a kubelet's command line, until a reboot. Pure.

The drop-in gives the last variable of the unit's ExecStart another value. The package's own files
are not changed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

from ....module_utils.shared.units import KUBELET as UNIT
from ...editing import draft
from ...evidence.answers.node.kubelet import KubeletUnit
from ...models.kubelet import dropin
from ...parsers import pflag


def argument_files(
    unit: KubeletUnit, words: Sequence[str], header: str, dropin_path: str, environment: str
) -> tuple[list[dict[str, Any]], str]:
    """Return (files to create, their difference): a drop-in and the file of its variable.

    The drop-in sorts behind the others. Raises EditRefused where the unit leaves no room for it.
    """
    name, value = _last_variable(unit)
    for word in words:
        flag = word.lstrip("-").partition("=")[0]
        if pflag.string_flag(dropin.behind(unit, name), flag) is not None:
            raise draft.EditRefused(
                UNIT,
                None,
                f"its ExecStart sets --{flag} behind the variable {name}",
                "change it there",
            )
    if value is None:
        raise draft.EditRefused(
            UNIT,
            None,
            f"its variable {name} holds a secret, which the evidence does not have",
            draft.BY_HAND,
        )
    arguments = re.sub(r'([\\"`$])', r"\\\1", " ".join([value, *words]).strip())
    files = (
        (environment, "0600", f'{header}{name}="{arguments}"\n'.encode()),
        (dropin_path, "0644", f"{header}[Service]\nEnvironmentFile=-{environment}\n".encode()),
    )
    return (
        [_created(path, mode, data) for path, mode, data in files],
        "".join(draft.unified(path, b"", data) for path, _mode, data in files),
    )


def _last_variable(unit: KubeletUnit) -> tuple[str, str | None]:
    if not unit.split_variables:
        raise draft.EditRefused(
            UNIT,
            None,
            "its ExecStart has no variable for more arguments",
            "add them where the unit is made",
        )
    return unit.split_variables[-1]


def _created(path: str, mode: str, data: bytes) -> dict[str, Any]:
    return {
        "kind": "create",
        "path": path,
        "data": base64.b64encode(data).decode("ascii"),
        "mode": mode,
    }
