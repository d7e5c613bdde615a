# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log levels raised from this node for a limited time, then restored by a run or by a service.

Before the first level is raised, a service of kubemend is on the disk, enabled and started. It
sleeps until the time is over and restores what is still raised; after a reboot it does so at once.
It has no credential of its own and uses those of the node. When nothing is raised any more, it
removes itself.
"""

import base64
import contextlib
import os
import sys
import time

from ..changes import durable_files, journal_entry, node_lock
from ..shared.journal_names import RUN_ID
from ..state import journal, level_target, raised_levels, storage
from ..state.storage import ROOT, ChangeError
from ..state.verbosity_expiry import FOLDER, boot, remaining
from ..system import command, detached, files
from . import klog_level, level_by_restart

UNITS = "/etc/systemd/system"
WANTS = "multi-user.target.wants"
ARMED = ".armed"
DISARMED = "everything was put back meanwhile"
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
UNIT_PREFIX = "kubemend-levels-"
UNIT = """# Made by kubemend run {run_id}, removed by itself: it puts the log levels back\
 that the run raised from here.
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
    """Return the seconds in which these levels are set or not, in any case."""
    return 30 + sum(_target_budget(target) for target in targets)


def _target_budget(target):
    return level_by_restart.budget(target["step"]) if target.get("step") else EACH


def run(params):
    """Do what `state` says: probed, raised or restored.

    A detached process does the last two.
    """
    if params["state"] == "probed":
        return {"targets": probed(params)}
    job = raise_levels if params["state"] == "raised" else restore
    return detached.run(job, params) or {
        "targets": [],
        "error": (
            "the program ended on the node without an answer (killed, or out of memory); what it"
            " raised is put back in time"
        ),
    }


def probed(params):
    """Return of each target whether its level can be set while it runs.

    The result is [{real, state: offered|refused|absent, reason}]. It changes nothing.
    """
    with klog_level.Levels(params) as levels:
        return [_probed(levels, target["real"]) for target in params["targets"]]


def _probed(levels, real):
    try:
        levels.offered(real)
    except klog_level.NotOffered as error:
        return {"real": real, "state": ABSENT, "reason": files.one_line(error)}
    except ChangeError as error:
        return {"real": real, "state": REFUSED, "reason": files.one_line(error)}
    return {"real": real, "state": "offered", "reason": ""}


def raise_levels(params):
    """Raise the levels of all targets, and return {targets: [{real, state, reason, at}], error}.

    at: when the component had restarted, where a restart raised it. It never raises an error.
    """
    work = _Raising(params)
    error = None
    try:
        work.run()
    except (ChangeError, OSError) as reason:
        error = files.one_line(reason)
    except Exception as reason:  # pylint: disable=broad-except
        error = f"{_unforeseen(reason)}; what was raised is put back in time"
    return {"targets": work.targets + work.rest(error), "error": error}


def _unforeseen(error):
    return f"it ended in an unforeseen way ({type(error).__name__}: {files.one_line(error)})"


class _Raising:
    """The levels that are raised one after another; a failed restart ends it."""

    def __init__(self, params):
        self.params = params
        self.targets = []
        self.current = None

    def run(self):
        """Arm the service, then raise each of the targets."""
        params = self.params
        step = _step(params, "raise")
        with step.exclusive():
            pass
        node_lock.renew(step.run_id, params["lock"]["seconds"], step.root)
        sweep(step.run_id, step.root)
        try:
            _arm(step, params["seconds"] + budget(params["targets"]), params["program"])
            with klog_level.Levels(params) as levels:
                for target in params["targets"]:
                    self.current = target["real"]
                    self.targets.append(_raise_one(levels, step, target, params))
            _until(step, params["seconds"], complete=True)  # from the last one on
        finally:
            if not _anything(step):  # also what may have been raised, for its answer was lost
                _disarm(step.run_id, step.root)

    def rest(self, error):
        """Return the answers of the targets without one: the current level may be raised."""
        answered = [target["real"] for target in self.targets]
        states = {self.current: UNSURE}
        return [
            {
                "real": target["real"],
                "state": states.get(target["real"], REFUSED),
                "reason": error or "",
            }
            for target in self.params["targets"]
            if target["real"] not in answered
        ]


def _raise_one(levels, step, target, params):
    answer = {"real": target["real"], "state": RAISED, "reason": ""}
    if target.get("step"):
        state, reason = _raise_by_restart(step, target, params)
        return dict(answer, state=state, reason=reason, at=storage.now())
    try:
        _raise_running(levels, step, target, params)
    except ChangeError as error:
        is_unsure = any(item["intent"]["real"] == target["real"] for item in _left(step))
        answer.update(state=UNSURE if is_unsure else REFUSED, reason=files.one_line(error))
    return answer


