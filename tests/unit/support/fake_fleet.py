# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts for the loop of a fleet, which a shell script plays, without Ansible around them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import client
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.process import (
    Process,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.question import (
    Question,
)

MARK = "KUBEMEND-1"
ANSWER = f"echo '{MARK} {{\"collectors\": {{}}}}'"
WORKER = {"status": "ok", "reason": "by a worker"}


class Connection(SimpleNamespace):
    def get_option(self, name: str) -> Any:
        return self.options.get(name)


class Host:
    """A host whose ssh client is a shell script."""

    def __init__(self, name: str, script: str = ANSWER, limit: float = 100, **options: Any) -> None:
        self.name, self.script, self.variables = name, script, {}
        self.connection = Connection(host=name, options=options)
        self.query = SimpleNamespace(params={"timeout": limit})
        self.action = SimpleNamespace(conclude=self.conclude)
        self.line_words: tuple[str, ...] = ()
        self.success = ""
        self.asks = lambda: dict(WORKER)

    @staticmethod
    def conclude(_query: Any, status: str, reason: str, _answer: Any) -> dict[str, Any]:
        return {"status": status, "reason": reason}

    def ask(self) -> dict[str, Any]:
        return self.asks()


class Client(client.Client):
    """A client whose command line is a script."""

    def __init__(self, host: Host, program: bytes = b"x" * 300_000) -> None:
        self.host, self.process = host, Process(0, ())  # type: ignore[assignment]
        self.question = Question(host.name, "", program, MARK)
        self.line = [b"/bin/sh", b"-c", host.script.encode()]
        self._success = host.success.encode()
        self.awaited, self.attempts = self._success, 0


class Fleet:
    """Makes these hosts ready."""

    def __init__(self, *hosts: Host | Exception) -> None:
        self.hosts = {
            host.name if isinstance(host, Host) else f"x{place}": host
            for place, host in enumerate(hosts)
        }

    def prepare(self, name: str) -> Any:
        host = self.hosts[name]
        if isinstance(host, Exception):
            raise host
        return host
