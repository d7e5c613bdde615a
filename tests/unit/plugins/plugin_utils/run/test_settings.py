# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubemend_* variables: defaults, the types of `-e name=value`, one sentence a mistake."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import settings
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.settings import (
    SettingsError,
    check,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.variables import VARIABLES


def test_defaults_are_those_of_the_interface():
    found = check({"ansible_host": "m1", "other": 1})
    assert found.control_plane_group == "kube_control_plane"
    assert found.node_group == "kube_node"
    assert (found.become, found.max_risk, found.max_unavailable, found.allow) == (True, 0, 1, ())
    assert (found.fail_on, found.faults, found.deep, found.timeout) == ("never", None, False, 30)
    assert (found.evidence, found.report_dir, found.report_formats) == (
        (),
        None,
        ("terminal", "json", "html"),
    )
    with pytest.raises(AttributeError):
        getattr(found, "nothing_of_the_kind")  # noqa: B009  (the expression alone is B018)
    assert copy.deepcopy(found).timeout == 30


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("become", "false", False),
        ("become", "Yes", True),
        ("become", 1, True),
        ("become", False, False),
        ("timeout", "45", 45),
        ("timeout", 3600, 3600),
        ("deep", "on", True),
        ("allow", "fenced", ("fenced",)),
        ("allow", "fenced, api_down", ("fenced", "api_down")),
        ("allow", "[fenced]", ("fenced",)),
        ("allow", ["fenced", "fenced"], ("fenced",)),
        ("allow", [], ()),
        ("faults", "all", None),
        ("faults", ["all"], None),
        ("faults", "km101,KM102", frozenset(("KM101", "KM102"))),
        ("evidence", "a,b", ("a,b",)),
        ("evidence", ["a", "b"], ("a", "b")),
        ("evidence", "[a, b]", ("a", "b")),
        ("report_formats", "json", ("json",)),
        ("report_formats", "[terminal]", ("terminal",)),
        ("hosts", ["m1", "m2"], "m1:m2"),
        ("hosts", "m*:!m2", "m*:!m2"),
        ("fail_on", "critical", "critical"),
        ("severity", {"km410": "info"}, {"KM410": "info"}),
        ("severity", "{KM410: info, KM514: warning}", {"KM410": "info", "KM514": "warning"}),
        ("severity", {}, {}),
        ("pod", "default/job-1", "default/job-1"),
        ("pod", "0b4f3c1e-8a3b-4d7e-9d62-0c5a4e1f2a3b", "0b4f3c1e-8a3b-4d7e-9d62-0c5a4e1f2a3b"),
        ("capture_components", "kubelet,kube-scheduler", ("kubelet", "kube-scheduler")),
        ("capture_level", "6", 6),
        ("capture_seconds", "60", 60),
        ("capture_match", "a(b|c)+", "a(b|c)+"),
        ("run_id", "last", "last"),
        ("run_id", "20261121T090000Z-1a2b3c", "20261121T090000Z-1a2b3c"),
        ("cpu_manager_policy", "none", "none"),
        ("reserved_cpus", 0, "0"),
        ("reserved_cpus", " 0-1,4", "0-1,4"),
        ("reserved_cpus", "none", ""),
        ("kubeconfig", None, None),
        ("expect_pinning", "app in (db, cache),!canary", "app in (db, cache),!canary"),
    ],
)
def test_values_as_yaml_and_as_text(name, given, expected):
    assert getattr(check({f"kubemend_{name}": given}), name) == expected


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("become", "perhaps", "true or false"),
        ("become", [], "true or false"),
        ("become", 2, "true or false"),
        ("max_risk", 4, "a whole number from 0 to 3"),
        ("max_risk", "high", "a whole number from 0 to 3"),
        ("max_risk", True, "a whole number from 0 to 3"),
        ("timeout", 0, "a whole number from 1 to 3600"),
        ("timeout", 1.5, "a whole number from 1 to 3600"),
        ("timeout", "30s", "a whole number from 1 to 3600"),
        ("allow", "everything", "a list of api_down, fenced"),
        ("allow", {"fenced": 1}, "a list"),
        ("allow", "[a", "a list"),
        ("cpu_manager_policy", "dynamic", "one of none, static"),
        ("reserved_cpus", "", "a list of CPUs such as 0-1,4"),
        ("reserved_cpus", True, "a list of CPUs"),
        ("reserved_cpus", "a", "a list of CPUs"),
        ("fail_on", "error", "one of never, unknown, warning, critical"),
        ("fail_on", False, "one of never"),
        ("faults", "KM1", "all, or a list of fault codes"),
        ("faults", [], "all, or a list of fault codes"),
        ("report_formats", [], "a list of terminal, json, html, junit"),
        ("report_formats", "pdf", "a list of terminal, json, html, junit"),
        ("evidence", [], "a path or a list of paths"),
        ("evidence", "", "a text of one line"),
        ("report_dir", "", "a text of one line that is not empty"),
        ("report_dir", "a\nb", "a text of one line"),
        ("report_dir", ["a"], "a text"),
        ("kubectl", True, "a text"),
        ("hosts", [], "a text"),
        ("pod", "just-a-name", "namespace/name or the UID"),
        ("run_id", "yesterday", "a run id such as"),
        (
            "capture_components",
            "kube-proxy",
            "a list of kubelet, kube-scheduler, kube-controller-manager, kube-apiserver",
        ),
        ("capture_components", "", "a list of kubelet, kube-scheduler"),
        ("capture_level", 11, "a whole number from 0 to 10"),
        ("capture_level", -1, "a whole number from 0 to 10"),
        ("capture_seconds", 0, "a whole number from 1 to 86400"),
        ("capture_seconds", 86401, "a whole number from 1 to 86400"),
        ("capture_match", "a(b", "a regular expression of Python (missing )"),
        ("capture_match", "a{99999999999999999999}", "a regular expression of Python ("),
        ("capture_match", "", "a text of one line"),
        (
            "expect_pinning",
            "app=db=x",
            (
                "a label selector such as app=db,tier!=test or 'app in (db, cache)' ('app=db=x' is"
                " no requirement)"
            ),
        ),
        ("expect_pinning", "app,", "(nothing is no requirement)"),
        ("expect_pinning", ["app=db"], "a text"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_name_value_and_what_is_allowed(name, given, allowed):
    with pytest.raises(SettingsError) as caught:
        check({f"kubemend_{name}": given}, location=" (host m1)")
    message = str(caught.value)
    assert message.startswith(f"kubemend_{name} (host m1) is ")
    assert allowed in message
    assert "\n" not in message
    assert message.endswith(".")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("kubemend_fail_an", "kubemend_fail_on"),
        ("kubemend_host", "kubemend_hosts"),
        ("kubemend_", "kubemend_pod"),
        ("kubemend_report_directory", "kubemend_report_dir"),
        ("kubemend_max_risks", "kubemend_max_risk"),
    ],
)
def test_an_unknown_name_is_an_error_that_names_the_nearest(name, nearest):
    with pytest.raises(
        SettingsError,
        match=f"^{name} is not a variable of kubemend; the nearest one is {nearest}\\.$",
    ):
        check({name: 1})


