# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports of all modules that steps, recoveries and reverts import by name.

Packers of programs and of modules follow imports only. No program imports this at run time.
"""

from ..steps.handlers import (
    api_steps,
    certificate_load,
    certificate_renewal,
    cpu_manager_reset,
    etcd_space,
    kernel_module,
    kernel_setting,
    login_limit,
    networkd_routes,
    package_hold,
    pinning_probe,
    scheduler_restart,
    service_limit,
    service_start,
    service_unmask,
    swap_off,
)
from . import klog_level, kubelet_level, step_handlers

MODULES = (
    api_steps,
    certificate_load,
    certificate_renewal,
    cpu_manager_reset,
    etcd_space,
    kernel_module,
    kernel_setting,
    klog_level,
    kubelet_level,
    login_limit,
    networkd_routes,
    package_hold,
    pinning_probe,
    scheduler_restart,
    service_limit,
    service_start,
    service_unmask,
    step_handlers,
    swap_off,
)
