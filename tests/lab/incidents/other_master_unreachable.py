# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A master that is not the broken one does not answer ssh: the fault is proven without it."""

from __future__ import annotations

from tests.lab.incidents.two_leaders import TwoLeaders
from tests.lab.incidents.wrong_master_unreachable import WrongMasterUnreachable


class OtherMasterUnreachable(WrongMasterUnreachable):
    name = "other-master-unreachable"
    title = "two leaders, and another master refuses ssh"
    blocked = "m3"

    def expect(self, cluster, target):
        return TwoLeaders.expect(self, cluster, target) | {("KM901", self.blocked, None)}

    def expect_unknown(self, cluster, target):
        return set()


INCIDENT = OtherMasterUnreachable()
