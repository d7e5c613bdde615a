# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file of tasks reads the hosts."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
from ansible import context

from ansible_collections.kubemend.remediation.plugins.lookup import transport


def answer(variables: dict[str, Any]) -> list[str]:
    return transport.LookupModule().run([], variables)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr(context, "CLIARGS", {})
    monkeypatch.setattr(transport.Display, "warning", lambda _self, text: texts.append(text))
    return texts


@pytest.mark.parametrize("transport", ["ssh", "auto"])
def test_one_task_reads_the_hosts_where_it_can(transport: str, warnings: list[str]) -> None:
    assert answer({"kubemend_transport": transport}) == ["fleet"]
    assert warnings == []


def test_a_password_for_all_hosts_needs_a_task_per_host(warnings: list[str]) -> None:
    assert answer({"ansible_become_password": "x"}) == ["task"]
    assert "ansible_become_password" in warnings[0]


def test_an_ansible_that_lacks_a_name_needs_a_task_per_host(
    warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load = builtins.__import__

    def refuse(name: str, *args: Any, **named: Any) -> Any:
        if name.endswith("transport.fleet") and "hosts" in (args[2] or ()):
            raise ImportError("no TaskExecutor")
        return load(name, *args, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert answer({}) == ["task"]
    assert "no TaskExecutor" in warnings[0]
