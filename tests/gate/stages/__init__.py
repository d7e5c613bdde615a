# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every stage of make test, in the order in which they begin."""

from __future__ import annotations

from tests.gate.runner import Stage
from tests.gate.stages import code, install, lab, sanity

# Two run side by side: what takes long begins first, and the lab's first build
# has the others for company. The lab itself has the machine to itself, because
# the components of a cluster that starves do not keep their leases; the browser,
# because it is measured.
ALL = [
    Stage("lab-build", lab.build, nodes=True),
    Stage("floor", code.floor),
    Stage("docs", code.docs),
    Stage("sanity-newest", sanity.newest),
    Stage("sanity-2.16", sanity.oldest),
    Stage("lint", code.lint),
    Stage("clone", install.clone),
    Stage("package", install.package),
    Stage("molecule", lab.molecule, nodes=True),
    Stage("fresh", lab.fresh, nodes=True),
    Stage("unit", code.unit, alone=True),
    Stage("browser", code.browser, alone=True),
    Stage("lab", lab.lab, alone=True, nodes=True),
    Stage("secrets", code.secrets, alone=True),
]
