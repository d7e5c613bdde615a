# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A systemctl with four units."""

from ansible_collections.kubemend.remediation.plugins.module_utils.system import systemd

SHOWN = """\
Id=kubelet.service
Names=kubelet.service
LoadState=loaded
ActiveState=active
LimitNOFILE=7

Id=sshd.service
Names=ssh.service sshd.service
LoadState=loaded
ActiveState=active

Id=swap.img.swap
Names=swap.img.swap
LoadState=loaded
ActiveState=active

Id=crio.service
Names=crio.service
LoadState=not-found
ActiveState=inactive
"""


def replace_systemctl(monkeypatch):
    """Return (the commands that systemctl got, its answers by subcommand)."""
    asked, answers = [], {"show": SHOWN, "is-enabled": "disabled\n"}

    def run(argv, seconds=5, limit=1048576):
        asked.append(argv)
        if isinstance(answers[argv[1]], Exception):
            raise answers[argv[1]]
        return answers[argv[1]]

    monkeypatch.setattr(systemd.command, "run", run)
    monkeypatch.setattr(systemd, "_told", {})
    monkeypatch.setattr(systemd, "_states", {})
    return asked, answers
