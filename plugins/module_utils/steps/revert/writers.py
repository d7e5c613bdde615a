# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restores what entries of the journal are about: files, units, packages, texts of the API."""

from ...state import journal
from .. import file_change


class FileWriter:
    """Restores a file of this node."""

    def restore(self, history, former, step):
        """Restore the former bytes where the run's are still present; None: no file."""
        digest, real = history["sha256_left"], history["real"]
        if former is None:
            return file_change.move_out(real, digest, step)
        if digest is not None:
            return file_change.replace(real, digest, former, step)
        intent = history["items"][0]["intent"]
        attributes = file_change.Attributes(
            int(intent["mode"], 8),
            intent["uid"],
            intent["gid"],
            journal.unpacked(intent["xattrs"]),
        )
        return file_change.create_file(real, former, step, attributes)


class UnitWriter:
    """Enables, disables, masks or unmasks a unit as it was."""

    def restore(self, history, former, step):
        """Restore the unit's former state."""
        from ..handlers import service_start

        return service_start.put_back(history, history["items"][0]["intent"], former, step)


class PackageWriter:
    """Gives packages the selections that they had."""

    def restore(self, history, former, step):
        """Restore the former selections."""
        from ..handlers import package_hold

        return package_hold.put_back(history, former, step)


class ApiObjectWriter:
    """Restores a text of an API object."""

    def restore(self, history, former, step):
        """Restore the former text."""
        from .. import api_object_change

        return api_object_change.replace(history["items"][-1]["intent"], former, step)
