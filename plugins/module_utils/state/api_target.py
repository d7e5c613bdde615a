# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of API objects that entries of the journal are about, read through the API."""

import contextlib
import os
import re
import time

from ..kubeapi import kubeconfig
from ..kubeapi import proxy as kubeapi_proxy
from ..kubeapi.client import ApiError, Deadline
from ..kubeapi.proxy import ApiProxy
from ..shared import workload_resources
from . import journal, storage
from .storage import ChangeError

REAL = re.compile(
    re.escape(journal.CONFIG_MAP) + r"([a-z0-9.-]+)/([a-z0-9.-]+)#([A-Za-z0-9._-]+)\Z"
)
SECONDS = 20
AWAY_SECONDS = 60  # an API that did not answer is not asked for each of many entries again
_away = {}


@contextlib.contextmanager
def reached(via, read_only=True, seconds=SECONDS):
    """Yield (an API, how it was reached) of the first one that permits reading kube-system.

    The API must belong to the cluster that `via` names. ApiError is raised when none does.
    """
    kubectl = _find_kubectl(via)
    tried, deadline = [], Deadline(seconds)
    with kubeapi_proxy.folder() as directory:
        for config, server in _ways(via):
            with ApiProxy(
                directory,
                str(len(tried)),
                kubectl,
                config,
                deadline,
                server,
                read_only=read_only,
            ) as api:
                try:
                    uid = _cluster_uid(api)
                except (ApiError, KeyError) as error:
                    tried.append(f"{server or config}: {error}")
                    continue
                if via.get("cluster_uid") not in (None, uid):
                    raise ApiError("error", f"{config} leads to another cluster")
                yield api, {"kubectl": kubectl, "kubeconfig": config, "cluster_uid": uid}
                return
    raise ApiError("error", "; ".join(tried) or "no kubeconfig that can be read was found")


def _find_kubectl(via):
    kubectl = kubeconfig.find_kubectl(via.get("kubectl"))
    if kubectl:
        return kubectl
    if via.get("kubectl"):
        raise ApiError("error", "{} cannot be executed".format(via["kubectl"]))
    raise ApiError("error", "kubectl was not found")


def _ways(via):
    """Yield (kubeconfig, server or None for the kubeconfig's own, which is often a balancer)."""
    configs = [via.get("kubeconfig")]
    if not via.get("kubeconfig"):
        configs = [path for path in kubeconfig.KUBECONFIGS if os.access(path, os.R_OK)]
    local = kubeconfig.local_server()
    for config in configs:
        yield config, None
        if local:
            yield config, local


def _cluster_uid(api):
    namespace = api.get("/api/v1/namespaces/kube-system", seconds=kubeapi_proxy.PROBE_SECONDS)
    return namespace["metadata"]["uid"]


def present(intent):
    """Return the sha256 of the text that an entry is about, as the API holds it now.

    The result is None when the text is gone.
    """
    via = intent.get("via") or {}
    key = (via.get("kubectl"), via.get("kubeconfig"))
    reason, until = _away.get(key, (None, 0))
    if time.monotonic() < until:
        raise ChangeError(reason)
    try:
        with reached(via) as (api, _way):
            text = read(api, intent["real"])[1]
    except ApiError as error:
        reason = (
            "what {} holds cannot be determined, because the API does not answer ({}); run"
            " again when it"
            " does".format(intent["path"], error)
        )
        _away[key] = (reason, time.monotonic() + AWAY_SECONDS)
        raise ChangeError(reason) from error
    return None if text is None else storage.digest(text)


def read(api, real):
    """Return the object, and the true bytes of the text; (None, None) when either is gone."""
    item = api.find(url_of(real))
    if item is not None and real.startswith(journal.WORKLOAD):
        return item, workload_resources.text_of(item).encode("utf-8")
    data = (item or {}).get("data")
    text = data.get(parts(real)[2]) if isinstance(data, dict) else None
    if not isinstance(text, str):
        return None, None
    return item, text.encode("utf-8")


def parts(real):
    """Return (namespace, name, key) of a text of a ConfigMap."""
    match = REAL.match(real)
    # "." and ".." are no names, and would lead to another path of the API
    if not match or {".", ".."}.intersection(match.groups()):
        raise ChangeError(
            f"nothing was changed: {storage.one_line(real)} names no text of a ConfigMap"
        )
    return match.groups()


def url_of(real):
    """Return the path of an entry's object in the API."""
    if real.startswith(journal.WORKLOAD):
        return real[len(journal.WORKLOAD) :]
    return "/api/v1/namespaces/{}/configmaps/{}".format(*parts(real)[:2])
