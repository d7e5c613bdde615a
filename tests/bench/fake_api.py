# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API of many pods that costs next to nothing.

Its pages lie on the disk as they are sent, and a `kubectl` that only says where it listens.
"""

from __future__ import annotations

import contextlib
import http.server
import itertools
import json
import socketserver
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE, NODES, EACH, JOBS, FAILED, PENDING = 500, 1000, 50, 2500, 500, 1000
LIVING = "/api/v1/pods?fieldSelector=status.phase!=Succeeded,status.phase!=Failed"
# a table
PLACED = (
    "/api/v1/pods?fieldSelector=spec.nodeName!=,status.phase!=Failed,status.phase!=Succeeded"
    "?includeObject=None"
)
COLUMNS = (
    "Name",
    "Ready",
    "Status",
    "Restarts",
    "Age",
    "IP",
    "Node",
    "Nominated Node",
    "Readiness Gates",
)
KUBECTL = """#!/bin/sh
for word do case "$word" in
config) echo '{"clusters": [{"cluster": {"server": "https://bench:6443"}}]}'; exit;;
--unix-socket=*) ln -s %s "${word#*=}"; exec sleep 3600;;
esac; done
"""
TIME = "2026-11-21T09:45:38Z"


def _fields(value: Any) -> Any:
    """Return managedFields of an object, as the API server notes them.

    They are a large part of a page.
    """
    if isinstance(value, dict):
        return {f"f:{key}": _fields(one) for key, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {
            'k:{"name":"%s"}' % (one.get("name") or one.get("type")): {".": {}, **_fields(one)}
            for one in value
        }
    return {}


def pod(kind: str = "ReplicaSet", phase: str = "Running", **status: Any) -> dict[str, Any]:
    """Return a pod of a web server with a sidecar, with the words NAME, OWNER and NODE in it.

    It has about 7 kB.
    """

    def container(name: str) -> dict[str, Any]:
        probe = {
            "failureThreshold": 3,
            "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
            "periodSeconds": 10,
            "successThreshold": 1,
        }
        return {
            "name": name,
            "image": f"registry.example.com/team/{name}:1.28.3",
            "imagePullPolicy": "IfNotPresent",
            "livenessProbe": probe,
            "readinessProbe": probe,
            "resources": {
                "limits": {"memory": "256Mi"},
                "requests": {"cpu": "100m", "memory": "256Mi"},
            },
            "env": [
                {"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(8)
            ],
            "terminationMessagePolicy": "File",
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "terminationMessagePath": "/dev/termination-log",
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            },
            "volumeMounts": [
                {
                    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                    "name": "kube-api-access",
                    "readOnly": True,
                }
            ],
        }

    def running(name: str) -> dict[str, Any]:
        return {
            "containerID": "containerd://" + "5" * 64,
            "image": f"registry.example.com/team/{name}:1.28.3",
            "imageID": "sha256:" + "7" * 64,
            "name": name,
            "lastState": {},
            "ready": True,
            "restartCount": 0,
            "started": True,
            "state": {"running": {"startedAt": TIME}},
        }

    spec = {
        "containers": [container("web"), container("proxy")],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "Never",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": []}}],
        "tolerations": [
            {
                "effect": "NoExecute",
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ],
    }
    told = {"phase": phase, "qosClass": "Burstable", **status}
    if phase == "Running":
        told.update(
            hostIP="10.0.0.1",
            podIP="10.244.0.7",
            startTime=TIME,
            containerStatuses=[running("web"), running("proxy")],
            conditions=[
                {"lastProbeTime": None, "lastTransitionTime": TIME, "status": "True", "type": one}
                for one in (
                    "PodReadyToStartContainers",
                    "Initialized",
                    "Ready",
                    "ContainersReady",
                    "PodScheduled",
                )
            ],
        )
    meta = {
        "creationTimestamp": TIME,
        "generateName": "OWNER-",
        "labels": {"app": "web", "team": "shop", "pod-template-hash": "7d9f"},
        "name": "NAME",
        "namespace": "shop",
        "resourceVersion": "4306",
        "uid": "uid-NAME",
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "blockOwnerDeletion": True,
                "controller": True,
                "kind": kind,
                "name": "OWNER",
                "uid": "uid-OWNER",
            }
        ],
    }
    managed = [
        {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": _fields(meta), "f:spec": _fields(spec)},
            "manager": "kube-controller-manager",
            "operation": "Update",
            "time": TIME,
        },
        {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": _fields(told)},
            "manager": "kubelet",
            "operation": "Update",
            "subresource": "status",
            "time": TIME,
        },
    ]
    return {
        "metadata": {**meta, "managedFields": managed},
        "spec": {"nodeName": "NODE", **spec} if phase != "Pending" else spec,
        "status": told,
    }


def _many(
    made: Any, count: int, name: str = "web", owners: int = 1, nodes: int = NODES
) -> Iterator[str]:
    """So many of it as texts, `owners` of each owner."""
    text = json.dumps(made, separators=(",", ":"))
    for number in range(count):
        owner = f"{name}-{number // owners:05}"
        yield (
            text.replace("OWNER", owner)
            .replace("NAME", f"{owner}-{number:05}")
            .replace("NODE", f"node-{number % nodes:04}")
        )


def _refused(text: str) -> dict[str, Any]:
    return {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": text,
                "lastTransitionTime": TIME,
            }
        ]
    }


def _lists(pods: int) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield each request of a list, and the objects that answer it."""
    yield (
        "/api/v1/nodes",
        _many(
            {
                "metadata": {
                    "name": "NODE",
                    "uid": "uid-NODE",
                    "labels": {"kubernetes.io/hostname": "NODE"},
                },
                "spec": {},
                "status": {
                    "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            },
            NODES,
        ),
    )
    yield LIVING, _many(pod(), pods, owners=25, nodes=pods // EACH)
    row = {
        "cells": ["NAME", "2/2", "Running", 0, "5d", "10.244.0.7", "NODE", "<none>", "<none>"],
        "object": None,
    }
    yield PLACED, _many(row, pods, owners=25, nodes=pods // EACH)
    full = (
        "0/1000 nodes are available: 1000 Too many pods. preemption: 0/1000 nodes are available:"
        " 1000 No preemption victims found for incoming pod."
    )
    yield (
        "/api/v1/pods?fieldSelector=status.phase=Pending",
        _many(pod(phase="Pending", **_refused(full)), PENDING, "pending", 25),
    )
    bare = pod(
        phase="Failed",
        reason="UnexpectedAdmissionError",
        message="Pod was rejected: Allocate failed",
    )
    yield "/api/v1/pods?fieldSelector=status.phase=Failed", _many(bare, FAILED, "refused")
    yield "/api/v1/pods?labelSelector=job-name", _many(pod("Job"), JOBS, "job")
    yield (
        "/apis/batch/v1/jobs",
        _many(
            {
                "metadata": {
                    "name": "OWNER",
                    "namespace": "shop",
                    "uid": "uid-OWNER",
                    "creationTimestamp": TIME,
                },
                "spec": {"completions": 1, "parallelism": 1},
                "status": {"active": 1},
            },
            JOBS,
            "job",
        ),
    )
    yield (
        "/api/v1/events?fieldSelector=involvedObject.kind=Job",
        _many(
            {
                "metadata": {"uid": "event-NAME"},
                "involvedObject": {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "namespace": "shop",
                    "name": "OWNER",
                    "uid": "uid-OWNER",
                },
                "reason": "SuccessfulCreate",
                "message": "Created pod: NAME",
                "firstTimestamp": TIME,
                "lastTimestamp": TIME,
                "count": 1,
            },
            JOBS,
            "job",
        ),
    )
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": pod()["spec"]["containers"]},
    }
    yield (
        "/apis/apps/v1/deployments",
        _many(
            {
                "metadata": {"name": "OWNER", "namespace": "shop", "uid": "uid-OWNER"},
                "spec": {"replicas": 25, "template": template},
            },
            pods // 25,
        ),
    )


class Api(socketserver.ThreadingUnixStreamServer):
    """A server that answers with the pages and writes down what was asked.

    delay: seconds that an API server needs for a page before its first byte
    """

    daemon_threads, request_queue_size = True, 64

    def __init__(self, folder: Path, pods: int) -> None:
        super().__init__(str(folder / "api.sock"), _Handler)
        self.delay, self.asked = 0.0, list[str]()
        self.pages: dict[str, list[Path]] = {}
        for number, (target, items) in enumerate(_lists(pods)):
            self.pages[target] = list(_written(folder / str(number), items, target == PLACED))
        on_node = folder / "node.json"
        on_node.write_text(
            '{{"metadata":{{}},"items":[{}]}}'.format(",".join(_many(pod(), EACH))),
            encoding="utf-8",
        )
        self.on_node = on_node
        self.kubectl = folder / "kubectl"
        self.kubectl.write_text(KUBECTL % (folder / "api.sock"), encoding="utf-8")
        self.kubectl.chmod(0o755)

    def page(self, target: str) -> Path | None:
        """Return the file that answers; None if there is nothing."""
        parts = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(parts.query))
        number = int(query.pop("continue", 0))
        query.pop("limit", None)
        key = parts.path + "".join(f"?{name}={value}" for name, value in query.items())
        if key.startswith("/api/v1/pods?fieldSelector=spec.nodeName=node-"):
            return self.on_node
        return self.pages[key][number] if key in self.pages else None


def _written(stem: Path, items: Iterator[str], table: bool) -> Iterator[Path]:
    """Yield the pages of a list as an API server writes them.

    What continues it stands before its items.
    """
    kind = (
        (
            "Table",
            '"columnDefinitions":{},"rows"'.format(
                json.dumps([{"name": name} for name in COLUMNS])
            ),
        )
        if table
        else ("List", '"items"')
    )
    rows, number = list(itertools.islice(items, PAGE)), 0
    while rows:
        path, number = stem.with_suffix(f".{number}"), number + 1
        following = list(itertools.islice(items, PAGE))
        more = f',"continue":"{number}"' if following else ""
        text = '{{"kind":"{}","metadata":{{"resourceVersion":"1"{}}},{}:[{}]}}'.format(
            kind[0],
            more,
            kind[1],
            ",".join(rows),
        )
        path.write_text(text, encoding="utf-8")
        yield path
        rows = following


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Api

    def log_message(self, *args: Any) -> None:
        """Silent."""

    def address_string(self) -> str:
        return "unix"

    def do_GET(self) -> None:
        found = self.server.page(self.path)
        self.server.asked.append(self.path)
        time.sleep(self.server.delay if found else 0)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            body = b'{"kind":"List","items":[]}' if found is None else b""
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(found.stat().st_size if found else len(body)))
            self.end_headers()
            self.wfile.write(body)
            if found:
                self.wfile.flush()
                with found.open("rb") as file:
                    self.connection.sendfile(file)


@contextlib.contextmanager
def serving(folder: Path, pods: int) -> Iterator[Api]:
    """Such an API, for as long as this lasts."""
    with Api(folder, pods) as api:
        threading.Thread(target=api.serve_forever, daemon=True).start()
        try:
            yield api
        finally:
            api.shutdown()
