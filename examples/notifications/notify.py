#!/usr/bin/env python3
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send the findings of a report to Alertmanager, to a webhook of a chat, or by mail.

It needs Python 3.8 and nothing else. What is secret comes from the environment: KUBEMEND_WEBHOOK,
KUBEMEND_TOKEN, KUBEMEND_SMTP_USER and KUBEMEND_SMTP_PASSWORD.
"""

import argparse
import json
import os
import smtplib
import ssl
import sys
import urllib.error
import urllib.request
from datetime import datetime, timedelta
from email.message import EmailMessage
from pathlib import Path

TIMEOUT_SECONDS = 20
TIME = "%Y-%m-%dT%H:%M:%SZ"
SHOWN = 20  # findings in a message
SENT = ("critical", "warning")
JUDGES = ("observe", "plan", "repair")  # runs that read hosts; a replay is of another time
SYMBOLS = {"critical": ":red_circle:", "warning": ":large_yellow_circle:"}


def findings_of(report):
    """Return the critical and warning findings that no waiver accepts, the worst first."""
    rows = [
        row for row in report["findings"] if row["severity"] in SENT and row.get("waived") is None
    ]
    return sorted(rows, key=lambda row: SENT.index(row["severity"]))


def cluster_names(report):
    """Return the names of the clusters by their keys."""
    return {row["key"]: row.get("name") or row["key"] for row in report["clusters"]}


def place_of(row):
    """Return code, host and component of a finding."""
    parts = (row["code"], row["host"] or row["node"], row["component"])
    return " ".join(part for part in parts if part)


def counts_of(report):
    """Return one line with the counts of a report."""
    summary = report["summary"]
    hosts = sum(row["status"] != "not_asked" for row in report["hosts"])
    noun = "host" if hosts == 1 else "hosts"
    return (
        f"kubemend: {hosts} {noun}, {summary['critical']} critical, {summary['warning']} warning,"
        f" {summary['unknown']} unknown"
    )


def alerts_of(report, hours):
    """Return the alerts of Alertmanager's API v2; each ends so many hours after the run began.

    So a report that is sent again does not keep alerts alive.
    """
    names = cluster_names(report)
    ends = datetime.strptime(report["started"], TIME) + timedelta(hours=hours)
    alerts = []
    for row in findings_of(report):
        labels = {
            "alertname": "KubemendFinding",
            "code": row["code"],
            "severity": row["severity"],
            "cluster": names.get(row["cluster"], row["cluster"]),
            "host": row["host"] or row["node"],
            "component": row["component"],
        }
        annotations = {"summary": row["summary"], "description": row["remedy"]}
        alerts.append(
            {
                # Alertmanager takes no empty label for one of its own.
                "labels": {name: value for name, value in labels.items() if value},
                "annotations": {name: value for name, value in annotations.items() if value},
                "startsAt": row.get("since") or report["started"],
                "endsAt": ends.strftime(TIME),
            }
        )
    return alerts


def chat_text(report):
    """Return the text of a message to a chat; &, < and > of the findings are no markup."""
    rows = findings_of(report)
    lines = [counts_of(report)]
    for row in rows[:SHOWN]:
        text = " ".join(f"{place_of(row)}: {row['summary']}".split())
        lines.append(f"{SYMBOLS[row['severity']]} {text}")
    if len(rows) > SHOWN:
        lines.append(f"and {len(rows) - SHOWN} more")
    text = "\n".join(lines)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: it would lose the document, and give the token to another server."""

    def redirect_request(self, *_arguments):
        """Return that there is no other request, so that the answer is an error."""
        return


def post(url, document):
    """Send JSON; a redirect or an error of the server raises."""
    headers = {"Content-Type": "application/json"}
    token = os.environ.get("KUBEMEND_TOKEN")
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, json.dumps(document).encode(), headers, method="POST")
    opener = urllib.request.build_opener(NoRedirect)
    with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
        answer.read(1000)


def to_alertmanager(report, options):
    """Send the findings as alerts."""
    alerts = alerts_of(report, options.hours)
    if alerts:
        post(options.url.rstrip("/") + "/api/v2/alerts", alerts)
    return len(alerts)


def to_chat(report, _options):
    """Send the findings to a webhook of Slack, or of what understands the same."""
    rows = findings_of(report)
    if rows:
        post(os.environ["KUBEMEND_WEBHOOK"], {"text": chat_text(report)})
    return len(rows)


def to_mail(report, options):
    """Send the report as it was on the terminal."""
    rows = findings_of(report)
    if not rows:
        return 0
    user = os.environ.get("KUBEMEND_SMTP_USER")
    if user and not options.starttls:
        raise ValueError("KUBEMEND_SMTP_USER needs --starttls: a password is not sent unencrypted")
    message = EmailMessage()
    message["Subject"] = counts_of(report)
    message["From"], message["To"] = options.sender, ", ".join(options.recipients)
    message["Auto-Submitted"] = "auto-generated"
    text = (options.folder / "report.txt").read_text(encoding="utf-8")
    message.set_content(text, cte="quoted-printable")
    host, _colon, port = options.server.partition(":")
    with smtplib.SMTP(host, int(port or 25), timeout=TIMEOUT_SECONDS) as server:
        if options.starttls:
            server.starttls(context=ssl.create_default_context())
        if user:
            server.login(user, os.environ["KUBEMEND_SMTP_PASSWORD"])
        server.send_message(message)
    return len(rows)


def parser_of_options():
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description="Send the findings of a report of kubemend.")
    parser.add_argument("folder", help="the folder of a run, or last for the newest")
    ways = parser.add_subparsers(dest="way", required=True, metavar="WAY")
    way = ways.add_parser("alertmanager", help="alerts, by the API v2 of Alertmanager")
    way.add_argument("url", help="such as http://alertmanager:9093")
    way.add_argument("--hours", type=float, default=3, help="an alert ends after so many hours")
    way.set_defaults(send=to_alertmanager)
    way = ways.add_parser("chat", help="one message, to the webhook in KUBEMEND_WEBHOOK")
    way.set_defaults(send=to_chat)
    way = ways.add_parser("mail", help="report.txt, by SMTP")
    way.add_argument("server", help="such as mail.example.com:25")
    way.add_argument("sender")
    way.add_argument("recipients", nargs="+")
    way.add_argument("--starttls", action="store_true", help="encrypt, and check the server")
    way.set_defaults(send=to_mail)
    return parser


def folder_of(text):
    """Return the folder of a run; `last` is the newest one that read hosts and has a report."""
    if text != "last":
        return Path(text)
    runs = Path("~/.kubemend/runs").expanduser()
    for path in sorted(runs.glob("2*/report.json"), reverse=True):
        if json.loads(path.read_text(encoding="utf-8")).get("mode") in JUDGES:
            return path.parent
    raise ValueError(f"no run in {runs} has left a report; name the folder of one instead of last")


def main():
    """Send a report, and say how many findings were sent."""
    options = parser_of_options().parse_args()
    try:
        options.folder = folder_of(options.folder)
        report = json.loads((options.folder / "report.json").read_text(encoding="utf-8"))
        count = options.send(report, options)
    except KeyError as error:
        print(f"notify: {error} is missing in the environment or in the report", file=sys.stderr)
        return 1
    except (OSError, ValueError, TypeError, smtplib.SMTPException, urllib.error.URLError) as error:
        print(f"notify: nothing was sent: {error}", file=sys.stderr)
        return 1
    print(f"notify: {count} findings sent")
    return 0


if __name__ == "__main__":
    sys.exit(main())