def _raise_by_restart(step, target, params):
    """Return (state, reason) of a target that only a restart raises."""
    if params.get("halt"):
        return REFUSED, params["halt"]
    if not _is_armed(step):
        return REFUSED, DISARMED
    state, reason = level_by_restart.raise_one(step, target, params)
    if state == UNSURE:
        params["halt"] = (
            "nothing more is restarted, because {} did not come back as it should".format(
                target["component"]
            )
        )
    return state, reason


def _raise_running(levels, step, target, params):
    """Set the level of a process that keeps running, or raise ChangeError."""
    name = level_target.named(target["real"])
    with step.exclusive() as root_fd:
        other_runs = [
            item["run_id"]
            for item in level_target.unsettled(step.root)
            if item["intent"]["real"] == target["real"]
        ]
        if other_runs:
            raise klog_level.LevelError(
                f"{name} was raised by run {other_runs[0]} and not put back yet: let that run end,"
                " or take it back with kubemend.remediation.revert -e"
                f" kubemend_run_id={other_runs[0]}"
            )
        if not _is_armed(step):
            raise klog_level.LevelError(f"{name} was not raised: {DISARMED}", refused=True)
        via = {name: params.get(name) for name in ("kubectl", "kubeconfig", "cluster_uid")}
        # the service counts from the last one: until then none of them is a leftover
        seconds = params["seconds"] + budget(params["targets"])
        klog_level.change(levels, step, target, root_fd, seconds, via)


def restore(params):
    """Restore everything that the run raised from this node, and return {targets, error}.

    targets: [{real, state: restored|failed, reason}]. It is idempotent and never raises an
    error.
    """
    targets, error = [], None
    try:
        step = _step(params, "restore")
        targets = _restored(step, params)
        reason = raised_levels.unread(step.run_id, step.root)
        if reason:
            error = (
                f"whether a restart raised a level is not known ({reason}); {_unit(step.run_id)}"
                " goes on trying to put it back"
            )
    except (ChangeError, OSError) as reason:
        error = files.one_line(reason)
    except Exception as reason:  # pylint: disable=broad-except
        error = _unforeseen(reason)
    return {"targets": targets, "error": error}


def _restored(step, params):
    reals = {
        target["component"]: target["real"]
        for target in params.get("targets") or ()
        if target.get("step")
    }
    targets = _restore(step, by=params.get("by"), allow=params.get("allow") or ())
    return [dict(target, real=reals.get(target["real"], target["real"])) for target in targets]


def _restore(step, attempt=0, by=None, allow=()):
    """Restore what is raised, whichever run holds the lock, and return the targets.

    The level of a running process needs no lock: its restore restarts nothing, and no change of
    another run builds on it. A level that only a restart restores is taken back under the lock.
    """
    restored = [_restore_one(item, step) for item in _left(step)]
    targets = [target for target in restored if target]
    targets += [
        {"real": component, "state": state, "reason": reason, "at": storage.now()}
        for component, state, reason in level_by_restart.take_back(step, attempt, by, allow)
    ]
    # nothing is raised between the check and what follows from it
    with durable_files.exclusive(step.root):
        if not _anything(step):
            _disarm(step.run_id, step.root)
    return targets


def _restore_one(item, step):
    """Return the answer of one entry, or None where another process was faster."""
    answer = {"real": item["intent"]["real"], "state": RESTORED, "reason": ""}
    with durable_files.exclusive(step.root) as root_fd:
        if _key(item) not in [_key(other) for other in _left(step)]:
            return None
        try:
            _end(item, step, root_fd)
        except klog_level.NotRecorded as error:
            answer["reason"] = files.one_line(error)
        except (ChangeError, OSError) as error:
            answer.update(state=FAILED, reason=files.one_line(error))
    return answer


def _anything(step):
    return bool(
        _left(step)
        or raised_levels.restorable_records(step.run_id, step.root)
        or raised_levels.unread(step.run_id, step.root)
    )


def _left(step):
    """Return the journal's items of what the run raised, or may have raised."""
    return [item for item in level_target.unsettled(step.root) if item["run_id"] == step.run_id]


def _key(item):
    return item["run_id"], item["entry"]


def _end(item, step, root_fd):
    if item["end"]:
        with klog_level.Levels(item["intent"].get("via")) as levels:
            klog_level.put_back(levels, item, step, root_fd)
        return
    klog_level.undo_open(item["intent"])
    with klog_level.recorded(item["intent"], step), journal.opened(
        step.root, item["run_id"]
    ) as fd, journal_entry.Entry(os.dup(fd), item["entry"], item["run_id"]) as entry:
        entry.end(
            journal.NOT_DONE, step.run_id, "put back, because it is unknown whether it was raised"
        )


def expire(params):
    """Wait until the time is over, then restore until all is restored.

    The service runs this. After another boot the time is over at once.
    """
    step = _step(params, "restore")
    with contextlib.suppress(OSError):  # the process that raises waits for this
        _note_start(step)
    seconds, complete = remaining(step.run_id, step.root)
    while seconds > 0 and (_anything(step) or not complete):
        time.sleep(min(seconds, AGAIN))
        seconds, complete = remaining(step.run_id, step.root)
    attempt = 0
    while True:
        attempt += 1
        with contextlib.suppress(ChangeError, OSError):
            _restore(step, attempt)
            if not _anything(step):
                # a controller that still lives changes nothing any more
                node_lock.release(step.run_id, step.root)
                return {}
        time.sleep(AGAIN if _left(step) else min(AGAIN * attempt, LONGEST))


