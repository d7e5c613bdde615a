# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of etcd of which a member must not be defragmented by a program."""

import re

RELEASE = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})")
FIRST = (3, 4)
# The first releases whose data survive that the member is killed while it is defragmented.
SAFE_FROM = {(3, 4): 4, (3, 5): 6}


def numbers(version):
    """Return the numbers of a release, None where the text is none."""
    match = RELEASE.match(version or "")
    if match is None:
        return None
    return tuple(int(part) for part in match.groups())


def unsafe(version, name):
    """Return why the member of this name and release is not defragmented, None where it may be."""
    release = numbers(version)
    if release is None:
        return (
            f"the release of etcd of member {name} is not known: free the space by hand, with the"
            " commands of KM140"
        )
    if release[:2] >= FIRST and release[2] >= SAFE_FROM.get(release[:2], 0):
        return None
    return (
        f"etcd {'.'.join(map(str, release))} of member {name} can damage its data when it is killed"
        " while it is defragmented: upgrade etcd to 3.4.4, 3.5.6 or a later release first, or free"
        " the space by hand with a copy of its data (KM140)"
    )


def mixed(versions):
    """Return why members of several minor releases are not changed, None where they have one."""
    minors = {release[:2] for release in map(numbers, versions) if release is not None}
    if len(minors) < 2:
        return None
    names = " and ".join(f"{major}.{minor}" for major, minor in sorted(minors))
    return f"the members run etcd {names}: finish the upgrade first, then run again"
