# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the README's links absolute for a release: `python3 -m tests.docs.absolute_links TAG`.

Galaxy shows the README of an artefact as a page of its own, on which relative links lead nowhere.
"""

from __future__ import annotations

import re
import sys

import yaml

from tests.docs import ROOT

LINK = re.compile(r"(!?)(\[[^\]\n]*\]\()(?![a-z]+:|#)([^)\s]+\))")


def absolute(text: str, repository: str, tag: str) -> str:
    """Return a page of the checkout's root with links into the repository at a tag."""

    def link(match: re.Match[str]) -> str:
        # The page of a picture is no picture.
        kind = "raw" if match[1] else "blob"
        return f"{match[1]}{match[2]}{repository.rstrip('/')}/{kind}/{tag}/{match[3]}"

    return LINK.sub(link, text)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python3 -m tests.docs.absolute_links TAG", file=sys.stderr)
        return 2
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    readme = ROOT / galaxy["readme"]
    text = readme.read_text(encoding="utf-8")
    readme.write_text(absolute(text, galaxy["repository"], arguments[0]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
