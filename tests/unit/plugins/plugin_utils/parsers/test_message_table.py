# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of forms, and how a text is compared with one form."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import message_table
from tests.messages import plausible, product, tables


def values(form: str, text: str, nested: bool = False) -> tuple[str, ...] | None:
    """Return what stands for the verbs of a form, None where it is not that of the text."""
    built = message_table.form(form, nested, "", "configuration")
    spans = built.spans(message_table.text(text))
    if spans is None:
        return None
    return tuple(text[begin:end] for begin, end in spans)


@pytest.mark.parametrize("component", product.COMPONENTS)
def test_the_tables_are_those_of_the_mined_forms(component: str) -> None:
    path = product.FOLDER / f"{component}.tsv"
    command = "python3 -m tests.messages product"
    assert path.read_text(encoding="utf-8") == product.text(component), command


def test_there_is_a_file_for_each_component_alone() -> None:
    assert set(product.COMPONENTS) == message_table.COMPONENTS
    assert set(tables.COMPONENTS) - message_table.COMPONENTS == {"runc"}
    names = {path.name for path in product.FOLDER.iterdir()}
    assert names == {f"{component}.tsv" for component in product.COMPONENTS}


@pytest.mark.parametrize("component", product.COMPONENTS)
def test_each_form_is_read_as_one_of_its_class(component: str) -> None:
    table, wrong = message_table.table(component), []
    for row in tables.forms(component):
        match = table.match(message_table.text(plausible.filled(row)))
        if match is None or match[0].meaning != row.meaning:
            wrong.append((row.form, row.meaning, match and match[0].text))
    assert not wrong


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("open %s: %w", "OPEN /a: no: more", ("/a", "no: more")),
        ("open %s: %w", "open /a", None),
        ("open %s: %w", "reopen /a: no", None),
        ("%d of %d", "3 of 4", ("3", "4")),
        ("%d of %d", "3 of x", None),
        ("unknown policy: %q", 'unknown policy: "a b"', ('"a b"',)),
        ("unknown policy: %q", "unknown policy: a", ("a",)),
        ("unknown policy: %q", "unknown policy: a b", None),
        ('unknown policy: "%s"', 'unknown policy: "a"', ('"a"',)),
        ("100%% of %v (%[1]q)", '100% of x ("y")', ("x", '"y"')),
        ("%v is %t, %s", "a is true, b", ("a", "true", "b")),
        ("no verb", "no verb", ()),
        ("no verb", "no verbs", None),
        ("no verb", "no no verb", None),
        ("%v: a: %v", "x: a: y: a: z", ("x", "y: a: z")),
        ("%v", "", None),
        ("a %v a", "a a", None),
        ("a %v a", "a  a", None),
    ],
)
def test_a_text_of_a_form(form: str, text: str, expected: tuple[str, ...] | None) -> None:
    assert values(form, text) == expected


@pytest.mark.parametrize(
    ("form", "nested", "inner"),
    [
        ("run %s: %w", False, 1),
        ("%w: %s", True, 0),
        ("run %s: %v", True, 1),
        ("run %s: %v", False, None),
        ("error %v, path %q", True, 0),
        ("failed", True, None),
    ],
)
def test_the_verb_of_the_error(form: str, nested: bool, inner: int | None) -> None:
    assert message_table.form(form, nested, "", "wrapper").inner == inner


def test_a_component_without_a_table_has_no_forms() -> None:
    for component in ("kube-proxy", "", "../messages/etcd"):
        assert message_table.table(component).forms == ()
        assert message_table.table(component).match(message_table.text("boom")) is None


def test_letters_that_have_two_in_lower_case_keep_their_place() -> None:
    assert len(message_table.lowered("İA")) == 2
