# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of the files of firewalls, as the collector reads them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    boot_firewall,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    boot as boot_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import firewall

# As the packages of RHEL 8 and 9 and of Ubuntu 20.04 to 24.04 bring them, comments cut short:
# compared with what upstream's repository has of those
# releases of firewalld (RHEL adds cockpit; forward came with 1.0), and with Debian 12's ufw, which
# is that of Ubuntu (test_what_debian_12_gave).
CONF = (
    "# firewalld config file\n# default zone\n# Default:"
    " public\nDefaultZone=public\nCleanupOnExit=yes\nLockdown=no\nIPv6_rpfilter=yes\n"
)
PUBLIC = """<?xml version="1.0" encoding="utf-8"?>
<zone>
  <short>Public</short>
  <description>For use in public areas. Only selected incoming connections are
  accepted.</description>
  <service name="ssh"/>
  <service name="dhcpv6-client"/>
  <service name="cockpit"/>
{0}  <forward/>
</zone>
"""
KUBELET = (
    '<?xml version="1.0" encoding="utf-8"?>\n<service>\n  <short>Kubelet</short>\n  <port'
    ' protocol="tcp" port="10250"/>\n</service>\n'
)
UFW_CONF = "# /etc/ufw/ufw.conf\n#\n\n# Set to yes to start on boot.\nENABLED=yes\n\nLOGLEVEL=low\n"
UFW_DEFAULT = (
    'IPV6=yes\nDEFAULT_INPUT_POLICY="DROP"\nDEFAULT_OUTPUT_POLICY="ACCEPT"\n'
    'DEFAULT_FORWARD_POLICY="DROP"\nMANAGE_BUILTINS=no\n'
)
BEFORE = """*filter
:ufw-before-input - [0:0]
-A ufw-before-input -i lo -j ACCEPT
-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-input -p icmp --icmp-type echo-request -j ACCEPT
-A ufw-before-forward -p icmp --icmp-type echo-request -j ACCEPT
-A ufw-before-input -p udp --sport 67 --dport 68 -j ACCEPT
-A ufw-before-input -j ufw-not-local
-A ufw-before-input -p udp -d 224.0.0.251 --dport 5353 -j ACCEPT
COMMIT
"""
USER = """*filter
:ufw-user-input - [0:0]
### RULES ###

### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in
-A ufw-user-input -p tcp --dport 22 -j ACCEPT
{0}
### END RULES ###
COMMIT
"""
ZONES, SERVICES = "/etc/firewalld/zones/", "/usr/lib/firewalld/services/"


def records(*missing, **texts):
    found = [
        {
            "path": path,
            "text": text,
            "error": None if text is not None else "denied",
            "truncated": False,
        }
        for path, text in texts.items()
    ]
    return found + [
        {"path": path, "text": None, "error": "missing", "truncated": False}
        for path in missing
        if path not in texts
    ]


def red_hat(zone="", active=True, enabled=True, zones=(), **texts):
    files = {
        "/etc/firewalld/firewalld.conf": CONF,
        ZONES + "public.xml": PUBLIC.format(zone),
        SERVICES + "kubelet.xml": KUBELET,
        **texts,
    }
    return {
        "firewalld": {
            "active": active,
            "enabled": enabled,
            "masked": False,
            "zones": list(zones),
            "files": records(firewall.DIRECT, **files),
        }
    }


def ubuntu(rules="", active=True, enabled=True, **texts):
    files = {
        "/etc/ufw/ufw.conf": UFW_CONF,
        "/etc/default/ufw": UFW_DEFAULT,
        "/etc/ufw/before.rules": BEFORE,
        "/etc/ufw/user.rules": USER.format(rules),
        **texts,
    }
    return {
        "ufw": {
            "active": active,
            "enabled": enabled,
            "masked": False,
            "zones": [],
            "files": records(*boot_firewall.RULES, *boot_firewall.SCRIPTS, **files),
        }
    }


def denied(*lines, **more):
    return {
        "count": len(lines),
        "lines": list(lines),
        "cut": False,
        "since": True,
        "path": "/var/log/audit/audit.log",
        "error": None,
        **more,
    }


def walls(seen):
    """Return the firewalls that a collector's data show, as the decoder reads them."""
    answer = decode(boot_answer.Boot, {"firewall": seen}).answer
    return firewall.walls(answer.firewall or {})
