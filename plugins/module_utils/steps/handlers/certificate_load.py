# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts what loads renewed certificates only at its start, one component after the other.

The API server comes first, then the controller manager and the scheduler, which need it. Each one
is proven before the next: a new process that is healthy, an API server that shows the certificate
of its file and is ready, and leases that are renewed.
"""

import time

from ...changes import signals, step_claim
from ...shared import step_times
from ...shared.consent import SINGLE_CONTROL_PLANE
from ...shared.errors import PreconditionFailed
from ...shared.kubeadm_certificates import API, CERTIFICATES, LOADERS
from ...state import step_record
from ...system import (
    certificate_fields,
    certificate_flags,
    component_endpoints,
    files,
    http_client,
    json_line,
    procfs,
    served_certificates,
    tls,
)
from .. import health_probe, preconditions
from ..base import StepHandler, outcome

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{}"
READY_SECONDS, LEASE_SECONDS, ASK_SECONDS, PAUSE = 60, 90, 3, 0.5
MAX_FILE = 1048576


class LoadCertificates(StepHandler):
    """One step: these components of this node have loaded what was renewed."""

    def check(self, step):
        """Return what the record holds besides; raise PreconditionFailed."""
        components = _components(step.change, step.host)
        former = preconditions.restartable(components, step.guard, step.host)
        if API in components and step.change.get("serves"):
            _require_other_server(step)
        return {
            "component": next(iter(components)),
            "components": components,
            "processes": {
                component: [instance.pid, instance.ticks]
                for component, instance in former.items()
                if instance and _is_older(instance, component, step.path)
            },
        }

    def perform(self, step, record):
        """Restart, and verify one component after the other."""
        work = _Load(record, step.params, step.context)
        state, reason = work.run()
        return outcome(step.context, state, reason, {"seconds": work.seconds})

    def recover(self, record, context=None, params=None):
        """Restart what was not restarted, and verify all of it."""
        components = record.get("components") or {}
        preconditions.restartable(components, record.get("guard"), record["host"])
        return _Load(record, params or {}, context).run()


def _components(change, host):
    """Return {component: {image, words, loads}} in the order of the restarts."""
    named = change.get("components") or {}
    components = {component: named[component] for component in LOADERS if component in named}
    if not components or len(components) != len(named):
        raise PreconditionFailed(
            f"the plan for {host} names a component that is not restarted for certificates;"
            f" {preconditions.OLD}"
        )
    return components


def _is_older(instance, component, folder):
    """Return whether a process began before a file of its certificates was written; in doubt yes.

    One that ended again and again has loaded what was renewed since, and waits no second time.
    """
    rows = [row for row in CERTIFICATES.values() if row.loader == component]
    paths = [path for row in rows for path in row.paths(folder)]
    paths += [f"/proc/{instance.pid}/root{path}" for path in _named(instance.argv, component)]
    # A file that was moved in has its own time of change, and the time of the move in its inode.
    times = [max(files.mtime(path) or 0, files.ctime(path) or 0) for path in paths]
    started = instance.started_at
    return started is None or started <= max(times) + preconditions.TOLERANCE


def _named(argv, component):
    """Return the files of certificates that a command line names, which need not be kubeadm's."""
    kinds = certificate_flags.KINDS.get(component) or {}
    flags = (*kinds.get(certificate_flags.CERTIFICATE, ()), "kubeconfig")
    paths = [procfs.flag(argv, flag) for flag in flags]
    return [path for path in paths if path and path.startswith("/")]


def _require_other_server(step):
    """Require another healthy API server, or that the operator accepts to have only this one."""
    if SINGLE_CONTROL_PLANE in step.allow and len(step.guard.get("api_servers") or []) < 2:
        return
    try:
        preconditions.require_another(step.guard, step.params, step.host)
    except PreconditionFailed as error:
        raise PreconditionFailed(
            f"{error}; on a single control-plane node allow it with kubemend_allow:"
            f" [{SINGLE_CONTROL_PLANE}]"
        ) from error


