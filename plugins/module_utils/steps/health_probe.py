# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a component runs as it should, by its process, its healthz and its configz.

Polled ten times a second: /proc first, HTTP only once there is the right process. What the process
says counts; that the file is right proves nothing.
"""

import time

from ..system import files, procfs

# Other steps take these from here.
from ..system.component_process import (  # noqa: F401 # pylint: disable=unused-import
    Instance,
    ask,
    gone,
    healthz,
    instances,
    send,
    starts,
    terminate,
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
    """What is waited for. flags: {name: value, or None for not set}; argv: exactly this.

    Not_identity: another process than that.
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
        """Why a process is not the one, or None."""
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

    def contrary(self, told):
        """Return what it says against what is wanted, or None."""
        if self.elect is None or told["healthz"] != 200:
            return None
        for name, said in (("healthz", told["check"]), ("configz", told["elect"])):
            if said is not None and said is not self.elect:
                return "its {} says that leader election is {}".format(
                    name, "on" if said else "off"
                )
        return None

    def lacking(self, told, age):
        """Return what is not shown yet, or None."""
        if not self.healthy:
            return None
        if told["healthz"] != 200:
            return "its healthz answers {}".format(
                told["healthz"] or "not ({})".format(told["error"])
            )
        if self.elect is None:
            return None
        if told["configz"] in (401, 403) and age < YOUNG:
            return "its configz refuses us (HTTP {})".format(int(told["configz"]))
        if told["check"] is None and told["elect"] is None:
            return "neither its healthz nor its configz says whether leader election is on"
        return self.contrary(told)


def _value(value):
    return (
        "not set"
        if value is None
        else "without a value"
        if value == ""
        else f"= {files.one_line(value, 80)}"
    )


class HealthResult:
    """What came of the waiting: ok or the reason why not.

    The last instance, what it said, and when all of it was first shown.
    """

    def __init__(self):
        self.ok = False
        self.reason = None
        self.instance = None
        self.told = None
        self.shown_at = None
        self.waited = 0.0

    def seen(self):
        """For the step's answer."""
        told, one = self.told or {}, self.instance
        elect = told.get("elect") if told.get("elect") is not None else told.get("check")
        return {
            "pid": one.pid if one else None,
            "started_at": one.started_at if one else None,
            "elect": elect,
            "healthz": told.get("healthz"),
            "configz": told.get("configz"),
        }


def wait(want, credentials, end, stable=None, hopeless=True, later=None):
    """Return a HealthResult. `end` by time.monotonic().

    hopeless: give up early on what cannot become right any more.

    later: asked once at the end, when nothing runs and nothing ended either, for another end: the
    kubelet may hold back a container that it has started before, and that is no failure.
    """
    found, state, begin = HealthResult(), _State(want.component), time.monotonic()
    stable = STABLE if stable is None else stable
    while True:
        _look(want, credentials, found, state)
        now = time.monotonic()
        found.waited = now - begin
        if (
            found.shown_at is not None
            and state.healthy_at is not None
            and now - state.healthy_at >= stable
        ):
            found.ok, found.reason = True, None
            return found
        if hopeless and state.ended() >= DEATHS:
            found.reason = f"the new process ended again {int(state.ended())} times"
            return found
        if hopeless and state.wrong_at is not None and now - state.wrong_at >= WRONG:
            return found
        if (
            now >= end
            and found.shown_at is None
            and later is not None
            and not state.ended()
            and not instances(want.component)
        ):
            end, later = max(end, later()), None
        if now >= end and found.shown_at is None:
            if state.ended():
                found.reason = (
                    f"{found.reason} (the new process ended again {int(state.ended())} times)"
                )
            return found
        time.sleep(PAUSE)


class _State:
    """What the loop remembers of the process that it looks at."""

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
        """How many processes ended since the beginning.

        Those that were seen, or those that left only a log.
        """
        now = time.monotonic()
        if now - self.counted_at >= AGAIN:
            self.counted_at = now
            # the kubelet soon removes the logs of earlier starts
            self.fresh |= starts(self.component) - self.logs
        return max(self.deaths, len(self.fresh) - (1 if self.identity else 0))

    def follow(self, identity):
        """Another process, or none: what was known counts no longer."""
        if self.identity is not None and self.identity != identity:
            self.deaths += 1
        if self.identity != identity:
            self.identity, self.since, self.healthy_at, self.wrong_at = (
                identity,
                time.monotonic(),
                None,
                None,
            )


def _look(want, credentials, found, state):
    """One look: the process, and if it is the right one, what it says."""
    misfit, right, running = None, None, instances(want.component)
    for one in running:
        misfit = want.misfit(one)
        if misfit is None:
            right = one
            break
    if state.identity is not None and (right is None or right.identity != state.identity):
        found.shown_at = None
    state.follow(right.identity if right else None)
    if right is None:
        found.reason = misfit or f"no process of {want.component} runs"
        return
    found.instance = right
    # the one that holds the port would answer, and may have answered before
    if len(running) > 1:
        found.shown_at = None
        other = next(instance.pid for instance in running if instance is not right)
        found.reason = f"another process (pid {other}) still runs"
        return
    if found.shown_at is not None and time.monotonic() - state.asked_at < AGAIN:
        return  # only that it lives on counts until then
    found.told = told = ask(want.component, right, credentials) if want.healthy else {}
    state.asked_at = now = time.monotonic()
    if told.get("healthz") == 200 or not want.healthy:
        state.healthy_at = state.healthy_at or now
    else:
        state.healthy_at = None
    contrary = want.contrary(told) if told else None
    state.wrong_at = (state.wrong_at or now) if contrary else None
    found.reason = want.lacking(told, now - state.since)
    found.shown_at = (found.shown_at or now) if found.reason is None else None
