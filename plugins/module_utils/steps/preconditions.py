# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold on the node immediately before a write, whatever the plan assumed.

Each refusal is one sentence that names the obstacle and the way out. Nothing was changed then.
"""

import os
import re

from ..collectors import registry
from ..collectors.node import instances, kubelet
from ..shared import consent, restart_impact
from ..shared.errors import PreconditionFailed
from ..shared.step_kinds import EDIT_CONFIG, MOVE_OUT, RESTART
from ..system import client_certificates as credentials
from ..system import component_endpoints, files, http_client, procfs, runtime_tool, tls
from . import health_probe

TOLERANCE = 2.0  # seconds: the start of a process is worked out from a clock that may be set
API_SECONDS = 3
MAX_MANIFEST = 10 * 1024 * 1024
OLD = "collect evidence and plan again"


class PreconditionResult:
    """The node as the guards found it.

    former: the component's process before the change.
    usable: the client certificates that components accept.
    """

    def __init__(self, former, usable, notes):
        self.former = former
        self.credentials = usable
        self.notes = notes


def check(step, params):
    """Run all guards of a step that writes or restarts, and return a PreconditionResult.

    The first guard that fails raises PreconditionFailed.
    """
    expect, host = step.get("expect") or {}, step.get("host") or "this host"
    component = expect.get("component")
    if component not in component_endpoints.PORTS and component != component_endpoints.API_SERVER:
        raise PreconditionFailed(
            f"{component} of {host} is not edited or restarted by a step of this kind; do it by"
            " hand"
        )
    evidence = _kubelet(host)
    notes = _runtime(evidence, expect.get("image"), component, host)
    former = _process(expect, component, host)
    _only_manifest(step, evidence.get("static_pod_path"), component, host)
    everyone = instances.collect(registry.Context({}, procfs.of_interest(), {}))["processes"]
    answering(step.get("guard"), everyone, host)
    may_ask = usable(params, everyone)
    if component == component_endpoints.API_SERVER:
        another(step.get("guard"), everyone, may_ask, host)
    if expect.get("restart") and former:
        _pending(step, former, host)
    return PreconditionResult(former, may_ask, notes)


def resume(step, params):
    """Return the guards under which an interrupted step is verified or rolled back.

    Only what starts a component again must work: the kubelet and the container runtime.
    """
    host = step.get("host") or "this host"
    _runtime(_kubelet(host), None, None, host)
    everyone = instances.collect(registry.Context({}, procfs.of_interest(), {}))["processes"]
    answering(step.get("guard"), everyone, host)
    return usable(params, everyone)


def restartable(components, guard, host):
    """Require that the kubelet starts these components again; return {component: its process}.

    components: {name: {image, words, loads}}. loads: the files that the restart is meant to load.

    Nothing is asked of an API server: this is for what brings one back. The value is None for a
    component that does not run.
    """
    evidence = _kubelet(host)
    processes = {}
    for component, facts in components.items():
        _runtime(evidence, facts.get("image"), component, host)
        step = {
            "expect": {"component": component, "words": facts.get("words"), "flags": {}},
            "guard": {"allow": (guard or {}).get("allow"), "loads": facts.get("loads")},
        }
        _only_manifest({}, evidence.get("static_pod_path"), component, host)
        running = health_probe.instances(component)
        processes[component] = running[0] if running else None
        if running:
            _pending(step, running[0], host)
    return processes


def credentials_now(params):
    """Return the client certificates that this node has now, as usable() does."""
    return usable(params, _everyone())


def _everyone():
    return instances.collect(registry.Context({}, procfs.of_interest(), {}))["processes"]


def require_another(guard, params, host):
    """Require a healthy API server on another node; raise PreconditionFailed without one."""
    everyone = _everyone()
    another(guard, everyone, usable(params, everyone), host)


def startable(image):
    """Return whether only the kubelet's own back-off can prevent the start of the component."""
    try:
        evidence = _kubelet("this host")
        here = runtime_tool.find(evidence)
        here.demand()
        return not image or here.has_image(image) is not False
    except (PreconditionFailed, runtime_tool.RuntimeDown):
        return False


def usable(params, everyone):
    """Return [(path, certificate, key)] of client certificates for a component, read once."""
    return list(credentials.of_components(params, everyone))


