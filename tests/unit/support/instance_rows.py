# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of components as evidence holds them."""


def component_process(component, *argv, **more):
    return {
        "component": component,
        "pid": 1,
        "argv": [component, *argv],
        "host_network": True,
        "started_at": 1.0,
        **more,
    }
