# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A SIGUSR2 to the scheduler that leads, which makes it log its cache.

It changes nothing and restarts nothing.

The signal may end a program that does not handle it. So it goes only to the very process that the
evidence names: the same number, start and command line, a kube-scheduler by its name and by its
first word, that catches the signal.

It is not sent where the cache has more nodes than the API: a scheduler keeps an empty node for good
where a pod names one that is gone, and v1.18.4 ends with a nil pointer when it dumps that node.
v1.36.3 does not, by its source; the versions between are not known.
"""

import os
import re
import signal
import time

from ..changes import journal_entry, signals
from ..collectors import registry
from ..collectors.node import space
from ..kubeapi.client import LIST, ApiError
from ..shared.text import counted
from ..state.api_target import reached
from ..state.storage import ROOT, ChangeError
from ..system import component_process, files, procfs
from . import klog_level

COMPONENT, REAL = "kube-scheduler", "level:kube-scheduler"
WORDS = ("kube-scheduler", "hyperkube")
NEAR = 2.0  # seconds by which a process's start may seem to move, for it is counted from the boot
ALIVE = 2.0  # seconds for which it is looked at afterwards
LOOKS = 20  # seconds for the Nodes of the cluster
# seconds that its questions before the signal and the look at it afterwards may take, in addition
# to what a host may take
BUDGET = 30
SIZE = ("scheduler_scheduler_cache_size{", "scheduler_cache_size{")  # since 1.17; by its newer name
CACHED = re.compile(r'cache_size\{type="nodes"\} ([0-9]+(?:\.[0-9]+)?(?:e\+?[0-9]+)?)')


def run(params):
    """Do what `state` says: ready or dumped."""
    return ready(params) if params["state"] == "ready" else dumped(params)


def ready(params):
    """Return whether the scheduler can be asked for a dump.

    The result is {process: ok or the problem, level: offered, absent or refused, reason, space:
    what is free for logs}. It changes nothing.
    """
    answer = {
        "process": "ok",
        "level": "offered",
        "reason": "",
        "space": space.collect(registry.Context({}, [], {})),
    }
    try:
        process = same(params["process"])
    except ChangeError as error:
        return dict(
            answer, process=files.one_line(error), level="refused", reason=files.one_line(error)
        )
    try:
        # the level is set at the port, which another one may hold
        if klog_level.process(COMPONENT).identity != process.identity:
            raise ChangeError("a younger kube-scheduler runs on this host next to it")
        with klog_level.Levels(params) as levels:
            levels.offered(REAL)
        return answer
    except klog_level.NotOffered as error:
        return dict(answer, level="absent", reason=files.one_line(error))
    except ChangeError as error:
        return dict(answer, level="refused", reason=files.one_line(error))


def dumped(params):
    """Send the signal, and return {sent, reason}.

    It never raises an error.
    """
    try:
        step = journal_entry.StepContext(
            params["run_id"],
            "dump",
            "the scheduler's cache dumped for a capture",
            "asked for",
            params.get("root") or ROOT,
            must_hold=True,
        )
        with step.exclusive():
            same(params["process"])
            _nothing_but_nodes(params)
            scheduler = same(params["process"])
            if not signals.send(scheduler, signal.SIGUSR2):
                raise ChangeError(
                    f"nothing was sent: kube-scheduler (pid {scheduler.pid:d}) has just ended"
                )
    except (ChangeError, OSError) as error:
        return {"sent": False, "reason": files.one_line(error)}
    end = time.monotonic() + params.get("alive", ALIVE)
    while time.monotonic() < end:
        if component_process.gone(scheduler):
            return {
                "sent": True,
                "reason": (
                    f"kube-scheduler (pid {scheduler.pid:d}) ended within {int(ALIVE)} s of the"
                    " signal: see its log, the kubelet starts it again"
                ),
            }
        time.sleep(0.1)
    return {"sent": True, "reason": ""}


def _nothing_but_nodes(params):
    """Raise ChangeError where its cache has more nodes than the API, or where that is not known.

    A node too many was removed, or a pod names it and it never existed.
    """
    via = {"kubectl": params.get("kubectl"), "kubeconfig": params.get("kubeconfig")}
    try:
        with klog_level.Levels(via) as levels:
            size = CACHED.search(levels.metrics(COMPONENT, SIZE))
        with reached(via, seconds=LOOKS) as (api, _way):
            nodes = len(list(api.items("/api/v1/nodes", accept=LIST)))
    except (ApiError, klog_level.LevelError) as error:
        raise ChangeError(
            "nothing was sent: how many nodes its cache has in addition to those of the API"
            " cannot be determined"
            f" ({files.one_line(error)})"
        ) from error
    if size is None:
        raise ChangeError(
            "nothing was sent: its metrics do not show how many nodes its cache has, and it may end"
            " when it dumps one that is gone"
        )
    cached = float(size.group(1))
    if cached > nodes:
        raise ChangeError(
            f"nothing was sent: its cache has {counted(int(cached), 'node')} and the API has"
            f" {nodes:d}, and a"
            " scheduler may end when it dumps a node that is gone"
        )


def same(evidence):
    """Return the process {pid, started_at, argv} of the evidence as it runs now.

    It raises ChangeError where that process is gone, is another one or does not catch SIGUSR2.
    """
    pid = evidence["pid"]
    processes = [item for item in component_process.instances(COMPONENT) if item.pid == pid]
    if not processes:
        raise ChangeError(
            f"nothing was sent: the kube-scheduler that led (pid {pid:d}) does not run any more, or"
            " not as a static pod"
        )
    scheduler = processes[0]
    if not _is_same(scheduler, evidence):
        raise ChangeError(
            f"nothing was sent: pid {pid:d} is another process than the kube-scheduler that led"
        )
    if os.path.basename(scheduler.argv[0]) not in WORDS:
        raise ChangeError(
            f"nothing was sent: the command line of pid {pid:d} begins with"
            f" {files.one_line(scheduler.argv[0], 80)}, which is no kube-scheduler"
        )
    if not catches(files.text(f"/proc/{pid:d}/status") or "", signal.SIGUSR2):
        raise ChangeError(
            f"nothing was sent: kube-scheduler (pid {pid:d}) does not catch SIGUSR2, which may end"
            " a program that does not"
        )
    return scheduler


def _is_same(process, evidence):
    started = process.started_at
    if started is None or abs(started - evidence["started_at"]) > NEAR:
        return False
    return files.masked_argv(process.argv) == list(evidence["argv"])


def catches(status, number):
    """Return whether a process handles a signal by its /proc/PID/status, False if unknown."""
    words = procfs.status(status, "SigCgt")
    try:
        return bool(words) and bool(int(words[0], 16) >> (int(number) - 1) & 1)
    except ValueError:
        return False
