"""Prometheus and Alertmanager (Debian's packages) for one test, in a temporary folder, on free ports of 127.0.0.1."""
import http.server
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.parse
import urllib.request

from support.agent import until


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Receiver:
    """The webhook to which Alertmanager posts. `seen` has (alert's name, "firing" or "resolved", labels)."""

    def __init__(self):
        self.seen = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.seen += [(alert["labels"]["alertname"], alert["status"], alert["labels"]) for alert in body["alerts"]]
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def has(self, alert, status, **labels):
        return any(name == alert and what == status and labels.items() <= known.items() for name, what, known in self.seen)

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Program:
    """A program with a log in the folder, which has started when it answers at `ready`."""

    def __init__(self, folder, name, words, ready):
        self.log = folder / f"{name}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(list(map(str, words)), stdout=log, stderr=log, cwd=folder)
        assert until(lambda: self.answers(ready) or self.process.poll() is not None, 30), self.log.read_text()
        assert self.process.poll() is None, self.log.read_text()

    @staticmethod
    def answers(url):
        try:
            return urllib.request.urlopen(url, timeout=5).status == 200
        except OSError:
            return False

    def end(self):
        self.process.terminate()
        self.process.wait(20)


class Monitoring:
    """Prometheus with these rules and scrape configurations, and an Alertmanager that posts to `receiver`."""

    def __init__(self, rules, scrapes):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cvm-"))
        self.receiver = Receiver()
        manager, port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{port}"
        (self.folder / "rules.yaml").write_text(rules)
        (self.folder / "alertmanager.yml").write_text(json.dumps({
            "route": {"receiver": "test", "group_by": ["..."], "group_wait": "100ms", "group_interval": "1s", "repeat_interval": "1h"},
            "receivers": [{"name": "test", "webhook_configs": [{"url": self.receiver.url, "send_resolved": True}]}]}))
        (self.folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "rule_files": ["rules.yaml"], "scrape_configs": scrapes,
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{manager}"]}]}]}}))
        self.programs = [
            Program(self.folder, "alertmanager",
                    ["prometheus-alertmanager", "--config.file=alertmanager.yml", f"--storage.path={self.folder}/alerts",
                     "--cluster.listen-address=", f"--web.listen-address=127.0.0.1:{manager}"], f"http://127.0.0.1:{manager}/-/ready"),
            Program(self.folder, "prometheus",
                    ["prometheus", "--config.file=prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                     f"--web.listen-address=127.0.0.1:{port}", "--rules.alert.resend-delay=1s"], f"{self.url}/-/ready")]

    def get(self, path, **query):
        return json.load(urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=10))["data"]

    def query(self, expression):
        """Returns [(labels, value)]."""
        return [(one["metric"], float(one["value"][1])) for one in self.get("query", query=expression)["result"]]

    def targets(self):
        """Returns the health and the last error of each target, by job."""
        return {one["labels"]["job"]: (one["health"], one["lastError"]) for one in self.get("targets")["activeTargets"]}

    def logs(self):
        return "".join(f"--- {program.log.name}:\n{program.log.read_text()[-4000:]}" for program in self.programs)

    def end(self):
        for program in self.programs:
            program.end()
        self.receiver.end()
        shutil.rmtree(self.folder, ignore_errors=True)
