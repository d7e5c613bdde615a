# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of a control plane, signed again by their own authority, and kubeconfigs of them."""

from __future__ import annotations

import base64
import datetime
import re
import shlex

PKI = "/etc/kubernetes/pki"
# The same subject, key and extensions; NAMES replaces the alternative names.
_SIGN = """
set -e
cd "$(mktemp -d)"
cat CRT > old.pem; cat KEY > key.pem
openssl x509 -x509toreq -in old.pem -signkey key.pem -copy_extensions copyall -out csr.pem
touch index.txt; : > names.cnf
[ -z "NAMES" ] || printf 'subjectAltName=NAMES\\n' > names.cnf
printf '[ca]\\ndefault_ca=a\\n[a]\\ndatabase=index.txt\\nnew_certs_dir=.\\nrand_serial=yes\\n\
default_md=sha256\\npolicy=p\\ncopy_extensions=copy\\nunique_subject=no\\n\
[p]\\norganizationName=optional\\ncommonName=supplied\\n' > ca.cnf
openssl ca -batch -notext -preserveDN -config ca.cnf -cert CA.crt -keyfile CA.key SELF \
  -extfile names.cnf -startdate BEGIN -enddate END -in csr.pem -out cert.pem
cat cert.pem
rm -rf "$PWD"
"""
DAY = datetime.timedelta(days=1)


def _stamp(moment: datetime.datetime) -> str:
    return moment.strftime("%Y%m%d%H%M%SZ")


def signed(cluster, node: str, path: str, ends: datetime.timedelta, **more) -> bytes:
    """Return the certificate of a file, signed again: it ends after this time, from now on.

    names: the alternative names in place of its own; authority: the files of its authority,
    without their ending; life: for how long it is valid in all.
    """
    now = datetime.datetime.now(datetime.timezone.utc)
    authority = more.get("authority", f"{PKI}/ca")
    values = {
        "CRT": shlex.quote(path),
        "KEY": shlex.quote(re.sub(r"\.crt$", ".key", path)),
        "NAMES": more.get("names", ""),
        "SELF": "-selfsign" if path == f"{authority}.crt" else "",
        "CA.": f"{authority}.",
        "BEGIN": _stamp(now + ends - more.get("life", max(ends, 0 * DAY) + 30 * DAY)),
        "END": _stamp(now + ends),
    }
    script = _SIGN
    for name, value in values.items():
        script = script.replace(name, value)
    return cluster.exec(node, script).stdout


_USER = re.compile(r"(?m)^( *client-certificate-data: )(\S+)$")


def kubeconfig_signed(cluster, node: str, path: str, ends: datetime.timedelta) -> bytes:
    """Return a kubeconfig whose embedded client certificate is signed again."""
    text = cluster.read(node, path).decode()
    part = f"/root/lab-{path.rpartition('/')[2]}"
    key = re.search(r"(?m)^ *client-key-data: (\S+)$", text)
    match = _USER.search(text)
    if key is None or match is None:
        raise ValueError(f"{path} embeds no client certificate")
    try:
        cluster.write(node, f"{part}.crt", base64.b64decode(match.group(2)), mode="600")
        cluster.write(node, f"{part}.key", base64.b64decode(key.group(1)), mode="600")
        fresh = signed(cluster, node, f"{part}.crt", ends)
    finally:
        cluster.exec(node, ["rm", "-f", f"{part}.crt", f"{part}.key"])
    embedded = base64.b64encode(fresh).decode()
    return _USER.sub(rf"\g<1>{embedded}", text).encode()
