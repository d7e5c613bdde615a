# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of this node's CPU and memory manager reset, between a drain and the end of its cordon.

`start_former`: a kubelet that its state keeps down started once more under the policy of that
state, by a drop-in under /run, because only a kubelet that runs can end the pods that a drain
evicts. `reset_state`: the kubelet stopped, the state files moved into the journal, the
configuration changed where that was asked for, the drop-in taken away, the kubelet started, and the
proof: it is healthy and wrote a state of the policy that it is told. State files are never put
back: pods ran since they were written.
"""

import json
import os
import time

from ...capture import kubelet_level
from ...collectors import registry as spec
from ...collectors.node import instances
from ...shared import restart_impact as pending
from ...state import step_record as proof
from ...state import storage as durable
from ...state.storage import ChangeError
from ...system import command, files, procfs
from .. import file_change as change
from .. import kubelet_restart
from .. import preconditions as guard

START, RESET, UNLEND = "start_former", "reset_state", "unlend"
COMPONENT = "kubelet"
STOPPING = 60  # seconds until its process has ended
# seconds after its start: a kubelet that its state ends has answered healthz for a moment before
SETTLED = 10
# seconds until a healthy kubelet has written its state, which it does before it is healthy
WRITTEN = 20
PAUSE = 0.3
STATE_KEPT = (
    "the state of a kubelet's managers is never put back, because pods ran since it was written"
)
LENT_KEPT = (
    "what a reset lends a kubelet goes once its state is reset, or with a reboot; until then the"
    " kubelet would not start again without it"
)
CONFIG_KEPT = (
    "a CPU manager's settings go back with a reset of their own (the role cpu_manager_reset with"
    " the former ones): alone they would keep the kubelet down"
)
MAX_STATE = 16 * 1024 * 1024


def do(step, wanted, host, params):
    """(how its proof ended, why, what was seen). step: on whose behalf; wanted: the plan's step.

    Params: the program's, for the way to the API.
    """
    begin = {START: _start, RESET: _reset, UNLEND: _take_back}[wanted["remedy"]]
    try:
        record = _claimed(step, wanted, host, params)
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error), {}
    if record is None:
        return proof.FAILED, "it was begun before (a connection that was made twice)", {}
    return begin(step, wanted, record)


def _claimed(step, wanted, host, params):
    """The record of a step that may be done now, None where it was begun before.

    Guard.Refused or ChangeError.
    """
    found = _demand(host, wanted, params)
    paths = [one["path"] for one in wanted["change"]["files"]]
    record = {
        "component": COMPONENT,
        "host": host,
        "remedy": wanted["remedy"],
        "limit": kubelet_restart.SECONDS,
        "kind": "none",
        "paths": paths,
        "path": wanted["change"]["path"],
        "expect": wanted["expect"],
        "guard": wanted.get("guard"),
        "reload": wanted["change"]["reload"],
        "of_run": step.run_id,
        "states": wanted["change"].get("states") or [],
        "former": {"pid": found.pid, "ticks": found.ticks, "argv": files.masked_argv(found.argv)},
    }
    return record if proof.claim(step, record) is None else None


def _demand(host, wanted, params):
    """The kubelet as it is, or guard.Refused.

    What must hold at the last moment, whatever the plan believed.
    """
    found, told = _settled(host), wanted.get("guard") or {}
    unit, allow = found.evidence["unit"] or {}, told.get("allow") or []
    if unit.get("name") != kubelet_restart.UNIT:
        raise guard.Refused(
            f"the kubelet of {host} is not that of {kubelet_restart.UNIT}: reset its state where it"
            " is started"
        )
    if "masked" in (unit.get("unit_file_state"), unit.get("load_state")):
        raise guard.Refused(
            f"the kubelet of {host} is masked, which somebody did on purpose: unmask it first, or"
            " leave the node alone"
        )
    if wanted["remedy"] == START and found.healthy and not _runs_so(found, wanted):
        raise guard.Refused(
            f"the evidence is old: the kubelet of {host} runs and is healthy; {guard.OLD}"
        )
    if wanted["remedy"] == UNLEND:  # systemd's daemon-reload is all that happens
        if "kubelet_restart" not in allow:
            kubelet_restart.demand_no_devices(host)
        return found
    if found.healthy and (wanted["expect"] or {}).get("down"):
        raise guard.Refused(
            f"the evidence is old: the kubelet of {host} was down, so that nothing was drained, and"
            f" runs now; {guard.OLD}"
        )
    everyone = instances.collect(spec.Context({}, procfs.of_interest(), {}))["processes"]
    if "api_down" not in allow:
        guard.answering(told, everyone, host)
    if (
        wanted["remedy"] == RESET
        and found.healthy
        and "single_control_plane" not in allow
        and guard.own_servers(everyone)
    ):
        guard.another(told, everyone, guard.usable(params, everyone), host)
    if "kubelet_restart" not in allow:
        kubelet_restart.demand_no_devices(host)
    kubelet_restart.demand_start(found, host)
    if found.healthy and "pending_changes" not in allow:
        # its configuration is what the reset is for
        own = [one["path"] for one in wanted["change"]["files"]]
        own += [
            one.get("path")
            for one in [
                found.evidence.get("config"),
                *list(found.evidence.get("config_dropins") or []),
            ]
            if one
        ]
        waiting = pending.of_kubelet(found.evidence, own)
        if kubelet_restart.only_ours(unit, own):
            waiting = [one for one in waiting if one != pending.RELOAD]
        if waiting:
            raise guard.Refused(pending.sentence(host, "the kubelet", waiting))
    return found


def _settled(host):
    """The kubelet; one that answers and has just been started is looked at again."""
    found, end = kubelet_restart.look(host), time.monotonic() + SETTLED
    while found.healthy and _young(found) and time.monotonic() < end:
        time.sleep(PAUSE)
        found = kubelet_restart.look(host)
    return found


def _young(found):
    """Whether its process was started a moment ago.

    One that answers and is not to be seen (hidden, another namespace) is not known to be.
    """
    process = found.evidence["process"]
    return process is not None and time.time() - (process.get("started_at") or 0) < SETTLED


def _runs_so(found, wanted):
    """Whether it runs by these words already: an interrupted reset was ended in this run."""
    return found.healthy and _has(found, wanted)


def _has(found, wanted):
    """Whether its process has these words, healthy or not."""
    return found.pid is not None and all(word in found.argv for word in wanted["expect"]["words"])


def _start(step, wanted, record):
    """The drop-in written, the kubelet started by it and proven, or all of it back."""
    words, found = wanted["expect"]["words"], kubelet_restart.look(record["host"])
    if _runs_so(found, wanted):
        return proof.ended(
            step, proof.PROVEN, "it runs so already", {"pid": found.pid, "ticks": found.ticks}
        )
    try:
        for one in wanted["change"]["files"]:
            kubelet_level.write(one, step.also(keep=LENT_KEPT))
    except ChangeError as error:
        return _unstarted(step, record, str(error))
    reason = kubelet_level.ask_restart(True)
    if reason is None:
        found, reason = kubelet_restart.wait(
            lambda argv: (
                None
                if all(word in argv for word in words)
                else "the process runs without {}".format(" ".join(words))
            ),
            None,
        )
        if found:
            return proof.ended(step, proof.PROVEN, None, {"pid": found.pid, "ticks": found.ticks})
    return _unstarted(
        step,
        record,
        "the kubelet of {} does not run under the policy of its state either: {}".format(
            record["host"], reason
        ),
    )


def _unstarted(step, record, reason):
    """The drop-in away again: the kubelet is left to its unit, as it was."""
    trouble = _unlent(step, record)
    # the record stays open: else a file that could not be taken back would refuse the next start
    if trouble:
        reason = f"{reason}; and not taken back: {trouble}; the next run takes it back (KM902)"
        proof.tell(step.run_id, step.step, reason, step.root, "ended_so")
        return proof.FAILED, reason, {}
    return proof.ended(step, proof.ROLLED_BACK, reason + "; its drop-in is gone again")


def _take_back(step, wanted, record):
    """What a reset lent, that nothing calls for any more.

    It goes, and the kubelet runs on as it is until its next start.
    """
    trouble = _unlent(step, record, restart=False)
    return proof.ended(
        step,
        proof.FAILED if trouble else proof.PROVEN,
        trouble
        or "the kubelet's next start is without {}".format(" ".join(wanted["expect"]["words"])),
    )


def _unlent(step, record, restart=True):
    """The drop-in gone, and systemd told: why not, or an empty text. restart.

    A process that has its words is started anew, else it keeps them.
    """
    try:
        for path in record["paths"]:
            _aside(path, step)
        kubelet_level.tidy(record["paths"])
        kubelet_restart.load(record["reload"])
        # else evidence would take them for its own
        if restart and _has(kubelet_restart.look(record["host"]), record):
            kubelet_restart.restart(False)
        return ""
    except (ChangeError, guard.Refused, command.CommandError) as error:
        return files.one_line(error)


def _reset(step, wanted, record):
    """Stopped, reset, started, proven.

    Or with what was lent again, and no state, which fits any policy.
    """
    lent, edits = {}, []
    try:
        _stopped(record)
        for path in record["states"]:
            _aside(path, step.also(keep=STATE_KEPT))
        for one in wanted["change"].get("edits") or []:
            edits.append((one["path"], files.read(one["path"], MAX_STATE)))
            kubelet_level.write(one, step.also(keep=CONFIG_KEPT))
        for path in record["paths"]:
            lent[path] = _aside(path, step.also(keep=LENT_KEPT))
        kubelet_level.tidy(record["paths"])
    except (ChangeError, command.CommandError, OSError) as error:
        return _back(
            step,
            record,
            lent,
            edits,
            "the state of {} was not reset: {}".format(record["host"], files.one_line(error)),
        )
    found, reason = _proved(record)
    if found:
        return proof.ended(step, proof.PROVEN, None, {"pid": found.pid, "ticks": found.ticks})
    return _back(
        step,
        record,
        lent,
        edits,
        "the kubelet of {} was not proven with a new state: {}".format(record["host"], reason),
    )


def _aside(path, step):
    """Into the journal, as it is now (the kubelet wrote it until it was stopped).

    Its bytes, None where there is no such file.
    """
    if not os.path.lexists(path):
        return None
    data = files.read(path, MAX_STATE)
    change.move_out(path, durable.digest(data), step)
    return data


def _stopped(record):
    """The kubelet's unit is stopped and no process of it is left; ChangeError."""
    kubelet_restart.stop()
    end = time.monotonic() + STOPPING
    while time.monotonic() < end:
        try:
            if kubelet_restart.look(record["host"]).pid is None:
                return
        except guard.Refused:
            pass
        time.sleep(PAUSE)
    raise ChangeError("its kubelet did not end within %d s (systemctl status kubelet)" % STOPPING)


