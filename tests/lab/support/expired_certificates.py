# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of a control-plane node that have ended: the lab's authority signs them so.

Key, subject and names stay. What has them in memory is ended, as by a reboot: nothing serves the
former ones then.
"""

from __future__ import annotations

from tests.lab.support.static_pod import API_SERVER, MANAGER, SCHEDULER

ASIDE = "/root/lab-certificates"
ETCD = "etcd"
FOLDERS = {"kubeadm": "/etc/kubernetes/pki", "kubespray": "/etc/kubernetes/ssl"}
COMPONENTS = (SCHEDULER, MANAGER, API_SERVER, ETCD)
# The first argument is kubeadm's folder of certificates.
EXPIRE = """
set -eu
pki=$1; cd /etc/kubernetes
if [ ! -e ASIDE/done ]; then
  mkdir -p ASIDE
  cp -a . ASIDE/kubernetes
  touch ASIDE/done
fi
work=$(mktemp -d); cd "$work"; touch index.txt
cat > ca.cnf <<'END'
[ca]
default_ca=a
[a]
database=index.txt
new_certs_dir=.
rand_serial=yes
default_md=sha256
policy=p
preserve=yes
copy_extensions=copyall
unique_subject=no
[p]
organizationName=optional
commonName=supplied
END
expire() {  # certificate, key, authority without its ending
  openssl x509 -x509toreq -copy_extensions copyall -in "$1" -signkey "$2" -out csr 2>/dev/null
  openssl ca -batch -notext -config ca.cnf -cert "$3.crt" -keyfile "$3.key" \
    -startdate 20200101000000Z -enddate 20210101000000Z -in csr -out new.crt 2>ca.log || {
      cat ca.log >&2; exit 1; }
}
leaf() {  # certificate below the folder, its authority
  [ -e "$pki/$1.crt" ] || return 0
  expire "$pki/$1.crt" "$pki/$1.key" "$pki/$2"
  cat new.crt > "$pki/$1.crt"
}
config() {
  file=/etc/kubernetes/$1
  [ -e "$file" ] || return 0
  for name in certificate key; do
    sed -n "s/^ *client-$name-data: *//p" "$file" | base64 -d > "$name"
  done
  expire certificate key "$pki/ca"
  sed -i "s|^\\( *client-certificate-data: *\\).*|\\1$(base64 -w0 new.crt)|" "$file"
}
leaf apiserver ca
leaf apiserver-kubelet-client ca
leaf apiserver-etcd-client etcd/ca
leaf front-proxy-client front-proxy-ca
leaf etcd/server etcd/ca
leaf etcd/peer etcd/ca
leaf etcd/healthcheck-client etcd/ca
for name in admin.conf super-admin.conf controller-manager.conf scheduler.conf; do
  config "$name"
done
rm -rf "$work"
""".replace("ASIDE", ASIDE)
RESTORE = f"""
set -eu
[ -e {ASIDE}/done ] || exit 0
cp -a {ASIDE}/kubernetes/. /etc/kubernetes/
rm -rf {ASIDE}
systemctl restart kubelet
echo restored
"""


def folder(cluster) -> str:
    return FOLDERS[cluster.layout]


def expire(cluster, nodes) -> None:
    """Let every leaf certificate of these masters have ended, and end what knows the former."""
    for node in nodes:
        cluster.exec(node, ["sh", "-c", EXPIRE, "sh", folder(cluster)])
    end(cluster, nodes)


def end(cluster, nodes) -> None:
    """End every component on these masters, so that each begins with its files."""
    for component in COMPONENTS:
        for node in nodes:
            cluster.exec(node, ["pkill", "-x", component[:15]], check=False)


def restore(cluster, nodes) -> None:
    """Put the former files back, in the state in which they were found, where there are any."""
    end(cluster, [node for node in nodes if cluster.exec(node, ["sh", "-c", RESTORE]).stdout])


def keep(cluster, nodes) -> None:
    """Forget the former files: those that a repair renewed are the cluster's own from now on."""
    for node in nodes:
        cluster.exec(node, ["rm", "-rf", ASIDE])


def shown_end(cluster, node, port: int) -> str:
    """Return when the certificate that a port shows ends, as openssl writes it."""
    # etcd listens for its peers at the address of the node alone
    address = cluster.node(getattr(node, "name", node)).ip
    said = cluster.exec(
        node,
        f"echo | timeout 5 openssl s_client -connect {address}:{port} 2>/dev/null"
        " | openssl x509 -noout -enddate",
        check=False,
    )
    return said.stdout.decode().strip().partition("=")[2]


def is_ready(cluster, node) -> bool:
    """Return whether the API server of a master is ready, for a client that verifies nothing."""
    said = cluster.exec(
        node, ["curl", "-sk", "-m", "3", "https://127.0.0.1:6443/readyz"], check=False
    )
    return said.stdout == b"ok"
