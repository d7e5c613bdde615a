# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The classes of the messages with which components end: a clause and an advice for each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import message_table


@dataclass(frozen=True)
class MessageClass:
    """Class of messages.

    clause: what is wrong, about the component, as a clause
    advice: what an operator does about it
    """

    clause: str
    advice: str


# Classes of a cause that passes without a change of the machine: what did not answer may do so now.
PASSING = frozenset(("api", "dependency", "network", "runtime"))
CLASSES: Mapping[str, MessageClass] = {
    "configuration": MessageClass(
        "it refuses its configuration",
        "correct what that line names, in the flags or in the file of its configuration",
    ),
    "credential": MessageClass(
        "a certificate, a key or a kubeconfig is missing, not valid or expired",
        "look at the file that the line names, else at those of its flags: whether it is there,"
        " complete, readable and not expired (openssl x509 -noout -subject -dates -in FILE; with"
        " kubeadm, kubeadm certs check-expiration, and kubeadm certs renew NAME)",
    ),
    "api": MessageClass(
        "the API server does not answer it, or refuses what it asks",
        "see whether the API server of its kubeconfig answers (curl -k https://SERVER/livez), and"
        " whether that user may do what the line names (kubectl auth can-i)",
    ),
    "cgroup": MessageClass(
        "a cgroup operation failed; this is not a disk problem",
        "see how the cgroups are mounted (findmnt -t cgroup,cgroup2), how many there are"
        " (num_cgroups of /proc/cgroups), and journalctl -k",
    ),
    "device": MessageClass(
        "it cannot work with the processors or devices of this machine",
        "compare what the line names with lscpu and lspci, and see journalctl -k",
    ),
    "disk": MessageClass(
        "it cannot read or write a file or a folder",
        "look at the path that the line names: free space and inodes (df -h, df -i), owner and mode"
        " (ls -ldZ), and how its file system is mounted (findmnt -T PATH)",
    ),
    "port": MessageClass(
        "it cannot listen on its address",
        "see who listens there (ss -ltnp), and whether the address is one of this machine (ip"
        " address)",
    ),
    "kernel": MessageClass(
        "the kernel refuses what it needs",
        "see journalctl -k, the kernel's version and settings (uname -r, sysctl -a), and what"
        " the security policy refuses (ausearch -m avc, aa-status)",
    ),
    "module": MessageClass(
        "one of its plugins, or a kernel module, does not load",
        "see what the line names: lsmod and modprobe of a kernel's module; of containerd ctr"
        " plugins ls, and its configuration",
    ),
    "runtime": MessageClass(
        "the container runtime does not answer as it needs",
        "see systemctl status and journalctl of the runtime (containerd, crio), and crictl info",
    ),
    "state_file": MessageClass(
        "a file of its own state is damaged, or does not fit the machine or the configuration",
        "look at the file or folder that the line names, and at the file system below it"
        " (journalctl -k); do not delete it before it is known what restores it",
    ),
    "dependency": MessageClass(
        "another service or component that it needs does not answer, or refuses it",
        "see to that one first: its state and its own last log lines",
    ),
    "network": MessageClass(
        "a name is not resolved, or an address is not reached",
        "see whether the name resolves and the address is reached from this machine (getent hosts"
        " NAME, nc -vz ADDRESS PORT, ip route get ADDRESS)",
    ),
    "resources": MessageClass(
        "a resource of this machine, or a limit, is used up or too small",
        "compare what the line names with what the machine has; of open files and inotify the"
        " playbook too_many_open_files shows who holds them",
    ),
    message_table.DEFECT: MessageClass(
        "only a defect of this release ends it with that message",
        "no setting leads to it, by the sources: compare with the known issues of this release, and"
        " install another patch release; report it with that line",
    ),
}
