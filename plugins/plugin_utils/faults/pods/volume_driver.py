# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding which pod of a driver on the node repeats why it cannot mount a volume."""

from __future__ import annotations

import re
from dataclasses import replace

from ...evidence.document import shell_name
from ...models import pod_roles
from ...models.cluster import Host
from ...models.pod_errors import PodError
from ...models.pod_start import Waiting
from ...models.result import EvidenceRef
from ...parsers import pod_start_message
from ..base import Detection

_VOLUME = re.compile(r'for volume \\?"([\w.-]{8,253})\\?"')
_GIVEN_UP = "nfs-mount-given-up"  # a row of known messages


def with_driver(hit: Detection, main: Waiting, host: Host | None) -> Detection:
    """Return a hit with the pod of the driver that says what the event of a volume quotes."""
    driver = _driver(main, host)
    if driver is None or host is None:
        return hit
    name = f"{driver.namespace}/{driver.pod}"
    proof = EvidenceRef("log", host.host, path=driver.path, object=name, text=driver.message)
    remedy = hit.remedy
    if main.trouble is not None and main.trouble.kind.endswith(f" {_GIVEN_UP}"):
        namespace = shell_name(driver.namespace, "NAMESPACE")
        command = f"kubectl -n {namespace} delete pod {shell_name(driver.pod, 'POD')}"
        remedy = f"{remedy}; {command} deletes that of the driver"
    summary = f"{hit.summary}; its driver on that node is {name}, which repeats this error"
    return replace(hit, summary=summary, evidence=(*hit.evidence, proof), remedy=remedy)


def _driver(main: Waiting, host: Host | None) -> PodError | None:
    """Return the driver of a node that repeats an error about the volume that pods wait for."""
    if host is None or main.reason not in pod_start_message.MOUNT_REASONS:
        return None
    drivers = (row for row in host.pod_errors.rows if pod_roles.CSI in pod_roles.places(row))
    return next((row for row in drivers if _is_about(main, row)), None)


def _is_about(main: Waiting, row: PodError) -> bool:
    """Tell whether a driver says the known cause of an event, or names its volume.

    Long messages are cut in the middle, so that neither has all words of the other.
    """
    if not row.message:
        return False
    if row.known is not None and main.trouble is not None:
        return row.known.clause == main.trouble.what
    volume = _VOLUME.search(main.text)
    return volume is not None and volume.group(1) in row.message
