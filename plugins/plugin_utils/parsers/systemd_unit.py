# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd's words about the unit of a kubelet mean.

Does it start at boot, why is it not running now. Pure.

The unit is kubelet.service, that of k3s or rke2, or a snap's; they differ in who writes the unit,
and so in how it is enabled again. Words are those of systemd 219 (RHEL 7) to 257 (Debian 13). 219
has no NRestarts, and calls its limit of starts start-limit instead of start-limit-hit (renamed in
230).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.shared import systemd_results as unit_steps

YES, NO, UNKNOWN = "yes", "no", "unknown"
RUNNING, STARTING, LOOPING, GAVE_UP, FAILED, STOPPED, STOPPING, FENCED, ABSENT = (
    "running",
    "starting",
    "looping",
    "gave_up",
    "failed",
    "stopped",
    "stopping",
    "fenced",
    "absent",
)
START_LIMIT = frozenset(("start-limit-hit", "start-limit"))
# auto-restart-queued: since systemd 254, between the waiting and the start
AUTO_RESTART = frozenset(("auto-restart", "auto-restart-queued"))
LONGEST = 256

# UnitFileState: whether it starts at boot, and why. Of those that are unknown the unit's own file
# does not decide.
_BOOT = {
    "enabled": (YES, "it is enabled"),
    "enabled-runtime": (NO, "it is enabled under /run only, which the next boot does not have"),
    "disabled": (NO, "it is disabled"),
    "linked": (NO, "its file is linked into systemd's folders, but it is not enabled"),
    "linked-runtime": (
        NO,
        "its file is linked under /run only, so that the unit is gone after a boot",
    ),
    "masked": (NO, "it is masked"),
    "masked-runtime": (
        UNKNOWN,
        "it is masked under /run only: after a boot its own file decides again",
    ),
    "static": (
        UNKNOWN,
        "its file has no [Install], so that it starts only if another unit wants it",
    ),
    "indirect": (
        UNKNOWN,
        "it is not enabled itself; another name of it, or a unit of its Also=, may be",
    ),
    "alias": (UNKNOWN, "the name is an alias: what it stands for decides"),
    "generated": (UNKNOWN, "a generator makes it at each boot, and decides"),
    "transient": (NO, "it was made by hand at run time, and is gone after a boot"),
    "bad": (NO, "systemd cannot read its file"),
    "invalid": (NO, "systemd cannot read its file"),
}
# Results whose name alone tells an operator too little. The other results are explained elsewhere.
_TOLD = frozenset(("protocol", "timeout", "watchdog"))
_LOAD_FAILED = frozenset(("error", "bad-setting"))


@dataclass(frozen=True)
class Unit:
    """What systemd says of a unit, as far as it is of the right type.

    An empty text and None stand for what is not known.

    restarts: by systemd itself, since somebody started it last; systemd 219 to 234 do not count
    them.
    """

    name: str = ""
    load: str = ""
    active: str = ""
    sub: str = ""
    file_state: str = ""
    result: str = ""
    status: int | None = None
    restarts: int | None = None
    pid: int | None = None

    @property
    def family(self) -> str:
        """Whose unit it is: kubelet, k3s, rke2, snap or other."""
        stem = self.name.removesuffix(".service")
        if stem.startswith("snap."):
            return "snap"
        return next(
            (
                one
                for one in ("kubelet", "k3s", "rke2")
                if stem == one or stem.startswith(one + "-")
            ),
            "other",
        )

    @property
    def masked(self) -> bool:
        """Masked on the disk or under /run. An empty unit file reads as masked too.

        Systemd makes no difference.
        """
        return self.load == "masked" or self.file_state in ("masked", "masked-runtime")

    @property
    def runs(self) -> bool:
        """Whether its process is there and past its start."""
        return self.active in ("active", "reloading")


@dataclass(frozen=True)
class Boot:
    """answer: yes, no or unknown; why: one clause."""

    answer: str
    why: str


@dataclass(frozen=True)
class State:
    """kind: running, starting, looping, gave_up, failed, stopped, stopping, fenced, absent or
    unknown; why: one clause.
    """

    kind: str
    why: str


def unit(facts: Any) -> Unit:
    """The unit of this evidence (collectors kubelet and limits). Never raises."""
    known: Mapping[str, Any] = facts if isinstance(facts, Mapping) else {}
    return Unit(
        _word(known, "name"),
        _word(known, "load_state"),
        _word(known, "active_state"),
        _word(known, "sub_state"),
        _word(known, "unit_file_state"),
        _word(known, "result"),
        _number(known, "exec_main_status"),
        _number(known, "n_restarts"),
        _number(known, "main_pid"),
    )


