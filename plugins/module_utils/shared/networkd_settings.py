# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings by which systemd-networkd leaves routes and rules of others alone."""

ROUTES, RULES = "ManageForeignRoutes", "ManageForeignRoutingPolicyRules"
KEYS = (ROUTES, RULES)
SINCE = {ROUTES: 246, RULES: 249}  # the releases of systemd that brought them
SECTION = "[Network]"
NO = ("no", "false", "0", "off", "n", "f")
FILE = "/etc/systemd/networkd.conf.d/99-zz-kubemend.conf"


def known_keys(release):
    """Return the settings that a release of systemd knows."""
    return tuple(key for key in KEYS if SINCE[key] <= release)
