# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reader of what releases of Kubernetes have: flags, gates, plugins, groups, versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.next_release import compare, flags, gates, interfaces, mine

OPTIONS = """
package options

const formatFlag = "logging-format"

func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Version, "first-flag", o.Version, "what it is")
	fs.Var(cliflag.NewMapStringBool(&o.Gates), "second_flag", "what it is")
	fs.StringVar(&o.Format, formatFlag, o.Format, "what it is")
	register(global, local, cadvisorflags.MachineID)
	fs.MarkHidden("never-registered")
	fs.StringVar(&o.Mode, fmt.Sprintf("audit-%s-mode", name), o.Mode, "what it is")
}
"""
GATES = """
package features

const (
	One featuregate.Feature = "One"
	renamed featuregate.Feature = "Two"
)

var gates = map[featuregate.Feature]featuregate.FeatureSpec{
	One: {Default: true, PreRelease: featuregate.GA, LockToDefault: true}, // remove in 1.40
	genericfeatures.Three: {Default: false, PreRelease: featuregate.Alpha},
	// Gone: {Default: true},
}

var versioned = map[featuregate.Feature]featuregate.VersionedSpecs{
	Four: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.35"), Default: false, LockToDefault: true},
	},
}
"""


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    write(tmp_path, "kubernetes/cmd/kubelet/app/options/options.go", OPTIONS)
    write(tmp_path, "kubernetes/cmd/kubelet/app/options/options_test.go", 'f.String("of-test")')
    write(tmp_path, "kubernetes/pkg/features/kube_features.go", GATES)
    write(tmp_path, "component-base/logs/klogflags/klogflags.go", "package klogflags\n")
    return {name: tmp_path / name for name in ("kubernetes", "component-base")}


def test_flags_by_their_registration(folders):
    names = flags.of_component("kubelet", folders)
    assert {"first-flag", "second-flag", "logging-format", "machine-id"} <= names
    assert {"audit-log-mode", "audit-webhook-mode", "v", "help"} <= names
    assert not names & {"of-test", "logtostderr", "Version"}
    # A text of the component's own package counts too: its removal is not claimed.
    assert "never-registered" in names


def test_flags_of_another_program_and_texts_of_a_trace_do_not_count(folders, tmp_path):
    write(tmp_path, "component-base/logs/kube-log-runner/main.go", 'flag.String("log-file", "")')
    name = "apiserver/pkg/server/egressselector/egress_selector.go"
    write(tmp_path, name, 'attribute.String("address", a)')
    write(tmp_path, "apiserver/pkg/server/options/etcd.go", 'fs.StringVar(&o, "prefix", o)')
    write(tmp_path, "cloud-provider/options/cloud.go", 'fs.StringVar(&o, "cloud-provider", o)')
    every = {name: tmp_path / name for name in ("apiserver", "cloud-provider")} | folders
    assert "log-file" not in flags.of_component("kubelet", every)
    server = flags.of_component("kube-apiserver", every)
    assert not server & {"address", "cloud-provider"}
    assert "prefix" in server
    assert "cloud-provider" in flags.of_component("kube-controller-manager", every)


def test_all_flags_of_klog_up_to_125(folders, tmp_path):
    (tmp_path / "component-base/logs/klogflags/klogflags.go").unlink()
    (tmp_path / "component-base/logs/klogflags").rmdir()
    assert "logtostderr" in flags.of_component("kubelet", folders)


@pytest.mark.parametrize(("minor", "locks"), [(34, {"One": "true"}), (35, {"Four": "false"})])
def test_gates_and_locks_of_a_release(folders, minor, locks):
    known, locked = gates.of_release(minor, folders)
    assert known == {"One", "Three", "Four"}
    assert locked == {"One": "true", **locks}


def test_what_the_newest_release_lacks_with_the_last_that_has_it():
    names = {30: frozenset("ab"), 31: frozenset("b"), 32: frozenset("c")}
    assert sorted(mine._gone("flag", "kubelet", names)) == [
        ("flag", "kubelet", "a", "1.30", ""),
        ("flag", "kubelet", "b", "1.31", ""),
    ]


def test_a_lock_counts_from_the_first_of_the_last_releases_that_have_it():
    locks = {30: {"a": "true"}, 31: {}, 32: {"a": "true"}, 33: {"a": "true"}, 34: {}}
    assert mine._locked(locks) == [("lock", "", "a", "1.32", "true")]


def test_a_limit_is_told_where_it_changes():
    assert mine._changed("skew", {28: "1", 29: "3", 30: "3"}) == [
        ("skew", "kubeadm", "", "1.28", "1"),
        ("skew", "kubeadm", "", "1.29", "3"),
    ]


def test_plugins_groups_versions_and_limits(tmp_path):
    write(
        tmp_path,
        "pkg/kubeapiserver/options/plugins.go",
        "var AllOrderedPlugins = []string{\n\t\tadmit.PluginName, // AlwaysAdmit\n}\n// Other\n",
    )
    write(tmp_path, "pkg/apis/batch/register.go", 'const GroupName = "batch"\n')
    write(
        tmp_path,
        "pkg/apis/batch/install/install.go",
        "utilruntime.Must(batch.AddToScheme(scheme))\nutilruntime.Must(v1.AddToScheme(scheme))\n"
        "utilruntime.Must(batchv2alpha1.AddToScheme(scheme))\n",
    )
    write(tmp_path, "pkg/scheduler/apis/config/v1beta3/doc.go", "")
    write(tmp_path, "pkg/scheduler/apis/config/validation/doc.go", "")
    write(
        tmp_path,
        "cmd/kubeadm/app/cmd/phases/upgrade/postupgrade.go",
        'unwantedFlags := []string{\n\t\t// text\n\t\t"some-flag",\n\t}\n',
    )
    folders = {"kubernetes": tmp_path}
    assert interfaces.plugins(folders) == {"AlwaysAdmit"}
    assert interfaces.groups(folders) == {"batch"}
    assert interfaces.group_versions(folders) == {"batch/v1", "batch/v2alpha1"}
    assert interfaces.scheduler_versions(folders) == {"v1beta3"}
    assert interfaces.tidied(folders) == {"some-flag"}


def test_the_flags_that_a_program_lists(tmp_path):
    program = tmp_path / "kubelet"
    program.write_text("#!/bin/sh\necho '  -v, --v Level'\necho '      --some-flag string  text'\n")
    program.chmod(0o755)
    assert compare.listed(program) == {"v", "some-flag"}


def test_a_program_is_compared_in_both_directions(tmp_path, monkeypatch):
    for component in flags.PACKAGES:
        (tmp_path / component).write_text("#!/bin/sh\necho '      --both'\necho '      --told'\n")
        (tmp_path / component).chmod(0o755)
    monkeypatch.setattr(flags, "of_component", lambda *_: frozenset({"both", "read"}))
    monkeypatch.setattr(compare.mine, "folders", lambda *_: {})
    rows = compare.differences(tmp_path, "1.36", tmp_path)
    assert set(rows) == set(flags.PACKAGES)
    assert set(rows.values()) == {compare.Difference(frozenset({"told"}), frozenset({"read"}))}


def test_the_sources_of_each_release_are_named():
    named = mine.releases()
    assert list(named) == list(range(min(named), max(named) + 1))
    for minor, modules in named.items():
        release = [one for one in modules if one.startswith(f"k8s.io/kubernetes@v1.{minor}.")]
        assert len(release) == 1
