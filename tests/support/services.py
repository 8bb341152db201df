"""A controller with services, for tests."""
import json
import os
import signal
import subprocess

from support.agent import until
from support.controller import Controller
from support.over_unix import asked


class Services(Controller):
    """A controller whose services are removed when it ends."""

    def carve(self, *words, status=0):
        done = subprocess.run([str(self.agent.build / "bin/carve"), *map(str, words)], capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, env={**self.agent.environment, "CARVE_CONTROLLER": str(self.socket)})
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def apply(self, document, *words, status=0):
        path = self.folder / "document"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return self.carve("apply", "-f", path, *words, status=status)

    def service(self, name, kind="service"):
        return json.loads(self.carve("get", kind, name, "-o", "json"))

    def running(self, name="demo", revision=None, kind="service"):
        """Waits until the service runs; returns its status."""
        def is_running():
            status = self.service(name, kind)["status"]
            return status["phase"] == "Running" and (revision is None or status["revision"] == revision)
        assert until(is_running, 120, 0.1), (self.service(name, kind)["status"], self.log())
        return self.service(name, kind)["status"]

    def items(self):
        """Returns the names of all services and applications, by kind."""
        return [(kind, item["metadata"]["name"]) for kind in ("services", "applications")
                for item in json.loads(self.carve("get", kind, "-o", "json"))["items"]]

    def restart(self):
        self.kill()
        self.start()

    def end(self):
        if self.process.poll() is not None:
            self.start()
        for kind, name in self.items():
            asked(self.socket, f"/v1/{kind}/{name}", "DELETE")
        gone = until(lambda: self.items() == [], 120, 0.1)
        record = self.state / "proxy/haproxy.process"
        if record.exists():
            os.kill(int(record.read_text().split()[1]), signal.SIGTERM)
        super().end()
        assert gone, "a deleted service ends"