def _proved(record):
    """(the kubelet, why not): healthy, and its state files are of the policies that it is told."""
    reason = kubelet_level.ask_restart(record["reload"])
    if reason is None:
        found, reason = kubelet_restart.wait(lambda argv: None, None)
        if found:
            end = time.monotonic() + WRITTEN
            reason = _unwritten(record["expect"]["policies"])
            while reason and time.monotonic() < end:
                time.sleep(PAUSE)
                reason = _unwritten(record["expect"]["policies"])
            if not reason:
                return found, None
    return None, reason


def _unwritten(policies):
    """Why the state files are not those of a kubelet with these policies {path.

    Policy}, or None.
    """
    for path, policy in sorted(policies.items()):
        try:
            written = json.loads(files.read(path, MAX_STATE).decode("utf-8")).get("policyName")
        except (OSError, ValueError, AttributeError) as error:
            return f"{path} cannot be read ({files.one_line(error)})"
        if written != policy:
            return f"{path} is of the policy {files.one_line(written, 40)}, not {policy}"
    return None


def _back(step, record, lent, edits, reason):
    """The former configuration, what was lent, if anything, no state, and the kubelet started so.

    Edits: [(path, former bytes)].
    """
    left = ""
    try:
        _stopped(record)
        for path in record["states"]:
            _aside(path, step.also(keep=STATE_KEPT))
        for path, data in edits:
            change.replace(
                path,
                durable.digest(files.read(path, MAX_STATE)),
                data,
                step.also(keep=CONFIG_KEPT, what=f"roll back: {path}"),
            )
        for path, data in sorted(lent.items()):
            if data is not None and not os.path.lexists(path):
                change.create_file(
                    path,
                    data,
                    step.also(keep=LENT_KEPT, what=f"roll back: {path}"),
                    change.Attributes(0o600),
                    make_folder=True,
                )
    except (ChangeError, command.CommandError, OSError) as error:
        left = f"; not taken back: {files.one_line(error)}"
    trouble = kubelet_level.ask_restart(record["reload"])
    found, why = (None, trouble) if trouble else kubelet_restart.wait(lambda argv: None, None)
    if found:
        return proof.ended(
            step,
            proof.FAILED if left else proof.ROLLED_BACK,
            "%s%s; it runs with its former configuration%s and a new state (pid %d)"
            % (
                reason,
                left,
                " and what it was lent for the drain" if any(lent.values()) else "",
                found.pid,
            ),
        )
    return proof.ended(
        step,
        proof.FAILED,
        "component down: {}{}; and it did not come up with a new state ({}): look at journalctl -u"
        " kubelet on {}; the former state files are in the journal of this run".format(
            reason, left, why, record["host"]
        ),
    )


