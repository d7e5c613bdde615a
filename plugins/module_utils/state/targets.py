# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The targets of journal entries: the prefix of an entry's `real` selects its target and reader.

The writers are in steps/revert/registry.py, because nothing here changes anything.
"""

from ..shared.journal_names import CONFIG_MAP, LEVEL, PACKAGES, UNIT, WORKLOAD
from . import file_target, storage

API_OBJECT, SYSTEMD_UNIT, LOG_VERBOSITY, FILE = "api_object", "unit", "log_verbosity", "file"
PACKAGE_SELECTION = "package_selection"


class JournalTarget:
    """One kind of target that entries are about.

    read: a function of (intent, root, run_id, entry) that returns the sha256 of the present
        content, None where there is none. It may raise ChangeError.
    readable: whether that function reads the target itself, and not the journal.
    """

    __slots__ = ("name", "prefix", "read", "readable")

    def __init__(self, name, prefix, read, readable=True):
        self.name = name
        self.prefix = prefix
        self.read = read
        self.readable = readable

    @property
    def is_file(self):
        """Whether the entry is about a file of this node."""
        return self.name == FILE


def _read_api_object(intent, _root, _run_id, _entry):
    # few nodes have such an entry, and the way to the API costs each the time to compile it
    from . import api_target

    return api_target.present(intent)


def _read_unit(intent, _root, _run_id, _entry):
    from . import unit_target

    return unit_target.present(intent)


def _read_packages(intent, _root, _run_id, _entry):
    from . import package_target

    return package_target.present(intent)


def _read_log_verbosity(intent, root, run_id, entry):
    from . import level_target

    return level_target.present(run_id, entry, intent, root)


def _read_file(intent, root, _run_id, _entry):
    place = file_target.Place(intent["real"], root)
    try:
        folder = place.opened()
    except FileNotFoundError:
        return None
    with storage.descriptor(folder):
        file = file_target.look(place, folder)
    return file.sha256 if file else None


# The first whose prefix fits counts: a path has none.
TARGETS = (
    JournalTarget(API_OBJECT, CONFIG_MAP, _read_api_object),
    JournalTarget(API_OBJECT, WORKLOAD, _read_api_object),
    JournalTarget(SYSTEMD_UNIT, UNIT, _read_unit),
    JournalTarget(PACKAGE_SELECTION, PACKAGES, _read_packages),
    JournalTarget(LOG_VERBOSITY, LEVEL, _read_log_verbosity, readable=False),
    JournalTarget(FILE, "", _read_file),
)


def target_of(intent):
    """Return the target that an entry's `real` names."""
    return next(target for target in TARGETS if intent["real"].startswith(target.prefix))
