# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reader of Go sources, and the table of the texts with which components end."""

from __future__ import annotations

import re

import pytest

from tests.messages import (
    classify,
    go_sites,
    go_source,
    matching,
    mine,
    plausible,
    systemd,
    tables,
)
from tests.messages.go_reach import Reach
from tests.messages.tables import Row

ALL = {component: tables.forms(component) for component in tables.COMPONENTS}
ROWS = [row for rows in ALL.values() for row in rows]
GO = r"""
package app

import (
    "errors"
    "fmt"

    "k8s.io/klog/v2"
)

const prefix = "failed to "

var ErrGone = errors.New("it is gone")

func Run(path string, err error) error {
    fldPath := field.NewPath("logging")
    if path == "" {
        return fmt.Errorf(prefix+"run: %w", err)
    }
    if err := check(); err != nil {
        klog.ErrorS(err, "Failed to start", "path", path)
        os.Exit(1)
    }
    errs = append(errs, field.Invalid(fldPath.Child("format"), path, "unsupported"))
    if path == "b" {
        message := fmt.Sprintf("no %s", path)
        return errors.New(message)
    }
    problems = append(problems, fmt.Sprintf("too many of %s", path))
    klog.Fatalf(`bad "quote" in %s`, path)
    go later()
    return check()
}

func check() error { return errors.New("check failed") }

func later() error { return errors.New("later") }

func assembly(a, b []byte) int

func unused() error { return errors.New("unused") }
""".replace("    ", "\t")


def _read() -> tuple[go_source.Source, set[str], list[go_sites.Site]]:
    """Return the source of GO, the functions that Run leads to, and its sites."""
    source = go_source.read("example.org/app/app.go", GO)
    reached = {function.name for _path, function in Reach([source], ()).from_roots(["Run"])}
    sites = [
        site
        for function in source.functions
        for site in go_sites.sites(source.tokens, function.begin, function.end, source.constants)
    ]
    return source, reached, sites


def test_sites_of_go() -> None:
    _source, _reached, sites = _read()
    assert [(site.kind, site.form, site.key) for site in sites] == [
        ("returned", "failed to run: %w", ""),
        ("exit", "Failed to start: %v", ""),
        ("field", "logging.format: Invalid value: %v: unsupported", "logging.format"),
        ("returned", "no %s", ""),
        ("returned", "too many of %s", ""),
        ("fatal", 'bad "quote" in %s', ""),
        ("returned", "check failed", ""),
        ("returned", "later", ""),
        ("returned", "unused", ""),
    ]


def test_functions_of_go() -> None:
    source, reached, _sites = _read()
    assert [function.name for function in source.functions] == ["Run", "check", "later", "unused"]
    assert reached == {"Run", "check"}
    assert source.constants == {"prefix": "failed to "}
    assert source.imports["klog"] == "k8s.io/klog/v2"


@pytest.mark.parametrize("component", tables.COMPONENTS)
def test_classes_are_given(component: str) -> None:
    unknown = [row.form for row in ALL[component] if row.meaning not in classify.CLASSES]
    assert not unknown


def test_rules_of_one_rank_agree() -> None:
    twice = [(row.component, row.form) for row in ROWS if len(classify.meanings(row)) != 1]
    assert not twice


def test_table_is_that_of_the_rules() -> None:
    assert classify.classified(ROWS) == ROWS


def test_forms_are_unique_and_sorted() -> None:
    for rows in ALL.values():
        names = [mine.folded(row.form) for row in rows]
        assert names == sorted(set(names))


def test_components_agree() -> None:
    """A text of several components of Kubernetes has one class."""
    found: dict[str, set[str]] = {}
    for row in ROWS:
        if row.component.startswith("kube"):
            found.setdefault(mine.folded(row.form), set()).add(row.meaning)
    assert not [form for form, classes in found.items() if len(classes) > 1]


def test_lines_by_hand_are_used() -> None:
    names = {(row.component, mine.folded(row.form)) for row in ROWS}
    assert not [line for line in classify.by_hand() if line not in names]


def test_releases_are_those_that_were_read() -> None:
    for component, rows in ALL.items():
        known = set(tables.releases(component))
        assert {row.first for row in rows} | {row.last for row in rows} <= known


def test_keys_are_those_of_configurations() -> None:
    assert not [row for row in ROWS if row.key and row.meaning != "configuration"]


def test_texts_have_no_verbs() -> None:
    left = re.compile(r"%[vwsqd]")
    assert not [row.form for row in ROWS if left.search(plausible.filled(row))]


def test_values_of_verbs() -> None:
    row = Row("kubelet", "open %s on node %q, %d of 3: %w", "returned", "1", "1", "", True)
    assert plausible.filled(row, "no such file") == (
        'open /var/lib/kubelet/example on node "node-1", 3 of 3: no such file'
    )


@pytest.mark.parametrize("component", tables.COMPONENTS)
def test_a_text_has_the_class_of_one_form(component: str) -> None:
    """No text of a form is read as that of a form of another class."""
    wrong = []
    for row in ALL[component]:
        form = matching.matching(plausible.filled(row), component)
        if form is None or form.row.meaning != row.meaning:
            wrong.append((row.form, row.meaning, form and form.row.form))
    assert not wrong


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('failed to run Kubelet: unknown policy: "static"', "configuration"),
        (
            "Failed to start ContainerManager: Failed to enforce Kube Reserved Cgroup Limits on"
            ' "/kubelet.slice": ["kubelet"] cgroup does not exist',
            "configuration",
        ),
        (
            "Failed to start ContainerManager: failed to initialize top level QOS containers:"
            " mkdir /sys/fs/cgroup/memory/kubepods: no space left on device",
            "cgroup",
        ),
        (
            "Failed to start ContainerManager: start cpu manager error: [cpumanager] unable to"
            " determine reserved CPU resources for static policy",
            "configuration",
        ),
        (
            "failed to parse kubelet flag: unknown flag: --cni-bin-dir",
            "configuration",
        ),
        (
            "failed to run Kubelet: Running with swap on is not supported, please disable swap! or"
            " set --fail-swap-on flag to false. /proc/swaps contained: [Filename]",
            "kernel",
        ),
        ("failed to run Kubelet: what nobody knows", ""),
    ],
)
def test_known_texts(text: str, meaning: str) -> None:
    assert matching.meaning(text, "kubelet") == meaning


def test_the_collection_knows_the_results_and_statuses_of_systemd() -> None:
    """All but 255, which is also how klog ends a program; 223 is of releases before the table."""
    lines = [line.split()[:2] for line in systemd.differences()]
    assert lines == [["status", "255/EXCEPTION"], ["status", "223/TCPWRAP"]]
