# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components restarted for their renewed certificates, each proven before the next."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import signals
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    kubeadm_certificates,
    step_kinds,
    step_times,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import step_record
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    health_probe,
    preconditions,
    registry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    certificate_load,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import http_client
from tests.unit.support import pki

RUN, NEXT = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
STEP = "02-m1-load-certificates"
LOADERS = kubeadm_certificates.LOADERS
API, MANAGER, SCHEDULER = LOADERS


class Instance(SimpleNamespace):
    """A process of a component; its number grows with each start."""

    @property
    def identity(self):
        return (self.pid, self.ticks)


class Node:
    """A control-plane node: its processes are a file, so that they outlive who restarts them.

    down: components that do not come back.
    """

    def __init__(self, path, monkeypatch):
        self.path, self.root = path, str(path / "kubemend")
        self.world = path / "kubelet.json"
        self.world.write_text(json.dumps(dict.fromkeys(LOADERS, 1)))
        self.down, self.refusal, self.another = set(), {}, None
        self.asked, self.restarted = [], []
        authority = pki.Authority("kubernetes", 1_800_000_000.0)
        self.pem = authority.issue("kube-apiserver", ["m1"]).pem
        self.other = authority.issue("kube-apiserver", ["m1"]).pem
        self.shown = self.pem
        self.file = path / "apiserver.crt"
        self.file.write_text(self.pem)
        self.started_at = time.time() - 3600
        top = path / "kubernetes"
        self.pki = top / "pki"
        (self.pki / "etcd").mkdir(parents=True)
        monkeypatch.setattr(kubeadm_certificates, "KUBERNETES", str(top))
        self.renewed = ["apiserver", "controller-manager.conf", "scheduler.conf"]
        for name in self.renewed:
            for path_of in kubeadm_certificates.CERTIFICATES[name].paths(str(self.pki)):
                Path(path_of).write_text("new")
        self.status, self.leases, self.elects = {"/readyz": 200}, 200, True
        self.renewals = 0
        for name, value in (
            ("READY_SECONDS", 20),
            ("LEASE_SECONDS", 20),
            ("PAUSE", 0.01),
        ):
            monkeypatch.setattr(certificate_load, name, value)
        monkeypatch.setattr(health_probe, "instances", self.instances)
        monkeypatch.setattr(health_probe, "wait", self.wait)
        monkeypatch.setattr(signals, "terminate", self.end)
        monkeypatch.setattr(preconditions, "restartable", self.restartable)
        monkeypatch.setattr(preconditions, "require_another", self.require_another)
        monkeypatch.setattr(preconditions, "credentials_now", lambda params: [("a", b"c", b"k")])
        monkeypatch.setattr(certificate_load.tls, "context", lambda *told: "context")
        monkeypatch.setattr(http_client, "get", self.get)
        monkeypatch.setattr(certificate_load.served_certificates, "read", self.read)

    def numbers(self):
        return json.loads(self.world.read_text())

    def start(self, component, number):
        fresh = self.world.with_name("kubelet.new")
        fresh.write_text(json.dumps({**self.numbers(), component: number}))
        fresh.rename(self.world)

    def instances(self, component):
        number = self.numbers().get(component)
        flags = [f"--tls-cert-file={self.file}", "--advertise-address=10.0.0.1"]
        if not self.elects:
            flags = ["--leader-elect=false"]
        # its root is that of this process
        found = Instance(pid=os.getpid(), ticks=number, argv=[component, *flags])
        found.started_at = self.started_at
        return [found] if number else []

    def end(self, instance):
        component = instance.argv[0]
        self.restarted.append(component)
        self.start(component, instance.ticks + 1)

    def restartable(self, components, guard, host):
        for component in components:
            if component in self.refusal:
                raise preconditions.PreconditionFailed(self.refusal[component])
        assert host == "m1"
        return {component: (self.instances(component) or [None])[0] for component in components}

    def require_another(self, guard, params, host):
        if self.another:
            raise preconditions.PreconditionFailed(self.another)

    def wait(self, want, credentials, end, stable=None, hopeless=True, later=None):
        assert credentials
        assert hopeless is (want.component != API)
        found = health_probe.HealthResult()
        running = self.instances(want.component)
        if not running:  # the kubelet has waited long enough
            self.start(want.component, 9)
            running = self.instances(want.component)
        found.instance = running[0]
        found.ok = running[0].identity != want.not_identity and want.component not in self.down
        found.reason = None if found.ok else "its healthz answers 500"
        return found

    def get(self, address, port, path, seconds, context=None):
        self.asked.append(path)
        if "/leases/" in path:
            self.renewals += 1
            spec = {"renewTime": f"t{self.renewals if self.leases == 200 else 0}"}
            status = 200 if self.leases is None else self.leases
            return {"status": status, "body": json.dumps({"spec": spec}), "error": None}
        return {"status": self.status.get(path), "body": "x", "error": None}

    def read(self, places, seconds):
        assert places == [("127.0.0.1", 6443)]
        return [{"address": "127.0.0.1", "port": 6443, "pem": self.shown, "error": "timed out"}]

    def step(self, *components, serves=False, allow=(), servers=("10.0.0.1:6443",)):
        return {
            "id": STEP,
            "host": "m1",
            "code": ["KM120"],
            "remedy": "load_certificates",
            "target": "/etc/kubernetes/pki",
            "limit": 520,
            "expect": {"component": None},
            "guard": {"allow": list(allow), "api_servers": list(servers)},
            "change": {
                "kind": "load_certificates",
                "path": str(self.pki),
                "components": {
                    component: {"image": "i", "words": None, "loads": []}
                    for component in components or LOADERS
                },
                "serves": serves,
            },
        }

    def params(self, step=None, run_id=RUN, check=False):
        return {
            "run_id": run_id,
            "root": self.root,
            "lock": None,
            "check": check,
            "step": step or self.step(),
        }

    def work(self, step=None, check=False):
        return step_executor.work(self.params(step, check=check))

    def recover(self):
        step = {"id": "00-recover", "host": "m1", "remedy": "recover", "code": ["KM902"]}
        return step_executor.work(self.params({**step, "change": None, "expect": {}}, NEXT))


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


