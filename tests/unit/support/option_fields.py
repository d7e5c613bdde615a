# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of an option that Ansible checks."""

FIELDS = ("type", "elements", "required", "default", "choices")


def checked_fields(options):
    """Return of each option what Ansible checks."""
    return {
        option: {field: declared[field] for field in FIELDS if field in declared}
        for option, declared in options.items()
    }
