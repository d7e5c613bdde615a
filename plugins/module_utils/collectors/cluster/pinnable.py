# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods and templates of workloads that look meant for CPU pinning and get none.

The controller judges them.

A static CPU manager pins a container of whole CPUs in a pod that is Guaranteed. An app container is
meant for it where its CPU limit is whole and its request equals it. Another container, an init
container or memory then keeps the pod from being Guaranteed. Workloads are read before pods, so
that a pod finds its own.
"""

from hashlib import sha256

from ...kubeapi import client
from ...kubeapi.client import ApiError
from ...shared import label_selector, quantity, workload_resources
from ...shared.container_kinds import APP, INIT, RESOURCES, SIDECAR, meant, unequal

MAX_ITEMS, MAX_CONTAINERS, MAX_LOOKUPS = 500, 100, 100
WORKLOADS = (
    ("Deployment", ("/apis/apps/v1/deployments",)),
    ("StatefulSet", ("/apis/apps/v1/statefulsets",)),
    ("DaemonSet", ("/apis/apps/v1/daemonsets",)),
    ("CronJob", ("/apis/batch/v1/cronjobs", "/apis/batch/v1beta1/cronjobs")),
)
# Owners that another may own: who made them is asked of the object itself.
BETWEEN = {
    "ReplicaSet": "/apis/apps/v1/namespaces/%s/replicasets/%s",
    "Job": "/apis/batch/v1/namespaces/%s/jobs/%s",
}
HASH = "pod-template-hash"
# Tools that write an object again from a source of their own, by the label or annotation that
# they leave.
TOOLS = (
    ("Argo CD", "argocd.argoproj.io/tracking-id"),
    ("Argo CD", "argocd.argoproj.io/instance"),
    ("Flux (Kustomization)", "kustomize.toolkit.fluxcd.io/name"),
    ("Flux (HelmRelease)", "helm.toolkit.fluxcd.io/name"),
    ("Helm", "meta.helm.sh/release-name"),
)
MANAGED_BY, INSTANCE = "app.kubernetes.io/managed-by", "app.kubernetes.io/instance"
LIVING = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}


def containers_of(spec):
    """Return name, kind and the four quantities of each container that counts for the QoS class.

    A quantity that is not set is None.
    """
    init_containers = []
    for raw in spec.get("initContainers") or []:
        init_containers.append(
            _container(raw, SIDECAR if raw.get("restartPolicy") == "Always" else INIT)
        )
    return [
        _container(raw, APP) for raw in (spec.get("containers") or [])[:MAX_CONTAINERS]
    ] + init_containers[:MAX_CONTAINERS]


def _container(raw, kind):
    resources = raw.get("resources") or {}
    record = {"name": raw.get("name"), "kind": kind}
    for resource in RESOURCES:
        for part in ("request", "limit"):
            value = (resources.get(part + "s") or {}).get(resource)
            if value is None:
                record[f"{resource}_{part}"] = None
            else:
                record[f"{resource}_{part}"] = str(value)[: quantity.MAX_TEXT]
    return record


def pinned(containers, guaranteed):
    """Return whether a static CPU manager gives one of these containers CPUs of its own.

    A plain init container does not count.
    """
    return guaranteed and any(
        quantity.whole(container["cpu_limit"])
        for container in containers
        if container["kind"] != INIT
    )


def manager_of(meta):
    """Return {tool, name} of what manages the object and would undo a change of it, or None."""
    labels = meta.get("labels") or {}
    marks = dict(labels, **(meta.get("annotations") or {}))
    for tool, key in TOOLS:
        if marks.get(key):
            return {"tool": tool, "name": str(marks[key]).partition(":")[0][:253]}
    if labels.get(MANAGED_BY) not in (None, "", "kubectl"):
        return {"tool": str(labels[MANAGED_BY]), "name": labels.get(INSTANCE)}
    owner = controller_of(meta)
    if owner:
        return {"tool": owner["kind"], "name": owner["name"]}
    return None


def controller_of(meta):
    """Return {kind, api_version, name} of the owner that controls it, else None."""
    for reference in meta.get("ownerReferences") or []:
        if reference.get("controller"):
            return {
                "kind": reference.get("kind"),
                "api_version": reference.get("apiVersion"),
                "name": reference.get("name"),
            }
    return None


def template_of(kind, item):
    """Return (labels, spec) of the pods that a workload makes."""
    spec = item.get("spec") or {}
    if kind == "CronJob":
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    template = spec.get("template") or {}
    return (template.get("metadata") or {}).get("labels") or {}, template.get("spec") or {}


class Search:
    """A reading of all workloads, then of all pods.

    expected: requirements of the selector of pods that are to be pinned, whatever their shape.
    """

    def __init__(self, api, expected):
        self.api, self.expected = api, expected
        # (kind, namespace, name) of every workload: its containers' names, and its manager
        self.known = {}
        self.suspects, self.pods = {}, {}
        self.lookups = {}
        self.fine, self.cut = set(), False

    def workloads(self):
        """Read the templates of the workloads.

        A template with resources of the whole pod is left out: its pods have the QoS class
        that the API server worked out.
        """
        for kind, paths in WORKLOADS:
            for version, item in self._list(paths):
                meta, (labels, spec) = item.get("metadata") or {}, template_of(kind, item)
                key = (kind, meta.get("namespace"), meta.get("name"))
                containers = containers_of(spec)
                self.known[key] = (
                    frozenset(container["name"] for container in containers),
                    manager_of(meta),
                )
                expected = self._is_expected(labels)
                guaranteed = not any(unequal(container) for container in containers)
                if spec.get("resources") or not _suspect(containers, guaranteed, expected):
                    continue
                if len(self.suspects) >= MAX_ITEMS and key not in self.suspects:
                    self.cut = True
                    continue
                self.suspects[key] = dict(
                    _item(kind, version, meta, containers, expected),
                    manager=self.known[key][1],
                    resources=sha256(
                        workload_resources.text_of(dict(item, kind=kind)).encode("utf-8")
                    ).hexdigest(),
                )

    def _list(self, paths):
        """Return (API version, object) of the first of these paths that the API has."""
        for number, path in enumerate(paths):
            try:
                for item in self.api.items(path, unmanaged=True):
                    yield path[len("/apis/") :].rpartition("/")[0], item
                return
            except ApiError as error:
                if error.status != "absent" or number + 1 == len(paths):
                    raise

    def living(self):
        """Read the pods that have not ended.

        It keeps one of several equal pods of one owner on one node, and counts the others.
        """
        for item in self.api.items("/api/v1/pods", LIVING, unmanaged=True):
            meta, spec, status = (
                item.get("metadata") or {},
                item.get("spec") or {},
                item.get("status") or {},
            )
            if meta.get("deletionTimestamp"):
                continue
            containers, expected = containers_of(spec), self._is_expected(meta.get("labels") or {})
            guaranteed = _is_guaranteed(status, containers)
            if _suspect(containers, guaranteed, expected):
                self._keep(item, containers, expected)
            elif guaranteed:
                self.fine.add(self._workload(meta))

    def _keep(self, item, containers, expected):
        meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
        owner, manager = self._owner(meta)
        self._mark_injected(containers, owner, meta.get("namespace"))
        key = _likeness(meta, spec, owner, containers)
        if key in self.pods:
            self.pods[key]["uids"].add(meta.get("uid"))
        elif len(self.pods) >= MAX_ITEMS:
            self.cut = True
        else:
            self.pods[key] = dict(
                _item("Pod", "v1", meta, containers, expected),
                node=spec.get("nodeName"),
                phase=status.get("phase"),
                qos=status.get("qosClass"),
                owner=owner,
                manager=manager,
                uids={meta.get("uid")},
                pod_level=_quantities(spec.get("resources")),
            )

    def _mark_injected(self, containers, owner, namespace):
        """Mark the containers of a pod that are not in the template of its owner.

        None is marked where that template is not known.
        """
        names = None
        if owner:
            names = self.known.get((owner["kind"], namespace, owner["name"]), (None, None))[0]
        for container in containers:
            container["injected"] = names is not None and container["name"] not in names

    def _workload(self, meta):
        """Return the workload of a pod as the names in its metadata identify it.

        A ReplicaSet has its Deployment's name and the hash that its pods carry.
        """
        owner = controller_of(meta)
        if owner is None:
            return None
        end = "-" + str((meta.get("labels") or {}).get(HASH))
        deployment = ("Deployment", meta.get("namespace"), owner["name"][: -len(end)])
        if (
            owner["kind"] == "ReplicaSet"
            and owner["name"].endswith(end)
            and deployment in self.known
        ):
            return deployment
        return owner["kind"], meta.get("namespace"), owner["name"]

    def _owner(self, meta):
        """Return (the topmost owner that can be patched or named, its manager) of a pod."""
        owner, manager = controller_of(meta), None
        if owner is None:
            return None, manager_of(meta)
        kind, namespace, name = self._workload(meta)
        if kind != owner["kind"]:
            owner = {"kind": kind, "api_version": "apps/v1", "name": name}
        elif kind in BETWEEN:
            above, manager = self._above(kind, namespace, name)
            owner = above or owner
        return owner, self.known.get((owner["kind"], namespace, owner["name"]), (None, manager))[1]

    def _above(self, kind, namespace, name):
        """Return (owner, manager) of a ReplicaSet or Job by its own metadata, or (None, None).

        They are None too for a lookup beyond the first MAX_LOOKUPS.
        """
        key = (kind, namespace, name)
        if key not in self.lookups and len(self.lookups) < MAX_LOOKUPS:
            try:
                meta = (
                    self.api.get(BETWEEN[kind] % (namespace, name), accept=client.ONE).get(
                        "metadata"
                    )
                    or {}
                )
            except ApiError as error:
                if error.status not in ("absent", "denied"):
                    raise
                meta = {}
            above = controller_of(meta)
            self.lookups[key] = (above, None if above else manager_of(meta))
        return self.lookups.get(key, (None, None))

    def _is_expected(self, labels):
        return bool(self.expected) and label_selector.matches(self.expected, labels)

    def items(self):
        """Return the templates and pods that were found.

        A template is left out where its pods are Guaranteed all the same: the API server
        completed them (a LimitRange).
        """
        pods = [
            {name: value for name, value in item.items() if name != "uids"}
            for item in self.pods.values()
        ]
        for item, kept in zip(pods, self.pods.values()):
            item["alike"] = len(kept["uids"])
        unwell = {
            (item["owner"]["kind"], item["namespace"], item["owner"]["name"])
            for item in pods
            if item["owner"]
        }
        templates = [
            item for key, item in self.suspects.items() if key not in self.fine or key in unwell
        ]
        return sorted(
            templates + pods,
            key=lambda item: (item["kind"], item["namespace"] or "", item["name"] or ""),
        )


def _is_guaranteed(status, containers):
    """Return whether a pod is Guaranteed, by its status or else by its containers."""
    if status.get("qosClass"):
        return status["qosClass"] == "Guaranteed"
    return not any(unequal(container) for container in containers)


def _likeness(meta, spec, owner, containers):
    """Return what equal pods of one owner on one node have in common."""
    shape = tuple(
        tuple(str(value) for _dummy, value in sorted(container.items())) for container in containers
    )
    if owner:
        author = (owner["kind"], owner["name"])
    else:
        author = (None, meta.get("uid"))
    return meta.get("namespace"), author, spec.get("nodeName"), shape


def _suspect(containers, guaranteed, expected):
    if expected:
        return not pinned(containers, guaranteed)
    return not guaranteed and any(meant(container) for container in containers)


def _item(kind, version, meta, containers, expected):
    return {
        "kind": kind,
        "api_version": version,
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "uid": meta.get("uid"),
        "node": None,
        "phase": None,
        "qos": None,
        "owner": None,
        "manager": None,
        "expected": expected,
        "pod_level": None,
        "containers": containers,
    }


def _quantities(resources):
    """Return CPU and memory of a pod as a whole in the form of a container's, or None."""
    if not resources:
        return None
    record = _container({"resources": resources}, None)
    return {name: value for name, value in record.items() if name not in ("name", "kind")}


def collect(api, expected, ended):
    """Return ({items}, truncated).

    expected: a label selector or None. `ended(error)` returns whether an error may cut the list
    short.
    """
    search = Search(api, label_selector.parse(expected) if expected else [])
    try:
        search.workloads()
        search.living()
    except Exception as error:  # pylint: disable=broad-except
        if not ended(error):
            raise
        search.cut = True
    return {"items": search.items()}, search.cut
