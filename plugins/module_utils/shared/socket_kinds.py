# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of sockets that a node names and the controller reads."""

LISTEN, CONNECTION, DATAGRAM = "listen", "connection", "datagram"
