# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dnf and yum upgrade by themselves: files as the packages of RHEL 7, 8, 9 and Fedora 41."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    rpm_upgrades,
)

RPMS = (
    "systemd\t252-32.el9\tRed Hat, Inc.\n"
    "kubelet\t1.30.1-150500.1.1\tobs://build.opensuse.org/isv:kubernetes\n"
    "containerd.io\t1.7.1-3.1.el9\tDocker\n"
    "runc\t1.1.12-2.el9\tRed Hat, Inc.\n"
    "kubernetes-cni\t1.4.0-150500.1.1\tobs://build.opensuse.org/isv:kubernetes\n"
)
AUTOMATIC = "[commands]\nupgrade_type = default\ndownload_updates = yes\napply_updates = {}\n"
YUM_CRON = "[commands]\nupdate_cmd = {}\napply_updates = yes\n[emitters]\nemit_via = stdio\n"
KUBERNETES = """[kubernetes]
name=Kubernetes
baseurl=https://user:geheim@pkgs.example.com/rpm/
enabled=1
exclude=kubelet kubeadm kubectl cri-tools kubernetes-cni
"""


def rpm(argv, _seconds, _limit):
    assert argv[:2] == ["rpm", "-qa"]
    return RPMS


def place(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def unit(root, name, target="timers.target"):
    place(
        root,
        {f"usr/lib/systemd/system/{name}": "x", f"etc/systemd/system/{target}.wants/{name}": "x"},
    )


@pytest.fixture
def machine(tmp_path):
    """Return a folder that stands for a RHEL 9 whose dnf-automatic installs updates."""
    unit(tmp_path, "dnf-automatic.timer")
    place(tmp_path, {"etc/dnf/automatic.conf": AUTOMATIC.format("yes")})
    return tmp_path


def names(root):
    answer = rpm_upgrades.of_rpm(str(root), rpm)
    assert (answer["on"], answer["error"]) == (True, None)
    return [row["name"] for row in answer["packages"]]


def test_a_machine_without_such_a_program(tmp_path):
    assert rpm_upgrades.of_rpm(str(tmp_path), rpm) is None


def test_the_whole_answer(machine):
    answer = rpm_upgrades.of_rpm(str(machine), rpm)
    assert answer["program"] == "dnf-automatic"
    assert answer["unit"] == "dnf-automatic.timer"
    assert answer["security"] is False
    assert answer["packages"][0] == {
        "name": "kubelet",
        "installed": "1.30.1-150500.1.1",
        "own": False,
    }
    assert [row["name"] for row in answer["packages"] if row["own"]] == ["runc"]


@pytest.mark.parametrize(
    ("text", "is_on"),
    [
        (AUTOMATIC.format("True"), True),
        (AUTOMATIC.format("1"), True),
        (AUTOMATIC.format("no"), False),
        ("[commands]\n", False),
        ("", False),
    ],
)
def test_the_file_decides_whether_updates_are_installed(machine, text, is_on):
    place(machine, {"etc/dnf/automatic.conf": text})
    assert rpm_upgrades.of_rpm(str(machine), rpm)["on"] is is_on


def test_the_timer_that_always_installs_needs_no_file(machine):
    place(machine, {"etc/dnf/automatic.conf": AUTOMATIC.format("no")})
    unit(machine, "dnf-automatic-install.timer")
    answer = rpm_upgrades.of_rpm(str(machine), rpm)
    assert (answer["on"], answer["unit"]) == (True, "dnf-automatic-install.timer")


def test_a_timer_that_is_masked_or_not_enabled(machine):
    folder = machine / "etc/systemd/system"
    (folder / "dnf-automatic.timer").symlink_to("/dev/null")
    assert rpm_upgrades.of_rpm(str(machine), rpm)["on"] is False
    (folder / "dnf-automatic.timer").unlink()
    (folder / "timers.target.wants/dnf-automatic.timer").unlink()
    assert rpm_upgrades.of_rpm(str(machine), rpm)["on"] is False


def test_dnf5_has_its_defaults_in_another_file(tmp_path):
    unit(tmp_path, "dnf5-automatic.timer")
    defaults = "usr/share/dnf5/dnf5-plugins/automatic.conf"
    place(tmp_path, {defaults: AUTOMATIC.format("yes")})
    answer = rpm_upgrades.of_rpm(str(tmp_path), rpm)
    assert (answer["on"], answer["program"]) == (True, "dnf5 automatic")
    place(tmp_path, {"etc/dnf/automatic.conf": "[commands]\napply_updates = no\n"})
    assert rpm_upgrades.of_rpm(str(tmp_path), rpm)["on"] is False


@pytest.mark.parametrize(
    ("kind", "security"), [("default", False), ("security", True), ("minimal-security", True)]
)
def test_yum_cron(tmp_path, kind, security):
    unit(tmp_path, "yum-cron.service", "multi-user.target")
    place(tmp_path, {"etc/yum/yum-cron.conf": YUM_CRON.format(kind)})
    answer = rpm_upgrades.of_rpm(str(tmp_path), rpm)
    assert (answer["on"], answer["program"], answer["security"]) == (True, "yum-cron", security)


def test_security_updates_alone(machine):
    text = AUTOMATIC.format("yes").replace("default", "security")
    place(machine, {"etc/dnf/automatic.conf": text})
    assert rpm_upgrades.of_rpm(str(machine), rpm)["security"] is True


@pytest.mark.parametrize(
    ("path", "text", "left"),
    [
        ("etc/dnf/dnf.conf", "[main]\nexclude=kube* containerd.io\n", ["runc"]),
        ("etc/dnf/dnf.conf", "[main]\nexcludepkgs=kube*,runc\n", ["containerd.io"]),
        ("etc/dnf/dnf.conf", "[main]\nexclude=kube*\n  containerd.io\n", ["runc"]),
        ("etc/dnf/automatic.conf", AUTOMATIC.format("yes") + "[base]\nexclude=kube*\n", None),
        ("etc/yum.repos.d/kubernetes.repo", KUBERNETES, None),
        ("etc/dnf/versionlock.toml", '[[packages]]\nname = "kube*"\n', "all"),
    ],
)
def test_packages_that_files_exclude(machine, path, text, left):
    place(machine, {path: text})
    everything = ["kubelet", "containerd.io", "runc", "kubernetes-cni"]
    wanted = {None: ["containerd.io", "runc"], "all": everything}
    assert names(machine) == (left if isinstance(left, list) else wanted[left])


def test_an_exclude_of_a_repository_that_is_off_keeps_nothing(machine):
    off = KUBERNETES.replace("enabled=1", "enabled=0")
    place(machine, {"etc/yum.repos.d/kubernetes.repo": off})
    assert "kubelet" in names(machine)


def test_an_address_never_leaves_the_node(machine):
    place(machine, {"etc/yum.repos.d/kubernetes.repo": KUBERNETES + "\x00broken\n"})
    assert "geheim" not in str(rpm_upgrades.of_rpm(str(machine), rpm))


def test_the_list_of_versionlock_counts_where_its_plugin_is_on(machine):
    lines = "# Added\nkubelet-0:1.30.1-150500.1.1.*\n!runc-0:1.1.13-1.el9.*\n"
    place(machine, {"etc/dnf/plugins/versionlock.list": lines})
    assert "kubelet" in names(machine)
    place(machine, {"etc/dnf/plugins/versionlock.conf": "[main]\nenabled = 1\n"})
    assert names(machine) == ["containerd.io", "runc", "kubernetes-cni"]


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("kubelet-0:1.30.1-150500.1.1.*", "kubelet"),
        ("0:kubelet-1.30.1-0.*", "kubelet"),
        ("kubernetes-cni-1.4.0-1.*", "kubernetes-cni"),
        ("containerd.io-*", "containerd.io"),
        ("kubelet", "kubelet"),
    ],
)
def test_lines_of_versionlock(line, pattern):
    assert rpm_upgrades.locked(line + "\n") == [pattern]
    assert rpm_upgrades.locked(f"!{line}\n#{line}\n") == []


@pytest.mark.parametrize(("comparator", "is_kept"), [("=", True), ("<", True), ("!=", False)])
def test_conditions_of_dnf5(comparator, is_kept):
    text = (
        'version = "1.0"\n[[packages]]\nname = "kubelet" # x\n[[packages.conditions]]\n'
        f'key = "evr"\ncomparator = "{comparator}"\nvalue = "0:1.30.1-1"\n'
    )
    assert rpm_upgrades.toml_locked(text) == (["kubelet"] if is_kept else [])


def test_a_file_that_is_none_and_an_rpm_that_does_not_answer(machine):
    def silent(*dummy):
        raise command.CommandError("rpm did not end within 5 s")

    assert "rpm did not end" in rpm_upgrades.of_rpm(str(machine), silent)["error"]
    place(machine, {"etc/dnf/dnf.conf": "no section\n"})
    assert rpm_upgrades.of_rpm(str(machine), rpm)["error"]


def test_a_pattern_of_many_stars_is_left_out(machine):
    place(machine, {"etc/dnf/dnf.conf": "[main]\nexclude=" + "*a" * 60 + "\n"})
    assert len(names(machine)) == 4
