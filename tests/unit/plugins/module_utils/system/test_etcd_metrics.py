# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of etcd: the few that are kept, as 3.6.16 answered them, and what is no metric."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    etcd_metrics,
    http_client,
)

TEXT = """etcd_mvcc_db_total_size_in_bytes 32768
etcd_mvcc_db_total_size_in_use_in_bytes 16384
etcd_server_quota_backend_bytes 2.147483648e+09
etcd_server_has_leader 1
etcd_server_is_leader 0
etcd_server_leader_changes_seen_total 2
process_start_time_seconds 1.79575332436e+09
etcd_server_id{server_id="69b38ac7138de88d"} 1
etcd_server_version{server_version="3.6.16"} 1
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.001"} 90
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.512"} 98
etcd_disk_wal_fsync_duration_seconds_bucket{le="1.024"} 100
etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} 100
etcd_disk_wal_fsync_duration_seconds_sum 3.5
etcd_disk_wal_fsync_duration_seconds_count 100
etcd_network_peer_round_trip_time_seconds_bucket{To="9e737febb6b99eee",le="0.0001"} 2
etcd_network_peer_round_trip_time_seconds_bucket{To="9e737febb6b99eee",le="+Inf"} 2
etcd_network_peer_round_trip_time_seconds_sum{To="9e737febb6b99eee"} 0.0002
etcd_network_peer_round_trip_time_seconds_count{To="9e737febb6b99eee"} 2
etcd_network_active_peers{Local="69b38ac7138de88d",Remote="61f97220ab052a12"} 0
etcd_network_active_peers{Local="69b38ac7138de88d",Remote="9e737febb6b99eee"} 1
etcd_network_peer_sent_failures_total{To="61f97220ab052a12"} 12
"""


def test_what_3_6_16_answers():
    answer = etcd_metrics.parsed(TEXT)
    assert answer["db_size"] == 32768
    assert answer["db_size_in_use"] == 16384
    assert answer["quota"] == 2147483648
    assert (answer["has_leader"], answer["is_leader"]) == (1.0, 0.0)
    assert answer["member_id"] == str(0x69B38AC7138DE88D)
    assert answer["version"] == "3.6.16"
    assert answer["slow_applies"] is None
    assert answer["backend_commit"] is None
    assert answer["wal_fsync"] == {"count": 100, "seconds": 3.5, "p99": 0.768}
    assert answer["peers"] == [
        {
            "id": str(0x9E737FEBB6B99EEE),
            "active": True,
            "sent_failures": None,
            "round_trip": {"count": 2.0, "seconds": 0.0002, "p99": 9.9e-05},
        },
        {
            "id": str(0x61F97220AB052A12),
            "active": False,
            "sent_failures": 12.0,
            "round_trip": None,
        },
    ]


@pytest.mark.parametrize(
    ("buckets", "p99"),
    [
        ([(0.1, 100.0), (float("inf"), 100.0)], 0.099),
        ([(0.1, 0.0), (float("inf"), 100.0)], 0.1),  # above the last limit
        ([], None),
    ],
)
def test_a_quantile(buckets, p99):
    assert etcd_metrics.quantile({"count": 100.0, "buckets": buckets}, 0.99) == p99


def test_a_histogram_without_times_has_no_quantile():
    row = {"count": 0.0, "buckets": [(0.1, 0.0), (float("inf"), 0.0)]}
    assert etcd_metrics.quantile(row, 0.99) is None


@pytest.mark.parametrize(
    "line",
    [
        "etcd_server_has_leader NaN",
        "etcd_server_has_leader +Inf",
        "etcd_server_has_leader much",
        "etcd_server_has_leader",
        "",
        'etcd_server_id{server_id="zz"} 1',
        'etcd_network_active_peers{Remote="-5"} 1',
        'etcd_disk_wal_fsync_duration_seconds_bucket{le="x"} 1',
        "etcd_unheard_of 1",
    ],
)
def test_what_is_no_metric_is_left_out(line):
    answer = etcd_metrics.parsed(line)
    assert answer.pop("peers") == []
    assert set(answer.values()) == {None}


def test_peers_are_bounded():
    text = "".join(
        f'etcd_network_active_peers{{Local="1",Remote="{number:x}"}} 1\n' for number in range(1, 99)
    )
    assert len(etcd_metrics.parsed(text)["peers"]) == etcd_metrics.MAX_PEERS


class Stub:
    answer = (200, TEXT.encode())

    def __init__(self, *args):
        pass

    def request(self, path, keep=None):
        assert path == "/metrics"
        self.kept = keep
        return self.answer

    def close(self):
        pass


def test_an_address_that_answers_something_else_is_an_error(monkeypatch):
    monkeypatch.setattr(http_client, "Connection", Stub)
    assert etcd_metrics.read("127.0.0.1", 2381, 1)["db_size"] == 32768
    for answer in ((404, b""), (200, b""), (200, b"process_start_time_seconds 1\n")):
        monkeypatch.setattr(Stub, "answer", answer)
        with pytest.raises(http_client.HttpError):
            etcd_metrics.read("127.0.0.1", 2381, 1)
