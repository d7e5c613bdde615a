# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unmasks this node's kubelet, if the operator allowed it.

The mask is one link to /dev/null. The journal keeps it, so that a revert masks the unit again,
which stops nothing. systemd must be reloaded before the unit can be started. With the systemd
cgroup driver a reload can take devices away from running containers, and is refused while there are
such containers.
"""

import os

from ...changes import durable_files, journal_entry
from ...collectors.node import devices
from ...shared.consent import KUBELET_RESTART
from ...shared.errors import PreconditionFailed
from ...shared.step_kinds import UNMASK_KUBELET, kind_of
from ...shared.units import KUBELET_UNITS
from ...state import journal, step_record, storage, unit_target
from ...state.storage import ChangeError
from ...state.unit_target import mask_digest as _digest
from ...state.unit_target import mask_of as _there
from ...system import command, files, unit_mask
from .. import file_change, kubelet_restart, preconditions
from ..base import StepHandler, outcome, state_after

SECONDS = kind_of(UNMASK_KUBELET).seconds
MASKED = "masked"


class UnmaskKubelet(StepHandler):
    """Removes the one mask of a kubelet's unit.

    The change of a step is {path, unit, to}.
    """

    def check(self, step):
        """Refuse where the mask is another one, or devices could be lost."""
        name, target = step.change.get("unit"), step.change.get("to")
        _require_only_mask(name, step.path, target, step.host)
        if KUBELET_RESTART not in step.allow:
            kubelet_restart.demand_no_devices(step.host)
        return {"unit": name, "to": target}

    def perform(self, step, record):
        """Remove the mask, reload systemd, and restore the mask where the unit stays masked."""
        try:
            done = switch(step.path, _digest(record["to"]), None, step.context)
        except (ChangeError, OSError) as error:
            return self._unfinished(step, error)
        complaint = _reload()
        observation = {"journal": done["entry"]}
        reason = _still_masked(record["unit"], observation)
        if reason is None:
            return outcome(step.context, step_record.PROVEN, None, observation)
        reason = f"the kubelet of {step.host} is not unmasked: {reason}"
        if complaint:
            reason += f" ({complaint})"
        return outcome(
            step.context,
            *self._masked_again(step, record, done["entry"], reason),
            observation=observation,
        )

    def _unfinished(self, step, error):
        state = state_after(error)
        effect = "was not unmasked"
        if state == step_record.FAILED:
            _reload()  # The mask is gone, and no later run tells systemd.
            effect = "is unmasked, but that is not proven"
        reason = f"the kubelet of {step.host} {effect}: {files.one_line(error, 600)}"
        return outcome(step.context, state, reason)

    def _masked_again(self, step, record, entry, reason):
        again = step.context.also(what=f"roll back: {step.path}", reverts=entry)
        try:
            switch(step.path, None, record["to"], again)
        except (ChangeError, OSError) as error:
            return (
                step_record.FAILED,
                f"{reason}; and its mask was not put back: {files.one_line(error, 300)}",
            )
        return step_record.ROLLED_BACK, f"{reason}; its mask is back"

    def recover(self, record, context=None, params=None):
        """Reload systemd where the mask is gone and a reload does no harm."""
        try:
            target = _there(record["path"])
        except ChangeError as error:
            return step_record.FAILED, str(error)
        if target is not None:
            return step_record.NOT_DONE, "{} is masked still".format(record["unit"])
        if devices.running() == set():
            _reload()
        return step_record.PROVEN, "{} is unmasked".format(record["unit"])


def _require_only_mask(name, path, target, host):
    """Require that the mask is that of the evidence, the only one, and of a kubelet's unit.

    PreconditionFailed or ChangeError is raised otherwise.
    """
    places = [os.path.join(folder, name or "") for folder in unit_mask.MASKS]
    if name not in KUBELET_UNITS or path not in places:
        raise PreconditionFailed(
            f"{files.one_line(name, 80)} is no unit of a kubelet that is unmasked here"
        )
    unit_target.state(name)
    links = [(link["path"], link["to"]) for link in unit_mask.facts(name)["links"]]
    if target is None or links != [(path, target)]:
        raise PreconditionFailed(
            f"the evidence is old: the mask of {name} of {host} is no longer {files.one_line(path)}"
            f" -> {files.one_line(target)} alone; {preconditions.OLD}"
        )


def _still_masked(name, observation):
    """Return why systemd does not have the unit unmasked, or None.

    observation: gets what systemd says.
    """
    try:
        now = unit_target.state(name)
    except ChangeError as error:
        return str(error)
    observation["enabled"] = now["enabled"]
    if MASKED in (now["load"], now["enabled"]):
        return "systemd has it as {} still".format(now["enabled"])
    return None


def put_back(path, expected, former, step):
    """Restore the mask that an entry removed, or remove it where the entry is a revert."""
    target = None
    if former is not None:
        target = former.decode("utf-8", "surrogateescape")
    done = switch(path, expected, target, step)
    if done["changed"] and not step.check and devices.running() == set():
        # else systemd takes note of it at the next reload, at the latest at the next boot
        _reload()
    return done


def switch(path, expected, after, step):
    """Make the mask (after: its target) or remove it (None), if it still has this digest.

    The result is {changed, entry}. ChangeError is raised otherwise.
    """
    with step.exclusive() as root_fd:
        now = _there(path)
        file_change.compare(path, _digest(now), expected)
        if now == after:
            return {"changed": False, "entry": None}
        file_change.demand_ended(path, journal.UNIT + path, step.root)
        entry = None
        if not step.check:
            entry = _switched(path, now, after, step, root_fd)
        return {"changed": True, "entry": entry}


def _switched(path, now, after, step, root_fd):
    """Write the intent, switch, compare, commit; return the entry."""
    former = None if now is None else now.encode("utf-8", "surrogateescape")
    facts = {
        "path": path,
        "real": journal.UNIT + path,
        "sha256_before": _digest(now),
        "sha256_after": _digest(after),
        "size_before": None if former is None else len(former),
    }
    with storage.change_errors(
        f"{path} was not changed, because the journal in {step.root} cannot be written"
    ):
        entry = journal_entry.begin(step, root_fd, facts, former, None)[0]
    with entry:
        complaint = _unmask(path) if after is None else _mask(path, after)
        if _there(path) != after:
            entry.abandon("it was not done")
            raise ChangeError(f"{path} is as it was ({complaint or 'systemctl said nothing'})")
        try:
            durable_files.sync_folder(os.path.dirname(path))
            entry.commit()
        except OSError as error:
            raise ChangeError(
                f"{path} is done, but that cannot be committed: {storage.way_out(error)}; the"
                f" journal's entry {entry.name} of run {entry.run_id} stays open",
                changed=True,
            ) from error
    return f"{entry.run_id}/{entry.name}"


def _unmask(path):
    """Remove the link with systemctl; systemd reads its units later, where that does no harm."""
    folder, name = os.path.split(path)
    runtime = ["--runtime"] if folder == unit_mask.RUN else []
    return command.complaint(["systemctl", "unmask", "--no-reload", *runtime, name], SECONDS)


def _mask(path, target):
    try:
        os.symlink(target, path)
    except OSError as error:
        return storage.way_out(error)
    return None


def _reload():
    return command.complaint(["systemctl", "daemon-reload"], SECONDS)
