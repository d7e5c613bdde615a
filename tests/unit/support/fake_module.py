# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for AnsibleModule: main() of a module runs without Ansible's wrapper."""

import functools
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import argument_specs


class ModuleEnd(Exception):
    """How main() ended: what exit_json or fail_json was given, and which of the two it was."""

    def __init__(self, result: dict[str, Any], has_failed: bool) -> None:
        super().__init__(result)
        self.result = result
        self.has_failed = has_failed


class FakeModule:
    """Checks the options as Ansible does, and raises where Ansible would end the process."""

    def __init__(
        self,
        given: dict[str, Any],
        check_mode: bool,
        argument_spec: dict[str, Any],
        supports_check_mode: bool = False,
    ) -> None:
        checked = ArgumentSpecValidator(argument_spec).validate(given)
        if checked.error_messages:
            self.fail_json(msg="; ".join(checked.error_messages))
        self.params = checked.validated_parameters
        self.check_mode = check_mode
        if check_mode and not supports_check_mode:
            self.exit_json(skipped=True)

    def exit_json(self, **result: Any) -> None:
        raise ModuleEnd(result, has_failed=False)

    def fail_json(self, **result: Any) -> None:
        raise ModuleEnd(result, has_failed=True)


class Entry:
    """Stands in for the function of module_utils that does a module's work."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.calls: list[dict[str, Any]] = []

    def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(params)
        return self.answer


def run(
    monkeypatch: pytest.MonkeyPatch, module: Any, check_mode: bool = False, **given: Any
) -> ModuleEnd:
    """Run main() of a module with these options, and return how it ended.

    Options that its action alone sets have the names that the function of the module knows.
    """
    given = argument_specs.hidden(given, argument_spec(monkeypatch, module))
    monkeypatch.setattr(module, "AnsibleModule", functools.partial(FakeModule, given, check_mode))
    with pytest.raises(ModuleEnd) as ended:
        module.main()
    return ended.value


def argument_spec(monkeypatch: pytest.MonkeyPatch, module: Any) -> dict[str, Any]:
    """Return the argument_spec that a module's main() gives to AnsibleModule."""
    specs: list[dict[str, Any]] = []

    def record(argument_spec: dict[str, Any], supports_check_mode: bool = False) -> None:
        specs.append(argument_spec)
        raise ModuleEnd({}, has_failed=False)

    monkeypatch.setattr(module, "AnsibleModule", record)
    with pytest.raises(ModuleEnd):
        module.main()
    return specs[0]
