# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of logins of this node, in one file of ours in limits.d.

No file of anybody else's is touched.

pam_limits reads it when a session opens: a session that is open keeps what it has, and so its
operator's way back. A value that no process can have here would shut every other login out, so that
the ceiling is read once more at the last moment.
"""

import re

from ...collectors.node import limits
from ...state import step_record as proof
from ...state.storage import ChangeError
from ...system import files
from .. import managed_file as own_file
from .. import preconditions as guard

REMEDY = "file_limit"
SECONDS = 30
HEADER = (
    b"# Made by kubemend: hard limits of logins, from the next login on. A soft limit is raised"
    b" with ulimit -S, up to the hard one.\n"
)
KEY = re.compile(r"[!-\"$-~]+ hard (nofile|nproc)\Z")  # a domain has no blank and no #


def do(step, wanted, host, dummy_params=None):
    """(how its proof ended, why, what was seen). step: on whose behalf; wanted.

    The plan's step, its change {path, lines {domain type item: number}}.
    """
    path = wanted["change"]["path"]
    try:
        lines = {
            demanded(key): int(value) for key, value in sorted(wanted["change"]["lines"].items())
        }
        demand_possible(lines, host)
        record = {
            "component": None,
            "host": host,
            "remedy": REMEDY,
            "limit": SECONDS,
            "kind": "none",
            "path": path,
            "lines": lines,
            "expect": {},
            "guard": wanted.get("guard"),
            "former": None,
        }
        if proof.claim(step, record) is not None:
            return proof.FAILED, "it was begun before (a connection that was made twice)", {}
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error), {}
    try:
        own_file.write(path, lambda present: merged(present, lines), step)
    except (ChangeError, OSError) as error:
        state = proof.FAILED if getattr(error, "changed", False) else proof.NOT_DONE
        return proof.ended(
            step,
            state,
            f"{path} of {host} could not be written ({files.one_line(error)}): no limit was"
            " changed; see what lies there",
        )
    return proof.ended(step, proof.PROVEN, None, {"lines": lines})


def demanded(key):
    """The key, where it is one that we write; guard.Refused."""
    if not KEY.match(key):
        raise guard.Refused(
            f"{files.one_line(key, 80)} is no limit of a login that is written here"
        )
    return key


def demand_possible(lines, host):
    """guard.Refused where a line asks for more than a process can have now.

    Pam_limits would refuse the login.
    """
    for item in ("nofile", "nproc"):
        most = max([0] + [value for key, value in lines.items() if key.endswith(" " + item)])
        if not most:
            continue
        above = ceiling(item)
        if above is None:
            raise guard.Refused(
                f"nobody can tell how large a hard limit of {item} may be on {host}: nothing was"
                " changed"
            )
        if most > above[0] >= 0:
            raise guard.Refused(
                "%s %d is above %d (%s) on %s: logins would be refused, and nothing was changed"
                % ((item, most, *above, host))
            )


def ceiling(item):
    """(what no hard limit may exceed, whose it is), -1 without one.

    None where it cannot be read.
    """
    init = limits.init()
    if init is None or init["cap_sys_resource"] is None:
        return None
    bounds = (
        []
        if init["cap_sys_resource"] or init[item][1] < 0
        else [(init[item][1], "the hard limit of PID 1, which has no CAP_SYS_RESOURCE")]
    )
    if item == "nofile":
        text = limits.kernel().get("fs.nr_open", "")
        if not text.isdigit():
            return None
        bounds.append((int(text), "fs.nr_open"))
    return min(bounds) if bounds else (-1, "")


def merged(present, lines):
    """The bytes of our file with these lines: whatever else it holds stays."""
    rows, left = (HEADER if present is None else present).splitlines(True), dict(lines)
    for index, row in enumerate(rows):
        words = row.partition(b"#")[0].decode("utf-8", "replace").split()
        key = " ".join(words[:3])
        if len(words) > 3 and key in lines:
            left.pop(key, None)
            if words[3] != str(lines[key]):  # each of them: the last one counts
                rows[index] = _line(key, lines[key])
    if rows and not rows[-1].endswith(b"\n"):
        rows[-1] += b"\n"
    return b"".join(rows + [_line(key, value) for key, value in sorted(left.items())])


def _line(key, value):
    return ("%s %d\n" % (key, value)).encode()


def resumed(record, dummy_step=None):
    """What was interrupted, ended: (how its proof ends, why)."""
    if not own_file.says(record["path"], lambda present: merged(present, record["lines"])):
        return proof.NOT_DONE, "nothing of it was written"
    return proof.PROVEN, "{} holds it".format(record["path"])
