# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kubeconfig and which server a session takes, and which it does not try again."""

import base64

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import session
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import (
    ApiError,
    Deadline,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared.cluster_key import (
    cluster_key,
)

ADMIN, KUBELET = "/etc/kubernetes/admin.conf", "/etc/kubernetes/kubelet.conf"
BALANCER, LOCAL = "https://10.0.0.9:6443", "https://10.0.0.1:6443"
PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
CA, OTHER_CA = (PEM.format(base64.b64encode(name).decode()) for name in (b"one", b"two"))
VERSION = {"gitVersion": "v1.36.3"}
SILENT = ApiError("error", "connection refused")
EXPIRED = ApiError("denied", "HTTP 401", 401)
FORBIDDEN = ApiError("denied", "HTTP 403", 403)


class Cluster:
    """API servers, and the kubeconfigs that name them.

    answers: by (kubeconfig, server), None for its own: the version, or the error that is raised.
    views: by kubeconfig: (server, CA), or the error that is raised.
    """

    def __init__(self):
        self.answers, self.views = {}, {}
        self.asked, self.proxies = [], []
        self.silent = set()  # addresses that take connections and say nothing

    def handshakes(self, places, _seconds):
        return [
            {"error": "timed out" if address in self.silent else None} for address, _port in places
        ]

    def view(self, _kubectl, config, _deadline):
        return result_or_raise(self.views.get(config, (BALANCER, CA)))

    def proxy(self, _directory, name, _kubectl, config, _deadline, server=None, _tls=None):
        proxy = Proxy(self, name, config, server)
        self.proxies.append(proxy)
        return proxy


class Proxy:
    def __init__(self, cluster, name, config, server):
        self.cluster, self.name, self.config, self.server = cluster, name, config, server
        self.closed = False

    def get(self, path, seconds):
        assert path == "/version"
        assert seconds > 0
        self.cluster.asked.append((self.config, self.server))
        return result_or_raise(self.cluster.answers.get((self.config, self.server), VERSION))

    def close(self):
        self.closed = True


def result_or_raise(value):
    if isinstance(value, Exception):
        raise value
    return value


@pytest.fixture
def cluster(monkeypatch):
    one = Cluster()
    monkeypatch.setattr(session, "ApiProxy", one.proxy)
    monkeypatch.setattr(session.kubeconfig, "view", one.view)
    monkeypatch.setattr(session.kubeconfig, "local_server", lambda: None)
    monkeypatch.setattr(session.served_certificates, "read", one.handshakes)
    return one


@pytest.fixture
def opened():
    return session.Session("/run/x", "/usr/bin/kubectl", Deadline(60))


def test_the_first_kubeconfig_that_answers_is_kept(cluster, opened):
    opened.connect([ADMIN, KUBELET], [])
    assert (opened.config, opened.url, opened.ca, opened.version) == (ADMIN, BALANCER, CA, VERSION)
    assert opened.api is cluster.proxies[0]
    assert cluster.asked == [(ADMIN, None)]


def test_a_refusal_is_an_answer_that_says_no_version(cluster, opened):
    cluster.answers[ADMIN, None] = FORBIDDEN
    opened.connect([ADMIN, KUBELET], [])
    assert (opened.config, opened.version, opened.failures) == (ADMIN, {}, [])


def test_the_next_kubeconfig_is_tried_at_a_server_that_answered(cluster, opened):
    """An expired certificate says nothing about the server."""
    cluster.answers[ADMIN, None] = EXPIRED
    opened.connect([ADMIN, KUBELET], [])
    assert (opened.config, opened.url) == (KUBELET, BALANCER)
    assert cluster.asked == [(ADMIN, None), (KUBELET, None)]
    assert [proxy.closed for proxy in cluster.proxies] == [True, False]


def test_a_server_that_is_silent_is_asked_once(cluster, opened):
    cluster.answers[ADMIN, None] = SILENT
    cluster.answers[KUBELET, None] = SILENT
    with pytest.raises(ApiError) as raised:
        opened.connect([ADMIN, KUBELET], [])
    assert cluster.asked == [(ADMIN, None)]
    assert all(proxy.closed for proxy in cluster.proxies)
    assert f"{ADMIN} ({BALANCER})" in str(raised.value)
    assert opened.api is None


def test_the_api_server_of_this_node_is_asked_after_the_balancer(cluster, opened, monkeypatch):
    monkeypatch.setattr(session.kubeconfig, "local_server", lambda: LOCAL)
    cluster.answers[ADMIN, None] = SILENT
    opened.connect([ADMIN], [])
    assert cluster.asked == [(ADMIN, None), (ADMIN, LOCAL)]
    assert (opened.config, opened.url) == (ADMIN, LOCAL)
    assert opened.api.server == LOCAL


def test_nor_is_a_silent_api_server_of_this_node_asked_twice(cluster, opened, monkeypatch):
    monkeypatch.setattr(session.kubeconfig, "local_server", lambda: LOCAL)
    cluster.answers.update({(ADMIN, None): SILENT, (ADMIN, LOCAL): SILENT})
    with pytest.raises(ApiError):
        opened.connect([ADMIN, KUBELET], [])
    assert cluster.asked == [(ADMIN, None), (ADMIN, LOCAL)]


def test_a_kubeconfig_that_cannot_be_read_is_named_and_the_next_is_tried(cluster, opened):
    cluster.views[ADMIN] = ApiError("error", "no such context")
    opened.connect([ADMIN, KUBELET], [])
    assert opened.config == KUBELET
    (failure,) = opened.failures
    assert failure.startswith(ADMIN)
    assert cluster.proxies[0].closed
    assert cluster.asked == [(KUBELET, None)]


def test_every_failure_is_in_the_error(cluster, opened):
    cluster.views[ADMIN] = ApiError("error", "no such context")
    cluster.answers[KUBELET, None] = EXPIRED
    with pytest.raises(ApiError) as raised:
        opened.connect([ADMIN, KUBELET], [])
    assert raised.value.status == "error"
    assert ADMIN in str(raised.value)
    assert KUBELET in str(raised.value)


@pytest.mark.usefixtures("cluster")
def test_without_a_kubeconfig_there_is_an_error(opened):
    with pytest.raises(ApiError, match="no kubeconfig"):
        opened.connect([], [])


def test_a_cluster_that_was_answered_for_is_not_asked(cluster, opened):
    """The CA of its own kubeconfig is kept: it says which cluster was skipped."""
    cluster.answers[ADMIN, None] = SILENT
    cluster.views[KUBELET] = (LOCAL, OTHER_CA)
    with pytest.raises(session.Skipped) as raised:
        opened.connect([ADMIN, KUBELET], [cluster_key(OTHER_CA)])
    assert raised.value.args == (cluster_key(OTHER_CA),)
    assert opened.ca == OTHER_CA
    assert cluster.asked == [(ADMIN, None)]


def test_the_ca_is_that_of_the_kubeconfig_that_answers(cluster, opened):
    cluster.views[ADMIN] = (LOCAL, OTHER_CA)
    cluster.answers[ADMIN, None] = SILENT
    opened.connect([ADMIN, KUBELET], [cluster_key(PEM.format("AAAA"))])
    assert (opened.config, opened.ca) == (KUBELET, CA)


def test_every_proxy_has_a_name_of_its_own_and_ends_with_the_session(cluster, opened):
    opened.connect([ADMIN], [])
    opened.open("https://10.0.0.2:6443", tls_server_name="kubernetes")
    assert [proxy.name for proxy in cluster.proxies] == ["0", "1"]
    assert cluster.proxies[1].config == ADMIN
    opened.close()
    assert all(proxy.closed for proxy in cluster.proxies)


@pytest.mark.parametrize(
    ("silent", "asked"),
    [
        ({"10.0.0.9"}, [(ADMIN, LOCAL)]),
        ({"10.0.0.9", "10.0.0.1"}, [(ADMIN, None)]),
        ({"10.0.0.1"}, [(ADMIN, None)]),
        (set(), [(ADMIN, None)]),
    ],
    ids=["the balancer", "both", "this node", "none"],
)
def test_a_server_that_says_nothing_is_not_waited_for_if_this_node_s_answers(
    cluster, opened, monkeypatch, silent, asked
):
    monkeypatch.setattr(session.kubeconfig, "local_server", lambda: LOCAL)
    cluster.silent = silent
    opened.connect([ADMIN], [])
    assert cluster.asked == asked


@pytest.mark.parametrize(
    ("server", "place"),
    [
        ("https://10.0.0.1:6443", ("10.0.0.1", 6443)),
        ("https://[fd00::1]:6443/", ("fd00::1", 6443)),
        ("https://lb.example:6443", None),
        ("https://10.0.0.1:6443/path", None),
        ("https://10.0.0.1:99999", None),
        ("http://10.0.0.1:6443", None),
        (None, None),
    ],
)
def test_only_a_server_with_an_address_is_tried_by_a_handshake(server, place):
    assert session.place_of(server) == place


@pytest.mark.parametrize(
    ("silent", "asked", "failed"),
    [
        ({"10.0.0.9"}, [(ADMIN, LOCAL)], [BALANCER]),
        ({"10.0.0.9", "10.0.0.1"}, [], [BALANCER, LOCAL]),
        ({"10.0.0.1"}, [(ADMIN, None)], [LOCAL]),
    ],
    ids=["the balancer", "both", "this node"],
)
def test_where_no_proxy_is_on_the_way_a_server_that_says_nothing_is_not_asked(
    cluster, opened, monkeypatch, silent, asked, failed
):
    monkeypatch.setattr(session.kubeconfig, "local_server", lambda: LOCAL)
    monkeypatch.setattr(session, "is_direct", lambda _config: True)
    cluster.silent = silent
    if asked:
        opened.connect([ADMIN], [])
    else:
        with pytest.raises(ApiError, match=session.SILENT):
            opened.connect([ADMIN], [])
    assert cluster.asked == asked
    assert opened.failures == [f"{ADMIN} ({server}): {session.SILENT}" for server in failed]


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("server: https://10.0.0.1:6443", {}, True),
        ("server: https://10.0.0.1:6443", {"NO_PROXY": "x"}, True),
        ("server: https://10.0.0.1:6443", {"HTTPS_PROXY": "http://proxy"}, False),
        ("server: https://10.0.0.1:6443", {"https_proxy": "http://proxy"}, False),
        ("server: https://10.0.0.1:6443\nproxy-url: http://proxy", {}, False),
        (None, {}, False),
    ],
)
def test_whether_kubectl_goes_straight_to_a_server(tmp_path, text, environment, expected):
    config = tmp_path / "admin.conf"
    if text is not None:
        config.write_text(text)
    assert session.is_direct(str(config), environment) is expected


@pytest.mark.parametrize(
    ("answers", "rounds", "expected"),
    [
        ({"10.0.0.1": "timed out", "10.0.0.2": None}, 1, ["https://10.0.0.1:1"]),
        ({"10.0.0.1": "timed out", "10.0.0.2": "Connection refused"}, 2, ["https://10.0.0.1:1"]),
        ({"10.0.0.1": None, "10.0.0.2": None}, 1, []),
    ],
    ids=["another answers", "none answers", "both answer"],
)
def test_a_server_alone_has_more_time_for_its_handshake(monkeypatch, answers, rounds, expected):
    asked = []

    def handshakes(places, _seconds):
        asked.append(places)
        return [{"error": answers[address]} for address, _port in places]

    monkeypatch.setattr(session.served_certificates, "read", handshakes)
    servers = ["https://10.0.0.1:1", "https://10.0.0.2:1", "https://a-name:1"]
    assert session.silent_places(servers) == expected
    assert len(asked) == rounds


def test_a_request_of_a_session_has_the_session_s_patience(cluster):
    impatient = session.Session("/run/x", "/usr/bin/kubectl", Deadline(60), 4)
    impatient.connect([ADMIN], [])
    assert impatient.api.patience == 4
