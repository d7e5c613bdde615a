# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the status of a pod shows that a kubelet rejected it."""

import re

REJECTED = "rejected"  # in the place of a pod's name: the newest pod that a kubelet rejected
TELLING = "too many open files"
# UnexpectedAdmissionError, OutOfcpu, Outofnvidia.com/gpu, TopologyAffinityError, SMTAlignmentError
# and those of later releases. Kubelets of 1.16 and 1.17 write "Topology Affinity Error".
REASON = re.compile(
    r"^(UnexpectedAdmissionError|OutOf.+|Outof.+|Topology ?Affinity ?Error|SMTAlignmentError)$"
)
# Up to 1.22 "Pod " and what the admission said, later "Pod was rejected: " before it.
MESSAGE = re.compile(
    r"^Pod (was rejected: |Predicate \S+ failed|.*which is unexpected|Cannot enforce |forbidden"
    r" sysctl: |Resources cannot be allocated with Topology |Kubelet cannot get node info|"
    r"Unexpected error while attempting to recover from admission failure|Docker API"
    r" version before )"
)
EVICTED = (
    "Evicted",
    "Preempting",
    "Preempted",
    "Terminated",
    "NodeShutdown",
    "Shutdown",
    "NodeLost",
    "DeadlineExceeded",
)


def rejected(item):
    """Return whether a kubelet refused to run this pod."""
    status = item.get("status") or {}
    reason, message = status.get("reason") or "", status.get("message") or ""
    return (
        status.get("phase") == "Failed"
        and reason not in EVICTED
        and bool(REASON.match(reason) or (reason and MESSAGE.match(message)))
    )