def _kubelet(host):
    try:
        evidence = kubelet.collect(registry.Context({}, procfs.of_interest(), {}))
    except Exception as error:  # pylint: disable=broad-except
        # whatever is wrong with it, the component would not come back
        raise PreconditionFailed(
            f"the kubelet of {host} cannot be looked at ({files.one_line(error)}): repair it first,"
            " it has to bring the component back"
        ) from error
    if not evidence["process"]:
        raise PreconditionFailed(
            f"no kubelet runs on {host}: start it first (systemctl status kubelet), it has to bring"
            " the component back"
        )
    healthz = evidence["healthz"]
    if healthz["status"] != 200:
        raise PreconditionFailed(
            "the kubelet of {} is not healthy ({}: {}): repair it first (journalctl -u kubelet), it"
            " has to bring the component back".format(
                host,
                healthz["url"] or "healthz",
                healthz["error"] or "HTTP {}".format(healthz["status"]),
            )
        )
    return evidence


def _runtime(evidence, image, component, host):
    """Return notes; raise PreconditionFailed if the runtime is silent or lacks the image."""
    here = runtime_tool.find(evidence)
    try:
        here.demand()
        present = here.has_image(image) if image else None
    except runtime_tool.RuntimeDown as error:
        raise PreconditionFailed(
            f"the container runtime of {host} does not answer ({files.one_line(error)}): repair it"
            " first, it has to start the component again"
        ) from error
    if present is False:
        raise PreconditionFailed(
            f"the image {image} of {component} is gone from the runtime of {host}, so that it could"
            f" not start again: bring it back (crictl pull {image}) and run again"
        )
    if image and present is None:
        return [
            f"whether the runtime has {image} could not be asked: neither crictl nor ctr is on"
            f" {host}"
        ]
    return []


def _process(expect, component, host):
    """Return the component's process, None when none runs.

    Where the step itself restarts the process, it must be the process of the plan. Where the
    kubelet restarts it, any process will do: the bytes of the manifest are compared, and a process
    that soon exits may be replaced at any moment.
    """
    running = health_probe.instances(component)
    for instance in running:
        same_pid = instance.pid == expect.get("pid")
        if same_pid and _same_start(instance.started_at, expect.get("started_at")):
            return instance
    if expect.get("pid") is None or expect.get("restart") == "kubelet":
        return running[0] if running else None
    now = "none runs now"
    if running:
        now = "pid {} runs now".format(", ".join(str(instance.pid) for instance in running))
    raise PreconditionFailed(
        "the evidence is old: {} on {} is no longer the process {} ({}); {}".format(
            component, host, expect["pid"], now, OLD
        )
    )


def _same_start(started, expected):
    """Return whether two times may be of the same start; an unknown time may."""
    if expected is None or started is None:
        return True
    return abs(started - expected) <= TOLERANCE


def _only_manifest(step, folder, component, host):
    """Check that the component's file is its only one in the folder, besides the one moved out."""
    if not folder:
        raise PreconditionFailed(
            f"the kubelet of {host} has no folder of static pods, so nothing would start"
            f" {component} again; {OLD}"
        )
    moved = _moved_out(step)
    own_manifest = _own_manifest(step, folder)
    remaining = [path for path in _manifests(folder, host) if path != moved]
    holding = [path for path in remaining if speaks_of(path, component)]
    if not holding:
        raise PreconditionFailed(
            f"no file in {folder} on {host} is a manifest of {component}, so nothing would start it"
            f" again; {OLD}"
        )
    if len(holding) > 1 or (own_manifest and holding != [own_manifest]):
        raise PreconditionFailed(
            "{} on {} may hold manifests of {} next to the one that is meant: move what does not"
            " belong there out of the folder, and run again".format(
                " and ".join(path for path in holding if path != own_manifest), host, component
            )
        )


def _moved_out(step):
    """Return the path that the step takes away, or None."""
    change = step.get("change") or {}
    return change.get("path") if change.get("kind") == MOVE_OUT else None


def _own_manifest(step, folder):
    """Return the path that the component's manifest must have, or None where any will do."""
    named = (step.get("guard") or {}).get("manifest")
    change = step.get("change") or {}
    if named is not None or change.get("kind") == MOVE_OUT:
        return named
    path = change.get("path")
    if path and os.path.dirname(path) == folder:
        return path
    return None


