# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether a component runs as it should, by its process, its healthz and its configz.

The process is checked ten times a second, by /proc first and by HTTP only once the right process
runs. Only the answers of the process count: a correct file proves nothing.
"""

import time

from ..shared.text import times
from ..system import files, procfs

# Other steps take these from here.
from ..system.component_process import (  # noqa: F401 # pylint: disable=unused-import
    Instance,
    ask,
    gone,
    healthz,
    instances,
    starts,
)

PAUSE = 0.1
STABLE = 2.0  # seconds from the first healthy answer: one that crashes at once is not proven
AGAIN = 0.9  # seconds after which one that has shown everything is asked again, until it is stable
YOUNG = 25  # seconds after its start in which a component may still refuse a good certificate (403)
# seconds in which a right process says the contrary, after which more patience is of no use
WRONG = 5
DEATHS = 3  # right processes that ended again
TRUE = ("", "1", "t", "T", "TRUE", "true", "True")


class ExpectedState:
    """The state that a component's process must reach.

    flags: {name: value, or None for not set}.
    argv: the exact command line.
    not_identity: the identity of the former process, which does not count.
    elect: whether leader election must be on; None where that does not matter.
    """

    def __init__(
        self, component, flags=None, argv=None, not_identity=None, elect=None, healthy=True
    ):
        self.component = component
        self.flags = flags or {}
        self.argv = argv
        self.not_identity = not_identity
        self.elect = elect
        self.healthy = healthy

    def misfit(self, instance):
        """Return why a process is not the wanted one, or None."""
        if instance.identity == self.not_identity:
            return f"the former process (pid {instance.pid}) still runs"
        if self.argv is not None and files.masked_argv(instance.argv) != self.argv:
            return f"the process (pid {instance.pid}) does not run with the former command line"
        for name, value in sorted(self.flags.items()):
            running = procfs.flag(instance.argv, name)
            if not (running == value or (value == "true" and running in TRUE)):
                difference = f"--{name} {_value(running)}, not {_value(value)}"
                return f"the process (pid {instance.pid}) runs with {difference}"
        return None

    def contrary(self, answer):
        """Return what the component says against what is wanted, or None."""
        if self.elect is None or answer["healthz"] != 200:
            return None
        for source, elect in (("healthz", answer["check"]), ("configz", answer["elect"])):
            if elect is not None and elect is not self.elect:
                state = "on" if elect else "off"
                return f"its {source} says that leader election is {state}"
        return None

    def lacking(self, answer, age):
        """Return what is not shown yet, or None."""
        if not self.healthy:
            return None
        if answer["healthz"] != 200:
            return "its healthz answers {}".format(
                answer["healthz"] or "not ({})".format(answer["error"])
            )
        if self.elect is None:
            return None
        if answer["configz"] in (401, 403) and age < YOUNG:
            return "its configz refuses us (HTTP {})".format(int(answer["configz"]))
        if answer["check"] is None and answer["elect"] is None:
            return "neither its healthz nor its configz says whether leader election is on"
        return self.contrary(answer)


def _value(value):
    if value is None:
        return "not set"
    if value == "":
        return "without a value"
    return f"= {files.one_line(value, 80)}"


class HealthResult:
    """What the component showed by the end of the wait.

    ok, reason: whether the component is well, and why not.
    instance, answer: the last process, and its answers.
    shown_at: when all of the wanted state was first shown.
    """

    def __init__(self):
        self.ok = False
        self.reason = None
        self.instance = None
        self.answer = None
        self.shown_at = None
        self.waited = 0.0

    def observation(self):
        """Return what the step's answer has about the process."""
        pid, started_at = None, None
        if self.instance:
            pid, started_at = self.instance.pid, self.instance.started_at
        answer = self.answer or {}
        elect = answer.get("elect")
        if elect is None:
            elect = answer.get("check")
        return {
            "pid": pid,
            "started_at": started_at,
            "elect": elect,
            "healthz": answer.get("healthz"),
            "configz": answer.get("configz"),
        }


