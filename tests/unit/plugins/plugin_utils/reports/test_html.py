# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report for a browser: what it holds, and that whatever a node said stays text.

How it looks and works: tests/browser.
"""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    diff as report_diff,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    html,
    matrix,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.text_page import escape
from tests.browser import fleet

VOID = {"meta", "input", "br"}
ATTRIBUTES = {
    "href",
    "id",
    "class",
    "title",
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "role",
    "hidden",
    "for",
    "type",
    "autocomplete",
    "spellcheck",
    "placeholder",
    "aria-describedby",
    "aria-controls",
    "aria-label",
    "aria-labelledby",
    "aria-pressed",
    "aria-live",
    "aria-hidden",
    "data-s",
    "data-total",
    "data-cluster",
    "value",
    "tabindex",
    "scope",
    "open",
    # of the drawing of causes
    "d",
    "height",
    "rx",
    "viewbox",
    "width",
    "x",
    "y",
}


class Page(HTMLParser):
    """What a browser would make of it.

    Elements with the names of their attributes, texts, scripts and styles.
    """

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.bones, self.texts, self.attributes, self.raw, self.open = (
            [],
            [],
            [],
            {"script": [], "style": []},
            [],
        )
        self.policy = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.bones.append((tag, tuple(sorted(name for name, dummy in attrs))))
        self.attributes += attrs
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.raw[self.open[-1]] if self.open and self.open[-1] in self.raw else self.texts).append(
            data
        )

    @property
    def words(self):
        return " ".join(" ".join(self.texts).split())


def rendered(size=8, said=str, **more):
    return html.render(fleet.result(size, broken=2, silent=1, said=said), fleet.run(said, **more))


@pytest.fixture(name="page", scope="module")
def _page():
    return Page(rendered(mode="verify"))


@pytest.mark.parametrize("mode", ["observe", "verify", "capture"])
@pytest.mark.parametrize("symptom", [True, False])
def test_hostile_texts_add_no_element_and_no_attribute(mode, symptom):
    plain, hostile = (
        Page(rendered(said=said, mode=mode, symptom=symptom)) for said in (str, fleet.hostile)
    )
    assert hostile.bones == plain.bones
    assert hostile.raw == plain.raw
    assert len(plain.raw["script"]) == len(plain.raw["style"]) == 1
    assert {name for name, dummy in hostile.attributes} <= ATTRIBUTES
    assert not plain.open
    assert not hostile.open


def test_hostile_texts_are_shown_as_they_are_and_what_hides_is_spelled_out():
    source = rendered(said=fleet.hostile, mode="verify")
    assert not [
        char
        for char in source
        if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    ]
    words = Page(source).words
    shown = " ".join(escape(fleet.HOSTILE).split())
    for text in (
        "m2",
        "leader election is off",
        "holder m2",
        "- --leader-elect=false",
        "timed out",
        "a note",
        "one master at a time",
        "not known",
        "/r",
        "a wish that has no effect",
        "Pods of Jobs are created twice",
        "created by kube-controller-manager (3)",
        "risk 2 needs kubemend_max_risk=2 (it is 0)",
    ):
        assert text + shown in words, text
    for text in ("\\u202egnp.exe", "\\x1b[31m", "\\x00", "\\ud800", "{{ 7 * 7 }} {% for x in y %}"):
        assert text in words
    source.encode("utf-8")


def test_the_policy_names_its_one_script_and_style_and_nothing_else(page):
    def digest(name):
        return base64.b64encode(hashlib.sha256(page.raw[name][0].encode()).digest()).decode()

    assert (
        page.policy == f"default-src 'none'; style-src 'sha256-{digest('style')}'; script-src"
        f" 'sha256-{digest('script')}'; base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"url\(|@import|https?://", page.raw["style"][0] + page.raw["script"][0])
    assert not [
        value
        for name, value in page.attributes
        if name in ("src", "srcset", "style", "action")
        or (name == "href" and not value.startswith("#"))
    ]


def test_the_plan_ends_with_the_commands_that_do_and_undo_its_steps():
    result, planned = fleet.result(8, broken=2, silent=1), fleet.run()
    text = Page(html.render(result, replace(planned, repair="do all", undo="undo it"))).words
    assert text.index("Plan") < text.index("repair: do all Copy")
    steps = (Step("01-w1", "w1", "KM407", "kernel_setting", 1, "/etc/sysctl.d/99-zz.conf"),)
    became = ({"id": "01-w1", "state": "done", "reason": ""},)
    ended = replace(planned, mode="verify", plan=steps, steps=became, undo="undo it")
    text = Page(html.render(result, ended)).words
    assert "undo: undo it Copy" in text
    assert "repair:" not in text.replace("repair: afterwards", "")


def test_it_is_complete_without_its_script(page):
    words = page.words
    for text in (
        "kubemend: Pods of Jobs are created twice",
        "run 20261121T090000Z-1a2b3c, 2026-11-21 09:00 UTC, repair: afterwards",
        "Kubernetes v1.36.3 · 7 of 8 hosts read · 9 s · after the repair",
        "exit code 2 (failed)",
        "step 01 failed",
        "cluster 01234567",
        "Kubernetes v1.36.3",
        "✖ critical KM101 m2 kube-scheduler Leader election disabled leader election is off",
        "because of KM110",
        "because of KM101",
        "/etc/kubernetes/manifests/kube-scheduler.yaml:17: - --leader-elect=false",
        "pid 1234: kube-scheduler … --leader-elect=false",
        "fix (automatic, risk 2): set the argument to --leader-elect=true",
        (
            "ansible-playbook -i INVENTORY kubemend.remediation.remediate -e kubemend_faults=KM101"
            " -e kubemend_max_risk=2"
        ),
        "Pods of Jobs are created twice: possible causes",
        "✖ present KM101 Leader election disabled kube-scheduler",
        "? unknown KM105 missing kubelet of worker-00002 (unreachable)",
        "KM404 (an older release collected the evidence)",
        "01-m2-kube-scheduler",
        "+ - --leader-elect=true",
        "note: one master at a time",
        "99-unplanned",
        "failed ; not known",
        "Timeline of default/once-x7f2p",
        "created by kube-controller-manager (3) asks for cpu 1",
        "2026-11-1",
        "worker-00002",
        "timed out",
        "4 without a finding",
        "kubemend: 8 hosts, 3 critical, 1 warning,",
    ):
        assert " ".join(text.split()) in words.replace(" : ", ": "), text


def states(size=6, broken=2, silent=1):
    found = fleet.result(size, broken=broken, silent=silent)
    said = matrix.states(found.verdicts, found.findings)
    return found, said, matrix.make(found.hosts, said)


def test_the_matrix_has_hosts_and_faults_worst_first_and_what_is_clean_as_one_row():
    _result, _states, table = states(5000)
    assert [codes for codes in table.columns if len(codes) == 1] == [
        ("KM101",),
        ("KM502",),
        ("KM113",),
    ]
    assert [(row.kind, len(row.hosts), row.hosts[:2]) for row in table.rows] == [
        ("whole", 0, ()),
        ("host", 1, ("m2",)),
        ("host", 2, ("worker-00000", "worker-00001")),
        ("host", 1, ("worker-00002",)),
        ("clean", 4996, ("m1", "m3")),
    ]
    whole, first, second, silent, clean = table.rows
    at = {codes[0]: index for index, codes in enumerate(table.columns)}
    # which is shown where it is
    assert whole.cells[at["KM113"]] == "warning"
    assert whole.cells[at["KM101"]] == ""
    assert (first.cells[at["KM101"]], second.cells[at["KM502"]], clean.cells[at["KM502"]]) == (
        "critical",
        "critical",
        "clear",
    )
    # Of 18 faults the same is said of every host: one column. Three more are unknown of the silent
    # host, but not clear of the others.
    assert [codes for codes in table.columns if len(codes) > 1] == [
        ("KM105", "KM106", "KM107"),
        tuple(f"KM5{n:02}" for n in range(4, 22)),
    ]
    assert (
        silent.status,
        silent.cells[at["KM105"]],
        silent.cells[at["KM504"]],
        silent.cells[at["KM502"]],
    ) == ("unreachable", "unknown", "unknown", "unknown")
    assert (clean.cells[at["KM105"]], clean.cells[at["KM504"]]) == ("", "clear")


def test_an_empty_result_says_so():
    words = Page(
        html.render(model_result.Result(), fleet.run(steps=0, entries=0, symptom=False))
    ).words
    assert "kubemend: audit" in words
    assert "nothing is known of it but its name" in words
    healthy = model_result.Result(
        hosts=(model_result.HostRow("w1", "w1", "k", "worker", "ok"),),
        verdicts=(model_result.Verdict("KM101", "k", "clear"),),
    )
    words = Page(html.render(healthy, fleet.run(symptom=False))).words
    assert "Nothing was found and nothing is unknown on 1 host: no finding" in words
    assert "1 without a finding" in words


def test_hosts_are_in_the_order_of_their_numbers():
    hosts = [model_result.HostRow(name, name, "k", "worker", "ok") for name in ("w10", "w2", "m1")]
    findings = [
        model_result.Finding("KM407", "warning", "k", name, None, "s") for name in ("w10", "w2")
    ]
    result = model_result.Result(hosts=tuple(hosts), findings=tuple(findings))
    (view,) = html._views(result, fleet.run(symptom=False))
    assert [row.hosts for row in view.matrix.rows if row.kind == "host"] == [("w2", "w10")]
    assert [place.row.host for place in view.hosts] == ["w2", "w10", "m1"]


@pytest.mark.parametrize(("steps", "opened"), [(html.FEW_STEPS, True), (html.FEW_STEPS + 1, False)])
def test_the_diffs_of_a_long_plan_are_closed(steps, opened):
    text = html.render(fleet.result(4), fleet.run(steps=steps))
    assert ("<details open><summary>diff</summary>" in text) is opened
    assert text.count("<summary>diff</summary>") == steps


def test_a_host_of_which_something_is_unknown_is_without_a_finding_too():
    host = model_result.HostRow("m1", "m1", "k", "control_plane", "ok")
    missing = (model_result.Missing("m1", "api_way", "not_asked"),)
    unknown = model_result.Verdict("KM178", "k", "unknown", missing=missing)
    result = model_result.Result(hosts=(host,), verdicts=(unknown,))
    words = Page(html.render(result, fleet.run(symptom=False))).words
    assert "1 without a finding" in words


def test_hosts_of_which_different_claims_are_made_are_named():
    hosts = [
        model_result.HostRow(name, name, "k", "worker", "ok", judged=judged)
        for name, judged in (("w1", 1), ("w2", 1), ("m1", 2))
    ]
    healthy = model_result.Result(
        hosts=tuple(hosts), verdicts=(model_result.Verdict("KM101", "k", "clear"),), faults=3
    )
    words = Page(html.render(healthy, fleet.run(symptom=False))).words
    assert "no finding (1 of 3 faults judged) on w1, w2;" in words
    assert "no finding (2 of 3 faults judged) on m1" in words


def test_a_long_text_is_cut_and_says_so():
    found = fleet.result(4, broken=0, silent=0, said=lambda text: text + "x" * 5000)
    assert "more characters in report.json)" in Page(html.render(found, fleet.run())).words


def test_an_earlier_report_and_captures_are_told_in_the_words_of_the_terminal():
    result = fleet.result(8, broken=2, silent=1, said=str)
    capture = {
        "host": "m1",
        "pid": 7,
        "version": "v1.18.4",
        "sentence": "<b>its snapshot lacks</b> w1",
        "verdict": "snapshot_short",
        "waiting": ["a/b"],
        "nodes": {"api": 4, "cached": 4, "counted": 4, "reasons": 3},
        "message": "0/4 nodes <script>",
        "mismatch": [],
        "dump": {"reason": ""},
        "level": {"level": 4, "former": 2, "raised": True, "restored": True, "reason": ""},
        "files": {},
    }
    run = replace(
        fleet.run(str),
        captures=(capture,),
        compared=report_diff.Comparison("R0", "2026-11-20T00:00:00Z", new=result.findings[:1]),
    )
    page = Page(html.render(result, run))
    assert "compared with run R0, which ended 2026-11-20T00:00:00Z" in page.words
    assert f"new: {result.findings[0].code}" in page.words
    assert "nodes: <b>its snapshot lacks</b> w1" in page.words
    assert "it says (a/b): 0/4 nodes <script>" in page.words
    assert "compared with" not in Page(html.render(result, fleet.run(str))).words


def test_cells_of_the_matrix_lead_to_their_findings():
    page = Page(rendered(mode="observe"))
    targets = {value for name, value in page.attributes if name == "id"}
    links = {value for name, value in page.attributes if name == "href"}
    assert {"#finding-KM101_0123456789abcdef_m2_kube-scheduler"} <= links
    assert links - {"#report"} <= {f"#{target}" for target in targets}


def test_alike_findings_are_one_entry_with_all_hosts():
    found = fleet.result(60, broken=40, silent=0)
    page = Page(html.render(found, fleet.run(symptom=False)))
    assert page.words.count("the kubelet does not run: it ended with status 1") == 1
    assert "worker-00000 to worker-00039 (40 hosts)" in page.words


def test_the_page_of_a_fault_stands_once_below_its_first_finding():
    run = replace(fleet.run(), explanations={"KM101": "# KM101 x\n\n## What you see\n\nA *lock*."})
    page = Page(html.render(fleet.result(5), run))
    assert page.words.count("What you see A lock .") == 1
    assert ("em", ()) in page.bones


def ids_of(page):
    return [value for name, value in page.attributes if name == "id"]


def elections(*places):
    first = fleet.result(5).findings[0]
    return [replace(first, host=host, component=component) for host, component in places]


def test_the_id_of_an_entry_is_that_of_its_finding_whatever_else_is_found():
    whole, result = fleet.run(symptom=False), fleet.result(8, broken=2, silent=0)
    fewer = replace(result, findings=result.findings[1:])
    both = [set(ids_of(Page(html.render(item, whole)))) for item in (result, fewer)]
    shared = {name for name in both[1] if name.startswith("finding-")}
    assert {name[8:13] for name in shared} == {"KM502", "KM113"}
    assert shared <= both[0]


def test_ids_are_unique_and_links_whatever_hosts_are_named():
    names = ("a b", "a-b", "a/b", "a_b", "a%b", "\u00e9", "a" * 300, "a" * 301)
    result = replace(
        fleet.result(5),
        findings=tuple(
            replace(item, summary=str(number), remedy=str(number))
            for number, item in enumerate(elections(*((name, "x") for name in names)))
        ),
    )
    # Findings of one place, as those without a host are.
    alone = replace(result.findings[0], code="KM113", host=None, node=None, component=None)
    result = replace(
        result,
        findings=(*result.findings[:4], alone, replace(alone, summary="other")),
    )
    for findings in (result.findings, [replace(item, code="KM404") for item in result.findings]):
        page = Page(html.render(replace(result, findings=tuple(findings)), fleet.run()))
        ids = ids_of(page)
        assert len(ids) == len(set(ids))
        assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in ids)


def test_the_names_of_an_entry_are_never_cut_as_one_text():
    hosts = [f"worker-with-a-long-name-{number * 2}" for number in range(300)]
    found = elections(*((host, "kube-scheduler") for host in hosts))
    words = Page(html.render(replace(fleet.result(5), findings=tuple(found)), fleet.run())).words
    assert f"{hosts[0]}, {hosts[1]}" in words
    assert words.count(hosts[-1]) >= 2  # all hosts of the entry, of the row of the matrix


def test_other_fixes_and_other_evidence_are_stated():
    found = [
        replace(item, summary=str(number), remedy=f"edit /etc/{number}", evidence=())
        for number, item in enumerate(elections(*((f"w{n}", "x") for n in range(9))))
    ]
    found.append(replace(found[0], host="w10", evidence=fleet.result(5).findings[0].evidence))
    words = Page(html.render(replace(fleet.result(5), findings=tuple(found)), fleet.run())).words
    assert "the other texts and fixes differ: report.json" in words
    assert "the evidence of the other hosts differs: report.json" in words
    assert "for example w3: edit /etc/3" in words


def test_a_code_of_the_plan_and_of_a_note_has_its_title():
    result = fleet.result(5)
    run = replace(fleet.run(), titles={"KM101": "Election disabled", "KM104": "A file of it"})
    words = Page(html.render(result, run)).words
    assert "KM101 Election disabled, risk 2" in words
    assert "a note (KM104 A file of it)" in words


def test_a_note_about_what_is_in_order_is_folded_and_has_readable_times():
    found = fleet.result(3)
    rows = tuple(item._replace(note="") for item in found.verdicts)
    clear = next(item for item in rows if item.verdict == "clear")
    found = replace(found, verdicts=rows)
    notes = (
        clear._replace(verdict="unknown", note="not read"),
        clear._replace(note="restarted at 2026-11-20T08:00:00Z"),
    )
    page = html.render(replace(found, verdicts=(*found.verdicts, *notes)), fleet.run())
    before, folded, after = re.split(r"<details><summary><b>in order</b> (1 note)</summary>", page)
    assert folded == "1 note"
    assert "note: not read" in before
    assert "ago (2026-11-20 08:00 UTC) (" in after.partition("</details>")[0]
    assert "2026-11-20T08:00:00Z" not in page
    assert "<b>in order</b>" not in html.render(found, fleet.run())


def test_a_code_of_the_matrix_has_its_title_and_all_titles_of_its_column():
    page = Page(rendered())
    titles = [value for name, value in page.attributes if name == "title"]
    named = [title for title in titles if re.match("KM[0-9]{3} ", title or "")]
    assert named
    assert any(title.count("; ") and title.count("KM") > 1 for title in named)


def test_titles_are_next_to_codes_where_they_have_room():
    key, host = "0123456789abcdef", "w1"

    def shown(codes):
        result = model_result.Result(
            findings=tuple(
                model_result.Finding(code, "critical", key, host, None, "it is stopped", host)
                for code in codes
            ),
            verdicts=tuple(model_result.Verdict(code, key, "present", host=host) for code in codes),
            clusters=(model_result.ClusterRow(key, None, (host,)),),
            hosts=(model_result.HostRow(host, host, key, "worker", "ok"),),
        )
        titles = {code: f"title of {code}" for code in codes}
        page = html.render(result, replace(fleet.run(symptom=False), titles=titles))
        return page.count("<small>title of KM502</small>")

    assert shown(["KM502"]) == 2
    assert shown([f"KM{number}" for number in range(500, 501 + html.TITLED)]) == 0


def test_only_a_run_that_wrote_evidence_names_its_folder():
    assert "evidence/" in Page(rendered(mode="observe")).words.rpartition("for programs")[2]
    assert "evidence/" not in Page(rendered(mode="replay")).words.rpartition("for programs")[2]


def test_what_was_not_judged_of_the_only_cluster_is_one_list():
    result = fleet.result(4)
    words = Page(html.render(result, fleet.run(symptom=False))).words
    assert words.count("not judged 2 faults") == 1
    assert "not judged 1 fault" not in words
    other = model_result.ClusterRow("other", None, ("x1",))
    hosts = (*result.hosts, model_result.HostRow("x1", "x1", "other", "worker", "ok"))
    several = replace(result, clusters=(*result.clusters, other), hosts=hosts)
    words = Page(html.render(several, fleet.run(symptom=False))).words
    assert words.count("not judged 1 fault") == 2
