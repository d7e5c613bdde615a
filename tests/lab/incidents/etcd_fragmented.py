# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The database of etcd is mostly empty pages: much was deleted, and nothing defragmented."""

from __future__ import annotations

import json
import shlex

from tests.lab.support.incident import Incident

PREFIX = "/lab-fragments/"
VALUE = "/root/lab-value"
COUNT, KILOBYTES = 130, 1000


class EtcdFragmented(Incident):
    name = "etcd-fragmented"
    title = f"{COUNT} MB were written to etcd and deleted"
    occupies = "cluster"
    target = "m1"

    def break_(self, cluster, target):
        tool = shlex.join(cluster.etcdctl_words(target))
        cluster.exec(
            target,
            f"head -c {KILOBYTES}000 /dev/zero | tr '\\0' x > {VALUE};"
            f" for number in $(seq {COUNT}); do"
            f" {tool} put {PREFIX}$number < {VALUE} > /dev/null || exit 1; done; rm -f {VALUE}",
        )

    def symptom(self, cluster, target):
        cluster.etcdctl("del", "--prefix", PREFIX, node=target)
        revision = self._status(cluster, target)["header"]["revision"]
        cluster.etcdctl("compact", "--physical", str(revision), node=target)
        cluster.wait(
            lambda: self._used(cluster, target) < 0.4, 60, "the database to be mostly empty"
        )

    def _status(self, cluster, target) -> dict:
        said = cluster.etcdctl("endpoint", "status", "-w", "json", node=target).stdout
        return json.loads(said)[0]["Status"]

    def _used(self, cluster, target) -> float:
        status = self._status(cluster, target)
        return status["dbSizeInUse"] / status["dbSize"]

    def undo(self, cluster, target):
        super().undo(cluster, target)
        cluster.etcdctl("del", "--prefix", PREFIX, node=target)
        for master in cluster.of_role("master"):
            cluster.etcdctl("defrag", node=master)

    def expect(self, cluster, target):
        return {("KM143", None, "etcd")}


INCIDENT = EtcdFragmented()
