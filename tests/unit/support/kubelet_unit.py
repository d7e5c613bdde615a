# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet's unit with one variable for its arguments, and the drop-in that sets it."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet as kubelet_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    kubelet_dropin,
)

DROPIN, ENVIRONMENT = "/run/x.conf", "/run/x.env"


def argument_files(unit, *words):
    return kubelet_dropin.argument_files(unit, words, "# head\n", DROPIN, ENVIRONMENT)


def unit(value, *behind):
    return kubelet_answer.KubeletUnit(
        start_words=("kubelet", "$X", *behind), split_variables=(("X", value),)
    )