def _note_start(step):
    with storage.descriptor(
        os.open(os.path.join(step.root, FOLDER), storage.FOLDER_FLAGS)
    ) as folder:
        durable_files.unlink(step.run_id + ARMED, folder)
        durable_files.write_new(step.run_id + ARMED, b"", folder)


def _step(params, name):
    return journal_entry.StepContext(
        params["run_id"],
        name,
        "log levels for a capture",
        "asked for",
        params.get("root") or ROOT,
        must_hold=bool(params.get("lock")),
    )


def _unit(run_id):
    return f"{UNIT_PREFIX}{run_id}.service"


def _arm(step, seconds, program):
    """Put the service on the disk and start it, before anything is raised."""
    path = os.path.join(step.root, FOLDER, step.run_id + ".py")
    with storage.change_errors("no level was raised, because what puts it back cannot be written"):
        with step.exclusive() as root_fd, storage.descriptor(
            durable_files.private_folder(FOLDER, root_fd)
        ) as folder:
            durable_files.write_new(os.path.basename(path), base64.b64decode(program), folder)
        _until(step, seconds)
        with step.exclusive(), storage.change_errors(
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
                    f"it did not begin within {STARTS:d} s: see journalctl -u {unit}"
                )
            time.sleep(0.05)
    except command.CommandError as error:
        _disarm(step.run_id, step.root)
        raise ChangeError(
            f"no level was raised, because the service {unit} that puts it back does not start"
            f" ({files.one_line(error)})"
        ) from error


def sweep(run_id, root):
    """Remove half-written files, and all files of killed runs that had not raised anything.

    Another run does this, and holds the lock of this node.
    """
    run_ids = set()
    for directory in (os.path.join(root, FOLDER), UNITS, os.path.join(UNITS, WANTS)):
        with contextlib.suppress(OSError):
            run_ids.update(_run_of(name) for name in os.listdir(directory))
    for other in sorted(name for name in run_ids - {run_id} if RUN_ID.match(name)):
        # half written; only a run that raises writes it, and has the lock then
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(root, FOLDER, durable_files.temporary(other + ".json")))
        # what cannot be read is not swept
        with contextlib.suppress(ChangeError, OSError, ValueError):
            if not _anything(_step({"run_id": other, "root": root}, "sweep")):
                _disarm(other, root)


def _run_of(name):
    """Return the run id in the name of a service or of one of its files."""
    if name.startswith(UNIT_PREFIX):
        name = name[len(UNIT_PREFIX) :]
    return name.strip(".").partition(".")[0]


def _is_armed(step):
    """Return whether the service that restores everything is there."""
    return all(
        os.path.exists(path)
        for path in (
            os.path.join(step.root, FOLDER, step.run_id + ".json"),
            os.path.join(UNITS, _unit(step.run_id)),
        )
    )


def _until(step, seconds, complete=False):
    """Write when the service restores everything, by this node's own clock."""
    start, uptime = boot()
    with step.exclusive() as root_fd, storage.descriptor(
        durable_files.private_folder(FOLDER, root_fd)
    ) as folder:
        durable_files.put(
            step.run_id + ".json",
            {"boot": start, "uptime": uptime + seconds, "complete": complete},
            folder,
        )


def _write_unit(run_id, text):
    """Write the unit and its link for the boot, without a daemon-reload.

    systemd loads a new unit when it starts it, and the link at a boot.
    """
    path = os.path.join(UNITS, _unit(run_id))
    with open(path, "w", encoding="ascii") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    wants = os.path.join(UNITS, WANTS)
    os.makedirs(wants, exist_ok=True)
    os.symlink(path, os.path.join(wants, _unit(run_id)))
    durable_files.sync_folder(wants)
    durable_files.sync_folder(UNITS)


def _disarm(run_id, root):
    """Remove the service, since nothing is raised any more.

    The service itself only removes its files.
    """
    unit = _unit(run_id)
    for path in (
        os.path.join(UNITS, WANTS, unit),
        os.path.join(UNITS, unit),
        os.path.join(root, FOLDER, run_id + ".py"),
        os.path.join(root, FOLDER, run_id + ".json"),
        os.path.join(root, FOLDER, durable_files.temporary(run_id + ".json")),
        os.path.join(root, FOLDER, run_id + ARMED),
    ):
        with contextlib.suppress(OSError):
            os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(root, FOLDER))
    if unit not in (files.text("/proc/self/cgroup") or ""):
        with contextlib.suppress(command.CommandError):
            command.run(["systemctl", "stop", "--no-block", unit])
