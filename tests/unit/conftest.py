# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives real ansible-playbook runs of this collection.

What an operator sees, exit codes included.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.lab.support import results, sampling


def _importable() -> None:
    """`pytest tests/unit` works from any checkout.

    Under a temporary tree of the name that the imports use.
    """
    if importlib.util.find_spec("ansible_collections") is None:
        tree = Path(tempfile.mkdtemp(prefix="kubemend-unit-"))
        atexit.register(shutil.rmtree, tree, ignore_errors=True)
        (tree / "ansible_collections" / "kubemend").mkdir(parents=True)
        (tree / "ansible_collections" / "kubemend" / "remediation").symlink_to(
            Path(__file__).resolve().parents[2]
        )
        sys.path.insert(0, str(tree))


_importable()
settings = importlib.import_module(
    "ansible_collections.kubemend.remediation.plugins.plugin_utils.run.settings"
)

HAS_CONTROLLER = importlib.util.find_spec("ansible.constants") is not None
OF_CONTROLLER = re.compile(
    r"plugins[.](?:plugin_utils|action)\b|support import (?:facts|answers)\b"
)
FULL = os.environ.get("KUBEMEND_TEST_FULL") == "1"
QUICK = os.environ.get("KUBEMEND_TEST_QUICK") == "1"
# The same examples everywhere; the long run looks for others, and keeps what it found where `make
# clean` finds it. What is real becomes an @example in the test.
hypothesis.settings.register_profile(
    "short",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=100,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("short")
LONGER, MOST = 20, 20000  # times as many examples, and no more than these
SHORTER, LEAST = 5, 10  # `make unit`: one example of so many, and no fewer than these


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that does nothing for a minute."""
    made = subprocess.Popen(["sleep", "60"])
    try:
        yield made
    finally:
        made.kill()
        made.wait()


COLLECTIONS = Path(settings.__file__).parents[6]
ACTIONS = Path(__file__).parent / "support" / "action_plugins"
# Port 1 refuses at once: hosts that do not answer, without waiting and without touching this
# machine.
SILENT = "ansible_host=127.0.0.1 ansible_port=1 ansible_connection=ssh"
INVENTORY = f"""
[kube_control_plane]
m1 {SILENT}
m2 {SILENT}
[kube_node]
w1 {SILENT}
[other]
b1 {SILENT}
"""


CURRENT: list[pytest.Item] = []


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "playbook: starts ansible-playbook; `make unit` leaves it out"
    )
    subprocess.Popen.__init__ = _watched(subprocess.Popen.__init__)  # type: ignore[method-assign]


def _watched(start: Any) -> Any:
    """Refuse a playbook to a test that has no marker: `make unit` would run it."""

    @functools.wraps(start)
    def watched(self: Any, args: Any, *rest: Any, **more: Any) -> None:
        words = [str(word) for word in args] if isinstance(args, (list, tuple)) else []
        if "playbook" in words[:5] and CURRENT and not CURRENT[0].get_closest_marker("playbook"):
            raise AssertionError("this test starts a playbook: it needs pytest.mark.playbook")
        start(self, args, *rest, **more)

    return watched


class Elsewhere(pytest.Module):
    """A file of tests that cannot be imported here, and is empty."""

    def collect(self) -> list[pytest.Item]:
        return []


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> Any:
    """Leave out what needs the controller's code where `ansible-test units` hides that.

    It runs the tests of modules and of module_utils so. pytest alone runs all of them.
    """
    if HAS_CONTROLLER or not OF_CONTROLLER.search(module_path.read_text(encoding="utf-8")):
        return None
    return Elsewhere.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    CURRENT[:] = [item]
    try:
        return (yield)
    finally:
        CURRENT.clear()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what starts playbooks, and give each property the examples of this kind of run."""
    # A module names its own fixtures that start playbooks in PLAYBOOK_FIXTURES.
    module = getattr(item, "module", None)
    fixtures = {"operator"} | getattr(module, "PLAYBOOK_FIXTURES", set())
    if fixtures & set(getattr(item, "fixturenames", ())):
        item.add_marker("playbook")
    test = getattr(item, "obj", None)
    if (FULL or QUICK) and hypothesis.is_hypothesis_test(test):
        inner = getattr(test, "__func__", test)
        before = (
            getattr(inner, "_hypothesis_internal_use_settings", None) or hypothesis.settings.default
        )
        further = looking_further if FULL else looking_briefly
        inner._hypothesis_internal_use_settings = further(before)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect in the gate's run the playbooks that this commit does not draw.

    Who names a file or a test gets all of it.
    """
    if os.environ.get("KUBEMEND_DRAW") != "1":
        return
    playbooks = [item.nodeid for item in items if item.get_closest_marker("playbook")]
    out = sampling.playbooks_left_out(playbooks, results.tree()["commit"])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in out])
    items[:] = [item for item in items if item.nodeid not in out]


def looking_briefly(before: hypothesis.settings) -> hypothesis.settings:
    """Return the settings for `make unit`: the first examples of `make test`."""
    fewer = max(LEAST, before.max_examples // SHORTER)
    return hypothesis.settings(before, max_examples=min(before.max_examples, fewer))


def looking_further(before: hypothesis.settings) -> hypothesis.settings:
    """Return the settings for the long run."""
    return hypothesis.settings(
        before,
        derandomize=False,
        database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
        print_blob=True,
        deadline=None,
        max_examples=max(before.max_examples, min(MOST, before.max_examples * LONGER)),
    )


@dataclass
class Finished:
    """A run that ended."""

    rc: int
    stdout: str
    stderr: str
    folder: Path

    @property
    def output(self) -> str:
        return self.stdout + self.stderr

    @property
    def words(self) -> str:
        """Return all output as one line, so that Ansible's own wrapping does not matter."""
        return " ".join(self.output.split())

    def report(self) -> dict[str, Any]:
        """report.json, as the published schema wants it."""
        from tests import schemas  # not before the collection can be imported

        return schemas.checked(
            "report",
            json.loads((self.folder / "report" / "report.json").read_text(encoding="utf-8")),
        )


class Operator:
    """Somebody with a folder, an inventory and a terminal of 80 columns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cwd = folder
        (folder / "inventory.ini").write_text(INVENTORY, encoding="utf-8")

    def run(
        self,
        playbook: str,
        *args: str,
        inventory: str | None = "inventory.ini",
        report_dir: str | None = "report",
        env: dict[str, str] | None = None,
    ) -> Finished:
        """Run a playbook to its end."""
        command, options = self._command(playbook, args, inventory, report_dir, env)
        done = subprocess.run(command, capture_output=True, check=False, timeout=900, **options)
        return Finished(done.returncode, done.stdout, done.stderr, self.folder)

    def start(
        self,
        playbook: str,
        *args: str,
        inventory: str | None = "inventory.ini",
        report_dir: str | None = "report",
        env: dict[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Start a playbook whose output goes to two pipes."""
        command, options = self._command(playbook, args, inventory, report_dir, env)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def _command(
        self,
        playbook: str,
        args: tuple[str, ...],
        inventory: str | None,
        report_dir: str | None,
        env: dict[str, str] | None,
    ) -> tuple[list[str], dict[str, Any]]:
        where = ["-i", str(self.folder / inventory)] if inventory else []
        if report_dir:
            where += ["-e", f"kubemend_report_dir={self.folder / report_dir}"]
        if "/" not in playbook and not playbook.endswith(".yml"):
            playbook = f"kubemend.remediation.{playbook}"
        clean = {
            name: value
            for name, value in os.environ.items()
            # Users keep bytecode, and half of a run's time is compilation without it. Their Python
            # keeps back what goes to a pipe.
            if not name.startswith("ANSIBLE_")
            and name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
        }
        clean.update(
            ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS),
            ANSIBLE_ACTION_PLUGINS=str(ACTIONS),
            ANSIBLE_NOCOLOR="1",
            HOME=str(self.folder / "home"),
            ANSIBLE_LOCALHOST_WARNING="0",
            ANSIBLE_INVENTORY_UNPARSED_WARNING="0",
            PYTHONPATH="",
            COLUMNS="80",
            ANSIBLE_DEPRECATION_WARNINGS="0",
            LC_ALL="C.UTF-8",
        )
        clean.update(env or {})
        command = [sys.executable, "-m", "ansible", "playbook", playbook, *where, *args]
        options = {"cwd": self.cwd, "env": clean, "stdin": subprocess.DEVNULL, "text": True}
        return command, options

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def record(self, folder: str, host: str, **more: Any) -> Path:
        """Return a small evidence document of a host."""
        document = {
            "schema": "kubemend.evidence/1",
            "host": host,
            "node": None,
            "cluster_key": None,
            "status": "unreachable",
            "reason": "timed out",
            "groups": ["control_plane"],
            "collected_at": "2026-11-21T09:00:00Z",
            "tool_version": "0.1.0",
            "duration_ms": 0,
            "collectors": {},
            **more,
        }
        return self.write(f"{folder}/{host}.json", json.dumps(document))


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    (tmp_path / "home").mkdir()
    return Operator(tmp_path)
