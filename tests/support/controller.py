"""A controller for one test: `carve-controller` with the test's agents, in a temporary folder."""
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile

from support.agent import BUILD, until
from support.over_unix import asked


class Controller:
    """The process `carve-controller --node NAME=SOCKET... ARGUMENT...`; `nodes` is {name: agent}. `before`
    contains words to put before the command."""

    def __init__(self, nodes, *arguments, before=()):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cvc-"))
        self.socket = self.folder / "c"
        self.state = self.folder / "state"
        self.words = [*map(str, before), str(BUILD / "bin/carve-controller")]
        for name, agent in nodes.items():
            self.words += ["--node", f"{name}={agent.socket}"]
        self.words += ["--state", str(self.state), "--socket", str(self.socket), *map(str, arguments)]
        self.start()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(self.words, stdout=log, stderr=log)
        assert until(lambda: self.answers() or self.process.poll() is not None, 20, 0.005)
        assert self.process.poll() is None, self.log()

    def answers(self):
        try:
            return asked(self.socket, "/v1/version")[0] == 200
        except OSError:
            return False

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def text(self, target):
        status, _, text = asked(self.socket, target)
        assert status == 200, text
        return text

    def json(self, target):
        return json.loads(self.text(target))

    def nodes(self):
        """Returns what the controller knows about each node, by name: the status, including the agent's
        part."""
        items = self.json("/v1/nodes")["items"]
        return {node["metadata"]["name"]: {**node["status"], **node["status"]["agent"]} for node in items}

    def node_becomes(self, name, reachability):
        """Waits until the node has this reachability; returns the node."""
        assert until(lambda: self.nodes()[name]["reachability"] == reachability, 60), self.nodes()[name]
        return self.nodes()[name]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)