def _manifests(folder, host):
    """Return the paths of the folder's files that the kubelet reads, sorted."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise PreconditionFailed(
            f"the folder of static pods {folder} on {host} cannot be read ({files.reason(error)})"
        ) from error
    return [os.path.join(folder, name) for name in names if not name.startswith(".")]


def speaks_of(path, component):
    """Return whether a file may be a manifest of the component, without a YAML parser.

    In doubt the answer is yes.
    """
    try:
        text = files.read(path, MAX_MANIFEST).decode("utf-8", "replace")
    except OSError:
        return False
    word = rf"""["']?(?:[^\s"'\[\],]*/)?{re.escape(component)}["']?"""
    key = r"""["']?name["']?[ \t]*:[ \t]*"""
    before = rf"""(?:^[ \t]*-[ \t]+|[\[,][ \t]*|^[ \t-]*{key}|[{{,][ \t]*{key})"""
    return re.search(rf"""(?m){before}{word}[ \t]*(?:[,\]}}#\r]|$)""", text) is not None


def answering(guard, everyone, host):
    """Require that one API server answers at its own address, whatever the answer is.

    The function raises PreconditionFailed otherwise.
    """
    named = (guard or {}).get("api_servers") or own_servers(everyone)
    silent = []
    for server in named:
        address, _dummy, port = server.rpartition(":")
        if not port.isdigit():
            silent.append(f"{files.one_line(server, 80)}: no address and port")
            continue
        answer = http_client.get(
            http_client.reachable(address), int(port), "/healthz", API_SECONDS, tls.context()
        )
        if answer["status"] is not None:
            return
        silent.append("{}: {}".format(server, answer["error"]))
    raise PreconditionFailed(
        "no API server answers from {} ({}): manifests and running components stay untouched until"
        " one does".format(host, "; ".join(silent) or "none is known and none runs here")
    )


def another(guard, everyone, credentials, host):
    """Require a healthy API server on another node, and with it a healthy etcd.

    The function raises PreconditionFailed without one.
    """
    own_addresses, failures = own_servers(everyone), []
    for server in [
        name for name in (guard or {}).get("api_servers") or [] if name not in own_addresses
    ]:
        address, _dummy, port = server.rpartition(":")
        if not port.isdigit():
            continue
        answer = health_probe.healthz(
            http_client.reachable(address), int(port), credentials, API_SECONDS
        )
        if answer["status"] == 200:
            return
        failures.append(
            "{}: {}".format(server, answer["error"] or "HTTP {}".format(answer["status"]))
        )
    raise PreconditionFailed(
        "no API server but the one of {} is well ({}), and it is restarted only while another one"
        " serves: repair that first".format(host, "; ".join(failures) or "none is known")
    )


def own_servers(everyone):
    """Return ["address:port"] of the API servers of this node."""
    addresses = []
    for process in everyone:
        if process["component"] == component_endpoints.API_SERVER and process["host_network"]:
            address = procfs.flag(process["argv"], "advertise-address") or http_client.reachable(
                procfs.flag(process["argv"], "bind-address")
            )
            addresses.append(
                "{}:{}".format(
                    http_client.bracketed(address),
                    procfs.flag(process["argv"], "secure-port") or "6443",
                )
            )
    return addresses


def _pending(step, former, host):
    expect, guard = step["expect"], step.get("guard") or {}
    if consent.PENDING_CHANGES in (guard.get("allow") or []):
        return
    process = {
        "component": expect["component"],
        "started_at": former.started_at,
        "argv": files.masked_argv(former.argv),
        "exe": procfs.link(former.pid, "exe"),
    }
    given_files = instances.flag_files(
        former.pid, former.argv, files.whole("/proc/self/mountinfo") or ""
    )
    impacts = restart_impact.changes(
        process,
        given_files,
        expect.get("words"),
        sorted(expect.get("flags") or {}),
        _loads(step, former),
    )
    if impacts:
        raise PreconditionFailed(restart_impact.sentence(host, expect["component"], impacts))


def _loads(step, former):
    """Return the paths whose new content the restart is meant to load."""
    paths = list((step.get("guard") or {}).get("loads") or [])
    # the change of that file is what the restart is for
    if step.get("remedy") == RESTART and not paths:
        paths = [procfs.flag(former.argv, "config")]
    change = step.get("change") or {}
    paths.append(change.get("path") if step.get("remedy") != EDIT_CONFIG else None)
    return paths
