# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain asks the API beside nodes and pods, in whichever version the API server has it."""

import time

from ...collectors.cluster import jobs as collect_jobs
from ...kubeapi.client import ApiError
from ...state.storage import ChangeError
from . import disruption_budgets as disruption
from . import plan as drain_plan


def eviction_version(api):
    """v1 or v1beta1 of the Eviction that this API server takes; ChangeError where it takes none."""
    version = drain_plan.eviction_version(api.get("/api/v1"))
    if version is None:
        raise ChangeError("nothing was evicted: this API server serves no Eviction API")
    return version


def budgets(api):
    """Every disruption.Budget of the cluster, in the newest version that the API server has."""
    groups = api.find("/apis/policy") or {}
    versions = [one.get("version") for one in groups.get("versions") or []]
    version = "v1" if "v1" in versions else "v1beta1"
    for item in api.items(f"/apis/policy/{version}/poddisruptionbudgets") if versions else ():
        yield disruption.Budget(item, version)


def job_ended(api, job):
    """Whether the Job (namespace, name, uid) has come to its end, or is gone."""
    found = api.find("/apis/batch/v1/namespaces/{}/jobs/{}".format(*job[:2]))
    return (
        found is None
        or (found.get("metadata") or {}).get("uid") != job[2]
        or collect_jobs.job_of(found)["finished"]
    )


def passing(error):
    """Whether the API server may answer again soon.

    One that has just started knows no rights yet, and denies its administrators.
    """
    return (
        error.code is None
        or error.code in (401, 408, 410, 429)
        or error.code >= 500
        or disruption.denied(error)
    )


def patiently(call, end, pause):
    """What call() returns, asked again until that time (monotonic) while the API server is away."""
    while True:
        try:
            return call()
        except ApiError as error:
            if not passing(error) or time.monotonic() + pause > end:
                raise
        time.sleep(pause)
