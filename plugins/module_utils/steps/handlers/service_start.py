# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This node's kubelet, or its container runtime, brought back.

Its unit enabled at boot, and started.

`enable_kubelet`, `enable_runtime`: systemctl enable, without the daemon-reload that takes devices
away from running containers. It is journalled as a change of a text, the answer of is-enabled, so
that an interrupted one is found and a revert disables the unit again, which stops nothing.
`start_kubelet`, `start_runtime`: a unit that is down started, and proven: active with one main
process, and healthy (a kubelet's healthz; a runtime's socket takes connections), for long enough.
One that does not come up is left to systemd, which goes on trying as after a boot: to stop it again
would not bring the node back either.
"""

import time

from ...collectors import registry as spec
from ...collectors.node import kubelet, runtime, unit_start
from ...shared import start_refusal as unit_refusal
from ...shared.units import KUBELET_UNITS as UNITS
from ...shared.units import RUNTIMES
from ...state import journal
from ...state import step_record as proof
from ...state import storage as durable
from ...state.storage import ChangeError
from ...state.unit_target import ASKING, is_enabled, name_of, state
from ...state.unit_target import digest as _digest
from ...state.unit_target import encoded as _bytes
from ...system import command, cri, files, procfs
from .. import file_change as change
from .. import kubelet_restart
from .. import preconditions as guard

ENABLE, START = "enable_kubelet", "start_kubelet"
ENABLE_RUNTIME, START_RUNTIME = "enable_runtime", "start_runtime"
STARTS = (START, START_RUNTIME)
COMPONENT = "kubelet"
# until it is proven; a server of k3s takes a minute
SECONDS = {ENABLE: 60, START: 150, ENABLE_RUNTIME: 60, START_RUNTIME: 150}
STABLE = 10.0  # seconds of one main process that answers
DEATHS = 3  # main processes that ended again
PAUSE = 0.5
# What a step of this kind may touch.
OF = {ENABLE: UNITS, START: UNITS, ENABLE_RUNTIME: RUNTIMES, START_RUNTIME: RUNTIMES}
ENABLED = "enabled"
FORMER = ("disabled", "enabled-runtime")  # from which enable leads to enabled, and disable back
LIMITED = ("start-limit-hit", "start-limit")
DOWN = ("inactive", "failed")


def do(step, wanted, host, dummy_params=None):
    """(how its proof ended, why, what was seen). step: on whose behalf; wanted.

    The plan's step, its change {path, unit, former}.
    """
    name, former = wanted["change"].get("unit"), wanted["change"].get("former")
    try:
        now = _demand(name, host, wanted["remedy"])
        if wanted["remedy"] in STARTS:
            _demand_start(name, now, host)
        elif now["enabled"] not in (ENABLED, former) or former not in FORMER:
            raise guard.Refused(
                "the evidence is old: {} of {} is {}, not {}; {}".format(
                    name, host, now["enabled"], files.one_line(former, 40), guard.OLD
                )
            )
        record = {
            "component": component_of(name),
            "host": host,
            "remedy": wanted["remedy"],
            "limit": SECONDS[wanted["remedy"]],
            "kind": "none",
            "path": path_of(name),
            "unit": name,
            "expect": {},
            "guard": wanted.get("guard"),
            "former": None,
            "former_states": [now["enabled"], now["active"], now["result"]],
        }
        if proof.claim(step, record) is not None:
            return proof.FAILED, "it was begun before (a connection that was made twice)", {}
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error), {}
    return (_start if wanted["remedy"] in STARTS else _enable)(step, name, host, now)


def component_of(name):
    """What a unit runs: the kubelet, or a runtime by the name of its unit."""
    return name[: -len(".service")] if name in RUNTIMES else COMPONENT


def _spoken(name, host):
    """What sentences call it."""
    return f"the {component_of(name)} of {host}"


def path_of(name):
    """What the journal calls it."""
    return f"enablement of {name}"


def _demand(name, host, remedy):
    """The unit as it is, when it may be brought back, or guard.Refused or ChangeError."""
    now = state(name)
    if name not in OF[remedy]:
        raise guard.Refused(f"{name} is no unit for a step of the kind {remedy}; {guard.OLD}")
    if now["load"] == "masked" or now["enabled"].startswith("masked"):
        raise guard.Refused(
            f"{name} of {host} is masked, which somebody did on purpose: unmask it first, or leave"
            " the node alone"
        )
    return now


def _demand_start(name, now, host):
    """Nothing is in the way of a start that is known now, or guard.Refused."""
    if now["active"] == "active":
        return  # somebody was quicker; whether it is well is what the proof says
    if now["active"] not in DOWN:
        raise guard.Refused(
            "the evidence is old: {} is {} ({}), not stopped; {}".format(
                _spoken(name, host), now["active"], now["sub"], guard.OLD
            )
        )
    _demand_accepted(name, host)
    if name in RUNTIMES:
        return
    found = kubelet_restart.look(host)
    if found.pid is not None:
        raise guard.Refused(
            "a kubelet runs on %s beside its unit (pid %d): end it first, or find out who"
            " started it" % (host, found.pid)
        )
    if found.evidence["unit"] and found.evidence["unit"]["name"] == kubelet.UNIT:
        kubelet_restart.demand_start(found, host)


def _demand_accepted(name, host):
    """Systemd would start it now, as far as that can be seen; guard.Refused.

    What it does not tell is left to the proof of the start.
    """
    try:
        facts = unit_start.every([name])
    except command.CommandError:
        return
    refused = unit_refusal.now({}, facts[0] if facts else {})
    if refused:
        raise guard.Refused(
            f"nothing was started: {name} of {host}: {refused.what}; {refused.cure}"
        )


def _ask(*words):
    """systemctl: what it complained of, or None.

    It says something only where something is wrong, or on standard error what it links.
    """
    try:
        command.run(["systemctl", *list(words)], ASKING)
    except command.CommandError as error:
        told = files.one_line(error)
        return None if told.endswith("it said nothing") else told
    return None


def _enable(step, name, host, now):
    if now["enabled"] == ENABLED:
        return proof.ended(step, proof.PROVEN, "it is enabled already")
    try:
        done = switch(name, _digest(now["enabled"]), ENABLED, step)
    except (ChangeError, OSError) as error:
        return proof.ended(
            step,
            proof.FAILED if getattr(error, "changed", False) else proof.NOT_DONE,
            f"{_spoken(name, host)} was not enabled: {files.one_line(error, 600)}",
        )
    return proof.ended(
        step, proof.PROVEN, None, {"enabled": [now["enabled"], ENABLED], "journal": done["entry"]}
    )


def switch(name, expected, after, step):
    """Enable or disable the unit where is-enabled still says what has this digest.

    {changed, entry}; ChangeError.
    """
    path, now = path_of(name), state(name)["enabled"]
    with step.exclusive() as root_fd:
        change.compare(path, _digest(now), expected)
        if now == after:
            return {"changed": False, "entry": None}
        change.demand_ended(path, journal.UNIT + name, step.root)
        if after not in (*FORMER, ENABLED):
            raise ChangeError(
                f"{path} was not changed: nothing here makes it {files.one_line(after, 40)}"
            )
        return {
            "changed": True,
            "entry": None if step.check else _switched(name, now, after, step, root_fd),
        }


def _switched(name, now, after, step, root_fd):
    """The intent, the switch, what is-enabled says then, the commit; the entry."""
    path = path_of(name)
    with durable.told(
        f"{path} was not changed, because the journal in {step.root} cannot be written"
    ):
        entry = journal.begin(
            step,
            root_fd,
            {
                "path": path,
                "real": journal.UNIT + name,
                "sha256_before": _digest(now),
                "sha256_after": _digest(after),
                "size_before": len(_bytes(now)),
            },
            _bytes(now),
            None,
        )[0]
    with entry:
        told = _ask(*_words(name, after))
        found = _said(name)
        if found not in (after, now):
            told = f"{told}; {_ask(*_words(name, now))}"
            found = _said(name)
        if found == now:
            entry.abandon("systemd did not do it")
            raise ChangeError(
                "systemctl {} was asked for, and it is {} still ({})".format(
                    " ".join(_words(name, after)), now, told or "it said nothing"
                )
            )
        open_still = f"the journal's entry {entry.name} of run {entry.run_id} stays open"
        if found != after:
            raise ChangeError(
                f"{name} is {found} now, neither {now} nor {after} ({told}): {open_still}",
                changed=True,
            )
        try:
            entry.commit()
        except OSError as error:
            raise ChangeError(
                f"{name} is {after}, but that cannot be committed: {durable.why(error)};"
                f" {open_still}",
                changed=True,
            )
    return f"{entry.run_id}/{entry.name}"


def _words(name, after):
    """--no-reload: no daemon-reload, which only a container with devices would notice, badly. Neither starts nor stops anything."""
    return ["enable" if after == ENABLED else "disable", "--no-reload", name]


def _said(name):
    try:
        return is_enabled(name)
    except command.CommandError as error:
        return files.one_line(error)


def _masks():
    from . import service_unmask as unit_unmask  # few nodes ever have such an entry

    return unit_unmask


def put_back(one, intent, former, step):
    """What an entry left, as it was before: a revert. one: {sha256_left}; former.

    The bytes of before.
    """
    if name_of(intent).startswith("/"):
        return _masks().put_back(name_of(intent), one["sha256_left"], former, step)
    return switch(
        name_of(intent), one["sha256_left"], former.decode("utf-8", "replace").strip(), step
    )


def _start(step, name, host, now):
    told = None
    if now["active"] in DOWN:
        if now["active"] == "failed" or now["result"] in LIMITED:
            _ask("reset-failed", name)
        told = _ask("start", "--no-block", name)
    pid, reason = proven(name)
    if pid:
        return proof.ended(
            step,
            proof.PROVEN,
            None if now["active"] in DOWN else "it runs already",
            {"pid": pid, "ticks": proof.ticks(pid)},
        )
    return proof.ended(
        step, proof.FAILED, _down(name, host, "{}{}".format(reason, f" ({told})" if told else ""))
    )


def _down(name, host, reason):
    return (
        f"component down: {_spoken(name, host)} was started and is not well: {reason}; systemd has"
        f" it now: look at journalctl -u {name}"
    )


def proven(name, seconds=None, looks=None):
    """(its main pid, why not): active with this process, and healthy, for STABLE seconds. looks.

    In place of `look`.
    """
    end, since, pid, deaths, reason = (
        time.monotonic() + (seconds or SECONDS[START]),
        None,
        None,
        0,
        "nothing was seen",
    )
    while time.monotonic() < end and deaths < DEATHS:
        now, reason = (looks or look)(name)
        if now and now["pid"] and now["pid"] != pid:
            deaths, pid, since = deaths + (pid is not None), now["pid"], None
        since = (since or time.monotonic()) if reason is None else None
        if since is not None and time.monotonic() - since >= STABLE:
            return pid, None
        if now and now["active"] == "failed":
            break
        time.sleep(PAUSE)
    return None, "{}{}".format(
        reason or "it was not healthy for %d s" % STABLE,
        " (it ended again %d times)" % deaths if deaths else "",
    )


def look(name):
    """(its state, what is not well with it)."""
    try:
        now = state(name)
        if now["active"] != "active" or not now["pid"]:
            return now, "{} is {} ({}, result {})".format(
                name,
                now["active"],
                now["sub"],
                now["result"],
            )
        if name in RUNTIMES:
            return now, _silent(name)
        healthz = kubelet.collect(spec.Context({}, procfs.of_interest(), {}))["healthz"]
    except Exception as error:  # pylint: disable=broad-except
        return None, files.one_line(error)
    if healthz["status"] == 200 or healthz["url"] is None:  # which has been switched off
        return now, None
    return now, "its healthz does not answer 200 yet (%s)" % (
        healthz["error"] or "HTTP {}".format(healthz["status"])
    )


def _silent(name):
    """Why no connection to this runtime's socket can be made.

    None where one can, or where the kubelet uses another's.
    """
    known = kubelet.collect(spec.Context({}, procfs.of_interest(), {}))
    path = runtime.socket_of(name, known)
    error = cri.connect(path, runtime.CONNECT) if path else None
    return error and f"{path} takes no connection ({error})"


def resumed(record, dummy_step=None):
    """What was interrupted, ended: (how its proof ends, None while nobody can tell; why)."""
    name = record.get("unit")
    try:
        now = state(name)
    except ChangeError as error:
        return None, str(error)
    if record["remedy"] not in STARTS:
        return (
            (proof.PROVEN, f"{name} is enabled")
            if now["enabled"] == ENABLED
            else (proof.NOT_DONE, "{} is {}".format(name, now["enabled"]))
        )
    if now["active"] in DOWN:
        return proof.NOT_DONE, f"its {component_of(name)} does not run; what to do is judged anew"
    pid, reason = proven(name)
    return (
        (proof.PROVEN, "its %s runs (pid %d)" % (component_of(name), pid))
        if pid
        else (proof.FAILED, _down(name, record["host"], reason))
    )
