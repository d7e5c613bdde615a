# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults and choices of options are values that their readers take."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    argument_specs,
    consent,
    log_defaults,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    plan as capture_plan,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import report_dir, variables

SPECS = {
    name: spec
    for name, spec in vars(argument_specs).items()
    if name.isupper() and not name.startswith("_") and isinstance(spec, dict)
}
WITHOUT_FILE = {"terminal", "json", "github"}  # printed, or always written


@pytest.mark.parametrize("name", sorted(SPECS))
def test_a_default_is_one_of_the_choices_and_no_option_with_one_is_required(name):
    for option, declared in SPECS[name].items():
        default = declared.get("default")
        values = default if isinstance(default, list) else [default]
        if "choices" in declared and default is not None:
            assert set(values) <= set(declared["choices"]), option
        assert not (declared.get("required") and "default" in declared), option


def test_levels_are_raised_by_default_only_where_no_consent_is_needed():
    spec = argument_specs.LOG_LEVEL
    components = spec["components"]["default"]
    capture_plan.demand(components, spec["level"]["default"], ())
    capture_plan.demand(components, argument_specs.SCHEDULER_DUMP["level"]["default"], ())
    assert set(components) <= set(log_defaults.COMPONENTS)


@pytest.mark.parametrize("option", ["components", "level", "seconds"])
def test_the_defaults_of_a_capture_are_those_of_its_variables(option):
    variable = variables.VARIABLES["kubemend_capture_" + option]
    default = argument_specs.LOG_LEVEL[option]["default"]
    assert default == (list(variable.default) if option == "components" else variable.default)


def test_every_format_has_somebody_who_writes_it():
    assert set(argument_specs.REPORT_FORMATS) == WITHOUT_FILE | set(report_dir.FACES)


def test_what_a_drain_is_allowed_are_words_of_the_consent():
    words = {value for name, value in vars(consent).items() if name.isupper()}
    assert set(argument_specs.NODE_DRAIN["allow"]["choices"]) <= words