def at_boot(one: Unit) -> Boot:
    """Whether this unit will start at the next boot."""
    if one.load in _LOAD_FAILED:
        return Boot(NO, "systemd cannot read its file")
    if one.load == "not-found":
        return Boot(NO, "there is no such unit")
    if one.load == "masked" and one.file_state != "masked-runtime":
        return Boot(NO, "it is masked")
    answer, why = _BOOT.get(one.file_state, (UNKNOWN, "systemd does not say whether it is enabled"))
    if answer == NO and one.file_state == "disabled" and one.family == "snap":
        why = "it is disabled, as `snap stop --disable` or `snap disable` leaves it"
    return Boot(answer, why)


def state(one: Unit, earlier: Unit | None = None) -> State:
    """What this unit is doing; earlier.

    The same unit read before, which alone tells a loop from a restart of long ago.
    """
    if one.load == "not-found":
        return State(ABSENT, "there is no such unit")
    if one.runs:
        again = restarted(earlier, one) if earlier is not None else NO
        return (
            State(LOOPING, "systemd started it again between two looks")
            if again == YES
            else State(RUNNING, "it is running")
        )
    if one.active == "activating" and one.sub in AUTO_RESTART:
        return State(LOOPING, f"it ended ({_ending(one)}) and systemd is about to start it again")
    if one.active == "activating":
        return State(STARTING, "it is starting")
    if one.active == "deactivating":
        return State(STOPPING, "it is stopping")
    if one.masked:
        return State(FENCED, fence(one) or "it is masked")
    if one.result in START_LIMIT:
        return State(GAVE_UP, "it ended too often, so that systemd does not start it any more")
    return _down(one)


def fence(one: Unit) -> str | None:
    """Why this unit is taken for one that somebody put out of use on purpose; None where it is not.

    A process may run nevertheless.
    """
    if not one.masked:
        return None
    return (
        "it is masked until the next boot" if one.file_state == "masked-runtime" else "it is masked"
    )


def stopped_by_hand(one: Unit) -> str:
    """Whether somebody stopped it: yes, no or unknown.

    A kubelet's unit says Restart=always (kubeadm, kubespray, k3s, rke2, snaps), so that no ending
    but an asked one leaves it inactive with Result=success. What was never started since the boot
    looks alike, which an enabled unit alone rules out.
    """
    if one.active != "inactive":
        return NO if one.active in ("active", "reloading", "activating", "failed") else UNKNOWN
    if one.result != "success":
        return UNKNOWN
    return YES if at_boot(one).answer == YES else UNKNOWN


def restarted(before: Unit, after: Unit) -> str:
    """Whether systemd started the unit again between two looks: yes, no or unknown."""
    if before.name != after.name:
        return UNKNOWN
    if (
        before.restarts is not None
        and after.restarts is not None
        and after.restarts != before.restarts
    ):
        # fewer: somebody started it anew
        return YES if after.restarts > before.restarts else UNKNOWN
    if before.pid and after.pid and before.pid != after.pid:
        return YES if after.restarts is None else UNKNOWN  # a restart by hand is not counted
    return NO if before.pid and before.pid == after.pid else UNKNOWN


def _down(one: Unit) -> State:
    if one.active == "failed":
        return State(FAILED, f"it ended ({_ending(one)}) and is not started again")
    if one.active != "inactive":
        return State(UNKNOWN, "systemd does not say what it is doing")
    boot = at_boot(one)
    if stopped_by_hand(one) == YES:
        return State(
            STOPPED,
            "it is enabled and ended well: somebody stopped it, or what it requires was stopped",
        )
    if one.result == "success" and boot.answer == NO:
        return State(
            STOPPED, f"{boot.why}: nobody has started it since the boot, or somebody stopped it"
        )
    return State(STOPPED, f"it is inactive ({_ending(one)})")


def _ending(one: Unit) -> str:
    means = f": {unit_steps.RESULTS[one.result]}" if one.result in _TOLD else ""
    words = [f"result {one.result}{means}"] if one.result else []
    words += (
        [f"status {one.status}"]
        if one.status is not None and one.result in ("exit-code", "signal", "core-dump")
        else []
    )
    return ", ".join(words) or "nothing is known of its end"


def _word(facts: Mapping[str, Any], name: str) -> str:
    """A short printable text; whatever else stands there is nothing.

    These words go into reports.
    """
    value = facts.get(name)
    return value if isinstance(value, str) and len(value) <= LONGEST and value.isprintable() else ""


def _number(facts: Mapping[str, Any], name: str) -> int | None:
    value = facts.get(name)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
        else None
    )
