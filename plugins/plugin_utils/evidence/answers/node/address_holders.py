# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `address_holders`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Holder:
    """A socket with a port that a program wants, and the process that has it.

    kind: listen, datagram, or connection for one that leads from this port elsewhere
    peer: where a connection leads to
    pid: None where no process that was seen has the socket
    """

    kind: str = ""
    address: str = ""
    peer: str = ""
    pid: int | None = None
    comm: str = ""
    unit: str | None = None
    pod_uid: str | None = None
    static: bool | None = None
    container_id: str | None = None
    started_at: float | None = None


@dataclass(frozen=True)
class TakenAddress:
    """An address at which a program could not listen, because it was in use.

    address: as the message has it, "" for all addresses of the machine
    unseen: whether a process that has it may have been missed
    """

    protocol: str = ""
    address: str = ""
    port: int | None = None
    unseen: bool = False
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True)
class AddressHolders:
    """Who has the addresses that messages of this host say to be in use."""

    addresses: tuple[TakenAddress, ...] = ()
