# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Levels raised from this node for a limited time, and put back by whoever comes first.

Before the first level is raised, a service of our own is on the disk, enabled and started: it
sleeps until the time is over and puts back what is still raised; after a reboot it does so at once.
It holds no credential: it reads what the node has. When nothing is raised any more, it removes
itself.
"""

import base64
import contextlib
import os
import sys
import time

from ..state import journal, level_target, lock
from ..state import raised_levels as level_raised
from ..state import storage as durable
from ..state.storage import ROOT, ChangeError
from ..state.verbosity_expiry import FOLDER, boot, remaining
from ..system import command, files
from ..system import detached as outlive
from . import klog_level as level
from . import level_by_restart as level_restart

UNITS = "/etc/systemd/system"
WANTS = "multi-user.target.wants"
ARMED = ".armed"
RAISED, REFUSED, ABSENT, UNSURE, RESTORED, FAILED = (
    "raised",
    "refused",
    "absent",
    "unsure",
    "restored",
    "failed",
)
STARTS = 10  # seconds in which the service must have begun its work
# seconds until what could not be put back is tried again; each time a little longer where something
# restarts
AGAIN, LONGEST = 10, 300
EACH = 30  # seconds that one level may take
UNIT = """# Made by kubemend run {run_id}, removed by itself: it puts the log levels back that the run raised from here.
[Unit]
Description=kubemend: puts back the log levels of run {run_id}
After=network.target
[Service]
ExecStart={python} -I -S {program}
Restart=on-failure
RestartSec=5
[Install]
WantedBy=multi-user.target
"""


def budget(targets):
    """Seconds in which these levels are set or not, whatever happens."""
    return 30 + sum(
        level_restart.budget(target["step"]) if target.get("step") else EACH for target in targets
    )


def run(params):
    """Of `state` probed, raised or restored; the last two by a process that outlives this one."""
    if params["state"] == "probed":
        return {"targets": probed(params)}
    job = raise_levels if params["state"] == "raised" else restore
    return outlive.run(job, params) or {
        "targets": [],
        "error": (
            "the program ended on the node without an answer (killed, or out of memory); what it"
            " raised is put back in time"
        ),
    }


def probed(params):
    """Of each target whether its level can be set while it runs: [{real, state.

    Offered|refused, reason}]. Changes nothing.
    """
    found = []
    with level.Levels(params) as levels:
        for target in params["targets"]:
            try:
                levels.offered(target["real"])
                found.append({"real": target["real"], "state": "offered", "reason": ""})
            except ChangeError as error:
                absent = isinstance(error, level.NotOffered)
                found.append(
                    {
                        "real": target["real"],
                        "state": ABSENT if absent else REFUSED,
                        "reason": files.one_line(error),
                    }
                )
    return found


def raise_levels(params):
    """{targets: [{real, state, reason, at}], error}; at.

    When it had started again, where that raised it. Never raises.
    """
    targets, error, begun = [], None, None
    try:
        step = _step(params, "raise")
        with step.exclusive():
            pass
        lock.renew(step.run_id, params["lock"]["seconds"], step.root)
        sweep(step.run_id, step.root)
        try:
            _arm(step, params["seconds"] + budget(params["targets"]), params["program"])
            with level.Levels(params) as levels:
                for target in params["targets"]:
                    begun = target["real"]
                    targets.append(_raise_one(levels, step, target, params))
            _until(step, params["seconds"], complete=True)  # from the last one on
        finally:
            if not _anything(step):  # also what may have been raised, for its answer was lost
                _disarm(step.run_id, step.root)
    except (ChangeError, OSError) as reason:
        error = files.one_line(reason)
    except Exception as reason:  # pylint: disable=broad-except
        error = (
            f"it ended in a way that nobody foresaw ({type(reason).__name__}:"
            f" {files.one_line(reason)}); what was raised is put back in time"
        )
    told = [one["real"] for one in targets]
    targets += [
        {
            "real": target["real"],
            "state": UNSURE if target["real"] == begun else REFUSED,
            "reason": error or "",
        }
        for target in params["targets"]
        if target["real"] not in told
    ]
    return {"targets": targets, "error": error}


def _raise_one(levels, step, target, params):
    answer = {"real": target["real"], "state": RAISED, "reason": ""}
    if target.get("step"):
        reason = params.get("halt") or (
            None if _armed(step) else "somebody put everything back meanwhile"
        )
        state, reason = (
            (REFUSED, reason) if reason else level_restart.raise_one(step, target, params)
        )
        if state == UNSURE:
            params["halt"] = (
                "nothing more is restarted, because {} did not come back as it should".format(
                    target["component"]
                )
            )
        return dict(answer, state=state, reason=reason, at=durable.now())
    try:
        with step.exclusive() as root_fd:
            others = [
                item["run_id"]
                for item in level_target.unsettled(step.root)
                if item["intent"]["real"] == target["real"]
            ]
            if others:
                raise level.LevelError(
                    "{} was raised by run {} and not put back yet: let that run end, or take it"
                    " back with kubemend.remediation.revert -e kubemend_run_id={}".format(
                        level_target.named(target["real"]), others[0], others[0]
                    )
                )
            via = {name: params.get(name) for name in ("kubectl", "kubeconfig", "cluster_uid")}
            if not _armed(step):
                raise level.LevelError(
                    "{} was not raised: somebody put everything back meanwhile".format(
                        level_target.named(target["real"])
                    ),
                    refused=True,
                )
            # the service counts from the last one: until then none of them is left behind
            level.change(
                levels, step, target, root_fd, params["seconds"] + budget(params["targets"]), via
            )
    except ChangeError as error:
        unsure = any(item["intent"]["real"] == target["real"] for item in _left(step))
        answer.update(state=UNSURE if unsure else REFUSED, reason=files.one_line(error))
    return answer


def restore(params):
    """{targets: [{real, state: restored|failed, reason}], error}.

    Everything that the run raised from here. Idempotent, never raises.
    """
    targets, error = [], None
    try:
        step = _step(params, "restore")
        reals = {
            target["component"]: target["real"]
            for target in params.get("targets") or ()
            if target.get("step")
        }
        targets = [
            dict(one, real=reals.get(one["real"], one["real"]))
            for one in _restore(step, by=params.get("by"), allow=params.get("allow") or ())
        ]
        why = level_raised.unread(step.run_id, step.root)
        error = (
            why
            and f"whether a restart raised a level is not known ({why}); {_unit(step.run_id)} goes on trying to put it back"
        )
    except (ChangeError, OSError) as reason:
        error = files.one_line(reason)
    except Exception as reason:  # pylint: disable=broad-except
        error = (
            f"it ended in a way that nobody foresaw ({type(reason).__name__}:"
            f" {files.one_line(reason)})"
        )
    return {"targets": targets, "error": error}


def _restore(step, attempt=0, by=None, allow=()):
    """Whoever holds the lock: a level that goes back restarts nothing, and nobody's change
    builds on it.
    """
    targets = []
    for item in _left(step):
        with durable.exclusive(step.root) as root_fd:
            if _key(item) not in [_key(one) for one in _left(step)]:
                continue  # somebody else was faster
            answer = {"real": item["intent"]["real"], "state": RESTORED, "reason": ""}
            try:
                _end(item, step, root_fd)
            except level.NotRecorded as error:
                answer["reason"] = files.one_line(error)
            except (ChangeError, OSError) as error:
                answer.update(state=FAILED, reason=files.one_line(error))
            targets.append(answer)
    targets += [
        {"real": component, "state": state, "reason": reason, "at": durable.now()}
        for component, state, reason in level_restart.take_back(step, attempt, by, allow)
    ]
    # nobody raises anything between the look and what follows from it
    with durable.exclusive(step.root):
        if not _anything(step):
            _disarm(step.run_id, step.root)
    return targets


def _anything(step):
    return bool(
        _left(step)
        or level_raised.left(step.run_id, step.root)
        or level_raised.unread(step.run_id, step.root)
    )


def _left(step):
    """What of the run is raised, or may be: entries of the journal, and paths."""
    return [item for item in level_target.unsettled(step.root) if item["run_id"] == step.run_id]


def _key(item):
    return item["run_id"], item["entry"]


def _end(item, step, root_fd):
    if item["end"]:
        with level.Levels(item["intent"].get("via")) as levels:
            level.put_back(levels, item, step, root_fd)
        return
    level.undo_open(item["intent"])
    with level.recorded(item["intent"], step), journal.opened(step.root, item["run_id"]) as fd:
        with journal.Entry(os.dup(fd), item["entry"], item["run_id"]) as entry:
            entry.end(
                journal.NOT_DONE,
                step.run_id,
                "put back, because nobody knows whether it was raised",
            )


def expire(params):
    """What the service runs: wait until the time is over, unless another boot has begun since.

    Then until all is put back.
    """
    step = _step(params, "restore")
    with contextlib.suppress(OSError):  # whoever raises waits for this; after a reboot nobody does
        with durable.descriptor(
            os.open(os.path.join(step.root, FOLDER), durable.FOLDER_FLAGS)
        ) as folder:
            durable.unlink(step.run_id + ARMED, folder)
            durable.write_new(step.run_id + ARMED, b"", folder)
    left, complete = remaining(step.run_id, step.root)
    while left > 0 and (_anything(step) or not complete):
        time.sleep(min(left, AGAIN))
        left, complete = remaining(step.run_id, step.root)
    attempt = 0
    while True:
        attempt += 1
        with contextlib.suppress(ChangeError, OSError):
            _restore(step, attempt)
            if not _anything(step):
                # a controller that still lives changes nothing any more
                lock.release(step.run_id, step.root)
                return {}
        time.sleep(AGAIN if _left(step) else min(AGAIN * attempt, LONGEST))


def _step(params, name):
    return journal.Step(
        params["run_id"],
        name,
        "log levels for a capture",
        "asked for",
        params.get("root") or ROOT,
        must_hold=bool(params.get("lock")),
    )


def _unit(run_id):
    return f"kubemend-levels-{run_id}.service"


def _arm(step, seconds, program):
    """The service, on the disk for good and running, before anything is raised."""
    path = os.path.join(step.root, FOLDER, step.run_id + ".py")
    with durable.told("no level was raised, because what puts it back cannot be written"):
        with step.exclusive() as root_fd, durable.descriptor(
            durable.private_folder(FOLDER, root_fd)
        ) as folder:
            durable.write_new(os.path.basename(path), base64.b64decode(program), folder)
        _until(step, seconds)
        with step.exclusive(), durable.told(
            "no level was raised, because the service that puts it back cannot be written to"
            f" {UNITS}"
        ):
            _write_unit(
                step.run_id, UNIT.format(run_id=step.run_id, python=sys.executable, program=path)
            )
    unit = _unit(step.run_id)
    try:
        with contextlib.suppress(command.Silent):  # it says something only where it fails
            command.run(["systemctl", "start", unit])
        end = time.monotonic() + STARTS
        # that systemd forked something proves nothing
        while not os.path.exists(path[: -len(".py")] + ARMED):
            if time.monotonic() >= end:
                raise command.CommandError(
                    "it did not begin within %d s: see journalctl -u %s" % (STARTS, unit)
                )
            time.sleep(0.05)
    except command.CommandError as error:
        _disarm(step.run_id, step.root)
        raise ChangeError(
            f"no level was raised, because the service {unit} that puts it back does not start"
            f" ({files.one_line(error)})"
        )


def sweep(run_id, root):
    """Remove what is half written, and all of runs that were killed before they raised anything.

    For another run, that holds the lock of this node.
    """
    found = set()
    for folder in (os.path.join(root, FOLDER), UNITS, os.path.join(UNITS, WANTS)):
        with contextlib.suppress(OSError):
            names = [
                name[len("kubemend-levels-") :] if name.startswith("kubemend-levels-") else name
                for name in os.listdir(folder)
            ]
            found.update(name.strip(".").partition(".")[0] for name in names)
    for one in sorted(name for name in found - set([run_id]) if lock.RUN_ID.match(name)):
        # half written; only who raises writes it, and has the lock then
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(root, FOLDER, durable.temporary(one + ".json")))
        # what cannot be read is not swept
        with contextlib.suppress(ChangeError, OSError, ValueError):
            if not _anything(_step({"run_id": one, "root": root}, "sweep")):
                _disarm(one, root)


def _armed(step):
    """Whether the service that puts everything back is there."""
    return all(
        os.path.exists(path)
        for path in (
            os.path.join(step.root, FOLDER, step.run_id + ".json"),
            os.path.join(UNITS, _unit(step.run_id)),
        )
    )


def _until(step, seconds, complete=False):
    """When the service puts everything back, by this node's own clock."""
    start, uptime = boot()
    with step.exclusive() as root_fd, durable.descriptor(
        durable.private_folder(FOLDER, root_fd)
    ) as folder:
        durable.put(
            step.run_id + ".json",
            {"boot": start, "uptime": uptime + seconds, "complete": complete},
            folder,
        )


