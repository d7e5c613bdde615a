# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection says of itself.

Metadata, documentation of modules and roles, against what there is.
"""

from __future__ import annotations

import ast
import fnmatch
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.doc_fragments import attributes
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import settings, variables

ROOT = Path(settings.__file__).parents[3]
# The view of the checkout that Ansible has holds only what is installed.
CHECKOUT_ROOT = Path(__file__).resolve().parents[2]
MODULES = {path.stem: path for path in sorted((ROOT / "plugins" / "modules").glob("*.py"))}
ROLES = sorted((ROOT / "roles").iterdir())
ALLOWED = {
    "kubemend_report_formats": variables.FORMATS,
    "kubemend_allow": variables.REFUSALS,
    "kubemend_fail_on": variables.FAIL_ON,
    "kubemend_capture_components": variables.COMPONENTS,
}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def parts(name: str) -> tuple[ast.Module, dict[str, Any]]:
    """Return (the code of a module, its DOCUMENTATION, EXAMPLES and RETURN)."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    found = {
        node.targets[0].id: yaml.safe_load(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and node.targets[0].id.isupper()
    }
    return tree, found


def test_galaxy_knows_what_the_collection_is():
    galaxy = load(ROOT / "galaxy.yml")
    assert {
        "namespace",
        "name",
        "version",
        "readme",
        "authors",
        "description",
        "license_file",
        "tags",
        "dependencies",
        "repository",
        "build_ignore",
    } <= set(galaxy)
    assert all(galaxy[name] for name in galaxy if name != "dependencies")
    assert re.fullmatch(r"[0-9]+[.][0-9]+[.][0-9]+", galaxy["version"])
    assert galaxy["dependencies"] == {}
    assert (galaxy["namespace"], galaxy["name"]) == ("kubemend", "remediation")
    assert (ROOT / galaxy["readme"]).is_file()


def test_the_collection_requires_the_core_that_is_tried():
    # the stage sanity-2.16 runs playbooks and modules on it
    assert load(ROOT / "meta" / "runtime.yml")["requires_ansible"] == ">=2.16.0"


def test_the_action_group_has_the_modules_that_share_its_option():
    groups = load(ROOT / "meta" / "runtime.yml")["action_groups"]
    fragment = yaml.safe_load(attributes.ModuleDocFragment.ACTION_GROUP)
    stated = fragment["attributes"]["action_group"]
    assert stated["membership"] == [f"kubemend.remediation.{name}" for name in groups]
    assert all(f"group/{name}" in stated["description"] for name in stated["membership"])
    documents = {name: parts(name)[1]["DOCUMENTATION"] for name in MODULES}
    sharing = [name for name in MODULES if "kubeconfig" in documents[name]["options"]]
    naming = [
        name
        for name in MODULES
        if "kubemend.remediation.attributes.action_group"
        in documents[name]["extends_documentation_fragment"]
    ]
    assert groups == {"kubemend": sorted(sharing)}
    assert sorted(naming) == sorted(sharing)


def test_every_action_has_a_module_to_document_it():
    assert {path.stem for path in (ROOT / "plugins" / "action").glob("*.py")} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_states_its_attributes(name):
    _dummy, said = parts(name)
    documentation = said["DOCUMENTATION"]
    fragments = documentation["extends_documentation_fragment"]
    assert "kubemend.remediation.attributes" in fragments
    stated = (
        {"check_mode", "diff_mode", "idempotent"}
        if "kubemend.remediation.attributes.info" in fragments
        else set()
    )
    stated |= set(documentation.get("attributes", {}))
    assert stated == {"check_mode", "diff_mode", "idempotent"} | (
        {"action"} if (ROOT / "plugins" / "action" / f"{name}.py").exists() else set()
    )
    assert documentation["version_added"] == "0.1.0"
    assert said["EXAMPLES"]


