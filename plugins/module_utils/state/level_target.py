# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of the journal about the log verbosity of a running process.

The verbosity cannot be read back, so that only the journal shows it.
"""

import re

from ..shared.journal_names import LEVEL
from ..shared.paths import ROOT
from ..system import files
from . import journal
from .storage import ChangeError

COMPONENTS = "kube-scheduler|kube-controller-manager|kube-apiserver"
NODE = r"kubelet/([a-z0-9]([a-z0-9.-]*[a-z0-9])?)"
REAL = re.compile(re.escape(LEVEL) + rf"(?:({COMPONENTS})|{NODE})\Z")


def parts(real):
    """Return (component, None) or ("kubelet", node)."""
    match = REAL.match(real)
    if not match:
        raise ChangeError(f"nothing was changed: {files.one_line(real, 100)} names no log level")
    return match.group(1) or "kubelet", match.group(2)


def named(real):
    """Return the process that an entry is about, as a sentence names it."""
    component, node = parts(real)
    return f"{component} of {node}" if node else component


def raised(root=ROOT):
    """Return the journal's items of levels that were raised from this node and are not restored."""
    items = [item for item in journal.items(root) if _is_committed(item)]
    back = {item["intent"]["reverts"] for item in items}
    return [
        item
        for item in items
        if not item["intent"]["reverts"] and "{run_id}/{entry}".format(**item) not in back
    ]


def _is_committed(item):
    if not item["end"] or not _is_about_a_level(item):
        return False
    return item["end"]["result"] == journal.COMMITTED


def _is_about_a_level(item):
    return bool(item["intent"]) and item["intent"]["real"].startswith(LEVEL)


def unsettled(root=ROOT):
    """Return what is raised from this node, or may be: entries without an end too."""
    return raised(root) + [item for item in journal.open_entries(root) if _is_about_a_level(item)]


def present(run_id, entry, intent, root=ROOT):
    """Return the digest of the level that an entry leaves in effect, as the journal shows it.

    The level is the raised one or the former one. ChangeError is raised while the entry is open.
    """
    if (run_id, entry) in _keys(journal.open_entries(root)):
        raise ChangeError(
            "what level {} has cannot be read back; let kubemend put it back (KM902)".format(
                named(intent["real"])
            )
        )
    if intent["reverts"] or (run_id, entry) in _keys(raised(root)):
        return intent["sha256_after"]
    return intent["sha256_before"]


def _keys(items):
    return {(item["run_id"], item["entry"]) for item in items}