@pytest.fixture
def hasty(node, monkeypatch):
    """Let the node not wait for what does not come."""
    for name in ("READY_SECONDS", "LEASE_SECONDS"):
        monkeypatch.setattr(certificate_load, name, 0.1)
    return node


def test_they_restart_in_their_order_and_prove_it(node):
    step = node.step(SCHEDULER, API, MANAGER)
    answer = node.work(step)
    assert answer["state"] == "done", answer
    assert node.restarted == list(LOADERS)
    assert list(answer["seen"]["seconds"]) == list(LOADERS)
    assert node.asked[0] == "/readyz"
    assert {path.rpartition("/")[2] for path in node.asked[1:]} == {MANAGER, SCHEDULER}


def test_only_those_of_the_plan_restart(node):
    answer = node.work(node.step(SCHEDULER))
    assert answer["state"] == "done", answer
    assert node.restarted == [SCHEDULER]
    assert "/readyz" not in node.asked


def test_one_that_does_not_run_is_waited_for(node):
    node.start(API, None)
    assert node.work(node.step(API))["state"] == "done"
    assert node.restarted == []
    assert node.numbers()[API] == 9


def test_one_that_began_with_the_new_files_is_left(node):
    """An API server that ended again and again may have come back by itself."""
    node.started_at = time.time() + 60
    assert node.work()["state"] == "done"
    assert node.restarted == []
    assert "/readyz" in node.asked


def test_one_whose_renewed_file_was_moved_in_with_an_older_time_restarts(node):
    for path in (node.file, *node.pki.parent.rglob("*")):
        os.utime(path, (0, 0))
    assert node.work(node.step(SCHEDULER))["state"] == "done"
    assert node.restarted == [SCHEDULER]


def test_one_with_a_renewed_file_that_is_not_kubeadm_s_restarts(node):
    """Its flags name another file, and those of kubeadm's names are older than its process."""
    node.started_at = time.time() + 60
    os.utime(node.file, (time.time() + 90, time.time() + 90))
    assert node.work(node.step(API))["state"] == "done"
    assert node.restarted == [API]


@pytest.mark.parametrize("started_at", [None, 0])
def test_one_whose_start_is_not_known_restarts(node, started_at):
    node.started_at = started_at
    assert node.work(node.step(MANAGER))["state"] == "done"
    assert node.restarted == [MANAGER]


def test_check_mode_restarts_nothing(node):
    answer = node.work(check=True)
    assert answer["state"] == "skipped", answer
    assert node.restarted == []
    assert not Path(node.root).exists()


@pytest.mark.parametrize("components", [("etcd",), ("etcd", API), ("kubelet",)])
def test_another_component_is_refused(node, components):
    answer = node.work(node.step(*components))
    assert answer["state"] == "refused"
    assert "not restarted for certificates" in answer["reason"]
    assert node.restarted == []


def test_what_would_not_start_again_is_not_ended(node):
    node.refusal[SCHEDULER] = "the kubelet of m1 is not healthy"
    answer = node.work()
    assert (answer["state"], answer["reason"]) == ("refused", "the kubelet of m1 is not healthy")
    assert node.restarted == []


