# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in the journal of a node that both sides know."""

import re

RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}\Z")
FOLDER = "journal"
# What `real` of an entry begins with that is not about a file.
# A text of the API: configmap:<namespace>/<name>#<key>
CONFIG_MAP = "configmap:"
# The resources of a workload's containers: workload:<its path in the API>
WORKLOAD = "workload:"
# Whether a unit of systemd is enabled: unit:<its name>; its bytes are what is-enabled says.
# Whether it is masked: unit:<the link>
UNIT = "unit:"
# What dpkg is to do with packages: packages:<name:architecture>,...; its bytes are one line for
# each, as dpkg --get-selections prints it.
PACKAGES = "packages:"
# The log verbosity of a running process: level:<component>, level:kubelet/<node>
LEVEL = "level:"
