# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Meaning of systemd's words about the unit of a kubelet.

Does it start at boot, why is it not running now. Pure.

The unit is kubelet.service, that of k3s or rke2, or a snap's; they differ in who writes the unit,
and so in how it is enabled again. Words are those of systemd 219 (RHEL 7) to 257 (Debian 13). 219
has no NRestarts, and calls its limit of starts start-limit instead of start-limit-hit (renamed in
230).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...module_utils.shared import systemd_results
from ..evidence.answers import systemd_unit

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
# Results of a unit whose program ended with a status of its own.
ENDED_ITSELF = frozenset(("exit-code",)) | START_LIMIT
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
    """Properties of a unit, as far as they can be printed and are not out of range.

    An empty text and None stand for what is not known. restarts: by systemd itself since the last
    start by a user; systemd 219 to 234 do not count them.
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
        """Return the distribution of the unit: kubelet, k3s, rke2, snap or other."""
        stem = self.name.removesuffix(".service")
        if stem.startswith("snap."):
            return "snap"
        families = ("kubelet", "k3s", "rke2")
        return next((name for name in families if f"{stem}-".startswith(f"{name}-")), "other")

    @property
    def masked(self) -> bool:
        """Return whether it is masked on the disk or under /run.

        systemd reports an empty unit file as masked too.
        """
        return self.load == "masked" or self.file_state in ("masked", "masked-runtime")

    @property
    def runs(self) -> bool:
        """Return whether its process is there and past its start."""
        return self.active in ("active", "reloading")


@dataclass(frozen=True)
class Boot:
    """Whether a unit starts at the next boot.

    answer: yes, no or unknown
    why: one clause
    """

    answer: str
    why: str


@dataclass(frozen=True)
class State:
    """State of a unit.

    why: one clause
    kind: running, starting, looping, gave_up, failed, stopped, stopping, fenced, absent or unknown
    has_stop_job: whether its journal shows that systemd stopped it, whatever its status was then
    """

    kind: str
    why: str
    has_stop_job: bool = False


def unit(record: systemd_unit.Unit) -> Unit:
    """Return the unit of this evidence (collectors kubelet and runtime)."""
    return Unit(
        _word(record.name),
        _word(record.load_state),
        _word(record.active_state),
        _word(record.sub_state),
        _word(record.unit_file_state),
        _word(record.result),
        _number(record.exec_main_status),
        _number(record.n_restarts),
        _number(record.main_pid),
    )


def at_boot(unit: Unit) -> Boot:
    """Return whether this unit will start at the next boot."""
    if unit.load in _LOAD_FAILED:
        return Boot(NO, "systemd cannot read its file")
    if unit.load == "not-found":
        return Boot(NO, "there is no such unit")
    if unit.load == "masked" and unit.file_state != "masked-runtime":
        return Boot(NO, "it is masked")
    if unit.file_state == "disabled" and unit.family == "snap":
        return Boot(NO, "it is disabled, as `snap stop --disable` or `snap disable` leaves it")
    default = (UNKNOWN, "systemd does not say whether it is enabled")
    return Boot(*_BOOT.get(unit.file_state, default))


def state(unit: Unit, earlier: Unit | None = None) -> State:
    """Return what this unit is doing.

    earlier: the same unit read before, which alone distinguishes a loop from a restart long ago.
    """
    if unit.load == "not-found":
        return State(ABSENT, "there is no such unit")
    if unit.runs:
        return _running(unit, earlier)
    if unit.active == "activating" and unit.sub in AUTO_RESTART:
        return State(LOOPING, f"it ended ({_ending(unit)}) and systemd is about to start it again")
    if unit.active == "activating":
        return State(STARTING, "it is starting")
    if unit.active == "deactivating":
        return State(STOPPING, "it is stopping")
    if unit.masked:
        return State(FENCED, fence(unit) or "it is masked")
    if unit.result in START_LIMIT:
        return State(GAVE_UP, "it ended too often, so that systemd does not start it any more")
    return _down(unit)


def _running(unit: Unit, earlier: Unit | None) -> State:
    if earlier is not None and restarted(earlier, unit) == YES:
        return State(LOOPING, "systemd started it again between two looks")
    return State(RUNNING, "it is running")


def fence(unit: Unit) -> str | None:
    """Return why this unit counts as put out of use on purpose, or None.

    A process may run nevertheless.
    """
    if not unit.masked:
        return None
    if unit.file_state == "masked-runtime":
        return "it is masked until the next boot"
    return "it is masked"


def stopped_by_hand(unit: Unit) -> str:
    """Return whether a user stopped it: yes, no or unknown.

    A kubelet's unit says Restart=always (kubeadm, kubespray, k3s, rke2, snaps), so that only a
    requested end leaves it inactive with Result=success. A unit that was not started since the boot
    looks alike, which an enabled unit alone rules out.
    """
    if unit.active in ("active", "reloading", "activating", "failed"):
        return NO
    if unit.active == "inactive" and unit.result == "success" and at_boot(unit).answer == YES:
        return YES
    return UNKNOWN


def restarted(before: Unit, after: Unit) -> str:
    """Return whether systemd started the unit again between two reads: yes, no or unknown."""
    if before.name != after.name:
        return UNKNOWN
    more = _more_restarts(before, after)
    if more > 0:
        return YES
    if more < 0:
        return UNKNOWN  # the count began again, with a start by a user
    if not before.pid or not after.pid:
        return UNKNOWN
    if before.pid == after.pid:
        return NO
    if after.restarts is None:
        return YES
    return UNKNOWN  # a restart by hand is not counted


def _more_restarts(before: Unit, after: Unit) -> int:
    if before.restarts is None or after.restarts is None:
        return 0
    return after.restarts - before.restarts


def _down(unit: Unit) -> State:
    if unit.active == "failed":
        return State(FAILED, f"it ended ({_ending(unit)}) and is not started again")
    if unit.active != "inactive":
        return State(UNKNOWN, "systemd does not say what it is doing")
    boot = at_boot(unit)
    if stopped_by_hand(unit) == YES:
        return State(
            STOPPED,
            "it is enabled and exited cleanly: it was stopped, or what it requires was stopped",
        )
    if unit.result == "success" and boot.answer == NO:
        return State(STOPPED, f"{boot.why}: it was not started since the boot, or it was stopped")
    return State(STOPPED, f"it is inactive ({_ending(unit)})")


def _ending(unit: Unit) -> str:
    facts = []
    if unit.result in _TOLD:
        facts.append(f"result {unit.result}: {systemd_results.RESULTS[unit.result]}")
    elif unit.result:
        facts.append(f"result {unit.result}")
    if unit.status is not None and unit.result in ("exit-code", "signal", "core-dump"):
        facts.append(f"status {unit.status}")
    return ", ".join(facts) or "nothing is known of its end"


def _word(text: str | None) -> str:
    """Return a short printable text; another text is nothing.

    These words go into reports.
    """
    if text is None or len(text) > LONGEST or not text.isprintable():
        return ""
    return text


def _number(number: int | None) -> int | None:
    if number is None or not 0 <= number < 2**63:
        return None
    return number
