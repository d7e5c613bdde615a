# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds packages, so that apt upgrades them only when its operator says so.

apt-mark tells dpkg, which changes the selections of all packages of a call at once, under its own
locks. The journal records them as a change of a text, the lines of dpkg --get-selections. An
interrupted change is thus found, and a revert gives the packages their former selections again.
Nothing is installed, removed or restarted.
"""

import os

from ...changes import journal_entry
from ...shared.errors import PreconditionFailed
from ...shared.step_kinds import HOLD_PACKAGES, kind_of
from ...state import package_target, step_record, storage
from ...state.storage import ChangeError
from ...system import automatic_upgrades, command, files
from .. import file_change, preconditions
from ..base import StepHandler, outcome, state_after

HOLD, INSTALL = automatic_upgrades.HOLD, automatic_upgrades.INSTALL
PROGRAM = "apt-mark"
WORDS = {HOLD: "hold", INSTALL: "unhold"}  # of apt-mark, by the selection that they lead to
SECONDS = kind_of(HOLD_PACKAGES).seconds
MOST = automatic_upgrades.MAX_PACKAGES


class HoldPackages(StepHandler):
    """Holds packages.

    The change of a step is {path, packages}, the names of packages.
    """

    def check(self, step):
        """Refuse what cannot be held now; return the packages with their architectures."""
        names = _required_names(step.change.get("packages"))
        if not any(os.access(f"{folder}/{PROGRAM}", os.X_OK) for folder in _folders()):
            raise PreconditionFailed(f"{step.host} has no {PROGRAM}: nothing was changed")
        self.former = package_target.selections(names)
        _require_holdable(names, self.former, step.host)
        keys = sorted(self.former)
        return {"path": package_target.path_of(keys), "packages": keys}

    def perform(self, step, record):
        """Hold the packages, and compare what dpkg's status file says."""
        keys = record["packages"]
        target = dict.fromkeys(keys, HOLD)
        if self.former == target:
            return outcome(step.context, step_record.PROVEN, "they are on hold already")
        try:
            done = switch(package_target.digest(self.former), target, step.context)
        except (ChangeError, OSError) as error:
            return outcome(
                step.context,
                state_after(error),
                f"the packages of {step.host} were not held: {files.one_line(error, 600)}",
            )
        observation = {
            "selections": {key: [self.former[key], HOLD] for key in keys},
            "journal": done["entry"],
        }
        return outcome(step.context, step_record.PROVEN, None, observation)

    def recover(self, record, context=None, params=None):
        """Return whether the packages are on hold; open while dpkg's state is being changed."""
        try:
            now = package_target.of_keys(record["packages"])
        except ChangeError as error:
            return None, str(error)
        free = [key for key in record["packages"] if now.get(key) != HOLD]
        if free:
            return step_record.NOT_DONE, "{} is not on hold".format(", ".join(free))
        return step_record.PROVEN, "the packages are on hold"


def _folders():
    return (os.environ.get("PATH", "") + ":" + command.PATH).split(":")


def _required_names(names):
    """Return the names of packages that a step names; raise PreconditionFailed for marked."""
    if not isinstance(names, list) or not 0 < len(names) <= MOST:
        raise PreconditionFailed("the step names no packages that it holds: nothing was changed")
    for name in names:
        if not isinstance(name, str) or not automatic_upgrades.is_of_interest(name):
            raise PreconditionFailed(
                f"{files.one_line(name, 80)} is no package that is held here: nothing was changed"
            )
    return names


def _require_holdable(names, rows, host):
    """Refuse packages that are gone, or that are marked for removal."""
    there = {key.partition(":")[0] for key in rows}
    gone = [name for name in names if name not in there]
    marked = [f"{key} ({rows[key]})" for key in sorted(rows) if rows[key] not in WORDS]
    if not gone and not marked:
        return
    reason = "is not installed"
    if marked:
        reason = "is marked for something else"
    raise PreconditionFailed(
        "the evidence is old: {} of {} {}; {}".format(
            ", ".join(files.one_line(name, 80) for name in marked or gone),
            host,
            reason,
            preconditions.OLD,
        )
    )


def put_back(history, former, step):
    """Restore the selections from before an entry, for a revert.

    history: {sha256_left}, the digest that the selections must still have.
    former: the bytes of the former selections.
    """
    return switch(history["sha256_left"], package_target.decoded(former), step)


def switch(expected, target, step):
    """Give packages these selections if their present ones have this digest.

    target: {name:architecture: selection}.

    The result is {changed, entry}. ChangeError is raised otherwise.
    """
    path, real = package_target.path_of(target), package_target.real(target)
    with step.exclusive() as root_fd:
        now = package_target.of_keys(target)
        file_change.compare(path, package_target.digest(now), expected)
        if now == target:
            return {"changed": False, "entry": None}
        file_change.demand_ended(path, real, step.root)
        if not set(target.values()) <= set(WORDS):
            raise ChangeError(f"{path} was not changed: nothing here makes that of it")
        entry = None
        if not step.check:
            entry = _switched(now, target, step, root_fd)
        return {"changed": True, "entry": entry}


def _switched(now, target, step, root_fd):
    """Write the intent, tell dpkg, read its status file, commit; return the entry."""
    path, former = package_target.path_of(target), package_target.encoded(now)
    facts = {
        "path": path,
        "real": package_target.real(target),
        "sha256_before": package_target.digest(now),
        "sha256_after": package_target.digest(target),
        "size_before": len(former),
    }
    with storage.change_errors(
        f"{path} was not changed, because the journal in {step.root} cannot be written"
    ):
        entry = journal_entry.begin(step, root_fd, facts, former, None)[0]
    with entry:
        _tell_or_abandon(now, target, entry)
        try:
            entry.commit()
        except OSError as error:
            raise ChangeError(
                f"{path} was changed, but that cannot be committed: {storage.way_out(error)};"
                f" {_stays_open(entry)}",
                changed=True,
            ) from error
    return f"{entry.run_id}/{entry.name}"


def _tell_or_abandon(now, target, entry):
    """Tell dpkg the selections; where they are marked then, tell it the former ones again.

    ChangeError is raised where they are not those of the target.
    """
    complaint = _tell(now, target)
    present = _present(target)
    if present == target:
        return
    if isinstance(present, dict) and present != now:
        complaint = f"{complaint}; {_tell(present, now)}"
        present = _present(target)
    if present == now:
        entry.abandon("dpkg did not do it")
        raise ChangeError(f"apt-mark did not do it ({complaint or 'it said nothing'})")
    raise ChangeError(
        f"it is not known what dpkg made of it ({complaint or present}): {_stays_open(entry)}",
        changed=True,
    )


def _tell(now, target):
    """Tell dpkg what of these selections differs, and return what apt-mark complains of."""
    complaints = []
    for selection in (INSTALL, HOLD):
        keys = [key for key in sorted(target) if now.get(key) != target[key] == selection]
        if keys:
            complaints.append(command.complaint([PROGRAM, WORDS[selection], *keys], SECONDS))
    return files.one_line("; ".join(filter(None, complaints)), 300)


def _present(target):
    """Return the selections now, or in one line why they are not known."""
    try:
        return package_target.of_keys(target)
    except ChangeError as error:
        return files.one_line(error, 300)


def _stays_open(entry):
    return f"the journal's entry {entry.name} of run {entry.run_id} stays open"