def wait(want, credentials, end, stable=None, hopeless=True, later=None):
    """Wait until the component is as wanted, and return a HealthResult.

    end: the time limit, by time.monotonic().
    stable: for how many seconds the component must be well.
    hopeless: whether to end early when more time does not help.
    later: called once at the end, when no new process has started; it returns a later end. The
        kubelet may delay the start of a container that it started before, and such a delay is no
        failure.
    """
    result, state, begin = HealthResult(), _State(want.component), time.monotonic()
    deadline = _Deadline(end, later)
    stable = STABLE if stable is None else stable
    while True:
        _look(want, credentials, result, state)
        now = time.monotonic()
        result.waited = now - begin
        if result.shown_at is not None and _lasts(state.healthy_at, now, stable):
            result.ok, result.reason = True, None
            return result
        if hopeless and _hopeless(result, state, now):
            return result
        if result.shown_at is None and deadline.passed(now, state):
            if state.ended():
                result.reason = (
                    f"{result.reason} (the new process ended again {times(int(state.ended()))})"
                )
            return result
        time.sleep(PAUSE)


def _hopeless(result, state, now):
    """Return whether more patience is of no use: too many ends, or wrong for too long."""
    if state.ended() >= DEATHS:
        result.reason = f"the new process ended again {times(int(state.ended()))}"
        return True
    return _lasts(state.wrong_at, now, WRONG)


def _lasts(since, now, seconds):
    return since is not None and now - since >= seconds


def _since(since, holds, now):
    """Return since when a thing holds without a break; None when it does not hold now."""
    if not holds:
        return None
    return since or now


class _Deadline:
    """The end of the waiting, which `later` may move once."""

    def __init__(self, end, later):
        self.end = end
        self.later = later

    def passed(self, now, state):
        """Return whether the wait is over.

        At the end `later` is asked for a later end if nothing has started.
        """
        if now < self.end:
            return False
        if self.later is not None and not state.started():
            self.end, self.later = max(self.end, self.later()), None
        return now >= self.end


class _State:
    """The state of the observed process between two looks."""

    def __init__(self, component):
        self.component = component
        self.identity = None
        self.since = None
        self.healthy_at = None
        self.wrong_at = None
        self.asked_at = 0.0
        self.deaths = 0
        self.logs = starts(component)
        self.counted_at, self.fresh = 0.0, set()

    def ended(self):
        """Return how many processes have ended since the beginning.

        The count includes observed processes, and those that left only a log.
        """
        now = time.monotonic()
        if now - self.counted_at >= AGAIN:
            self.counted_at = now
            # the kubelet soon removes the logs of earlier starts
            self.fresh |= starts(self.component) - self.logs
        return max(self.deaths, len(self.fresh) - (1 if self.identity else 0))

    def started(self):
        """Return whether a process of the component runs, or has ended since the beginning."""
        return bool(self.ended() or instances(self.component))

    def follow(self, identity):
        """Forget what is known of the process if another one runs, or none."""
        if self.identity is not None and self.identity != identity:
            self.deaths += 1
        if self.identity != identity:
            self.identity, self.since, self.healthy_at, self.wrong_at = (
                identity,
                time.monotonic(),
                None,
                None,
            )


def _look(want, credentials, result, state):
    """Look once at the process, and if it is the right one, at its answers."""
    running = instances(want.component)
    right, misfit = _right_process(want, running)
    identity = right.identity if right else None
    if state.identity is not None and state.identity != identity:
        result.shown_at = None
    state.follow(identity)
    if right is None:
        result.reason = misfit or f"no process of {want.component} runs"
        return
    result.instance = right
    # the one that holds the port would answer, and may have answered before
    if len(running) > 1:
        result.shown_at = None
        other = next(instance.pid for instance in running if instance is not right)
        result.reason = f"another process (pid {other}) still runs"
        return
    if result.shown_at is not None and time.monotonic() - state.asked_at < AGAIN:
        return  # only that it lives on counts until then
    _ask(want, credentials, result, state)


def _right_process(want, running):
    """Return the first process that fits, or None and why the last one does not fit."""
    misfit = None
    for instance in running:
        misfit = want.misfit(instance)
        if misfit is None:
            return instance, None
    return None, misfit


def _ask(want, credentials, result, state):
    """Ask the right process, and note since when it is healthy, wrong and as wanted."""
    answer = ask(want.component, result.instance, credentials) if want.healthy else {}
    result.answer = answer
    state.asked_at = now = time.monotonic()
    healthy = not want.healthy or answer.get("healthz") == 200
    state.healthy_at = _since(state.healthy_at, healthy, now)
    state.wrong_at = _since(state.wrong_at, bool(answer and want.contrary(answer)), now)
    result.reason = want.lacking(answer, now - state.since)
    result.shown_at = _since(result.shown_at, result.reason is None, now)
