# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components that come to the API server without credentials, by what they log. Pure.

A kubeconfig whose context has no user, or whose user has no credentials, makes its component
system:anonymous, whom the API server refuses each list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.component_units import ComponentUnits
from ..evidence.answers.node.repeated_errors import RepeatedErrors
from ..evidence.document import ends, one_line

COMPONENTS = ("kube-scheduler", "kube-controller-manager", "kube-proxy", "kubelet")
_REFUSED = re.compile(r'is forbidden: User \\?"system:anonymous\\?" cannot ')
LONGEST = 300
READ = 30  # lines of a unit, the newest ones


def extract(document: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the newest line in which a component is refused as system:anonymous, by component."""
    return {
        component: ends(one_line(line, 2000), LONGEST)
        for component, line in _lines(document)
        if component in COMPONENTS and _REFUSED.search(line)
    }


def running(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the components that units of systemd run on a host."""
    rows = contract.answer(document, ComponentUnits).units
    return frozenset(row.component for row in rows if row.active_state == "active")


def _lines(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for row in contract.answer(document, ComponentUnits).units:
        for line in row.lines[-READ:]:
            yield row.component, line
    for errors in contract.answer(document, RepeatedErrors).components:
        for entry in errors.entries:
            yield errors.component, entry.line
