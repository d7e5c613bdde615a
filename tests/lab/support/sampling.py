# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make test` runs of slow tests: a part that the commit draws.

The commit draws one release of Kubernetes, so that the lab builds and starts only that one. Tests
that no other test stands for always run. Another commit draws others, the same commit the same.
`make test-full` runs all of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

# Of each family: how many are drawn, and parts of the ids of its tests. A test belongs to the
# first family that has it.
TESTS: dict[str, tuple[int, tuple[str, ...]]] = {
    "automation": (1, ("test_rulebook.py::", "test_partial_fleet.py::")),
    "levels": (
        1,
        ("test_capture.py::", "test_capture_restart.py::", "test_scheduler_capture.py::"),
    ),
    "drains": (1, ("test_drain.py::",)),
    "failing repairs": (1, ("test_failing_repairs.py::",)),
    "interruptions": (1, ("test_interrupted.py::",)),
    "repairs": (
        1,
        (
            "test_planted.py::",
            *(
                f"test_repair.py::test_{name}"
                for name in (
                    "two_masters",
                    "configuration_file",
                    "stray_backup",
                    "a_dead_kubelet",
                    "broken_yaml",
                    "an_image_that_is_gone",
                    "without_an_api_server",
                )
            ),
        ),
    ),
    "pods that do not start": (1, ("test_pods_not_starting.py::",)),
    "symptoms": (
        1,
        (
            "test_admission.py::",
            "test_pinning.py::",
            "test_reset.py::",
            "test_open_files.py::",
            "test_swap.py::",
            "test_boot.py::",
            "test_node_back.py::",
            "test_manual_fixes.py::",
            "test_no_writes.py::",
            "test_repeated_errors.py::",
            "test_component_restart.py::",
        ),
    ),
}
# Of these files one is drawn: each costs minutes before its first test, most for a cluster of its
# own.
FILES = (
    "test_kubespray.py::",
    "test_repair_api.py::",
    "test_roles.py::",
    "test_power_cut.py::",
    "test_etcd_space.py::",
    "test_before_reboot.py::",
    "test_forgotten_node.py::",
    "test_pending.py::",
    "test_bringup.py::test_what_a_killed",
)
# Tests on a virtual machine: one of these files is drawn, and of it so many tests. An emulated
# processor takes minutes to boot and join, and most tests boot it again. The other files, and other
# releases on such a machine, are the whole matrix's: they take longer, or are new.
MACHINES = "/vm/"
MACHINE_TESTS = 1
MACHINE_FILES = ("vm/test_clock.py::", "vm/test_interrupted_repairs.py::")
NO_MACHINE = "[v1.18.4"
# Scenarios of molecule on plain nodes: the audit's always runs, and one of these.
SCENARIOS = ("kubelet_service", "open_files", "swap_off")
# Of so many unit tests of a file that start a playbook, one runs.
PLAYBOOKS = 3


def left_out(ids: Iterable[str], seed: str) -> set[str]:
    """Return the ids of tests that this seed leaves to others."""
    ids = sorted(ids)
    families: dict[str, list[str]] = {name: [] for name in TESTS}
    for one in ids:
        family = next(
            (name for name, (_count, parts) in TESTS.items() if any(part in one for part in parts)),
            None,
        )
        if family:
            families[family].append(one)
    out: set[str] = set()
    for name, members in families.items():
        out |= set(members) - set(pick(members, TESTS[name][0], f"{seed} {name}"))
    (file,) = pick(FILES, 1, f"{seed} files")
    out |= {one for one in ids if any(other in one for other in FILES if other != file)}
    return out | _on_machines_left_out([one for one in ids if MACHINES in one], seed)


def _on_machines_left_out(ids: Sequence[str], seed: str) -> set[str]:
    """Return the tests on a virtual machine but those drawn, which are of one file."""
    (file,) = pick(MACHINE_FILES, 1, f"{seed} machines")
    members = [one for one in ids if file in one and NO_MACHINE not in one]
    return set(ids) - set(pick(members, MACHINE_TESTS, f"{seed} {file}"))


def has_machine(version: str) -> bool:
    """Return whether a drawn test of this release may need a virtual machine."""
    return NO_MACHINE not in f"[{version}"


def release(versions: Sequence[str], seed: str) -> str:
    """Return the release of Kubernetes that this seed draws."""
    (drawn,) = pick(versions, 1, f"{seed} release")
    return drawn


def scenarios_left_out(seed: str) -> list[str]:
    """Return the scenarios that this seed leaves to others."""
    drawn = pick(SCENARIOS, 1, f"{seed} scenarios")
    return [name for name in SCENARIOS if name not in drawn]


def playbooks_left_out(ids: Iterable[str], seed: str) -> set[str]:
    """Return the unit tests with a playbook that this seed leaves to others.

    One of three in each file runs: a playbook costs seconds, and such tests are half of the time
    of all unit tests.
    """
    files: dict[str, list[str]] = {}
    for one in sorted(ids):
        files.setdefault(one.partition("::")[0], []).append(one)
    out: set[str] = set()
    for name, members in files.items():
        out |= set(members) - set(pick(members, -(-len(members) // PLAYBOOKS), f"{seed} {name}"))
    return out


def pick(names: Iterable[str], count: int, seed: str) -> list[str]:
    """Pick that many of them, in their order."""
    names = list(names)
    chosen = set(random.Random(seed).sample(names, min(count, len(names))))
    return [name for name in names if name in chosen]
