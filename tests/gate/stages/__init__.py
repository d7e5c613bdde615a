# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every stage of make test, in the order in which they begin."""

from __future__ import annotations

from tests.gate.runner import Stage
from tests.gate.stages import code, install, lab, quick, sanity

# The lab's build and the lab are the longest way through a run: they begin at once and go first.
# The others run beside them, those without a time limit of their own while the lab compiles.
ALL = [
    Stage("lab-build", lab.build, nodes=True, first=True),
    Stage("lab", lab.lab, nodes=True, first=True),
    Stage("sanity-newest", sanity.newest),
    Stage("sanity-2.16", sanity.oldest),
    Stage("cores-between", sanity.between),
    Stage("docs", code.docs),
    Stage("lint", code.lint),
    Stage("floor", code.floor),
    Stage("package", install.package),
    Stage("clone", install.clone),
    Stage("unit", code.unit),
    Stage("molecule", lab.molecule, nodes=True),
    Stage("fresh", lab.fresh, nodes=True),
    # It measures how fast a page is painted: alone, or it would measure the other stages.
    Stage("browser", code.browser, last=True),
    Stage("secrets", code.secrets, last=True),
]
# What a contributor runs before a commit.
QUICK = [
    Stage("unit-quick", quick.unit, first=True),
    Stage("lint-changed", quick.lint),
]
EVERY = [*ALL, *QUICK]
