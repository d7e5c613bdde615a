# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is generated from the table of variables (plugins/plugin_utils/run/variables.py).

That is docs/variables.md, the README's short table, and the options in the argument specs of roles.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.docs import ROOT, between
from tests.docs.language import ENGLISH

PAGE = ROOT / "docs" / "variables.md"
# Those that most operators set; the README has these alone.
COMMON = (
    "kubemend_max_risk",
    "kubemend_allow",
    "kubemend_fail_on",
    "kubemend_waivers",
    "kubemend_faults",
    "kubemend_pod",
    "kubemend_report_dir",
    "kubemend_report_formats",
    "kubemend_compare_to",
)
MAX_COLUMNS = 100


def _table():
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import variables

    return variables


def page() -> str:
    """Return docs/variables.md."""
    table = _table()
    parts = []
    for topic in table.TOPICS:
        parts += [
            f"## {topic}",
            "",
            "| variable | default | values | meaning |",
            "|---|---|---|---|",
        ]
        parts += [
            _row(name, variable)
            for name, variable in table.VARIABLES.items()
            if variable.topic == topic
        ]
        parts.append("")
    return between(PAGE, "variables", "\n".join(parts).rstrip())


def common_table(language=ENGLISH) -> str:
    """Return the table of the README: a few variables, and the first sentence of each meaning."""
    rows = []
    for name in COMMON:
        variable = _table().VARIABLES[name]
        meaning = re.split(r"(?<=[.]) ", variable.meaning)[0]
        rows.append(f"| `{name}` | {default(variable.default)} | {language.say(meaning)} |")
    head = language.say("| variable | default | meaning |")
    return "\n".join([head, "|---|---|---|", *rows])


def _row(name: str, variable) -> str:
    return f"| `{name}` | {default(variable.default)} | {_values(variable)} | {variable.meaning} |"


def _values(variable) -> str:
    """Return what a variable can be, and whether hosts can differ in it."""
    kind = variable.kind
    words = ", ".join(f"`{choice}`" for choice in kind.choices)
    names = {"bool": "`true`, `false`", "path": "a path", "str": "a text"}
    text = kind.allowed or words or names[kind.type]
    if words and kind.type == "list":
        text = f"a list of {words}"
    if not variable.run_wide:
        text += "; can differ per host"
    return text


def default(value: object) -> str:
    """Return a default as a table's cell."""
    if value is None:
        return "—"
    if isinstance(value, str):
        return f"`{value}`"
    return f"`{json.dumps(value)}`"


def role_specs() -> Iterator[tuple[Path, str]]:
    """Yield the argument specs of each role with the options that they name, in order of names."""
    for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        text = path.read_text(encoding="utf-8")
        head, _options, _rest = text.partition("    options:\n")
        names = yaml.safe_load(text)["argument_specs"]["main"]["options"]
        options = [_option(name) for name in sorted(names)]
        yield path, f"{head}    options:\n" + "".join(options)


def _option(name: str) -> str:
    """Return one option of an argument spec, in YAML."""
    variables = _table().VARIABLES
    if name not in variables:
        raise SystemExit(f"{name} of a role is not in plugins/plugin_utils/run/variables.py")
    variable = variables[name]
    lines = ["description: >-"]
    lines += textwrap.wrap(
        _markup(variable.meaning), MAX_COLUMNS - 10, initial_indent="  ", subsequent_indent="  "
    )
    lines.append(f"type: {variable.kind.type}")
    if variable.kind.type == "list":
        lines.append("elements: str")
    if variable.kind.choices:
        lines += ["choices:", *(f"  - {choice}" for choice in variable.kind.choices)]
    if variable.default is not None:
        lines += _default_lines(variable.default)
    return f"      {name}:\n" + "".join(f"        {line}\n" for line in lines)


def _default_lines(value: object) -> list[str]:
    if isinstance(value, tuple) and value:
        return ["default:", *(f"  - {item}" for item in value)]
    if isinstance(value, str):
        return [f"default: {value}"]
    return [f"default: {json.dumps(value)}"]


def _markup(meaning: str) -> str:
    """Return Markdown as Ansible's own markup."""
    return re.sub(r"`([^`]*)`", lambda match: f"C({match[1]})", meaning)
