# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of a node whose output a test says, one by one or at the same time."""

from ansible_collections.kubemend.remediation.plugins.module_utils.system import command


def replace(monkeypatch, run):
    """Let this function answer each command; it returns the output, or raises an error."""

    def together(argvs, *limits):
        return [_outcome(argv, *limits) for argv in argvs]

    def _outcome(argv, *limits):
        try:
            return run(argv, *limits), None
        except (command.CommandError, OSError) as error:
            return "", error

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(command, "run_together", together)
