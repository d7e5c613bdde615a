# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This node's kubelet unmasked, where its operator says that whoever masked it agrees.

The mask is one link to /dev/null, which the journal remembers, so that a revert masks the unit
again; that stops nothing. systemd has to read its units again before the unit can be started. With
the systemd cgroup driver that can take devices away from running containers, and is refused where
such run.
"""

import os

from ...collectors.node import devices
from ...state import journal
from ...state import step_record as proof
from ...state import storage as durable
from ...state.storage import ChangeError
from ...state.unit_target import mask_digest as _digest
from ...state.unit_target import mask_of as _there
from ...system import command, files, unit_mask
from .. import file_change as change
from .. import kubelet_restart
from .. import preconditions as guard
from . import service_start as kubelet_service

REMEDY = "unmask_kubelet"
SECONDS = 60
ALLOW = "kubelet_restart"
MASKED = "masked"


def do(step, wanted, host, dummy_params=None):
    """(how its proof ended, why, what was seen). step: on whose behalf; wanted.

    The plan's step, its change {path, unit, to}.
    """
    asked = wanted["change"]
    name, path, to = asked.get("unit"), asked["path"], asked.get("to")
    try:
        _demand(name, path, to, host)
        if ALLOW not in ((wanted.get("guard") or {}).get("allow") or []):
            kubelet_restart.demand_no_devices(host)
        record = {
            "component": None,
            "host": host,
            "remedy": REMEDY,
            "limit": SECONDS,
            "kind": "none",
            "path": path,
            "unit": name,
            "to": to,
            "expect": {},
            "guard": wanted.get("guard"),
            "former": None,
        }
        if proof.claim(step, record) is not None:
            return proof.FAILED, "it was begun before (a connection that was made twice)", {}
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error), {}
    try:
        done = switch(path, _digest(to), None, step)
    except (ChangeError, OSError) as error:
        changed = getattr(error, "changed", False)
        if changed:
            _reload()  # the mask is gone: nobody comes back to tell systemd
        return proof.ended(
            step,
            proof.FAILED if changed else proof.NOT_DONE,
            "the kubelet of {} {}: {}".format(
                host,
                "is unmasked, but that is not proven" if changed else "was not unmasked",
                files.one_line(error, 600),
            ),
        )
    told = _reload()
    return _proven(step, name, host, path, to, done["entry"], told)


def _demand(name, path, to, host):
    """The mask is the one of the evidence and the only one, and the unit is a kubelet's.

    Guard.Refused or ChangeError.
    """
    if name not in kubelet_service.UNITS or path not in [
        os.path.join(folder, name) for folder in unit_mask.MASKS
    ]:
        raise guard.Refused(
            f"{files.one_line(name, 80)} is no unit of a kubelet that is unmasked here"
        )
    kubelet_service.state(name)
    links = unit_mask.facts(name)["links"]
    if [one["path"] for one in links] != [path] or links[0]["to"] is None or links[0]["to"] != to:
        raise guard.Refused(
            f"the evidence is old: the mask of {name} of {host} is no longer {files.one_line(path)}"
            f" -> {files.one_line(to)} alone; {guard.OLD}"
        )


def _proven(step, name, host, path, to, entry, told):
    """Systemd says so; else the mask is put back."""
    seen = {"journal": entry}
    try:
        now = kubelet_service.state(name)
        seen["enabled"] = now["enabled"]
        why = (
            "systemd has it as {} still".format(now["enabled"])
            if MASKED in (now["load"], now["enabled"])
            else None
        )
    except ChangeError as error:
        why = str(error)
    if why is None:
        return proof.ended(step, proof.PROVEN, None, seen)
    why = "the kubelet of {} is not unmasked: {}{}".format(host, why, f" ({told})" if told else "")
    try:
        switch(path, None, to, step.also(what=f"roll back: {path}", reverts=entry))
    except (ChangeError, OSError) as error:
        return proof.ended(
            step,
            proof.FAILED,
            f"{why}; and its mask was not put back: {files.one_line(error, 300)}",
            seen,
        )
    return proof.ended(step, proof.ROLLED_BACK, f"{why}; its mask is back", seen)


def put_back(path, expected, former, step):
    """What an entry left, as it was before.

    Masked again by the very link, or, of a revert that is taken back, unmasked again.
    """
    done = switch(
        path, expected, None if former is None else former.decode("utf-8", "surrogateescape"), step
    )
    if done["changed"] and not step.check and devices.running() == set():
        # else systemd takes note of it at the next reload, at the latest at the next boot
        _reload()
    return done


def switch(path, expected, after, step):
    """The mask made (after: what it says) or taken away (None), where it still has this digest.

    {changed, entry}; ChangeError.
    """
    with step.exclusive() as root_fd:
        now = _there(path)
        change.compare(path, _digest(now), expected)
        if now == after:
            return {"changed": False, "entry": None}
        change.demand_ended(path, journal.UNIT + path, step.root)
        return {
            "changed": True,
            "entry": None if step.check else _switched(path, now, after, step, root_fd),
        }


def _switched(path, now, after, step, root_fd):
    former = None if now is None else now.encode("utf-8", "surrogateescape")
    with durable.told(
        f"{path} was not changed, because the journal in {step.root} cannot be written"
    ):
        entry = journal.begin(
            step,
            root_fd,
            {
                "path": path,
                "real": journal.UNIT + path,
                "sha256_before": _digest(now),
                "sha256_after": _digest(after),
                "size_before": None if former is None else len(former),
            },
            former,
            None,
        )[0]
    with entry:
        told = _unmask(path) if after is None else _mask(path, after)
        if _there(path) != after:
            entry.abandon("it was not done")
            raise ChangeError("{} is as it was ({})".format(path, told or "systemctl said nothing"))
        try:
            durable.sync_folder(os.path.dirname(path))
            entry.commit()
        except OSError as error:
            raise ChangeError(
                f"{path} is done, but that cannot be committed: {durable.why(error)}; the journal's"
                f" entry {entry.name} of run {entry.run_id} stays open",
                changed=True,
            )
    return f"{entry.run_id}/{entry.name}"


def _unmask(path):
    """Systemctl takes the link away.

    It is told of its units afterwards, where that harms nobody.
    """
    folder, name = os.path.split(path)
    runtime = ["--runtime"] if folder == unit_mask.RUN else []
    return command.complaint(["systemctl", "unmask", "--no-reload", *runtime, name], SECONDS)


def _mask(path, to):
    try:
        os.symlink(to, path)
    except OSError as error:
        return durable.why(error)
    return None


def _reload():
    return command.complaint(["systemctl", "daemon-reload"], SECONDS)


def resumed(record, dummy_step=None):
    """What was interrupted, ended: (how its proof ends, why).

    Where the mask is gone, systemd is told where that harms nobody.
    """
    try:
        left = _there(record["path"])
    except ChangeError as error:
        return proof.FAILED, str(error)
    if left is not None:
        return proof.NOT_DONE, "{} is masked still".format(record["unit"])
    if devices.running() == set():
        _reload()
    return proof.PROVEN, "{} is unmasked".format(record["unit"])
