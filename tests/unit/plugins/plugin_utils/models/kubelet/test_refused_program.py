# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a program from being executed, by the errno and the node's settings."""

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import boot
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    refused_program,
)

RUNC = "/usr/local/bin/runc"
ROOT, LOCAL = boot.Mount("/", options="rw"), boot.Mount("/usr/local", options="rw,noexec,nosuid")


@pytest.mark.parametrize(
    ("line", "answer", "words"),
    [
        (
            f"fork/exec {RUNC}: operation not permitted",
            boot.Boot(fapolicyd=True),
            "fapolicyd runs here",
        ),
        (f'exec "{RUNC}": Operation not permitted', boot.Boot(fapolicyd=False), "not fapolicyd"),
        (f"exec {RUNC}: operation not permitted", boot.Boot(), "fapolicyd, or another program"),
        (
            f"exec {RUNC}: permission denied",
            boot.Boot(mounts=(ROOT, LOCAL)),
            "/usr/local is mounted",
        ),
        (f"exec {RUNC}: permission denied", boot.Boot(mounts=(ROOT,)), f"may not execute {RUNC}"),
        (f"exec {RUNC}: permission denied", boot.Boot(), f"may not execute {RUNC}"),
        # another errno, and another operation
        (f"exec {RUNC}: no such file or directory", boot.Boot(fapolicyd=True), ""),
        (f"open {RUNC}: operation not permitted", boot.Boot(fapolicyd=True), ""),
        ("", boot.Boot(fapolicyd=True), ""),
    ],
)
def test_why_a_program_was_not_executed(line, answer, words):
    refusal = refused_program.read(line, answer)
    assert words in refusal.clause
    assert bool(refusal.clause) == bool(refusal.advice) == bool(words)


def test_a_path_that_a_shell_would_read_is_not_copied():
    refusal = refused_program.read("exec /a;reboot: permission denied", boot.Boot())
    assert "ls -lZ FILE" in refusal.advice
    assert ";reboot" not in refusal.advice
