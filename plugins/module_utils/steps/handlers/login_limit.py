# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets limits of logins of this node, in one managed file in limits.d.

No foreign file is changed. pam_limits reads the file when a session opens. An open session keeps
its limits, so that an operator who is logged in can restore the file. A value above the limit of
the kernel would refuse every login, so that this limit is read again immediately before the write.
"""

from ...collectors.node import limits
from ...shared.errors import PreconditionFailed
from ...shared.managed_files import LOGIN_LIMIT_KEY
from ...state import step_record
from ...system import files
from .. import managed_file
from ..base import StepHandler

HEADER = (
    b"# Made by kubemend: hard limits of logins, from the next login on. A soft limit is raised"
    b" with ulimit -S, up to the hard one.\n"
)


class SetLoginLimit(StepHandler):
    """Sets hard limits of logins.

    The change of a step is {path, lines {domain type item: number}}.
    """

    def check(self, step):
        """Refuse other limits, and values that no process can have; return the lines."""
        lines = {
            required_key(key): int(value) for key, value in sorted(step.change["lines"].items())
        }
        require_possible(lines, step.host)
        return {"lines": lines}

    def apply(self, step, record):
        """Write the managed file."""
        return managed_file.write(
            step.path, lambda present: merged(present, record["lines"]), step.context
        )

    def explain_unwritten(self, step, error):
        """Return the sentence about a file that could not be written."""
        return (
            f"{step.path} of {step.host} could not be written ({files.one_line(error)}): no limit"
            " was changed; see what lies there"
        )

    def describe(self, _step, record, _applied):
        """Return the lines that were written."""
        return {"lines": record["lines"]}

    def recover(self, record, context=None, params=None):
        """Return whether the file has the lines."""
        lines = record["lines"]
        if not managed_file.says(record["path"], lambda present: merged(present, lines)):
            return step_record.NOT_DONE, "nothing of it was written"
        return step_record.PROVEN, "{} holds it".format(record["path"])


def required_key(key):
    """Return the key of a limit that is written here; raise PreconditionFailed for others."""
    if not LOGIN_LIMIT_KEY.match(key):
        raise PreconditionFailed(
            f"{files.one_line(key, 80)} is no limit of a login that is written here"
        )
    return key


def require_possible(lines, host):
    """Raise PreconditionFailed where a line asks for more than a process can have now.

    With such a line pam_limits would refuse every login.
    """
    for item in ("nofile", "nproc"):
        most = max([0] + [value for key, value in lines.items() if key.endswith(" " + item)])
        if most:
            _require_below_ceiling(item, most, host)


def _require_below_ceiling(item, value, host):
    bound = ceiling(item)
    if bound is None:
        raise PreconditionFailed(
            f"it is unknown how large a hard limit of {item} may be on {host}: nothing was changed"
        )
    most, owner = bound
    if value > most >= 0:
        raise PreconditionFailed(
            f"{item} {int(value)} is above {int(most)} ({owner}) on {host}: logins would be"
            f" refused, and nothing was changed"
        )


def ceiling(item):
    """Return (the highest possible hard limit, what sets it), or None where it is not known.

    The limit is -1 where there is no upper bound.
    """
    init = limits.init()
    if init is None or init["cap_sys_resource"] is None:
        return None
    bounds = []
    if not init["cap_sys_resource"] and init[item][1] >= 0:
        bounds.append((init[item][1], "the hard limit of PID 1, which has no CAP_SYS_RESOURCE"))
    if item == "nofile":
        text = limits.kernel().get("fs.nr_open", "")
        if not text.isdigit():
            return None
        bounds.append((int(text), "fs.nr_open"))
    return min(bounds) if bounds else (-1, "")


def merged(present, lines):
    """Return the bytes of the managed file with these lines: the rest of it stays."""
    rows = (HEADER if present is None else present).splitlines(True)
    missing = dict(lines)
    for index, row in enumerate(rows):
        words = row.partition(b"#")[0].decode("utf-8", "replace").split()
        key = " ".join(words[:3])
        if len(words) <= 3 or key not in lines:
            continue
        missing.pop(key, None)
        if words[3] != str(lines[key]):  # each of them: the last one counts
            rows[index] = _line(key, lines[key])
    if rows and not rows[-1].endswith(b"\n"):
        rows[-1] += b"\n"
    return b"".join(rows + [_line(key, value) for key, value in sorted(missing.items())])


def _line(key, value):
    return (f"{key} {int(value)}\n").encode()
