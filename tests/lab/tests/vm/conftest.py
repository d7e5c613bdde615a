# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's cluster with one more worker, a virtual machine, which boots once for all tests here.

Each test starts from the same state of its memory and its disk.
"""

from __future__ import annotations

import pytest

from tests.lab.cluster import vm
from tests.lab.cluster.clusters import Cluster
from tests.lab.support import interrupt, machines
from tests.lab.support.repairing import RELEASES, possible


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    if vm.unavailable_reason():
        pytest.skip(vm.unavailable_reason())
    lab = Cluster(request.param, 3, 1, "short", vms=1).up()
    with lab.locked():
        machines.keep(lab)
        yield lab
        interrupt.remove_locks(lab)


@pytest.fixture
def node(cluster):
    """Return the name of the virtual machine; restore its state after the test."""
    yield machines.worker(cluster).name
    machines.restore(cluster)
