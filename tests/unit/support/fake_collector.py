# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collectors made of a function each, and the runner that runs them."""

import time

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
    registry,
    runner,
)


class FakeCollector(registry.Collector):
    __slots__ = ("function",)

    def __init__(self, name, function, **more):
        super().__init__(name, "test", **{"timeout": 120, **more})
        self.function = function

    def run(self, context):
        return self.function(context)


def hang(context):
    time.sleep(6000)


def run_collectors(*collectors, timeout=600, processes=()):
    """Run them; the limit of each is the one that it was made with, whatever all have together."""
    for collector in collectors:
        collector.timeout /= base.scale({"timeout": timeout})
    return runner.run({"timeout": timeout}, list(collectors), list(processes))
