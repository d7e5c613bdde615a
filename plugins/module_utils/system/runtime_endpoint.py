# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The socket at which the kubelet reaches its container runtime."""

from . import procfs, yaml_scalars


def endpoint(kubelet):
    """Return the path of the socket that this kubelet (its evidence) uses, or None.

    Its command line takes precedence over its configuration.
    """
    named = procfs.flag(kubelet.get("argv") or [], "container-runtime-endpoint")
    for file in reversed([kubelet.get("config")] + (kubelet.get("config_dropins") or [])):
        if not named and file and file["text"]:
            named = yaml_scalars.top(file["text"], "containerRuntimeEndpoint")
    if not named:
        return None
    if named.startswith("unix://"):
        return named[len("unix://") :]
    if named.startswith("/"):
        return named
    return None
