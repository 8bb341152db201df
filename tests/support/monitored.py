"""Two agents and a controller that a real Prometheus scrapes, with the alert rules of deploy/prometheus."""
import http.server
import pathlib
import re
import subprocess
import threading

from conftest import LOAD
from support.agent import Agent, until
from support.jobs import Jobs
from support.prometheus import Monitoring, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/rules.yaml"


def shortened(rules):
    """Returns the rules with durations of seconds. `promtool test rules` tests the real ones."""
    rules = re.sub(r"(?m)^(\s+for:) \S+$", r"\1 1s", rules)
    rules = rules.replace("[10m]", "[5s]").replace("offset 10m", "offset 5s")
    return re.sub(r"> (3600|600)$", "> 4", rules, flags=re.M)


class Exporter:
    """Serves `text` as metrics, in place of programs that need a cluster."""

    def __init__(self):
        self.text = ""
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = exporter.text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self.server.server_port}"

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Monitored:
    """`n1` belongs to the controller. `n2` is another agent, to be killed and to lose devices."""

    def __init__(self):
        self.addresses = {name: f"127.0.0.1:{free_port()}" for name in ("n1", "n2", "controller")}
        self.n1 = Agent("a10x2", "--metrics-listen", self.addresses["n1"])
        self.n2 = Agent("a10x4", "--metrics-listen", self.addresses["n2"])
        self.controller = Jobs({"n1": self.n1}, "--listen", self.addresses["controller"])
        self.controller.agent = self.n1
        self.cluster = Exporter()
        token = self.controller.carve("token", "create", "prometheus", "--role", "operator").split()[-1]
        self.monitoring = Monitoring(shortened(RULES.read_text()), [
            {"job_name": "carve-agent", "static_configs": [{"targets": [self.addresses["n1"], self.addresses["n2"]]}]},
            {"job_name": "carve-controller", "authorization": {"credentials": token},
             "static_configs": [{"targets": [self.addresses["controller"]]}]},
            {"job_name": "cluster", "static_configs": [{"targets": [self.cluster.address]}]}])
        assert until(lambda: all(health == "up" for health, _ in self.monitoring.targets().values()), 30), self.monitoring.targets()

    def fault(self, agent, *words):
        words = [LOAD.with_name("carve-sim"), "fault", agent.folder / "state/sim", *map(str, words)]
        subprocess.run(words, check=True, capture_output=True)

    def load(self, name, *words, memory="4GiB", agent=None, allocate="512MiB"):
        """Begins a program in a slice that runs until it is stopped."""
        agent = agent or self.n1
        agent.begin("run", "--memory", memory, "--name", name, *words, "--", LOAD, "--allocate", allocate, "--no-touch", "--kernels", "1ms",
                    "--seconds", 600)
        assert until(lambda: agent.slices().get(name, {}).get("state") == "running", 30), agent.slices()

    def stop(self, *names, agent=None):
        agent = agent or self.n1
        for name in names:
            agent.carve("stop", name)
        assert until(lambda: not set(names) & set(agent.slices()), 60), agent.slices()

    def end(self):
        print(self.monitoring.logs())
        self.monitoring.end()
        self.controller.end()
        for agent in self.n1, self.n2:
            agent.end()
        self.cluster.end()
