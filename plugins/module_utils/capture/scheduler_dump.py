# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGUSR2 to the scheduler that leads, which makes it log its cache.

It changes nothing and restarts nothing.

A program that does not handle that signal may be ended by it, so it goes to the very process that
the evidence names and to no other: the same number, start and command line, a kube-scheduler by its
name and by its first word, that catches the signal.

And not where the cache has more nodes than the API: of a pod that names a node which is gone it
keeps that node, empty and for good, and the dump of v1.18.4 ends the program by a nil pointer over
it. v1.36.3 does not, by its source; those between were not looked at.
"""

import os
import re
import signal
import time

from ..collectors import registry as spec
from ..collectors.node import space
from ..kubeapi.client import LIST, ApiError
from ..state import journal
from ..state.api_target import reached
from ..state.storage import ROOT, ChangeError
from ..system import component_process, files, procfs
from . import klog_level as level

COMPONENT, REAL = "kube-scheduler", "level:kube-scheduler"
WORDS = ("kube-scheduler", "hyperkube")
NEAR = 2.0  # seconds by which a process's start may seem to move, for it is counted from the boot
ALIVE = 2.0  # seconds for which it is looked at afterwards
LOOKS = 20  # seconds for the Nodes of the cluster
# seconds that its questions before the signal and the look at it afterwards may take, beside what a
# host may take
BUDGET = 30
SIZE = ("scheduler_scheduler_cache_size{", "scheduler_cache_size{")  # since 1.17; by its newer name
CACHED = re.compile(r'cache_size\{type="nodes"\} ([0-9]+(?:\.[0-9]+)?(?:e\+?[0-9]+)?)')


def run(params):
    """Of `state` ready or dumped."""
    return ready(params) if params["state"] == "ready" else dumped(params)


def ready(params):
    """{process: ok or why not, level: offered, absent or refused, reason: why, space.

    What is free for logs}. Changes nothing.
    """
    answer = {
        "process": "ok",
        "level": "offered",
        "reason": "",
        "space": space.collect(spec.Context({}, [], {})),
    }
    try:
        one = same(params["process"])
    except ChangeError as error:
        return dict(
            answer, process=files.one_line(error), level="refused", reason=files.one_line(error)
        )
    try:
        # the level is set at the port, which another one may hold
        if level.process(COMPONENT).identity != one.identity:
            raise ChangeError("a younger kube-scheduler runs on this host beside it")
        with level.Levels(params) as levels:
            levels.offered(REAL)
        return answer
    except ChangeError as error:
        return dict(
            answer,
            level="absent" if isinstance(error, level.NotOffered) else "refused",
            reason=files.one_line(error),
        )


def dumped(params):
    """{sent, reason}. Never raises."""
    try:
        step = journal.Step(
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
            one = same(params["process"])
            if not component_process.send(one, signal.SIGUSR2):
                raise ChangeError(
                    "nothing was sent: kube-scheduler (pid %d) has just ended" % one.pid
                )
    except (ChangeError, OSError) as error:
        return {"sent": False, "reason": files.one_line(error)}
    end = time.monotonic() + params.get("alive", ALIVE)
    while time.monotonic() < end:
        if component_process.gone(one):
            return {
                "sent": True,
                "reason": (
                    "kube-scheduler (pid %d) ended within %d s of the signal: see its log, the"
                    " kubelet starts it again" % (one.pid, ALIVE)
                ),
            }
        time.sleep(0.1)
    return {"sent": True, "reason": ""}


def _nothing_but_nodes(params):
    """ChangeError where its cache has more nodes than the API, or where that cannot be told.

    What is too many was a node that is gone, or one that a pod named and that never was.
    """
    via = {"kubectl": params.get("kubectl"), "kubeconfig": params.get("kubeconfig")}
    try:
        with level.Levels(via) as levels:
            told = CACHED.search(levels.metrics(COMPONENT, SIZE))
        with reached(via, seconds=LOOKS) as (api, _dummy):
            nodes = sum(1 for dummy in api.items("/api/v1/nodes", accept=LIST))
    except (ApiError, level.LevelError) as error:
        raise ChangeError(
            "nothing was sent: how many nodes its cache has beside those of the API cannot be told"
            f" ({files.one_line(error)})"
        )
    if told is None:
        raise ChangeError(
            "nothing was sent: its metrics do not tell how many nodes its cache has, and it may end"
            " when it dumps one that is gone"
        )
    if float(told.group(1)) > nodes:
        raise ChangeError(
            "nothing was sent: its cache has %d nodes and the API has %d, and a scheduler may end"
            " when it dumps a node that is gone" % (float(told.group(1)), nodes)
        )


def same(known):
    """The process that the evidence names ({pid, started_at, argv}) as it runs now, or
    ChangeError.
    """
    one = next(
        (item for item in component_process.instances(COMPONENT) if item.pid == known["pid"]), None
    )
    if one is None:
        raise ChangeError(
            "nothing was sent: the kube-scheduler that led (pid %d) does not run any more, or not"
            " as a static pod" % known["pid"]
        )
    started = one.started_at
    if (
        started is None
        or abs(started - known["started_at"]) > NEAR
        or files.masked_argv(one.argv) != list(known["argv"])
    ):
        raise ChangeError(
            "nothing was sent: pid %d is another process than the kube-scheduler that led" % one.pid
        )
    if os.path.basename(one.argv[0]) not in WORDS:
        raise ChangeError(
            "nothing was sent: the command line of pid %d begins with %s, which is no"
            " kube-scheduler" % (one.pid, files.one_line(one.argv[0], 80))
        )
    if not catches(files.text("/proc/%d/status" % one.pid) or "", signal.SIGUSR2):
        raise ChangeError(
            "nothing was sent: kube-scheduler (pid %d) does not catch SIGUSR2, which may end a"
            " program that does not" % one.pid
        )
    return one


def catches(status, number):
    """Whether a process has a handler for a signal, by its /proc/PID/status.

    False where that does not say.
    """
    words = procfs.status(status, "SigCgt")
    try:
        return bool(words) and bool(int(words[0], 16) >> (int(number) - 1) & 1)
    except ValueError:
        return False
