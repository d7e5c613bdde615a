# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run sessions of nox (noxfile.py, antsibull-nox.toml) with pinned versions."""

from __future__ import annotations

import hashlib
import os

from tests.gate import counts, machine, venvs
from tests.gate.runner import Context

CONSTRAINTS = venvs.PINS / "test.txt"


def sessions(context: Context, found: counts.Counts, *names: str) -> str:
    """Run sessions of nox, count each, and return their output.

    The environments of sessions are kept until the pins change.
    """
    home = venvs.ensure("nox")
    digest = hashlib.sha256(CONSTRAINTS.read_bytes()).hexdigest()[:8]
    folder = machine.VENV / f"nox-sessions-{digest}"
    # In CI mode the formatters report what they would change, and change nothing.
    env = machine.environment(PIP_CONSTRAINT=str(CONSTRAINTS), CI="true")
    tools = [str(home / "bin"), str(venvs.ensure("test") / "bin"), env["PATH"]]
    env["PATH"] = os.pathsep.join(tools)
    texts = []
    for name in names:
        command = [home / "bin" / "nox", "--envdir", folder, "-R", "-e", name]
        returncode, text = context.run(command, env=env)
        found.check(f"nox -e {name}", returncode == 0)
        texts.append(text)
    return "\n".join(texts)
