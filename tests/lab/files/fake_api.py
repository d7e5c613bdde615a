# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Just enough of an API server that a foreign controller manager starts and stays.

The arguments are: fake_api.py PORT CERT KEY.
"""

from __future__ import annotations

import http.server
import json
import ssl
import sys

ANSWERS = {
    "/healthz": "ok",
    "/livez": "ok",
    "/readyz": "ok",
    "/version": {"major": "1", "minor": "18", "gitVersion": "v1.18.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        answer = ANSWERS.get(self.path.split("?")[0])
        body = (
            answer
            if isinstance(answer, str)
            else json.dumps(
                answer
                or {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "status": "Failure",
                    "reason": "NotFound",
                    "code": 404,
                }
            )
        )
        self.send_response(200 if answer else 404)
        self.send_header(
            "Content-Type", "text/plain" if isinstance(answer, str) else "application/json"
        )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_POST = do_PUT = do_GET  # noqa: N815 - names of http.server

    def log_message(self, *_args):
        pass


def main() -> None:
    port, certificate, key = sys.argv[1:4]
    server = http.server.ThreadingHTTPServer(("0.0.0.0", int(port)), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
