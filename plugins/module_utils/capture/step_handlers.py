# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Handlers of the steps that restore raised log verbosities.

The package `steps` finds them by name, because it is below this package.
"""

from ..shared import step_kinds
from ..state import journal, level_target, raised_levels
from ..steps.base import StepHandler
from . import kubelet_level, level_window


class RestoreVerbosity(StepHandler):
    """The handler that restores every verbosity that a capture raised from this node.

    It leaves out those that were restored since.
    """

    def restore_all(self, run_id, root, allow):
        """Return (state of the step, what went wrong, whether anything was restored)."""
        results = [
            level_window.restore({"run_id": raised, "root": root, "by": run_id, "allow": allow})
            for raised in sorted(_runs_with_raised(root))
        ]
        errors = [result["error"] for result in results if result["error"]]
        targets = [target for result in results for target in result["targets"]]
        errors += [
            target["reason"] for target in targets if target["state"] != level_window.RESTORED
        ]
        changed = bool(targets)
        state = step_kinds.FAILED if errors else step_kinds.DONE
        return state, "; ".join(errors), changed


def _runs_with_raised(root):
    runs = {item["run_id"] for item in level_target.raised(root)}
    runs.update(run_id for run_id in journal.run_ids(root) if _is_raised_by_restart(run_id, root))
    return runs


def _is_raised_by_restart(run_id, root):
    if raised_levels.restorable_records(run_id, root):
        return True
    return any(is_up for _record, (is_up, _reason) in raised_levels.edited(run_id, root))


class RaiseKubeletVerbosity(StepHandler):
    """The handler that restores a kubelet's raised verbosity after an interruption.

    A capture raises it.
    """

    def recover(self, record, context=None, allow=()):
        """Restore the files, and restart the kubelet where it may be restarted."""
        return kubelet_level.resumed(record, context, allow)


def sweep(run_id, root):
    """Remove leftovers of runs that were killed before they raised anything."""
    level_window.sweep(run_id, root)