def _write_unit(run_id, text):
    """No daemon-reload: systemd reads a unit that it has never seen when it is started, and the
    link when it boots.
    """
    path = os.path.join(UNITS, _unit(run_id))
    with open(path, "w", encoding="ascii") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    wants = os.path.join(UNITS, WANTS)
    os.makedirs(wants, exist_ok=True)
    os.symlink(path, os.path.join(wants, _unit(run_id)))
    durable.sync_folder(wants)
    durable.sync_folder(UNITS)


def _disarm(run_id, root):
    """Nothing is left to be put back: neither is the service.

    From within itself it only removes its files.
    """
    unit = _unit(run_id)
    for path in (
        os.path.join(UNITS, WANTS, unit),
        os.path.join(UNITS, unit),
        os.path.join(root, FOLDER, run_id + ".py"),
        os.path.join(root, FOLDER, run_id + ".json"),
        os.path.join(root, FOLDER, durable.temporary(run_id + ".json")),
        os.path.join(root, FOLDER, run_id + ARMED),
    ):
        with contextlib.suppress(OSError):
            os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(root, FOLDER))
    if unit not in (files.text("/proc/self/cgroup") or ""):
        with contextlib.suppress(command.CommandError):
            command.run(["systemctl", "stop", "--no-block", unit])
