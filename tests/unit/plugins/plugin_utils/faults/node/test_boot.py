# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reboot undid, KM520 to KM522.

The tests have the layouts of distributions and installers, and hosts where it is not known.
"""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import boot as model_boot
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    boot as remedie_boot,
)
from tests.unit.support import network_evidence
from tests.unit.support.facts import facts
from tests.unit.support.file_evidence import named_record

FORWARD, BRIDGE = "net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables"
CODES = frozenset({"KM520", "KM521", "KM522"})
KUBEADM = (
    "/etc/sysctl.d/k8s.conf",
    f"{FORWARD} = 1\n{BRIDGE} = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n",
)
LOAD = ("/etc/modules-load.d/k8s.conf", "overlay\nbr_netfilter\n")


class Node:
    """w1 as the documentation of kubeadm leaves it, before a test changes it."""

    def __init__(self, world):
        self.world, self.document = world, world.documents["w1"]
        for name in [name for name in world.documents if name != "w1"]:
            del world.documents[name]
        del self.document["collectors"]["next_start"]
        self.boot = self.document["collectors"]["boot"]["data"]
        self.limits = {"kernel": {}, "units": [], "sysctl_files": [], "limits_files": []}
        self.document["collectors"]["limits"] = {"status": "ok", "data": self.limits}
        self.sysctl(KUBEADM).load(LOAD)

    def sysctl(self, *files):
        self.limits["sysctl_files"] = [named_record(*one) for one in files]
        return self

    def load(self, *files):
        self.boot["modules_files"] = [named_record(*one) for one in files]
        return self

    def without_netfilter(self):
        self.boot["running"] = {FORWARD: "1"}
        self.boot["modules"]["br_netfilter"] = "absent"
        return self

    def fstab(self, *lines):
        self.document["collectors"]["swap"]["data"]["fstab"] = named_record(
            "/etc/fstab", "".join(line + "\n" for line in ("# made by the installer", *lines))
        )
        return self

    def mounted(self, *rows):
        self.boot["mounts"] += [
            dict(zip(("point", "source", "type", "options"), row, strict=False)) for row in rows
        ]
        return self

    def judged(self, code):
        """(verdict, findings) of one fault."""
        result = self.world.judge(faults=CODES)
        return next(one.verdict for one in result.verdicts if one.code == code), [
            one for one in result.findings if one.code == code
        ]

    def steps(self, *allow, max_risk=1):
        result, found = fault_engine.evaluate_clusters(
            [self.document, self.world.api], frozenset({"KM520"})
        )
        return plan.plan(
            result.findings,
            found,
            lambda host: self.document,
            plan.Consent(max_risk, frozenset(allow)),
            remedie_boot.REMEDIES,
            fault_engine.KEY_DIGITS,
        )


@pytest.fixture
def node(world):
    return Node(world)


# KM520: layouts that are well

UNITS_OF_DOCKER = [{"name": "docker.service", "active_state": "active"}]
SPRAYED = (
    ("/etc/sysctl.d/99-sysctl.conf", f"{FORWARD}=1\n{BRIDGE}=1\n"),
    ("/usr/lib/sysctl.d/50-default.conf", "-net.ipv4.conf.all.rp_filter = 2\n"),
)


@pytest.mark.parametrize(
    ("sysctl", "load", "more"),
    [
        ([KUBEADM], [LOAD], {}),
        (
            SPRAYED,
            [
                ("/etc/modules-load.d/kubespray-br_netfilter.conf", "br_netfilter"),
                ("/etc/modules-load.d/kubespray-kube_proxy-ipvs.conf", "ip_vs\nip_vs_rr\n"),
            ],
            {},
        ),
        ([KUBEADM], [], {"modules": {"br_netfilter": "builtin", "overlay": "builtin"}}),
        (
            [("/etc/sysctl.d/99-k8s.conf", f"{FORWARD} = 1\n")],
            [],
            # Cilium
            {"modules": {"br_netfilter": "absent", "overlay": "loaded"}, "running": {FORWARD: "1"}},
        ),
        ([("/etc/sysctl.d/a.conf", "net.ipv4.conf.all.forwarding = 1\n")], [], {}),
        ([("/etc/sysctl.d/a.conf", "net/ipv4/ip_forward = 1\n")], [], {}),
        (
            [
                ("/usr/lib/sysctl.d/00-system.conf", f"{BRIDGE} = 0\n"),
                ("/etc/sysctl.conf", ""),
                ("/etc/sysctl.d/99-zz-kubemend.conf", f"{FORWARD} = 1\n"),
            ],
            [],
            {},
        ),  # RHEL 7
        # who only takes it away may have his reasons
        ([("/etc/sysctl.d/libvirt.conf", f"{BRIDGE} = 0\n{FORWARD} = 1\n")], [], {}),
        ([], [], {"container": True}),
    ],
)
def test_layouts_that_are_well(node, sysctl, load, more):
    node.sysctl(*sysctl).load(*load)
    node.boot.update(copy.deepcopy(more))
    assert node.judged("KM520") == ("clear", [])
    assert node.steps() == ()


@pytest.mark.parametrize(
    "argv",
    [
        ["k3s", "agent"],
        [
            "/var/lib/rancher/rke2/data/v1.30/bin/kubelet",
            "--kubeconfig=/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
        ],
        ["/snap/microk8s/7000/kubelite"],
        ["kubelet", "--kubeconfig=/var/lib/kubelet/kubeconfig"],
    ],
)
def test_an_installer_that_sets_it_at_each_start_needs_no_file(node, argv):
    node.sysctl().load()
    assert node.judged("KM520")[0] == "present"
    node.world.data("w1", "kubelet").update(argv=argv, process={"pid": 1, "argv": argv})
    assert node.judged("KM520") == ("clear", [])
    node.boot["running"][FORWARD] = "0"  # whoever sets it did not
    assert node.judged("KM520")[1][0].severity == "critical"


def test_docker_sets_it_at_each_start(node):
    node.sysctl((KUBEADM[0], f"{BRIDGE} = 1\n")).load()
    assert {one.component for one in node.judged("KM520")[1]} == {FORWARD, "br_netfilter"}
    node.limits["units"] = UNITS_OF_DOCKER
    assert node.judged("KM520") == ("clear", [])


# KM520: what is missing


@pytest.mark.parametrize(
    ("files", "stated", "place"),
    [
        ([], ("no file of sysctl.d",), None),
        (
            [KUBEADM],
            ("/etc/sysctl.d/k8s.conf:1", "1", "never loaded"),
            "/etc/sysctl.d/k8s.conf",
        ),
        (
            [KUBEADM, ("/etc/sysctl.d/zz-cis.conf", f"\n{FORWARD}=0\n")],
            ("/etc/sysctl.d/zz-cis.conf:2", "0", "boot"),
            "/etc/sysctl.d/zz-cis.conf",
        ),
    ],
)
def test_nothing_is_forwarded(node, files, stated, place):
    node.sysctl(*files)
    node.boot["running"][FORWARD] = "0"
    verdict, (found,) = node.judged("KM520")
    assert (verdict, found.severity, found.component, found.risk) == (
        "present",
        "critical",
        FORWARD,
        1,
    )
    facts(found.summary, FORWARD, "the kernel has 0", *stated)
    assert [one.path for one in found.evidence if one.path] == ([place] if place else [])
    assert "the plan does, in /etc/sysctl.d/99-zz-kubemend.conf" in found.remedy
    assert f"sysctl -w {FORWARD}=1" in found.remedy


def test_nothing_is_forwarded_in_a_container_either(node):
    node.boot["running"][FORWARD] = "0"
    node.boot["container"] = True
    assert node.judged("KM520")[1][0].severity == "critical"


@pytest.mark.parametrize(
    ("files", "verdict"),
    [
        ([("/etc/sysctl.d/k8s.conf", "net.ipv6.conf.all.forwarding = 1\n")], "clear"),
        ([("/etc/sysctl.d/k8s.conf", "net.ipv6.conf.all.forwarding = 0\n")], "present"),
        (
            [("/etc/sysctl.d/k8s.conf", f"net.ipv6.conf.all.forwarding = 1\n{FORWARD} = 1\n")],
            "present",
        ),
    ],
)
def test_pods_of_ipv6_alone_on_a_machine_with_both(node, files, verdict):
    node.sysctl(*files)
    node.boot["running"][FORWARD] = "0"
    assert node.judged("KM520")[0] == verdict


def test_a_node_of_ipv6_alone_needs_none_of_it(node):
    node.boot["running"][FORWARD] = "0"
    node.world.data("w1", "system")["addresses"] = ["fd00::1"]
    assert node.judged("KM520") == ("clear", [])


def test_without_a_kubelet_it_is_nobodys_business(node):
    node.boot["running"][FORWARD] = "0"
    node.document["collectors"]["kubelet"] = {"status": "absent", "data": None}
    assert node.judged("KM520")[0] == node.judged("KM521")[0] == "not_applicable"


def test_what_the_next_boot_undoes(node):
    node.sysctl(KUBEADM, ("/etc/sysctl.d/zz-cis.conf", f"{FORWARD}=0\n"))
    _verdict, (found,) = node.judged("KM520")
    assert (found.severity, found.risk) == ("warning", 1)
    assert found.summary.startswith(
        f"{FORWARD} will not outlive a reboot: the kernel has 1, and"
        " /etc/sysctl.d/zz-cis.conf:1 brings it back to 0 at"
    )
    node.sysctl(("/etc/sysctl.conf", f"{FORWARD}=1\n"))
    (found,) = [one for one in node.judged("KM520")[1] if one.component == FORWARD]
    assert "no file of sysctl.d says so: the next boot brings 0" in found.summary
    assert "/etc/sysctl.conf:1 says 1, which nothing reads at boot" in found.summary


def test_two_names_of_one_setting_that_differ_say_nothing_of_the_next_boot(node):
    node.sysctl(("/etc/sysctl.d/a.conf", f"{FORWARD} = 1\nnet.ipv4.conf.all.forwarding = 0\n"))
    assert node.judged("KM520") == ("clear", [])


def test_a_module_that_files_ask_for_is_missing(node):
    node.without_netfilter()
    verdict, (found,) = node.judged("KM520")
    assert (verdict, found.severity, found.component, found.risk) == (
        "present",
        "warning",
        "br_netfilter",
        1,
    )
    facts(found.summary, "br_netfilter", "not loaded", "/etc/modules-load.d/k8s.conf:2")
    facts(
        found.remedy,
        "modprobe br_netfilter",
        "/etc/modules-load.d",
        "the plan",
        "/etc/modules-load.d/zz-kubemend.conf",
    )
    node.boot["tree"] = False
    (found,) = node.judged("KM520")[1]
    assert "the modules of the kernel that runs are not installed" in found.summary
    assert "install the modules of the kernel that runs" in found.remedy
    assert found.risk == 0
    assert node.steps() == ()
    node.boot["tree"] = True
    node.load()
    assert "sets what only it brings" in node.judged("KM520")[1][0].summary
    node.sysctl((KUBEADM[0], f"{FORWARD} = 1\n"))
    assert node.judged("KM520") == ("clear", [])  # nobody asks for it
    node.boot["container"] = True
    node.load(LOAD)
    assert node.judged("KM520") == ("clear", [])  # they are the machine's


def test_a_module_that_is_loaded_and_that_nothing_names(node):
    node.load()
    _verdict, (found,) = node.judged("KM520")
    assert (found.component, found.severity, found.risk) == (
        "br_netfilter",
        "warning",
        1,
    )
    assert found.remedy.startswith("a line br_netfilter in a file of")
    (step,) = node.steps()
    assert "modprobe" not in step.diff
    assert step.change["module"] == "br_netfilter"
    assert "no file of modules-load.d names it: the next boot comes without it" in found.summary
    assert "/etc/sysctl.d/k8s.conf:2 then sets nothing" in found.summary
    node.boot["cmdline"] = [["modules_load", "nvme,br-netfilter"]]
    assert node.judged("KM520") == ("clear", [])


def test_a_bridge_that_is_not_filtered_though_a_file_says_so(node):
    node.boot["running"][BRIDGE] = "0"
    (found,) = node.judged("KM520")[1]
    assert (found.component, found.severity) == (
        BRIDGE,
        "warning",
    )
    assert "/etc/sysctl.d/k8s.conf:2 says 1, and the kernel has 0" in found.summary
    node.sysctl(KUBEADM, ("/etc/sysctl.d/zz.conf", f"{BRIDGE} = 0\n"))
    assert (
        "/etc/sysctl.d/k8s.conf:2 says 1, and /etc/sysctl.d/zz.conf:1, which wins, says 0"
        in node.judged("KM520")[1][0].summary
    )
    assert [one.blocked_by for one in node.steps()] == [None] or "zz.conf" in str(
        node.steps()[0].blocked_by
    )


# KM520: what nobody can tell


@pytest.mark.parametrize("collector", ["kubelet", "boot", "limits"])
def test_without_evidence_it_is_unknown(node, collector):
    node.document["collectors"][collector] = {"status": "timeout", "data": None}
    assert node.judged("KM520")[0] == "unknown"


@pytest.mark.parametrize(
    "change",
    [
        {"running": {FORWARD: None}},
        {"running": {}},
        {"running": None},
        {"modules": {"br_netfilter": None}},
        {"modules": 3},
    ],
)
def test_half_of_the_evidence_is_unknown_too(node, change):
    node.boot.update(change)
    assert node.judged("KM520") == ("unknown", [])


def test_a_file_that_nobody_could_read(node):
    node.sysctl().load()
    node.limits["sysctl_files"] = [named_record("/etc/sysctl.d/secret.conf", None, error="denied")]
    assert node.judged("KM520") == ("unknown", [])  # nothing of the next boot
    node.boot["running"][FORWARD] = "0"
    assert "what a boot makes of it is not known" in node.judged("KM520")[1][0].summary
    node.world.data("w1", "system")["addresses"] = []
    assert node.judged("KM520")[0] == "unknown"


# KM520: the plan


def test_the_step_writes_and_tells_the_kernel(node):
    node.sysctl()
    node.boot["running"][FORWARD] = "0"
    (step,) = [one for one in node.steps() if one.component == FORWARD]
    assert (step.remedy, step.risk, step.target, step.allowed, step.code) == (
        "kernel_setting",
        1,
        "/etc/sysctl.d/99-zz-kubemend.conf",
        True,
        "KM520",
    )
    assert step.change == {
        "kind": "kernel_setting",
        "path": "/etc/sysctl.d/99-zz-kubemend.conf",
        "settings": {FORWARD: 1},
    }
    assert step.diff.endswith(f"+{FORWARD} = 1\nthe kernel: 0 -> 1\n")
    facts(node.steps(max_risk=0)[0].blocked_by, "risk 1", "-e kubemend_max_risk=1")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            [("/usr/lib/sysctl.d/zzz.conf", f"{FORWARD}=0\n")],
            "/usr/lib/sysctl.d/zzz.conf:1 is read after",
        ),
        (
            [("/etc/sysctl.d/zzz.conf", "net.ipv4.conf.all.forwarding=0\n")],
            (
                "/etc/sysctl.d/zzz.conf:1 says net.ipv4.conf.all.forwarding = 0, which is the same"
                " setting"
            ),
        ),
    ],
)
def test_what_stands_in_the_way(node, files, said):
    node.sysctl(*files)
    node.boot["running"][FORWARD] = "0"
    (step,) = node.steps()
    assert not step.allowed
    assert step.blocked_by.startswith(said)
    assert f"sysctl -w {FORWARD}=1 helps" in step.blocked_by


def test_a_line_that_is_read_after_ours_is_changed_where_it_stands(node):
    node.sysctl(("/etc/sysctl.d/zzz.conf", f"{FORWARD}=0\n"))
    node.boot["running"][FORWARD] = "0"
    (step,) = node.steps()
    assert (step.allowed, step.target) == (True, "/etc/sysctl.d/zzz.conf")
    assert step.diff.endswith(f"-{FORWARD}=0\n+{FORWARD}=1\nthe kernel: 0 -> 1\n")


def test_a_module_is_named_and_loaded(node):
    node.without_netfilter()
    (step,) = node.steps()
    assert (step.remedy, step.risk, step.target, step.allowed, step.limit) == (
        "kernel_module",
        1,
        "/etc/modules-load.d/zz-kubemend.conf",
        True,
        60,
    )
    assert step.change == {
        "kind": "kernel_module",
        "path": "/etc/modules-load.d/zz-kubemend.conf",
        "module": "br_netfilter",
    }
    assert step.diff.endswith("+br_netfilter\nthe kernel: modprobe br_netfilter\n")
    facts(step.note, "revert", "leaves the module")
    node.world.api["collectors"]["nodes"] = {"status": "error", "data": None}
    assert "unknown whether the node was taken out on purpose" in node.steps()[0].blocked_by


def test_a_node_that_was_taken_out_is_left_alone(node):
    node.sysctl()
    node.boot["running"][FORWARD] = "0"
    next(one for one in node.world.data("api", "nodes")["items"] if one["name"] == "w1")[
        "unschedulable"
    ] = True
    assert "another client cordoned w1" in node.steps()[0].blocked_by
    assert node.steps("fenced")[0].allowed


# KM521

DATA = "UUID=2f6d8a51-77c4-4b0e-8b6f-0c9d3f1e5a20 /var/lib/containerd ext4 defaults,nofail 0 2"


def test_a_volume_that_a_boot_did_not_mount(node):
    node.fstab(
        "UUID=bb / ext4 defaults 0 1",
        DATA,
        "/swapfile none swap sw 0 0",
        "tmpfs /tmp tmpfs defaults 0 0",
    )
    verdict, (found,) = node.judged("KM521")
    assert (verdict, found.severity, found.component, found.risk) == (
        "present",
        "warning",
        "/var/lib/containerd",
        0,
    )
    assert (
        "is not mounted (/var/lib/containerd), although fstab mounts it at boot; the kubelet"
        " answers nevertheless" in found.summary
    )
    assert [(one.path, one.line, one.text) for one in found.evidence] == [("/etc/fstab", 3, DATA)]
    node.world.data("w1", "kubelet")["healthz"] = {"status": None, "error": "refused"}
    assert node.judged("KM521")[1][0].severity == "critical"
    node.mounted(("/var/lib/containerd", "/dev/sdb", "ext4", "rw"))
    assert node.judged("KM521") == ("clear", [])


@pytest.mark.parametrize(
    "line",
    [
        "UUID=aa /var/lib/containerd ext4 noauto 0 2",
        "UUID=aa /var/lib/containerd ext4 nofail,x-systemd.automount 0 2",
        "# " + DATA,
        "UUID=aa /srv ext4 defaults 0 2",
        "UUID=aa",
        "UUID=aa swap swap sw",
        "/dev/sdb /var/lib/longhorn xfs defaults 0 0",
    ],
)
def test_lines_that_are_no_business_of_the_node(node, line):
    assert node.fstab(line).judged("KM521") == ("clear", [])


@pytest.mark.parametrize(
    ("point", "folders"),
    [
        ("/var", "/var/lib/containerd, /var/lib/kubelet"),
        ("/var/lib/", "/var/lib/containerd, /var/lib/kubelet"),
        ("/var/lib/etcd", "/var/lib/etcd"),
        ("/data", "/var/lib/docker"),
        ("/k8s", "/k8s/kubelet"),
    ],
)
def test_whatever_lies_above_a_folder_counts(node, point, folders):
    node.boot["folders"].update({"/var/lib/docker": "/data/docker", "/k8s/kubelet": "/k8s/kubelet"})
    (found,) = node.fstab(f"/dev/sdb {point} xfs defaults 0 0").judged("KM521")[1]
    assert f"is not mounted ({folders})" in found.summary


def test_a_link_is_mounted_where_it_leads(node):
    node.boot["folders"]["/var/lib/docker"] = "/data/docker"
    node.fstab("/dev/sdb /var/lib/docker xfs defaults 0 0").mounted(
        ("/data/docker", "/dev/sdb", "xfs", "rw")
    )
    assert node.judged("KM521") == ("clear", [])


def test_read_only(node):
    node.boot["mounts"][0]["options"] = "ro,relatime,errors=remount-ro"
    verdict, (found,) = node.judged("KM521")
    assert (verdict, found.severity, found.component) == (
        "present",
        "critical",
        "/",
    )
    assert "/var/lib/containerd, /var/lib/kubelet" in found.summary
    assert found.evidence[0].text == "/dev/sda1 / ext4 ro,relatime,errors=remount-ro"
    # an image whose / is read-only, and what lies in /var is not
    node.mounted(("/var", "/dev/sda4", "xfs", "rw,ro2"))
    assert node.judged("KM521") == ("clear", [])
    node.boot["container"] = True
    node.mounted(("/var/lib/kubelet", "/dev/sdc", "ext4", "ro"))
    assert [one.component for one in node.judged("KM521")[1]] == ["/var/lib/kubelet"]


@pytest.mark.parametrize(
    ("count", "since_boot", "reaction", "verdict"),
    [
        (55, True, "remount-ro", "present"),
        (55, True, "continue", "clear"),
        (55, False, "remount-ro", "clear"),
        (0, None, "remount-ro", "clear"),
        (None, None, None, "clear"),
    ],
)
def test_a_file_system_that_refuses_writes_and_says_rw(node, count, since_boot, reaction, verdict):
    """As after an error of its disk with newer kernels."""
    node.boot["mounts"][0].update(
        options="rw,relatime",
        error_count=count,
        error_since_boot=since_boot,
        on_error=reaction,
    )
    assert node.judged("KM521")[0] == verdict


def test_file_systems_of_which_nobody_can_tell(node):
    for change in (
        {"status": "denied", "data": None},
        {"status": "ok", "data": {**node.boot, "mounts": None}},
    ):
        node.document["collectors"]["boot"] = change
        assert node.judged("KM521") == ("unknown", [])
    node.document["collectors"]["boot"] = {"status": "ok", "data": node.boot}
    node.document["collectors"]["swap"]["data"]["fstab"] = named_record(
        "/etc/fstab", None, error="denied"
    )
    assert node.judged("KM521") == ("unknown", [])
    node.document["collectors"]["swap"]["data"]["fstab"] = named_record(
        "/etc/fstab", None, error="missing"
    )
    assert node.judged("KM521") == ("clear", [])


STOPS = "UUID=aa /srv ext4 defaults 0 2"


def test_a_device_without_which_no_boot_ends_is_foretold(node):
    node.boot["devices"] = {"UUID=aa": False, "UUID=bb": True}
    verdict, (found,) = node.fstab("UUID=bb /data xfs defaults 0 2", STOPS).judged("KM521")
    assert (verdict, found.severity, found.component, found.risk) == (
        "present",
        "warning",
        "/srv",
        0,
    )
    assert [(one.path, one.line, one.text) for one in found.evidence] == [("/etc/fstab", 3, STOPS)]
    node.boot["devices"]["UUID=aa"] = True
    assert node.judged("KM521") == ("clear", [])


@pytest.mark.parametrize(("error", "verdict"), [(None, "clear"), ("denied", "present")])
def test_a_line_that_the_next_start_reports_is_reported_once(node, error, verdict):
    node.boot["devices"] = {"UUID=aa": False}
    mounts = {"rows": [], "unknown": 0, "error": error}
    node.document["collectors"]["next_start"] = {"status": "ok", "data": {"mounts": mounts}}
    assert node.fstab(STOPS).judged("KM521")[0] == verdict


@pytest.mark.parametrize(
    "line",
    [
        "UUID=aa / ext4 defaults 0 1",
        "UUID=aa /srv ext4 defaults,nofail 0 2",
        "UUID=aa /srv ext4 noauto 0 2",
        "UUID=aa /srv ext4 x-systemd.automount 0 2",
        "UUID=aa /srv xfs _netdev 0 0",
        "UUID=aa /srv xfs x-systemd.wanted-by=backup.service 0 0",
        "UUID=aa none swap sw 0 0",
    ],
)
def test_a_boot_goes_on_without_these_devices(node, line):
    node.boot["devices"] = {"UUID=aa": False}
    assert node.fstab(line).judged("KM521") == ("clear", [])


@pytest.mark.parametrize(
    ("words", "verdict"),
    [([["fstab", "no"]], "clear"), ([["fstab", "no"], ["fstab", "yes"]], "present")],
)
def test_a_kernel_that_is_told_to_leave_fstab_alone(node, words, verdict):
    node.boot.update(devices={"UUID=aa": False}, cmdline=words)
    assert node.fstab(STOPS).judged("KM521")[0] == verdict


def test_a_container_boots_without_the_devices_of_its_machine(node):
    node.boot.update(devices={"UUID=aa": False}, container=True)
    assert node.fstab(STOPS).judged("KM521")[0] == "clear"


# KM522


@pytest.mark.parametrize(
    ("enforce", "config", "words", "verdict", "said"),
    [
        ("1", "enforcing", [], "clear", ""),
        ("0", "permissive", [], "clear", ""),
        (None, None, [], "not_applicable", ""),
        (None, "disabled", [], "not_applicable", ""),
        (
            "0",
            "enforcing",
            [],
            "present",
            (
                "SELinux is permissive, and the next boot makes it enforcing: it will deny"
                " what it only reports now"
            ),
        ),
        (
            "1",
            "permissive",
            [],
            "present",
            (
                "SELinux is enforcing, and the next boot makes it permissive: it was"
                " switched on by hand"
            ),
        ),
        (
            "0",
            "disabled",
            [],
            "present",
            "SELinux is permissive, and the next boot makes it disabled: it will be gone",
        ),
        ("0", "enforcing", [["enforcing", "0"]], "clear", ""),
        ("1", "nonsense", [], "clear", ""),
    ],
)
def test_selinux(node, enforce, config, words, verdict, said):
    node.boot.update(selinux={"enforce": enforce, "config": config}, cmdline=words)
    told, found = node.judged("KM522")
    assert told == verdict
    assert [one.summary.startswith(said) and one.severity for one in found] == (
        ["info"] if said else []
    )
    node.document["collectors"]["boot"] = {"status": "error", "data": None}
    assert node.judged("KM522")[0] == "unknown"


# whatever a node says

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "path",
                    "text",
                    "point",
                    "options",
                    "br_netfilter",
                    FORWARD,
                    BRIDGE,
                    "enforce",
                    "config",
                    "/var/lib/docker",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            (
                "running",
                "modules",
                "modules_files",
                "cmdline",
                "folders",
                "mounts",
                "selinux",
                "tree",
            ),
            ANY,
        ),
    )
)
def test_nothing_that_a_node_says_raises(seen):
    document = {
        "schema": "kubemend.evidence/1",
        "host": "w1",
        "node": "w1",
        "cluster_key": "c0ffee" + "0" * 58,
        "status": "ok",
        "reason": "",
        "groups": [],
        "collected_at": "2027-01-15T08:00:00Z",
        "collectors": {
            name: {"status": "ok", "data": data}
            for name, data in {
                "boot": seen,
                "kubelet": {},
                "system": {"addresses": ["10.0.0.1"]},
                "limits": {"sysctl_files": []},
                "swap": {"fstab": None},
            }.items()
        },
    }
    assert {one.verdict for one in fault_engine.evaluate([document], CODES).verdicts} <= {
        "present",
        "unknown",
        "clear",
        "not_applicable",
    }
    assert isinstance(model_boot.read(document).unread(), list)


# KM521: full file systems


def stored(node, *rows, status="ok"):
    """Give w1 these folders, as (path, what lies there, bytes that are free)."""
    stores = [
        {"path": path, "use": use, "device": number, "total_bytes": 2**32, "free_bytes": free}
        for number, (path, use, free) in enumerate(rows)
    ]
    data = {"folders": [], "stores": stores} if status == "ok" else None
    node.document["collectors"]["space"] = {"status": status, "data": data}
    return stores


@pytest.mark.parametrize(
    ("path", "use", "severity"),
    [
        ("/var/lib/etcd", "etcd", "critical"),
        ("/run", "run", "critical"),
        ("/var/log/pods", "pod_logs", "warning"),
        ("/var/log/journal", "journal", "warning"),
    ],
)
def test_a_full_file_system(node, path, use, severity):
    stored(node, ("/var/lib/kubelet", "kubelet", 2**30), (path, use, 0))
    verdict, (found,) = node.judged("KM521")
    assert (verdict, found.severity, found.component) == ("present", severity, path)
    assert [(one.kind, one.path) for one in found.evidence] == [("file", path)]


def test_file_systems_with_room_are_well(node):
    stored(node, ("/run", "run", 2**30))
    assert node.judged("KM521") == ("clear", [])


def test_a_read_only_one_is_told_once(node):
    node.boot["mounts"][0]["options"] = "ro"
    stores = stored(node, ("/var/lib/kubelet", "kubelet", 2**30), ("/wal", "etcd", 2**30))
    stores[0]["read_only"] = stores[1]["read_only"] = True
    assert sorted(one.component for one in node.judged("KM521")[1]) == ["/", "/wal"]


def test_an_etcd_host_without_a_kubelet(node):
    node.document["collectors"]["kubelet"] = {"status": "absent", "data": None}
    stored(node, ("/var/lib/etcd", "etcd", 0))
    assert [one.component for one in node.judged("KM521")[1]] == ["/var/lib/etcd"]


@pytest.mark.parametrize("status", ["error", "timeout", "denied"])
def test_space_that_was_not_read_is_unknown(node, status):
    stored(node, status=status)
    assert node.judged("KM521")[0] == "unknown"


def test_a_folder_that_was_not_read_is_unknown(node):
    stored(node, ("/run", "run", 2**30))[0]["error"] = "Input/output error"
    assert node.judged("KM521")[0] == "unknown"


@pytest.mark.parametrize(
    ("state", "files", "verdict"),
    [
        ("absent", [], "present"),
        ("available", [], "clear"),
        ("loaded", [], "clear"),
        (None, [], "clear"),
        ("absent", ["10-calico.conflist"], "clear"),  # what runs may speak nftables
    ],
)
def test_a_kernel_without_modules_for_rules(world, state, files, verdict):
    node = Node(world)
    network_evidence.network(world, modules={"xt_conntrack": state, "nf_conntrack": state})
    world.data("w1", "kubelet")["cni"] = {
        "folder": "/etc/cni/net.d",
        "files": [{"name": name, "size": 300} for name in files],
        "error": None,
    }
    told, found = node.judged("KM520")
    assert told == verdict
    assert [(item.component, item.severity, item.risk) for item in found] == [
        ("nf_conntrack", "critical", 0)
    ] * len(found)


def test_modules_that_could_not_be_read_are_unknown(world):
    node = Node(world)
    world.documents["w1"]["collectors"]["network"] = {"status": "error", "data": None}
    assert node.judged("KM520") == ("unknown", [])


@pytest.mark.parametrize(("state", "verdict"), [("absent", "present"), ("loaded", "clear")])
def test_a_network_plugin_that_ends_without_a_module_asks_for_it(node, state, verdict):
    node.sysctl((KUBEADM[0], f"{FORWARD} = 1\n"))
    node.load()
    node.without_netfilter()
    assert node.judged("KM520") == ("clear", [])
    node.boot["modules"]["br_netfilter"] = state
    path = "/proc/sys/net/bridge/bridge-nf-call-iptables"
    said = (
        f"E0119 1 main.go:278] Failed to check br_netfilter: stat {path}: no such file or directory"
    )
    clock = node.document["collectors"]["system"]["data"]["clock"]
    row = {"namespace": "kube-flannel", "pod": "kube-flannel-ds-zg58f", "container": "kube-flannel"}
    row |= {"restart": 9, "begun": clock - 90, "written": clock - 88, "path": "/var/log/pods/9.log"}
    row |= {"first": clock - 400, "last": clock - 398, "lines": [said], "error": None}
    node.document["collectors"]["system_pods"] = {"status": "ok", "data": {"pods": [row]}}
    found_verdict, found = node.judged("KM520")
    assert found_verdict == verdict
    assert [(one.component, one.severity) for one in found] == [("br_netfilter", "critical")] * (
        state == "absent"
    )
