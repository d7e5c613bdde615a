# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words added to a kubelet's command line by a drop-in of ours under /run, so that a reboot removes
it. Pure.

The drop-in gives the last variable of the unit's ExecStart another value. The package's own files
are left alone.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ....module_utils.shared import systemd_output, units
from ...editing import draft as edit_source
from ...parsers import pflag as flags

# For a reset; a capture has files of its own.
DROPIN, ENVIRONMENT = (
    "/run/systemd/system/kubelet.service.d/zz-kubemend-reset.conf",
    "/run/kubemend/kubelet-reset.env",
)
ADDS = re.compile(r"(?m)^# adds: (.*)$")


def beside(
    unit: Mapping[str, Any], words: Sequence[str], header: str, dropin: str, environment: str
) -> tuple[list[dict[str, Any]], str]:
    """(files to make, their difference).

    A drop-in that sorts behind the others, and the file with the variable that it reads.

    EditRefused where the unit leaves no room for it.
    """
    variables = unit.get("split_variables")
    if not variables:
        raise edit_source.EditRefused(
            units.KUBELET,
            None,
            "its ExecStart has no variable for more arguments",
            "add them where the unit is made",
        )
    name, value = variables[-1]
    for word in words:
        flag = word.lstrip("-").partition("=")[0]
        if flags.string_flag(behind(unit, name), flag) is not None:
            raise edit_source.EditRefused(
                units.KUBELET,
                None,
                f"its ExecStart sets --{flag} behind the variable {name}",
                "change it there",
            )
    if value is None:
        raise edit_source.EditRefused(
            units.KUBELET,
            None,
            f"its variable {name} holds a secret, which the evidence does not have",
            edit_source.BY_HAND,
        )
    text = re.sub(r'([\\"`$])', r"\\\1", " ".join([value, *words]).strip())
    texts = {
        environment: f'{header}{name}="{text}"\n',
        dropin: f"{header}[Service]\nEnvironmentFile=-{environment}\n",
    }
    modes = {environment: "0600", dropin: "0644"}
    files = [
        {
            "kind": "create",
            "path": path,
            "data": base64.b64encode(text.encode("utf-8")).decode("ascii"),
            "mode": modes[path],
        }
        for path, text in texts.items()
    ]
    return files, "".join(
        edit_source.unified(path, b"", text.encode("utf-8")) for path, text in texts.items()
    )


def behind(unit: Mapping[str, Any], variable: str) -> list[str]:
    """The words of the command line behind the last place where ExecStart has the variable."""
    words, values = (
        [str(word) for word in unit.get("start_words") or ()],
        dict(unit.get("split_variables") or ()),
    )
    places = [index for index, word in enumerate(words) if word == "$" + variable]
    return [
        one
        for word in words[places[-1] + 1 if places else 0 :]
        for one in (
            systemd_output.words(values[word[1:]] or "")
            if word.startswith("$") and word[1:] in values
            else [word]
        )
    ]


def lent(kubelet: Mapping[str, Any]) -> tuple[str, ...]:
    """The words that a reset which did not come to its end lends this kubelet.

    Empty without one.
    """
    unit = kubelet.get("unit")
    for record in (unit.get("environment_files") or ()) if isinstance(unit, Mapping) else ():
        found = ADDS.search(record.get("text") or "") if record.get("path") == ENVIRONMENT else None
        if found:
            return tuple(found.group(1).split())
    return ()