def resumed(record, step):
    """What was interrupted, ended: (how its proof ends, None while it has to wait; why).

    The kubelet is never left stopped.
    """
    try:
        running = _settled(record["host"])
    except guard.Refused as error:
        return None, str(error)
    if record["remedy"] == START:
        if _runs_so(running, record):
            return proof.PROVEN, "it runs under the policy of its state"
        trouble = _unlent(step, record)
        return (None, trouble) if trouble else (proof.ROLLED_BACK, "its drop-in is gone again")
    if record["remedy"] == UNLEND:
        trouble = _unlent(step, record, restart=False)
        return (None, trouble) if trouble else (proof.PROVEN, "what was lent is gone")
    if running.healthy:
        return proof.NOT_DONE, "its kubelet runs; what its state is now is judged anew"
    trouble = kubelet_level.ask_restart(True)
    found, why = (None, trouble) if trouble else kubelet_restart.wait(lambda argv: None, None)
    if found:
        return (
            proof.NOT_DONE,
            "its kubelet runs again (pid %d); what its state is now is judged anew" % found.pid,
        )
    policies = (record.get("expect") or {}).get("policies") or {}
    if any(os.path.lexists(path) for path in policies) and _unwritten(policies):
        return (
            proof.NOT_DONE,
            (
                f"its state was not moved yet, and its kubelet does not start over it ({why}): that"
                " is judged anew"
            ),
        )
    return (
        proof.FAILED,
        "its kubelet did not start again ({}): look at journalctl -u kubelet on {}".format(
            why, record["host"]
        ),
    )
