# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of kinds that a node sends: evidence of earlier runs has them."""

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import socket_kinds


def test_the_names_are_those_of_earlier_evidence():
    names = (socket_kinds.LISTEN, socket_kinds.CONNECTION, socket_kinds.DATAGRAM)
    assert names == ("listen", "connection", "datagram")