@pytest.mark.parametrize("name", MODULES)
def test_check_mode_is_supported_where_the_module_says_so(name):
    tree, said = parts(name)
    documentation = said["DOCUMENTATION"]
    stated = documentation.get("attributes", {}).get("check_mode", {}).get("support")
    if stated is None:
        assert (
            "kubemend.remediation.attributes.info"
            in documentation["extends_documentation_fragment"]
        )
        stated = "full"
    behaves = [
        keyword.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "supports_check_mode"
    ]
    # else the action alone does it
    runs = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    assert behaves == [stated != "none"] * len(runs)
    assert runs or (ROOT / "plugins" / "action" / f"{name}.py").exists()


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_returns_has_samples(name):
    def lacking(values, where):
        for key, value in values.items():
            below = value.get("contains")
            if below:
                yield from lacking(below, f"{where}.{key}")
            elif "sample" not in value:
                yield f"{where}.{key}"
            if not (
                value.get("description")
                and value.get("type")
                and (where != "RETURN" or value.get("returned"))
            ):
                yield f"{where}.{key}: description, type, returned"

    assert not list(lacking(parts(name)[1]["RETURN"], "RETURN"))


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_role_allows_what_the_settings_allow(role):
    options = load(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name for name, option in options.items() if "choices" in option} >= set(ALLOWED) & set(
        options
    )
    for name, allowed in ALLOWED.items():
        if name in options:
            assert options[name]["choices"] == list(allowed), name


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_role_says_what_check_mode_does(role):
    readme = " ".join((role / "README.md").read_text(encoding="utf-8").split())
    described = " ".join(
        load(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["description"]
    )
    assert re.search(
        r"`--check( --diff)?` (prints the plan and changes nothing|shows what would be raised)",
        readme,
    )
    assert "heck mode" in described or "--check" in described


def test_what_is_public_and_how_weaknesses_are_reported():
    reports, security = (
        " ".join((ROOT / name).read_text(encoding="utf-8").split())
        for name in ("docs/reports.md", "SECURITY.md")
    )
    assert (
        "The collection has semantic versions. Public, and changed only by a new major version"
        in reports
    )
    assert "fault codes: what one means, and that it is never given to another fault" in reports
    assert "the fields of `report.json`" in reports
    assert "Please report a weakness privately" in security
    assert "Supported versions" in security


PAGES = (".md", ".rst", ".yml", ".yaml", ".j2", ".txt", ".service", ".timer", ".cfg", ".toml")
CHECKOUT = "From a git checkout"
# The same in Chinese.
CHECKOUTS = (CHECKOUT, "从 git 检出")


def shipped() -> list[Path]:
    """Yield the pages that the artefact holds, by galaxy.yml."""
    ignored = [*load(ROOT / "galaxy.yml")["build_ignore"], "galaxy.yml"]

    def kept(path: Path) -> bool:
        name = path.relative_to(ROOT).as_posix()
        return not any(fnmatch.fnmatch(name, pattern) for pattern in ignored)

    def below(folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            if kept(path):
                yield from below(path) if path.is_dir() else [path]

    return [path for path in below(ROOT) if path.suffix in PAGES]


def test_the_artefact_has_the_tables_of_messages():
    folder = ROOT / "plugins" / "plugin_utils" / "parsers" / "messages"
    names = [path.relative_to(ROOT).as_posix() for path in folder.iterdir()]
    ignored = load(ROOT / "galaxy.yml")["build_ignore"]
    assert names
    assert not [name for name in names for pattern in ignored if fnmatch.fnmatch(name, pattern)]


LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")


def test_links_of_the_artefact_lead_to_what_it_holds():
    ignored = [*load(ROOT / "galaxy.yml")["build_ignore"], "galaxy.yml"]
    lost = []
    for page in (path for path in shipped() if path.suffix == ".md"):
        text = "\n".join(outside_checkout(page.read_text(encoding="utf-8")))
        for target in LINK.findall(text):
            path, _hash, _anchor = target.partition("#")
            if not path or "://" in path:
                continue
            there = Path(os.path.normpath(page.relative_to(ROOT).parent / path)).as_posix()
            kept = not any(fnmatch.fnmatch(there, pattern) for pattern in ignored)
            if not (kept and (CHECKOUT_ROOT / there).exists()):
                lost.append(f"{page.relative_to(ROOT)}: {target}")
    assert not lost, "\n".join(lost)


def test_the_readme_is_short_and_begins_with_the_installation():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 180
    headings = [line for line in lines if line.startswith("## ")]
    assert headings[0] == "## Install"
    assert headings[-1] == f"## {CHECKOUT}"


def outside_checkout(text: str) -> Iterator[str]:
    """Yield the lines of a page that are in no section for a checkout."""
    inside, fenced = 0, False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        heading = None if fenced else re.match(r"(#+) (.*)", line)
        if heading and (not inside or len(heading[1]) <= inside):
            inside = len(heading[1]) if heading[2] in CHECKOUTS else 0
        if not inside:
            yield line


def test_what_is_installed_speaks_of_make_only_to_who_has_a_checkout():
    assert not any(path.name == "Makefile" for path in shipped())
    assert "Makefile" in load(ROOT / "galaxy.yml")["build_ignore"]
    targets = re.findall(
        r"^([a-z][a-z-]*):", (CHECKOUT_ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {"audit", "test"} <= set(targets)
    spoken = re.compile(rf"\bmake (?:{'|'.join(targets)})\b|`+make\b|Makefile")
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in shipped()
        for line in outside_checkout(path.read_text(encoding="utf-8"))
        if spoken.search(line)
    ]
    assert not found, "\n".join(found)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (
        readme.index("ansible-galaxy collection install")
        < readme.index(f"## {CHECKOUT}")
        < readme.index("make audit")
        < readme.index("make test")
    )