class _Load:
    """The restarts of one step, which a recovery does again where they are missing."""

    def __init__(self, record, params, context):
        self.record = record
        self.params = params
        self.context = context
        self.host = record["host"]
        self.seconds = {}

    def run(self):
        """Return (state of the record, reason)."""
        for component in self.record["components"]:
            reason = self._restarted(component)
            if reason:
                return step_record.FAILED, reason
        for component in self.record["components"]:
            if component != API:
                reason = self._unrenewed(component)
                if reason:
                    return step_record.FAILED, reason
        return step_record.PROVEN, None

    def _restarted(self, component):
        """Restart one component unless it is done; return why it is not proven, or None."""
        former = tuple(self.record["processes"].get(component) or ())
        begin = time.monotonic()
        self._tell(f"{component} of {self.host} starts with its renewed certificates")
        for instance in health_probe.instances(component):
            if instance.identity == former:
                signals.terminate(instance)
        health = health_probe.wait(
            health_probe.ExpectedState(component, not_identity=former or None),
            preconditions.credentials_now(self.params),
            begin + step_times.BACK_OFF,
            # an API server ends until its etcd has a quorum, and so does what needs it
            hopeless=component != API,
            later=lambda: self._latest(component, begin),
        )
        self.seconds[component] = round(time.monotonic() - begin, 2)
        if not health.ok:
            return (
                f"component down: {component} of {self.host} did not come back within"
                f" {round(health.waited)} s ({health.reason}): look at journalctl -u kubelet,"
                f" crictl ps -a --name {component} and /var/log/pods/kube-system_{component}-*"
                " there"
            )
        return self._unready(health.instance) if component == API else None

    def _latest(self, component, begin):
        """Return until when the kubelet's back-off may delay the start, 0 where it cannot start."""
        image = self.record["components"][component].get("image")
        return begin + step_times.BACK_OFF if preconditions.startable(image) else 0

    def _tell(self, text):
        """Note the progress in the record, which is of an earlier run in a recovery."""
        run_id = self.record.get("run_id") or self.context.run_id
        step = self.record.get("step") or self.context.step
        step_claim.tell(run_id, step, text, self.context.root)

    def _unready(self, instance):
        """Return why an API server does not prove its certificate or is not ready, or None."""
        end, reason = time.monotonic() + READY_SECONDS, None
        while time.monotonic() < end:
            reason = _other_shown(instance) or self._refusal(instance, "/readyz")
            if reason is None:
                return None
            time.sleep(PAUSE)
        return f"{API} of {self.host} runs again, and {reason}"

    def _refusal(self, instance, path):
        """Return why the API server does not answer 200 to the administrator, or None."""
        status, body = self._asked(instance, path)
        if status in (200, 404):  # releases before 1.16 have no readyz, and were healthy
            return None
        return f"its {path} answers {status or body}"

    def _asked(self, instance, path):
        """Return (status, body) of the API server, or (None, why) without an answer."""
        answer = (None, "nothing")
        for _path, certificate, key in preconditions.credentials_now(self.params):
            for address, port, _secure in component_endpoints.doors(API, instance.argv)[:1]:
                try:
                    context = tls.context(certificate, key)
                except http_client.HttpError as error:
                    answer = (None, str(error))
                    continue
                reply = http_client.get(address, port, path, ASK_SECONDS, context)
                answer = (reply["status"], reply["body"] or reply["error"])
            if answer[0] not in (None, 401, 403):
                break
        return answer

    def _unrenewed(self, component):
        """Return why the lease of a component is not seen to be renewed, or None."""
        servers = health_probe.instances(API)
        running = health_probe.instances(component)
        is_alone = any(
            procfs.flag(instance.argv, "leader-elect") == "false" for instance in running
        )
        if not servers or is_alone:
            return None
        end, times = time.monotonic() + LEASE_SECONDS, set()
        while time.monotonic() < end:
            status, body = self._asked(servers[0], LEASE.format(component))
            if status == 404:  # its lock is no Lease
                return None
            times |= _renewals(status, body)
            if len(times) > 1:
                return None
            time.sleep(PAUSE)
        return (
            f"{component} of {self.host} runs again, and its lease was not renewed within"
            f" {LEASE_SECONDS} s: see the logs of all instances"
        )


def _renewals(status, body):
    """Return the time of the last renewal in a lease, as a set."""
    if status != 200:
        return set()
    try:
        renewed = json_line.loads(body)["spec"]["renewTime"]
    except (ValueError, KeyError, TypeError):
        return set()
    return {renewed} if isinstance(renewed, str) else set()


def _other_shown(instance):
    """Return that an API server shows another certificate than its file has, or None."""
    path = procfs.flag(instance.argv, "tls-cert-file")
    if not path:
        return None
    try:
        text = files.read(path, MAX_FILE, f"/proc/{instance.pid}/root").decode("ascii", "replace")
        expected = certificate_fields.first(text).digest
    except (OSError, ValueError) as error:
        return f"{path} cannot be read ({files.one_line(error)})"
    places = component_endpoints.doors(API, instance.argv)[:1]
    for answer in served_certificates.read([place[:2] for place in places], ASK_SECONDS):
        if not answer["pem"]:
            return f"its port shows no certificate ({answer['error']})"
        if certificate_fields.first(answer["pem"]).digest != expected:
            return f"its port shows another certificate than {path} has"
    return None
