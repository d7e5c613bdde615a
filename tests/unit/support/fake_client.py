# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients of the API whose lists and objects a test gives."""

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError

PATHS = {
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "CronJob": "/apis/batch/v1/cronjobs",
}


class WorkloadClient:
    """Lists by path, as Client.items gives them; objects by path, as Client.get does."""

    def __init__(self, *objects, single=None, fail=None, absent=()):
        self.lists = {path: [] for path in PATHS.values()}
        self.lists.update({"/api/v1/pods": [], "/apis/batch/v1beta1/cronjobs": []})
        for kind, item in objects:
            self.lists[PATHS.get(kind, kind)].append(item)
        self.single, self.fail, self.absent, self.asked = single or {}, fail or {}, absent, []

    def items(self, path, query=None, unmanaged=False):
        assert unmanaged
        self.asked.append(path)
        assert (
            path != "/api/v1/pods"
            or query["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"
        )
        if path in self.absent:
            raise ApiError("absent", "no such thing")
        for number, item in enumerate(self.lists[path]):
            if self.fail.get(path) == number:
                raise ApiError("timeout", "the time limit was reached")
            yield item

    def get(self, path, accept=None):
        self.asked.append(path)
        if path not in self.single:
            raise ApiError("absent", "no such thing")
        return self.single[path]


class ItemClient:
    """A list as Client.items gives it; an error comes at its place."""

    def __init__(self, *items):
        self.given, self.asked, self.events = items, [], ()

    def items(self, path, query=None, accept=None, restarts=3):
        self.asked.append((path, query))
        for item in self.events if path.endswith("/events") else self.given:
            if isinstance(item, Exception):
                raise item
            yield item