# --- an API server that serves


def test_one_that_serves_needs_another(node):
    node.another = "no API server but the one of m1 is well"
    answer = node.work(node.step(API, serves=True))
    assert answer["state"] == "refused"
    assert "single_control_plane" in answer["reason"]
    assert node.restarted == []
    node.another = None
    assert node.work(node.step(API, serves=True) | {"id": "03-again"})["state"] == "done"


@pytest.mark.parametrize(
    ("servers", "state"),
    [(["10.0.0.1:6443"], "done"), (["10.0.0.1:6443", "10.0.0.2:6443"], "refused")],
)
def test_a_single_one_may_be_allowed(node, servers, state):
    node.another = "no API server but the one of m1 is well"
    step = node.step(API, serves=True, allow=["single_control_plane"], servers=servers)
    assert node.work(step)["state"] == state


def test_one_that_serves_nobody_needs_no_other(node):
    node.another = "no API server but the one of m1 is well"
    assert node.work(node.step(API))["state"] == "done"


# --- what is not proven


@pytest.mark.parametrize("component", LOADERS)
def test_the_first_that_does_not_come_back_ends_it(node, component):
    node.down = {component}
    answer = node.work()
    assert answer["state"] == "failed", answer
    assert f"component down: {component} of m1 did not come back" in answer["reason"]
    assert node.restarted == list(LOADERS[: LOADERS.index(component) + 1])


def test_an_api_server_that_shows_another_certificate(hasty):
    hasty.shown = hasty.other
    answer = hasty.work()
    assert answer["state"] == "failed"
    assert "its port shows another certificate than" in answer["reason"]
    assert hasty.restarted == [API]


def test_an_api_server_that_shows_none(hasty):
    hasty.shown = None
    assert "its port shows no certificate (timed out)" in hasty.work()["reason"]


def test_an_api_server_that_is_not_ready(hasty):
    hasty.status["/readyz"] = 500
    answer = hasty.work()
    assert answer["state"] == "failed"
    assert "its /readyz answers 500" in answer["reason"]


def test_a_release_without_readyz(node):
    node.status["/readyz"] = 404
    assert node.work()["state"] == "done"


def test_a_lease_that_stands_still(hasty):
    hasty.leases = None
    answer = hasty.work()
    assert answer["state"] == "failed"
    assert "its lease was not renewed within" in answer["reason"]


def test_a_lock_that_is_no_lease(node):
    node.leases = 404
    assert node.work()["state"] == "done"


def test_one_that_does_not_elect_has_no_lease(node):
    node.elects = False
    node.leases = None
    assert node.work(node.step(MANAGER))["state"] == "done"


@pytest.mark.parametrize("body", ["", "no JSON", "[]", '{"spec": null}', '{"spec": {}}'])
def test_a_lease_that_cannot_be_read(body):
    assert certificate_load._renewals(200, body) == set()
    assert certificate_load._renewals(None, body) == set()


# --- an interruption


def _interrupt(node, monkeypatch, component):
    """End the program when it would end this component's process."""

    def end(instance):
        if instance.argv[0] == component:
            raise KeyboardInterrupt
        node.end(instance)

    with monkeypatch.context() as during:
        during.setattr(signals, "terminate", end)
        with pytest.raises(KeyboardInterrupt):
            node.work()


@pytest.mark.parametrize("component", LOADERS)
def test_a_recovery_restarts_what_is_missing(node, monkeypatch, component):
    _interrupt(node, monkeypatch, component)
    answer = node.recover()
    assert answer["state"] == "done", answer
    assert node.restarted == list(LOADERS)
    assert step_record.unproven(node.root) == []
    assert node.recover()["reason"] == "nothing was interrupted"


def test_a_recovery_waits_for_what_brings_it_back(node, monkeypatch):
    _interrupt(node, monkeypatch, MANAGER)
    node.refusal[SCHEDULER] = "no kubelet runs on m1"
    answer = node.recover()
    assert answer["state"] == "failed", answer
    assert "no kubelet runs on m1" in answer["reason"]
    assert node.restarted == [API]
    node.refusal.clear()
    assert node.recover()["state"] == "done"
    assert node.restarted == list(LOADERS)


def test_its_time_covers_a_back_off_of_the_kubelet(node):
    step = {**node.step(), "expect": {}}
    assert step_times.budget(step) > 3 * step_times.BACK_OFF


def test_it_is_in_the_table():
    assert "load_certificates" in step_kinds.in_plans()
    handler = registry.handler_of("load_certificates")
    assert isinstance(handler, certificate_load.LoadCertificates)
