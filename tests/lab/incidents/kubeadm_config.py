# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The manifests are right, but kubeadm's record would remove election at the next upgrade."""

from __future__ import annotations

import json

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import MANAGER

LIST, MAP = '[{"name": "leader-elect", "value": "false"}]', '{"leader-elect": "false"}'


class KubeadmConfig(Incident):
    name = "kubeadm-config"
    title = "kubeadm-config has leader-elect false for the controller manager"
    occupies = "cluster"

    def break_(self, cluster, target):
        text = self._text(cluster)
        self.remember(cluster, target, text=text)
        extra = LIST if "kubeadm.k8s.io/v1beta4" in text else MAP
        lines = _without_block(text, "controllerManager:")
        self._write(cluster, "\n".join([*lines, f"controllerManager:\n  extraArgs: {extra}\n"]))

    def symptom(self, cluster, target):
        assert "leader-elect" in self._text(cluster)

    def undo(self, cluster, target):
        text = self.record(cluster, target).get("text")
        if text:
            self._write(cluster, text)

    @staticmethod
    def _text(cluster) -> str:
        said = cluster.kubectl(
            "-n", "kube-system", "get", "configmap", "kubeadm-config", "-o", "json"
        )
        return json.loads(said.stdout)["data"]["ClusterConfiguration"]

    @staticmethod
    def _write(cluster, text: str) -> None:
        cluster.kubectl(
            "-n",
            "kube-system",
            "patch",
            "configmap",
            "kubeadm-config",
            "--type=merge",
            "-p",
            json.dumps({"data": {"ClusterConfiguration": text}}),
        )

    def expect(self, cluster, target):
        return {("KM110", None, MANAGER)}


def _without_block(text: str, key: str) -> list:
    """Return the lines without one top-level key and what is indented below it."""
    kept, inside = [], False
    for line in text.splitlines():
        inside = line.startswith(key) or (inside and line.startswith((" ", "-")))
        if not inside:
            kept.append(line)
    return kept


INCIDENT = KubeadmConfig()
