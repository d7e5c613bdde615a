# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One text of an API object changed as a file is: compare, journal, swap, read again, commit.

It is a text of a ConfigMap, or the resources of a workload's containers (workload.text_of). The
journal is that of the node that asks the API. Its entry's `real` is
configmap:<namespace>/<name>#<key> or workload:<path of the object>, and `via` says how the API was
reached, for a recovery or a revert. The swap is the API's own: the object goes back with
the resourceVersion that it was read with, and the API server refuses it when anybody has written
since.
"""

import base64
import contextlib
import os
import re
import time

from ..kubeapi import kubeconfig
from ..kubeapi import proxy as api_proxy
from ..kubeapi.client import ApiError, Deadline
from ..kubeapi.proxy import Door
from ..shared import workload_resources as workload
from ..state import journal
from ..state import storage as durable
from ..state.storage import ChangeError
from . import file_change as change

REAL = re.compile(
    re.escape(journal.CONFIG_MAP) + r"([a-z0-9.-]+)/([a-z0-9.-]+)#([A-Za-z0-9._-]+)\Z"
)
SECONDS = 20
AWAY_SECONDS = 60  # an API that did not answer is not asked for each of many entries again
_away = {}


@contextlib.contextmanager
def reached(via, read_only=True, seconds=SECONDS):
    """(a door, how it was reached) to the first API that lets us read kube-system, of the
    cluster `via` names; ApiError when none does.
    """
    kubectl = kubeconfig.find_kubectl(via.get("kubectl"))
    asked = via.get("kubeconfig")
    tried, local = [], kubeconfig.local_server()
    if not kubectl:
        raise ApiError(
            "error",
            (
                "kubectl was not found"
                if not via.get("kubectl")
                else "{} cannot be executed".format(via["kubectl"])
            ),
        )
    deadline = Deadline(seconds)
    with api_proxy.folder() as where:
        for config in (
            [asked]
            if asked
            else [path for path in kubeconfig.KUBECONFIGS if os.access(path, os.R_OK)]
        ):
            # the kubeconfig's own is often a load balancer
            for server in [None, local] if local else [None]:
                with Door(
                    where, str(len(tried)), kubectl, config, deadline, server, read_only=read_only
                ) as api:
                    try:
                        uid = api.get(
                            "/api/v1/namespaces/kube-system", seconds=api_proxy.PROBE_SECONDS
                        )["metadata"]["uid"]
                    except (ApiError, KeyError) as error:
                        tried.append(f"{server or config}: {error}")
                        continue
                    if via.get("cluster_uid") not in (None, uid):
                        raise ApiError("error", f"{config} leads to another cluster")
                    yield api, {"kubectl": kubectl, "kubeconfig": config, "cluster_uid": uid}
                    return
    raise ApiError("error", "; ".join(tried) or "no kubeconfig that can be read was found")


def present(intent):
    """The sha256 of the text that an entry is about, as the API holds it now.

    None when it is gone.
    """
    via = intent.get("via") or {}
    key = (via.get("kubectl"), via.get("kubeconfig"))
    reason, until = _away.get(key, (None, 0))
    if time.monotonic() < until:
        raise ChangeError(reason)
    try:
        with reached(via) as (api, _dummy):
            text = _read(api, intent["real"])[1]
    except ApiError as error:
        reason = (
            "what {} holds cannot be told, because the API does not answer ({}); run again when it"
            " does".format(intent["path"], error)
        )
        _away[key] = (reason, time.monotonic() + AWAY_SECONDS)
        raise ChangeError(reason)
    return None if text is None else durable.digest(text)


def compare_and_swap(wanted, step, via):
    """The change of a plan: splices of the true text.

    As change.compare_and_swap, with `left`, the digest that is there afterwards.
    """
    splices = [
        (begin, end, base64.b64decode(old), base64.b64decode(new))
        for begin, end, old, new in wanted["splices"]
    ]
    return _swap(
        wanted["path"],
        wanted["real"],
        wanted["sha256"],
        lambda former: change.splice(wanted["path"], former, splices),
        step,
        via,
    )


def give(wanted, step, via):
    """Requests and limits of a workload's containers.

    Wanted {path, real, sha256, resources} as workload.given has them.
    """

    def edit(former):
        try:
            return workload.given(former.decode("utf-8"), wanted["resources"]).encode("utf-8")
        except ValueError as error:
            raise ChangeError(
                "{} was not changed: {}; collect evidence and plan again".format(
                    wanted["path"], error
                )
            )

    return _swap(wanted["path"], wanted["real"], wanted["sha256"], edit, step, via)


def replace(intent, data, step):
    """The whole text, where it still is what an entry of the journal left."""
    return _swap(
        intent["path"],
        intent["real"],
        intent["sha256_after"],
        lambda former: data,
        step,
        intent.get("via") or {},
    )


def _swap(path, real, expected, edit, step, via):
    change.demand_digest(path, expected)
    try:
        with reached(via, step.check) as (api, way), step.exclusive() as root_fd:
            item, former = _read(api, real)
            change.compare(path, None if former is None else durable.digest(former), expected)
            after = edit(former)
            answer = {
                "changed": after != former,
                "path": path,
                "real": real,
                "sha256_before": expected,
                "sha256_after": durable.digest(after),
                "entry": None,
                "left": durable.digest(after),
            }
            if not answer["changed"]:
                return answer
            change.demand_ended(path, real, step.root)
            if not step.check:
                facts = {
                    key: answer[key] for key in ("path", "real", "sha256_before", "sha256_after")
                }
                _hold(item, real, path, after)
                answer.update(_write(api, item, former, dict(facts, via=way), step, root_fd))
            return answer
    except ApiError as error:
        raise ChangeError(
            f"{path} was not changed: the API does not answer as it should ({error}); find out why,"
            " and run again"
        )


def _write(api, item, former, facts, step, root_fd):
    """The intent, the object with the new text, what it holds then, the commit."""
    path, real = facts["path"], facts["real"]
    with durable.told(
        f"{path} was not changed, because the journal in {step.root} cannot be written"
    ):
        entry = journal.begin(step, root_fd, dict(facts, size_before=len(former)), former, None)[0]
    with entry:
        open_still = (
            f"the journal's entry {entry.name} of run {entry.run_id} stays open, and the next run"
            " finds out"
        )
        try:
            api.send("PUT", _url(real), item)
        except ApiError as error:
            if error.code is not None and error.code < 500:
                entry.abandon(str(error))
                raise ChangeError(f"{path} was not changed: {_refused(error)}")
            raise ChangeError(
                f"whether {path} was changed is not known ({error}): {open_still}",
                changed=True,
            )
        try:
            left = _read(api, real)[1]
            entry.commit()
        except (ApiError, OSError) as error:
            raise ChangeError(
                f"{path} holds its new text, but that cannot be proven or committed"
                f" ({durable.one_line(error)}): {open_still}",
                changed=True,
            )
    return {
        "entry": f"{entry.run_id}/{entry.name}",
        "left": None if left is None else durable.digest(left),
    }


def _refused(error):
    if error.code == 409:
        return "somebody else changed it at this moment; find out who, and run again"
    return f"the API refused it ({error}); mend that and run again"


def _read(api, real):
    """The object, and the true bytes of the text; (None, None) when either is gone."""
    item = api.find(_url(real))
    if item is not None and real.startswith(journal.WORKLOAD):
        return item, workload.text_of(item).encode("utf-8")
    data = (item or {}).get("data")
    text = data.get(_parts(real)[2]) if isinstance(data, dict) else None
    return (item, text.encode("utf-8")) if isinstance(text, str) else (None, None)


def _hold(item, real, path, data):
    """The object with the new text."""
    if not real.startswith(journal.WORKLOAD):
        item["data"][_parts(real)[2]] = _text(path, data)
        return
    try:
        workload.put(item, _text(path, data))
    except ValueError as error:
        raise ChangeError(f"{path} was not changed: {error}")


def _text(path, data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ChangeError(f"{path} was not changed: what it should hold is no UTF-8 text")


def _parts(real):
    match = REAL.match(real)
    if not match:
        raise ChangeError(
            f"nothing was changed: {durable.one_line(real)} names no text of a ConfigMap"
        )
    return match.groups()


def _url(real):
    if real.startswith(journal.WORKLOAD):
        return real[len(journal.WORKLOAD) :]
    return "/api/v1/namespaces/{}/configmaps/{}".format(*_parts(real)[:2])
