# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand in for kubectl: `config view` and `proxy` over recorded answers.

Its kubeconfig is JSON:

{"server": URL, "ca": PEM, "answers": path of recorded answers, "broken": {URL: text of the proxy's
500}, "codes": {path: [HTTP status, ...]}, "differ": {URL: holder}, "slow": seconds, "fail": text}
"""

import base64
import http.server
import json
import os
import socketserver
import sys
import time
import urllib.parse
from pathlib import Path


def option(name):
    for argument in sys.argv[1:]:
        if argument.startswith(f"--{name}="):
            return argument.split("=", 1)[1]
    return None


with Path(option("kubeconfig")).open() as handle:
    FACTS = json.load(handle)
SERVER = option("server") or FACTS["server"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *dummy):
        pass

    def address_string(self):
        return "unix"

    def do_GET(self):
        time.sleep(FACTS.get("slow", 0))
        if SERVER in FACTS.get("broken", {}):
            return self.reply(500, FACTS["broken"][SERVER].encode(), "text/plain")
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        query.pop("limit", None)
        path = parts.path + ("?" + urllib.parse.urlencode(query) if query else "")
        code = FACTS.get("codes", {}).get(parts.path, 200)
        answer = FACTS["recorded"].get(path) or FACTS["recorded"].get(urllib.parse.unquote(path))
        if code == 200 and answer is None:
            if "Selector" in path:
                answer = {"kind": "List", "items": []}
            else:
                code = 404
        if code != 200:
            answer = {"kind": "Status", "message": "refused for the test", "code": code}
        text = json.dumps(answer)
        if SERVER in FACTS.get("differ", {}):
            text = text.replace('"m1_', '"{}_'.format(FACTS["differ"][SERVER]))
        return self.reply(code, text.encode())

    def reply(self, code, body, kind="application/json"):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def main():
    if FACTS.get("fail"):
        sys.stderr.write("error: {}\n".format(FACTS["fail"]))
        sys.exit(1)
    if "view" in sys.argv:
        cluster = {"server": FACTS["server"]}
        if FACTS.get("ca"):
            cluster["certificate-authority-data"] = base64.b64encode(FACTS["ca"].encode()).decode()
        print(json.dumps({"clusters": [{"name": "c", "cluster": cluster}]}))
        return
    with Path(FACTS["answers"]).open() as recorded:
        FACTS["recorded"] = json.load(recorded)
    if FACTS.get("pids"):
        with Path(FACTS["pids"]).open("a") as pids:
            pids.write(f"{os.getpid()}\n")
    Server(option("unix-socket"), Handler).serve_forever()


main()
