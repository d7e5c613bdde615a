# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log level of a running process: PUT /debug/flags/v sets it and restarts nothing.

The endpoint cannot be read, so the journal of the node that sets it is the only record. An entry
whose `real` is level:<component> or level:kubelet/<node> is raised, until another entry that
reverts it is committed. A component of this node's control plane is asked at its own port; a
kubelet through the API server, which alone has that right.
"""

import contextlib
import os
import re
import time

from ..changes import journal_entry
from ..collectors import registry
from ..collectors.node import instances
from ..kubeapi.client import ApiError
from ..shared.klog_verbosity import of_argv
from ..state import journal, storage
from ..state.api_target import reached
from ..state.level_target import named, parts
from ..state.storage import ChangeError
from ..steps.health_probe import YOUNG
from ..system import (
    client_certificates,
    component_endpoints,
    component_process,
    files,
    http_client,
    procfs,
    tls,
)

URL = "/debug/flags/v"
SECONDS, EACH = 20, 5
PATIENCE = 12  # a component that has just started refuses a good certificate for some seconds
DONE = "successfully set"
# in the details of the API server's own 404, not of the kubelet's
GONE = re.compile(r'"kind": ?"nodes"')


class LevelError(ChangeError):
    """The error of a level that was not set, or may not have been.

    Its reason is one sentence. refused: whether the process refused it, so that nothing was
    set.
    """

    def __init__(self, reason, refused=False):
        super().__init__(reason)
        self.refused = refused


class NotOffered(LevelError):
    """The error of a process without such an endpoint: only a restart changes its level."""


class NodeGone(LevelError):
    """The error of a kubelet whose Node the API has no more: the level is gone with it."""


class NotRecorded(ChangeError):
    """The error of a level that is restored, but not recorded so in the journal."""


class Levels:
    """The setter of levels from this node; those of kubelets go through one proxy to the API."""

    def __init__(self, via=None):
        self.via = via or {}
        self.api = None
        self.stack = contextlib.ExitStack()
        self.certificates = None

    def __enter__(self):
        return self

    def __exit__(self, *dummy):
        self.stack.close()

    def offered(self, real):
        """Raise LevelError where the level of this process cannot be set while it runs."""
        component, node = parts(real)
        code, text = self._ask(component, node, "GET", None)
        if code == 404 or "disabled" in text:
            raise NotOffered(
                f"{named(real)} offers no {URL} (HTTP {code:d}): {_missing(component)}",
                refused=True,
            )
        if code in (401, 403) or code >= 500:
            raise LevelError(
                f"{named(real)} does not let us set its level (HTTP {code:d} {text[:200]})",
                refused=True,
            )

    def put(self, real, level):
        """Set the level of a process, or raise LevelError."""
        component, node = parts(real)
        code, text = self._ask(component, node, "PUT", str(level).encode("ascii"))
        if code != 200 or DONE not in text:
            raise LevelError(
                f"{named(real)} did not take level {level:d} (HTTP {code:d} {text[:200]})",
                refused=400 <= code < 500 and code != 408,
            )

    def metrics(self, component, names):
        """Return the lines of /metrics that begin with these names, as one line.

        It raises LevelError where the process gives no metrics.
        """
        code, text = self._local(
            component,
            process(component),
            "GET",
            None,
            "/metrics",
            tuple(name.encode("ascii") for name in names),
        )
        if code != 200:
            raise LevelError(
                f"{component} does not return its metrics (HTTP {code:d} {text[:200]})"
            )
        return text

    def _ask(self, component, node, method, body):
        if node is not None:
            return self._kubelet(node, method, body)
        end = time.monotonic() + PATIENCE
        while True:
            running = process(component)
            code, text = self._local(component, running, method, body)
            if not _may_still_accept(code, running.started_at) or time.monotonic() >= end:
                return code, text
            time.sleep(1)

    def _kubelet(self, node, method, body):
        try:
            if self.api is None:
                self.api = self.stack.enter_context(
                    reached(self.via, read_only=False, seconds=3600)
                )[0]
            code, text = self.api.text(method, f"/api/v1/nodes/{node}/proxy{URL}", body, SECONDS)
        except ApiError as error:
            raise LevelError(
                f"the kubelet of {node} cannot be asked through the API ({error})"
            ) from error
        if code == 404 and GONE.search(text):
            raise NodeGone(f"the API knows no Node {node}", refused=True)
        return code, text

    def _local(self, component, running, method, body, url=URL, keep=None):
        """Return (HTTP code, text) of the process at its own port.

        It uses the first certificate that the process accepts.
        """
        request = (url, body, keep, method)
        code, reason = None, "it serves on no port"
        for door in component_endpoints.doors(component, running.argv):
            for pair in self._pairs(door):
                try:
                    code, answer = _request(door, pair, request)
                except http_client.HttpError as error:
                    reason = str(error)
                    continue
                if code not in (401, 403):
                    return code, files.one_line(answer[:4096].decode("utf-8", "replace"), 300)
            if code is not None:
                return code, "it refuses every certificate of this node"
        raise LevelError(f"{component} does not answer at its port ({reason})")

    def _pairs(self, door):
        """Return the pairs of certificate and key to try at a port.

        A port without TLS has the pair of None.
        """
        if not door[2]:
            return [(None, None)]
        if self.certificates is None:
            everyone = instances.collect(registry.Context({}, procfs.of_interest(), {}))[
                "processes"
            ]
            clients = client_certificates.of_components(self.via, everyone)
            self.certificates = [(certificate, key) for _path, certificate, key in clients]
        return self.certificates or [(None, None)]


def _may_still_accept(code, started):
    """Return whether a young process that refuses a certificate may accept it soon."""
    if code not in (401, 403) or not started:
        return False
    return time.time() - started <= YOUNG + PATIENCE


def _request(door, pair, request):
    address, port, is_secure = door
    context = tls.context(*pair) if is_secure else None
    connection = http_client.Connection(address, port, EACH, context)
    try:
        return connection.request(*request)
    finally:
        connection.close()


def process(component):
    """Return the component's youngest process on this node, or raise LevelError."""
    running = component_process.instances(component)
    if not running:
        raise LevelError(f"no static pod of {component} runs on this host")
    return running[0]


