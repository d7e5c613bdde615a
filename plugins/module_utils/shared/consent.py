# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of kubemend_allow: each permits what is refused without it."""

API_DOWN = "api_down"
FENCED = "fenced"
PENDING_CHANGES = "pending_changes"
SINGLE_CONTROL_PLANE = "single_control_plane"
KUBELET_RESTART = "kubelet_restart"
CAPTURE_RESTART = "capture_restart"
BODY_LOGGING = "body_logging"
RESET_WITHOUT_DRAIN = "reset_without_drain"
FORCE_RESET = "force_reset"
REVERT_RUNTIME = "revert_runtime"
DRAIN_BARE_PODS = "drain_bare_pods"
DRAIN_LOCAL_STORAGE = "drain_local_storage"
KEEP_CORDON = "keep_cordon"
SCHEDULER_PAUSE = "scheduler_pause"
SERVICE_RESTART = "service_restart"
LOWER_LIMITS = "lower_limits"
ETCD_DEFRAGMENT = "etcd_defragment"
HOLD_PACKAGES = "hold_packages"

WORDS = (
    API_DOWN,
    FENCED,
    PENDING_CHANGES,
    SINGLE_CONTROL_PLANE,
    KUBELET_RESTART,
    CAPTURE_RESTART,
    BODY_LOGGING,
    RESET_WITHOUT_DRAIN,
    FORCE_RESET,
    REVERT_RUNTIME,
    DRAIN_BARE_PODS,
    DRAIN_LOCAL_STORAGE,
    KEEP_CORDON,
    SCHEDULER_PAUSE,
    SERVICE_RESTART,
    LOWER_LIMITS,
    ETCD_DEFRAGMENT,
    HOLD_PACKAGES,
)
