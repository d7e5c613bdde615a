# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions of nox: those of antsibull-nox.toml, and ansible-test sanity without docker."""

import antsibull_nox
import nox

antsibull_nox.load_antsibull_nox_toml()


@nox.session(name="sanity", default=False, venv_backend="none")
@nox.parametrize("core", ["2.16", "newest"])
def sanity(session: nox.Session, core: str) -> None:
    """Run ansible-test sanity and the playbooks on one ansible-core; antsibull-nox needs docker."""
    session.run("python3", "-m", "tests.gate", "--only", f"sanity-{core}", external=True)
