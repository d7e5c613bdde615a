# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One master got another key for tokens of service accounts: its API server refuses the others'."""

from __future__ import annotations

from tests.lab.support.certificates import PKI
from tests.lab.support.incident import Incident

PUBLIC = f"{PKI}/sa.pub"


class TokenKeysDiffer(Incident):
    name = "token-keys-differ"
    title = "sa.pub of one master is of another pair"
    target = "m3"

    def break_(self, cluster, target):
        self.keep(cluster, target, target, PUBLIC)
        other = cluster.exec(target, "openssl genrsa 2048 2>/dev/null | openssl rsa -pubout").stdout
        cluster.write(target, PUBLIC, other)

    def symptom(self, cluster, target):
        """Nothing shows, until the API server starts again."""

    def expect(self, cluster, target):
        return {("KM127", None, "certificates")}


INCIDENT = TokenKeysDiffer()
