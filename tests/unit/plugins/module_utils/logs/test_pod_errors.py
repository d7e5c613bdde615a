# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Error lines of the cluster's own pods: which loggers are read, what is kept of a line."""

import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import pod_errors

NOW = 1795500000.0
ERRORS = (
    "2024-06-19 02:12:07.689 [INFO][1] felix/int_dataplane.go 1347: kube-proxy mode changed. Res",
    # kube-proxy
    "E0524 12:11:36.123456       1 proxier.go:857] chain: modprobe: ERROR: could not insert",
    # felix of Calico
    "2023-05-10 10:00:00.123 [ERROR][57] felix/int_dataplane.go 1: Failed to list interfaces",
    "2024-04-07 06:13:09.024 [PANIC][975] felix/int_dataplane.go 716: failed to attach",
    "2026-08-27 01:41:23.882 [WARNING][665] felix/ipsets.go 8: Failed to complete ipset restore",
    "2021-06-01 12:00:00.000 [INFO][62] felix/ipip_mgr.go 85: Failed to configure tunnel device",
    "2021-06-01 12:00:00.000 [WARNING][62] felix/ipip_mgr.go 1: Failed to add IPIP tunnel device",
    "2024-06-01 12:00:00.000 [INFO][62] felix/wireguard.go 751: Unable to create wireguard link",
    # Open vSwitch and OVN
    "2024-06-26T06:26:04.470Z|00063|ofproto_dpif|ERR|failed to open datapath of type system",
    "2024-06-26T06:26:04.470Z|07|reconnect|WARN|tcp:192.0.2.1:6642: connection attempt failed (x)",
    "2024-06-26T06:26:04.470Z|7|rconn(ovn_pinctrl0)|WARN|unix:/br-int.mgmt: connection failed (x)",
    "2021-01-19T02:20:41.921Z|00090|dpif|WARN|system@ovs-system: failed to add ovn-92 as port",
    "2021-01-19T02:20:41.921Z|9|dpif_netlink|WARN|Generic Netlink family 'ovs_datapath' does not",
    # Weave
    "FATA: 2020/04/12 10:00:01.118266 [boltDB] Unable to open /weavedb/weave-netdata.db: timeout",
    "ERRO: 2020/04/12 10:00:01.118266 Captured frame from MAC (aa) associated with another peer",
    "INFO: 2020/04/12 10:00:01.118266 ->[192.0.2.12:6783|aa(w1)]: connection shutting down due to"
    " error: IP allocation was seeded by different peers (received: [aa], ours: [bb])",
    # BIRD of Calico
    "bird: Netlink: Network is down",
    "2023-05-10 10:00:00 bird: Mesh_192_0_2_11: Socket error: No route to host",
    # CoreDNS
    "[ERROR] plugin/errors: 2 example.org. A: read udp 10.0.0.2:1->192.0.2.53:53: i/o timeout",
    # logrus and slog of Cilium
    'level=error msg="Unable to create endpoint" error="no route" subsys=daemon',
    'time="2024-05-10T10:00:00Z" level=error msg="Unable to create endpoint"',
    'time=2024-05-10T10:00:00.000Z level=error source=/go/src/a.go:1 msg="Unable to attach"',
    "level=warning msg=\"/var/run/cilium/state/globals/node_config.h:44:9: error: 'X' redefined\"",
    # zap of the VPC CNI and of controllers
    '{"level":"error","ts":"2024-05-10T10:00:00.000Z","caller":"a.go:1","msg":"Failed to add"}',
    '{"severity":"ERROR","timestamp":"2024-05-10T10:00:00.000Z","message":"x"}',
    # Go's own logger, and a script
    "2024/03/01 10:00:00 Failed to initialize NVML: could not load NVML library.",
    "error: cannot reach the server",
    # nginx, keepalived and Rook
    "2024/03/01 10:00:00 [alert] 29#29: 512 worker_connections are not enough",
    "Fri Mar  1 10:00:00 2024: (VI_1) WARNING - equal priority advert received from remote host",
    "2024-03-01 10:00:00.123456 E | op-osd: failed to provision OSDs",
)
QUIET = (
    "2024/03/01 10:00:00 [error] 29#29: *7 connect() failed (111: Connection refused), client: x",
    "Fri Mar  1 10:00:00 2024: (VI_1) Entering MASTER STATE",
    "2024-03-01 10:00:00.123456 I | op-osd: no error",
    "2024-06-19 02:12:07.689 [INFO][1] felix/int_dataplane.go 1347: Applying dataplane updates",
    "I0524 12:11:36.123456       1 proxier.go:857] Syncing iptables rules, error=nil",
    "W0524 12:11:36.123456       1 reflector.go:1] watch of *v1.Service ended",
    "2023-05-10 10:00:00.123 [WARNING][57] felix/table.go 1: Detected out-of-sync inserts",
    "2023-05-10 10:00:00.123 [INFO][57] felix/summary.go 1: Summary without errors",
    'level=warning msg="Unable to install direct node route" subsys=linux-datapath',
    '{"level":"info","ts":"2024-05-10T10:00:00.000Z","msg":"no error, level=error"}',
    "bird: Graceful restart done",
    "2024-06-26T06:26:04.470Z|00063|chassis|INFO|Need to specify an encap type and ip",
    "2024-06-26T06:26:04.470Z|00063|bridge|WARN|could not open network device veth1 (x)",
    "2024-06-26T06:26:04.470Z|00063|ovsdb_idl|WARN|OVN_Southbound database lacks a column",
    "INFO: 2020/04/12 10:00:01.118266 ->[192.0.2.12:6783|aa(w1)]: connection shutting down due to"
    " error: read tcp4 192.0.2.11:6783->192.0.2.12:6783: i/o timeout",
    "INFO: 2020/04/12 10:00:01.118266 ->[192.0.2.12:6783] attempting connection",
    '[INFO] 10.0.0.2:1 - 2 "A IN error.example.org. udp 41" NOERROR',
)


