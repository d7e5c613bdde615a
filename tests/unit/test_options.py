# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an action takes, and what it hands on, are options of its module.

A host without pipelining gets the module, and Ansible refuses what that does not know.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import argument_specs
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from tests.unit.support import fake_module

PLUGINS = Path(evidence_document.__file__).parents[2]
MODULES = sorted(path.stem for path in (PLUGINS / "modules").glob("[a-z]*.py"))


def documented(name: str) -> set[str]:
    """Return the module's options, those of its fragments too.

    Sanity compares them with its argument_spec.
    """
    return set(descriptions(name))


def descriptions(name: str) -> dict[str, str]:
    """Return the first sentence of each option that the module documents."""
    kind = importlib.import_module(
        f"ansible_collections.kubemend.remediation.plugins.modules.{name}"
    )
    document = yaml.safe_load(kind.DOCUMENTATION)
    options = dict(document.get("options") or {})
    for fragment in document.get("extends_documentation_fragment") or ():
        where, _dot, part = fragment.removeprefix("kubemend.remediation.").partition(".")
        module = importlib.import_module(
            f"ansible_collections.kubemend.remediation.plugins.doc_fragments.{where}"
        )
        text = getattr(module.ModuleDocFragment, part.upper() or "DOCUMENTATION")
        options.update(yaml.safe_load(text).get("options") or {})
    return {option: row["description"][0] for option, row in options.items()}


def handed_on(name: str) -> set[str]:
    """Return the names in `params`: dicts with the node's timeout, and what is added to them."""
    found: set[str] = set()
    for node in ast.walk(
        ast.parse((PLUGINS / "action" / f"{name}.py").read_text(encoding="utf-8"))
    ):
        if isinstance(node, ast.Dict):
            values = {
                key.value: value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            }
            # else it is the action's own spec
            if "timeout" in values and not isinstance(values["timeout"], ast.Dict):
                found |= set(values)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "update"
            and ast.unparse(node.func.value) == "params"
        ):
            found |= {word.arg for word in node.keywords if word.arg}
    return found


@pytest.mark.parametrize("name", MODULES)
def test_what_an_action_takes_is_documented(name):
    action = importlib.import_module(
        f"ansible_collections.kubemend.remediation.plugins.action.{name}"
    ).ActionModule
    spec = getattr(action, "SPEC", None) or importlib.import_module(action.__module__).SPEC
    assert spec
    assert set(spec) <= documented(name)


def hidden(name: str) -> set[str]:
    """Return the options that the action alone sets, by their names in the action."""
    action = importlib.import_module(
        f"ansible_collections.kubemend.remediation.plugins.action.{name}"
    ).ActionModule
    assert all(option.startswith("_") for option in action.HIDDEN)
    return {option[1:] for option in action.HIDDEN}


@pytest.mark.parametrize(
    "name", ["apply_step", "cluster_lock", "log_level", "node_drain", "revert_run"]
)
def test_what_it_hands_on_is_an_option(name):
    # of its step's `change`
    names = handed_on(name) - ({"kind", "node", "held"} if name == "node_drain" else set())
    assert len(names) > 5, names - documented(name)
    assert names <= documented(name) | hidden(name), names - documented(name)


@pytest.mark.parametrize("name", MODULES)
def test_an_option_that_the_action_alone_sets_is_named_and_described_so(name):
    described = {
        option
        for option, text in descriptions(name).items()
        if text.startswith("Set by the action")
    }
    assert described == {option for option in documented(name) if option.startswith("_")}


@pytest.mark.parametrize(
    "name",
    ["apply_step", "cluster_lock", "log_level", "node_drain", "revert_run", "scheduler_dump"],
)
def test_a_hidden_option_is_one_of_the_module(monkeypatch, name):
    module = importlib.import_module(
        f"ansible_collections.kubemend.remediation.plugins.modules.{name}"
    )
    spec = fake_module.argument_spec(monkeypatch, module)
    assert {option[1:] for option in spec if option.startswith("_")} == hidden(name)
    assert not hidden(name) & set(spec)
    params = dict.fromkeys({*hidden(name), *set(spec)} - {f"_{key}" for key in hidden(name)}, 1)
    assert argument_specs.unhidden(argument_specs.hidden(params, spec)) == params
