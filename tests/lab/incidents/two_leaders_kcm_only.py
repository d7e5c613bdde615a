# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Incident A by half: the controller manager alone makes every surplus pod."""

from __future__ import annotations

from tests.lab.incidents.two_leaders import TwoLeaders
from tests.lab.support.static_pod import MANAGER


class ManagerOnly(TwoLeaders):
    name = "two-leaders-kcm-only"
    title = "a master's controller manager runs with --leader-elect=false"
    components = (MANAGER,)


INCIDENT = ManagerOnly()
