# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API that lists objects by the beginning of a field selector, or by a path."""


class Lists:
    """Answers lists from a table; an exception in a list is raised when it is its turn."""

    def __init__(self, rows, found=None):
        self.rows, self.asked = rows, []
        self.found = found or {}

    def find(self, path):
        """Return the object of this path; every other one is there."""
        answer = self.found.get(path, {"metadata": {}})
        if isinstance(answer, Exception):
            raise answer
        return answer

    def items(self, path, query=None, **_options):
        """Yield the objects of the list that this query asks for."""
        selector = (query or {}).get("fieldSelector") or path
        self.asked.append((path, query))
        exact = [key for key in self.rows if key == selector]
        names = exact or [key for key in self.rows if selector.startswith(key)]
        for item in self.rows[names[0]]:
            if isinstance(item, Exception):
                raise item
            yield item