def test_unknown_codes_name_the_nearest():
    codes = ("KM101", "KM102", "KM901")
    assert check({"kubemend_faults": "KM901"}, codes).faults == {"KM901"}
    with pytest.raises(
        SettingsError, match="KM902, which this version does not judge; the nearest one is KM901"
    ):
        check({"kubemend_faults": ["KM902"]}, codes)


def test_a_value_is_shown_in_one_short_printable_line():
    assert settings.shown("a\x1b[31m\n") == r"'a\x1b[31m\n'"
    assert len(settings.shown("x" * 500)) == 80
    assert settings.shown(["a"]) == "['a']"


def test_every_default_passes_its_own_check():
    for name, variable in VARIABLES.items():
        if variable.default is not None and variable.default != ():
            assert check({name: variable.default}).values[name] == variable.default, name


def test_run_wide_variables_must_agree_and_others_need_not():
    one = check({"kubemend_timeout": 10})
    assert settings.differing(one, check({"kubemend_become": False})) is None
    assert settings.differing(one, check({"kubemend_fail_on": "unknown"})) == "kubemend_fail_on"


@pytest.mark.parametrize(
    "name", ["kubemend_max_unavailable", "kubemend_drain_timeout", "kubemend_lock_ttl"]
)
def test_what_bounds_the_whole_run_is_not_taken_from_its_first_host(name):
    """One plan is made for all hosts.

    A test cluster's generous bound must not drain the nodes of another.
    """
    assert settings.differing(check({}), check({name: 7})) == name


@pytest.mark.parametrize(
    "given",
    [
        "KM410",
        "{KM410: none}",
        {"KM410": "INFO"},
        {"KM41": "info"},
        {"KM4*": "info"},
        ["KM410"],
        {"KM410": ["info"]},
        "{KM410: info, KM410: warning}",
        {"KM410": "info", "km410": "warning"},
        "{KM410: [",
    ],
)
def test_a_severity_that_is_none_is_refused(given):
    with pytest.raises(SettingsError, match="kubemend_severity is"):
        check({"kubemend_severity": given})


def test_a_severity_of_an_unknown_code_names_the_nearest_one():
    with pytest.raises(SettingsError, match=r"kubemend_severity names KM411, .*KM410"):
        check({"kubemend_severity": {"KM411": "info"}}, codes=["KM410", "KM514"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("severity", {"KM1110": "info"}),
        ("severity", "{KM111O: info}"),
        ("severity", {"km11": "info"}),
        ("faults", "KM1110"),
        ("faults", ["KM514", "111"]),
    ],
)
def test_what_has_no_form_of_a_code_names_the_nearest_one_too(name, value):
    with pytest.raises(SettingsError, match=f"^kubemend_{name} is .* is KM111[.]$"):
        check({f"kubemend_{name}": value}, codes=["KM111", "KM514"])


@pytest.mark.parametrize("code", ["KM4*", "swap"])
def test_what_is_like_no_code_names_none(code):
    with pytest.raises(SettingsError) as caught:
        check({"kubemend_severity": {code: "info"}}, codes=["KM410", "KM514"])
    assert "nearest" not in str(caught.value)
