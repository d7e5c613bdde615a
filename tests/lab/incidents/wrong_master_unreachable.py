# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The broken master does not answer ssh while its components go on.

The report must not say that election is fine.
"""

from __future__ import annotations

from tests.lab.incidents.two_leaders import TwoLeaders


class WrongMasterUnreachable(TwoLeaders):
    name = "wrong-master-unreachable"
    title = "two leaders, and the wrong master refuses ssh"
    blocked = None  # the target itself

    def symptom(self, cluster, target):
        super().symptom(cluster, target)
        cluster.block_ssh(self.blocked or target)

    def undo(self, cluster, target):
        cluster.unblock_ssh(self.blocked or target)
        super().undo(cluster, target)

    def expect(self, cluster, target):
        # The surplus pods are read from the API, which answers.
        return {("KM901", target, None), ("KM113", None, None)}

    def expect_unknown(self, cluster, target):
        return {("KM101", component) for component in self.components}


INCIDENT = WrongMasterUnreachable()
