# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker was off for longer than its client certificate was valid, and has no token."""

from __future__ import annotations

import yaml

from tests.lab.support.kubelet_down import KubeletDown

CONF, BOOTSTRAP, PEM = (
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/bootstrap-kubelet.conf",
    "/var/lib/kubelet/pki/kubelet-client-old.pem",
)
MAKE = """
set -e
cd "$(mktemp -d)"
openssl req -newkey rsa:2048 -nodes -subj /O=system:nodes/CN=system:node:NODE \
-keyout key.pem -out csr.pem 2>/dev/null
touch index.txt
printf '[ca]\\ndefault_ca=a\\n[a]\\ndatabase=index.txt\\nnew_certs_dir=.\\nrand_serial=yes\\n\
default_md=sha256\\npolicy=p\\n[p]\\norganizationName=supplied\\n\
commonName=supplied\\n' > ca.cnf
openssl ca -batch -notext -config ca.cnf -cert /etc/kubernetes/pki/ca.crt \
-keyfile /etc/kubernetes/pki/ca.key -startdate 20200101000000Z \\
  -enddate 20200201000000Z -in csr.pem -out cert.pem 2>/dev/null
cat cert.pem key.pem
rm -rf "$PWD"
"""


class KubeletClientCertificate(KubeletDown):
    name = "kubelet-client-certificate"
    title = "the client certificate of a worker's kubelet is expired"
    fault = "KM507"
    words = "unable to load bootstrap kubeconfig"

    def spoil(self, cluster, target):
        for path in (BOOTSTRAP, PEM):
            self.keep(cluster, target, target, path)
        settings = yaml.safe_load(self.keep(cluster, target, target, CONF))
        settings["users"][0]["user"] = {"client-certificate": PEM, "client-key": PEM}
        cluster.write(
            target, PEM, cluster.exec("m1", MAKE.replace("NODE", target)).stdout, mode="600"
        )
        cluster.write(target, CONF, yaml.safe_dump(settings))
        cluster.exec(target, ["rm", "-f", BOOTSTRAP])


INCIDENT = KubeletClientCertificate()
