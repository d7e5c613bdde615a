# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests that repair, and what happens to clusters at the end.

A continuous integration's machine gets its clusters taken away; a developer's keeps them, because
the next run is quicker.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess

import pytest

from tests import schemas
from tests.gate import machine
from tests.lab.cluster.clusters import Cluster
from tests.lab.cluster.host import note
from tests.lab.support import interrupt, playbook, results, sampling
from tests.lab.support.repairing import RELEASES, possible


def pytest_collection_modifyitems(config, items):
    """Deselect in the gate's run the tests that this commit does not draw.

    Who names a file or a test gets all of it.
    """
    if os.environ.get("KUBEMEND_DRAW") != "1":
        return
    # What is of the whole matrix only takes no other test's place.
    could = [
        item.nodeid
        for item in items
        if not any(mark.args[0] for mark in item.iter_markers("skipif"))
    ]
    out = sampling.left_out(could, results.tree()["commit"])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in out])
    items[:] = [item for item in items if item.nodeid not in out]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Repeat a test once if the lab failed to make its state in time, as runner.py does.

    A failure of kubemend's own programs never repeats the test.
    """
    begun = len(playbook.BEGUN)
    try:
        return (yield)
    # too late, or a command of the lab's own that failed
    except (TimeoutError, RuntimeError, subprocess.TimeoutExpired) as error:
        if len(playbook.BEGUN) != begun:
            raise
        note(f"{pyfuncitem.name}, once more, for nothing of ours had begun: {error}")
    pyfuncitem.obj(
        **{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    )
    return True


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    """Take the clusters away; after Ctrl-C a test's own teardown first gives back their locks."""
    if machine.in_ci():
        for name in Cluster.known():
            Cluster.find(name, name).down()


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    found = Cluster(request.param, 3, 1, "short").up()
    with found.locked():
        yield found
        found.wait_healthy()
        interrupt.remove_locks(found)


@pytest.fixture
def play(cluster, tmp_path):
    """Run a playbook; its process and its report."""

    def run(*arguments, name="remediate"):
        folder = tmp_path / "report"
        done = playbook.run(name, cluster.inventory, *arguments, report=str(folder))
        assert (folder / "report.json").exists(), done.stdout[-3000:]
        return done, schemas.checked(
            "report", json.loads((folder / "report.json").read_text(encoding="utf-8"))
        )

    return run
