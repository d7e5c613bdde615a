# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fresh machine for each test.

It is a container of the lab's plain Debian 12, which has systemd, Python and nothing of kubemend.
"""
