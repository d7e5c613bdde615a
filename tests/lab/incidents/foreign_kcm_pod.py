# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A nested control plane (vcluster, Kamaji).

Its controller manager is an ordinary pod with election off, rightly.
"""

from __future__ import annotations

import json

from tests.lab.cluster import paths
from tests.lab.support.incident import Incident
from tests.lab.support.jobs import NAMESPACE_PREFIX
from tests.lab.support.static_pod import MANAGER, processes

FOLDER = "/opt/lab-nested"
NAMESPACE = f"{NAMESPACE_PREFIX}nested"
UNIT = "lab-nested-api"
PORT = 16443

# Its own CA: that, and no name, tells another cluster's instance from one of ours.
_CERTIFICATES = f"""set -e; mkdir -p {FOLDER}; cd {FOLDER}
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=nested-ca \
-keyout ca.key -out ca.crt 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj /CN=nested-api -keyout api.key -out api.csr 2>/dev/null
printf 'subjectAltName=IP:{{ip}}\\n' > api.ext
openssl x509 -req -in api.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile api.ext \\
  -out api.crt 2>/dev/null
"""


def kubeconfig(ip: str) -> str:
    return (
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "nested",
                "clusters": [
                    {
                        "name": "nested",
                        "cluster": {
                            "server": f"https://{ip}:{PORT}",
                            "certificate-authority": f"{FOLDER}/ca.crt",
                        },
                    }
                ],
                "users": [{"name": "manager", "user": {}}],
                "contexts": [
                    {"name": "nested", "context": {"cluster": "nested", "user": "manager"}}
                ],
            },
            indent=1,
        )
        + "\n"
    )


class ForeignManagerPod(Incident):
    name = "foreign-kcm-pod"
    title = "a pod on a worker runs another cluster's controller manager with election off"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        node = cluster.node(target)
        cluster.exec(target, _CERTIFICATES.format(ip=node.ip))
        cluster.write(target, f"{FOLDER}/kubeconfig", kubeconfig(node.ip))
        cluster.write(target, f"{FOLDER}/fake_api.py", (paths.FILES / "fake_api.py").read_bytes())
        cluster.exec(
            target,
            [
                "systemd-run",
                f"--unit={UNIT}",
                "--collect",
                "python3",
                f"{FOLDER}/fake_api.py",
                str(PORT),
                f"{FOLDER}/api.crt",
                f"{FOLDER}/api.key",
            ],
        )
        cluster.exec(
            target,
            "ctr -n k8s.io images import /opt/kubemend-lab/control.tar >/dev/null",
            timeout=180,
        )
        cluster.kubectl("create", "namespace", NAMESPACE)
        cluster.wait(
            lambda: (
                cluster.kubectl(
                    "-n", NAMESPACE, "get", "serviceaccount", "default", check=False
                ).returncode
                == 0
            ),
            60,
            f"the service account of {NAMESPACE}",
        )
        cluster.kubectl("create", "-f", "-", input=json.dumps(self._pod(cluster, target)))

    @staticmethod
    def _image(cluster, target):
        listed = cluster.exec(target, "ctr -n k8s.io images ls -q").stdout.decode().split()
        return next(image for image in listed if f"/{MANAGER}:" in image)

    def _pod(self, cluster, target):
        # The Job controller alone, as such planes choose theirs; the namespace controller ends over
        # an API this small.
        command = [
            MANAGER,
            "--controllers=job",
            f"--kubeconfig={FOLDER}/kubeconfig",
            "--leader-elect=false",
            "--cert-dir=/run/nested",
            "--authentication-skip-lookup=true",
            "--use-service-account-credentials=false",
        ]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "nested-control-plane", "namespace": NAMESPACE},
            "spec": {
                "nodeName": target,
                "terminationGracePeriodSeconds": 2,
                "automountServiceAccountToken": False,
                "containers": [
                    {
                        "name": "manager",
                        "image": self._image(cluster, target),
                        "command": command,
                        "imagePullPolicy": "Never",
                        "volumeMounts": [{"name": "nested", "mountPath": FOLDER, "readOnly": True}],
                    }
                ],
                "volumes": [{"name": "nested", "hostPath": {"path": FOLDER, "type": "Directory"}}],
            },
        }

    def symptom(self, cluster, target):
        """Require the same process after ten seconds, in which it gives up on a missing API."""

        def alive():
            running = processes(cluster, target, MANAGER)
            seen = (
                cluster.exec(target, f"ps -o etimes= -p {running[0][0]}", check=False).stdout
                if running
                else b"0"
            )
            return running and "--leader-elect=false" in running[0][1] and int(seen or 0) >= 15

        cluster.wait(alive, 120, f"the nested controller manager on {target} to stay")

    def undo(self, cluster, target):
        cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")
        cluster.exec(target, f"systemctl stop {UNIT} 2>/dev/null; rm -rf {FOLDER}")
        cluster.wait(
            lambda: cluster.kubectl("get", "namespace", NAMESPACE, check=False).returncode == 1,
            120,
            f"namespace {NAMESPACE} to end",
            every=2,
        )

    def expect(self, cluster, target):
        return set()


INCIDENT = ForeignManagerPod()
