# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a result says, for comparison: the faults that are present, the verdicts of one code."""

from __future__ import annotations

SCHEDULER, MANAGER = "kube-scheduler", "kube-controller-manager"


def present(result):
    return {(finding.code, finding.host, finding.component) for finding in result.findings}


def verdicts(result, code):
    return {
        (item.host or item.component): item.verdict for item in result.verdicts if item.code == code
    }


def missing_hosts(result, code):
    return {
        item.host for verdict in result.verdicts if verdict.code == code for item in verdict.missing
    }
