# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain asks the API besides nodes and pods, in the version that the API server has."""

import time

from ...collectors.cluster import jobs as cluster_jobs
from ...kubeapi.client import ApiError
from ...state.storage import ChangeError
from . import disruption_budgets
from . import plan as drain_plan


def eviction_version(api):
    """Return the version of Eviction that this API server takes, or raise ChangeError."""
    version = drain_plan.eviction_version(api.get("/api/v1"))
    if version is None:
        raise ChangeError("nothing was evicted: this API server serves no Eviction API")
    return version


def budgets(api):
    """Yield every Budget of the cluster, in the newest version that the API server has."""
    groups = api.find("/apis/policy") or {}
    versions = [version.get("version") for version in groups.get("versions") or []]
    version = "v1" if "v1" in versions else "v1beta1"
    for item in api.items(f"/apis/policy/{version}/poddisruptionbudgets") if versions else ():
        yield disruption_budgets.Budget(item, version)


def job_ended(api, job):
    """Return whether the Job (namespace, name, uid) has come to its end, or is gone."""
    item = api.find("/apis/batch/v1/namespaces/{}/jobs/{}".format(*job[:2]))
    if item is None or (item.get("metadata") or {}).get("uid") != job[2]:
        return True
    return cluster_jobs.job_of(item)["finished"]


def passing(error):
    """Return whether the API server may answer again soon.

    An API server that has just started knows no permissions yet, and rejects its administrators.
    """
    if error.code is None or error.code in (401, 408, 410, 429):
        return True
    return error.code >= 500 or disruption_budgets.denied(error)


def patiently(call, end, pause):
    """Return what call() returns, repeated until a time (monotonic) while the API is away."""
    while True:
        try:
            return call()
        except ApiError as error:
            if not passing(error) or time.monotonic() + pause > end:
                raise
        time.sleep(pause)
