# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workflows, templates and addresses: they parse, and name only what exists."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs import absolute_links
from tests.gate import stages
from tests.gate.stages import sanity

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
LINK_CHECK = ROOT / ".github" / "lychee.toml"
PLACEHOLDER = "kubemend.example/remediation"


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def commands(path: Path) -> list[str]:
    """Return what the steps of a workflow run, with the values of their matrix put in."""
    found = []
    for job in load(path)["jobs"].values():
        rows = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
        for row in rows:
            for step in job["steps"]:
                command = step.get("run", "")
                for name, value in row.items():
                    command = command.replace(f"${{{{ matrix.{name} }}}}", str(value))
                found.append(command)
    return found


def test_pages_install_a_file_by_a_path():
    """Assert that each page gives pipx a path: it takes a bare name of a file for a package."""
    names = ("README.md", "README.zh-CN.md", "docs/command.md", "command/README.md")
    for name in names:
        text = (ROOT / name).read_text(encoding="utf-8")
        first, *others = re.findall(r"pipx install ([^\s`]+)", text)
        assert first == "./kubemend-*.whl", name
        assert set(others) <= {"./command", "kubemend"}, name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_jobs_with_few_rights(path):
    workflow = load(path)
    assert workflow["on"]
    assert workflow["permissions"]
    for job in workflow["jobs"].values():
        assert job["runs-on"] == "ubuntu-latest"
        assert 0 < job["timeout-minutes"] <= 120
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])


def test_workflows_name_only_targets_sessions_and_stages_that_exist():
    text = "\n".join(command for path in WORKFLOWS for command in commands(path))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets
    nox = (ROOT / "antsibull-nox.toml").read_text(encoding="utf-8")
    named = re.findall(r"^\[sessions[.](\w+)\]", nox, re.MULTILINE)
    sessions = {name.replace("_", "-") for name in named} | {"sanity"}
    assert set(re.findall(r"\bnox -e ([a-z-]+)", text)) <= sessions
    names = {
        name for part in re.findall(r"tests[.]gate --only (\S+)", text) for name in part.split(",")
    }
    assert names
    assert names <= {stage.name for stage in stages.EVERY}
    for module in re.findall(r"python3 -m (tests[.][\w.]+)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module


def test_workflows_run_the_gate_as_root_with_the_python_of_the_job():
    """Tests of node code change owners and mount, and sudo has a PATH of its own."""
    text = "\n".join(command for path in WORKFLOWS for command in commands(path))
    gates = [line for line in text.splitlines() if "-m tests.gate " in line]
    assert len(gates) > len(WORKFLOWS)
    assert all(line.startswith('sudo env "PATH=$PATH" python3 ') for line in gates)


def test_workflows_run_every_supported_ansible_core():
    matrix = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["sanity"]["strategy"]["matrix"]
    pins = {
        path.stem.removeprefix("sanity-") for path in (ROOT / "tests/pins").glob("sanity-*.txt")
    }
    assert set(matrix["core"]) == pins
    assert len(matrix["core"]) == len(pins)
    assert pins == {"2.16", *sanity.NEWEST, *sanity.BETWEEN}
    for core in pins:
        lines = (ROOT / "tests" / "pins" / f"sanity-{core}.txt").read_text(encoding="utf-8")
        assert re.search(rf"^ansible-core=={re.escape(core)}[.]", lines, re.MULTILINE)
    lowest = min(pins, key=lambda core: [int(part) for part in core.split(".")])
    assert load(ROOT / "meta" / "runtime.yml")["requires_ansible"] == f">={lowest}.0"
    for page in ("README.md", "docs/versioning.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        line = next(line for line in text.splitlines() if "ansible-core" in line and "2.21" in line)
        assert pins <= set(re.findall(r"\d[.]\d+", line)), page


def unchecked(link: str) -> bool:
    """Tell whether the check of links passes over a link."""
    # Python 3.10 has no tomllib.
    patterns = re.findall(r"^  '(.+)',$", LINK_CHECK.read_text(encoding="utf-8"), re.MULTILINE)
    return any(re.search(pattern, link) for pattern in patterns)


def test_only_the_weekly_run_checks_links_to_other_places():
    jobs = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    users = {
        name: job
        for name, job in jobs.items()
        if any(step.get("uses", "").startswith("lycheeverse/") for step in job["steps"])
    }
    assert set(users) == {"links"}
    assert users["links"]["if"] == "${{ github.event_name == 'schedule' }}"
    words = shlex.split(users["links"]["steps"][-1]["with"]["args"])
    assert words[words.index("--config") + 1] == LINK_CHECK.relative_to(ROOT).as_posix()
    files = [word for word in words[words.index("--config") + 2 :] if "*" not in word]
    assert files
    assert all((ROOT / name).is_file() for name in files)


@pytest.mark.parametrize(
    "link",
    [
        "https://ADDRESS:6443/livez",
        "https://address/livez",
        "http://localhost/v1/config",
        "http://alertmanager:9093",
        "https://127.0.0.1:2379/health",
        "https://192.0.2.10:6443",
        "https://[::1]:6443/api",
        "https://w.ns.svc:443/validate?timeout=10s",
        "https://kubernetes.default.svc.cluster.local",
        "https://awx.example",
        "https://registry.example.com/v2/a/manifests/1",
        "https://hooks.slack.com/services/x",
        "https://github.com/kubernetes-csi/external-snapshotter/client/config/crd",
    ],
)
def test_the_check_of_links_passes_over_placeholders(link):
    assert unchecked(link)


def test_the_check_of_links_checks_every_link_of_the_documents():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    links = {
        link for text in texts for link in re.findall(r"(?:\]\(|<)(https?://[^\s)>]+)[)>]", text)
    }
    assert len(links) > 100
    assert [link for link in links if unchecked(link)] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_an_issue_template_asks_for_what_is_needed(path):
    template = load(path)
    if path.stem == "config":
        assert template == {"blank_issues_enabled": False}
        return
    assert {"name", "description", "body"} <= set(template)
    fields = [field for field in template["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_a_false_finding_asks_for_an_anonymous_bundle():
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / "false_finding.yml").read_text(encoding="utf-8")
    assert "kubemend_bundle_anonymous=true" in " ".join(text.split())


def test_placeholder_addresses_are_in_one_file():
    galaxy = load(ROOT / "galaxy.yml")
    for name in ("repository", "documentation", "homepage", "issues"):
        assert galaxy[name].startswith("https://")
    listed = subprocess.run(
        ["git", "grep", "-lF", PLACEHOLDER], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert set(listed.stdout.split()) <= {"galaxy.yml", Path(__file__).relative_to(ROOT).as_posix()}


def test_links_of_a_released_readme_lead_into_the_repository():
    text = "[a](docs/a.md#b), [c](https://c.example/d), [e](#f), [g](LICENSE), ![p](docs/p.svg)"
    assert absolute_links.absolute(text, "https://git.example/r/", "0.1.0") == (
        "[a](https://git.example/r/blob/0.1.0/docs/a.md#b), [c](https://c.example/d), [e](#f),"
        " [g](https://git.example/r/blob/0.1.0/LICENSE),"
        " ![p](https://git.example/r/raw/0.1.0/docs/p.svg)"
    )