def stamp(moment):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z", time.gmtime(moment))


def write(path, *lines):
    """Write lines of (seconds before now, text)."""
    text = "".join(f"{stamp(NOW - ago)} stderr F {line}\n" for ago, line in lines)
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("line", ERRORS)
def test_an_error_that_is_said_again_and_again(tmp_path, line):
    path = write(tmp_path / "0.log", (9000, "begins"), *((60 * index, line) for index in (9, 5, 2)))
    answer = pod_errors.read(path, NOW)
    (entry,) = answer["entries"]
    assert (entry["count"], entry["minutes"], answer["errors"]) == (3, 3, 3)
    assert entry["line"] == line
    assert (answer["error"], answer["cut"]) == (None, False)


@pytest.mark.parametrize("line", QUIET)
def test_what_is_no_error(tmp_path, line):
    path = write(tmp_path / "0.log", (9000, "begins"), (60, line), (30, line))
    assert pod_errors.read(path, NOW)["entries"] == []


def test_a_line_of_docker(tmp_path):
    path = tmp_path / "0.log"
    text = '{"log":"E0524 12:11:36.1 1 a.go:1] no way\\n","stream":"stderr","time":"%s"}\n'
    path.write_text(text % stamp(NOW - 5), encoding="utf-8")
    assert pod_errors.read(str(path), NOW + 200)["entries"] == []  # of a start that is young
    path.write_text(text % stamp(NOW - 500) + text % stamp(NOW - 5), encoding="utf-8")
    assert pod_errors.read(str(path), NOW)["entries"][0]["line"].endswith("no way")


def test_lines_of_before_and_of_a_start_do_not_count(tmp_path):
    line = "E0524 12:11:36.123456 1 a.go:1] no way"
    old = write(tmp_path / "0.log", (9000, line), (700, line), (599, line))
    assert pod_errors.read(old, NOW)["errors"] == 1
    young = write(tmp_path / "1.log", (300, line), (200, line), (170, line))
    assert pod_errors.read(young, NOW)["errors"] == 1


def test_names_that_a_resolver_was_asked_for_are_one_error(tmp_path):
    lines = [
        (
            60 * index,
            f"[ERROR] plugin/errors: 2 a{index}.x. A: read udp 10.0.0.2:1: i/o timeout",
        )
        for index in range(1, 6)
    ]
    path = write(tmp_path / "0.log", (9000, "begins"), *lines)
    assert [entry["count"] for entry in pod_errors.read(path, NOW)["entries"]] == [5]


def test_a_long_log_is_read_from_its_end(tmp_path):
    line = "E0524 12:11:36.123456 1 a.go:1] no way " + "x" * 500
    path = write(tmp_path / "0.log", *((500 - index, line) for index in range(400)))
    answer = pod_errors.read(path, NOW)
    assert answer["cut"]
    assert answer["lines"] * 500 < pod_errors.LOG_BYTES


def test_a_log_that_is_gone(tmp_path):
    answer = pod_errors.read(str(tmp_path / "0.log"), NOW)
    assert answer["error"]
    assert answer["entries"] == []
    assert pod_errors.complaints(str(tmp_path / "0.log")) == []


def test_what_a_device_plugin_misses(tmp_path):
    path = write(
        tmp_path / "0.log",
        (90000, "Loading NVML, token=abcdefghijklmnopqrstuvwxyz"),
        (90000, "Failed to initialize NVML: token=abcdefghijklmnopqrstuvwxyz\x1b[0m"),
        (80000, "No devices found. Waiting indefinitely."),
        (70000, "No devices found. Waiting indefinitely."),
    )
    told = pod_errors.complaints(path)
    assert [line[:8] for line in told] == ["Failed t", "No devic"]
    assert "abcdefghij" not in str(told)
    assert "\x1b" not in str(told)


def test_a_device_that_a_plugin_takes_away(tmp_path):
    line = "'nvidia.com/gpu' device marked unhealthy: GPU-1"
    path = write(tmp_path / "0.log", (90000, "begins"), (80000, line), (70000, "a healthy one"))
    assert pod_errors.complaints(path) == [line]


def test_an_error_of_klog_has_the_lines_in_which_its_value_goes_on(tmp_path):
    write(
        tmp_path / "0.log",
        (500, "begins"),
        (60, 'E0524 12:11:36.123456       1 proxier.go:1] "Sync failed" err=<'),
        (60, "\t/dev/stdin:1:1-9: Error: Could not process rule"),
        (60, "\tadd rule ip kube-proxy x"),
        (60, " > ipFamily=IPv4"),
    )
    entries = pod_errors.read(str(tmp_path / "0.log"), NOW)["entries"]
    assert [(entry["line"].partition("] ")[2], entry["count"]) for entry in entries] == [
        (
            '"Sync failed" err="/dev/stdin:1:1-9: Error: Could not process rule add rule ip'
            ' kube-proxy x" ipFamily=IPv4',
            1,
        )
    ]