def _missing(component):
    if component == "kubelet":
        return "its enableDebuggingHandlers or enableDebugFlagsHandler is off"
    if component == "kube-controller-manager":
        return "before 1.23 it has none, later only with profiling"
    return "it runs without profiling"


def change(levels, step, target, root_fd, seconds, via):
    """Raise one level {real, level, former}, journalled, and return the entry's name.

    The caller holds the flock.
    """
    real, former, level = target["real"], str(target["former"]), str(target["level"])
    facts = {
        "path": f"log level of {named(real)}",
        "real": real,
        "sha256_before": storage.digest(former.encode("ascii")),
        "via": via,
        "sha256_after": storage.digest(level.encode("ascii")),
        "size_before": len(former),
        "former": former,
        "level": level,
        "seconds": seconds,
        "clock": storage.clock(),
    }
    entry = journal_entry.begin(step, root_fd, facts, former.encode("ascii"), None)[0]
    with entry:
        try:
            levels.put(real, int(level))
        except LevelError as error:
            if error.refused:
                entry.abandon(str(error))
            raise
        entry.commit()
    return f"{entry.run_id}/{entry.name}"


def put_back(levels, item, step, root_fd):
    """Restore the level of an entry of `raised`, journalled as what reverts it.

    It is idempotent and restarts nothing.
    """
    intent = item["intent"]
    former, level = intent["former"], intent["level"]
    facts = {name: intent[name] for name in ("path", "real", "via")}
    facts.update(
        sha256_before=intent["sha256_after"],
        sha256_after=intent["sha256_before"],
        size_before=len(level),
        former=level,
        level=former,
        seconds=0,
        clock=storage.clock(),
    )
    _put(levels, intent)
    here = step.also(
        what="put back: {}".format(intent["path"]),
        reverts="{}/{}".format(item["run_id"], item["entry"]),
    )
    with recorded(intent, step):
        entry = journal_entry.begin(here, root_fd, facts, level.encode("ascii"), None)[0]
        with entry:
            entry.commit()
    return f"{entry.run_id}/{entry.name}"


@contextlib.contextmanager
def recorded(intent, step):
    """Turn an OSError after a level was restored into NotRecorded."""
    try:
        yield
    except OSError as error:
        raise NotRecorded(
            "the level of {} is back, but {} cannot be written ({}), so that it is put back again"
            " until that is recorded".format(
                named(intent["real"]),
                os.path.join(step.root, journal.FOLDER, step.run_id),
                storage.way_out(error),
            )
        ) from error


def _former_level(intent):
    """Return the level that the process of an entry gets back; None where none runs.

    A process that ended took its level with it.

    The level of a component is that of its command line, because another process than the
    raised one may run. The level of a kubelet is that of the entry. A restore that is
    interrupted is restored in the same way.
    """
    component, node = parts(intent["real"])
    if node:
        return int(intent["level"] if intent["reverts"] else intent["former"])
    running = component_process.instances(component)
    return of_argv(running[0].argv) if running else None


class VerbosityWriter:
    """The writer of the log verbosity of a running process, for a revert and for a recovery."""

    def restore(self, history, _former, step):
        """Set the former verbosity, and return {changed, entry}."""
        if step.check:
            return {"changed": True, "entry": None}
        item = history["items"][-1]
        with step.exclusive() as root_fd, Levels(item["intent"].get("via")) as levels:
            return {"changed": True, "entry": put_back(levels, item, step, root_fd)}

    def undo_open(self, intent):
        """Set the former verbosity for an entry without an end: the new one may have been set."""
        undo_open(intent)


def undo_open(intent):
    """Set the former verbosity for an entry without an end: the new one may have been set."""
    with Levels(intent.get("via")) as levels:
        _put(levels, intent)


def _put(levels, intent):
    level = _former_level(intent)
    if level is not None:
        with contextlib.suppress(NodeGone):
            levels.put(intent["real"], level)
