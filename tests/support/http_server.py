#!/usr/bin/env python3
"""A small HTTP server for the examples: it listens on PORT, and each answer contains the replica and its
revision."""
import http.server
import os


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name, replica, revision = (os.environ.get("CARVE_" + word, "-") for word in ("SERVICE", "REPLICA", "REVISION"))
        body = f"{name} replica {replica} revision {revision}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


print("listening at", os.environ["PORT"], flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
