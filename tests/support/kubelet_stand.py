"""A node without Kubernetes: the agent and carve-kubelet are real; kubelet, container runtime and API server
are stand-ins."""
import json
import pathlib
import signal
import subprocess
import tempfile
import threading

from support.agent import BUILD, Agent, until

GiB = 1 << 30


class KubeletStand:
    """`ask("start s000")` sends a command of src/kubernetes/node/testing/kubelet_stand.cc and returns its answer."""

    # `before` is a command that runs carve-kubelet.
    def __init__(self, spec="a10x1", before=()):
        self.before = before
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ks-"))
        self.agent = Agent(spec, "--cdi-dir", str(self.folder / "cdi"), "--bookkeeper", "kubernetes")
        (self.folder / "k").mkdir()
        self.stand = subprocess.Popen([BUILD / "tests/kubelet_stand"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()
        self.url = self.ask(f"folder {self.folder}/k")
        (self.folder / "token").write_text("t")
        self.start()

    def start(self):
        self.log = open(self.folder / "log", "ab")
        sockets = self.folder / "k"
        self.program = subprocess.Popen(
            [*self.before, BUILD / "bin/carve-kubelet", "--node-name", "n1", "--metrics", "off", "--agent-socket", self.agent.socket,
             "--plugin-dir", sockets, "--pod-resources", sockets / "pod-resources.sock", "--runtime", sockets / "runtime.sock",
             "--apiserver", self.url,
             "--token-file", self.folder / "token"], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        before = self.ask("registrations")
        assert until(lambda: self.ask("registrations") > before or self.program.poll() is not None, 30), self.text()
        assert self.program.poll() is None, self.text()

    def text(self):
        return (self.folder / "log").read_text()[-4000:]

    def ask(self, command):
        with self.lock:
            self.stand.stdin.write(command + "\n")
            self.stand.stdin.flush()
            return json.loads(self.stand.stdout.readline())

    def kill(self):
        self.program.kill()
        self.program.wait()

    def place(self, pod, memory=2 * GiB, container="main"):
        """Creates the pod with one container's slice on device 0, and returns its uid."""
        part = [self.agent.json("devices")["devices"][0]["uuid"], memory, 0]
        slices = {"v": 1, "node": "n1", "containers": {container: {"parts": [part], "isolation": "memory"}}}
        return self.ask(f"pod {pod} {json.dumps(slices, separators=(',', ':'))}")

    def attach_socket(self, slot):
        return self.agent.folder / "s.run/attach" / slot / "carved.sock"

    def end(self):
        if self.program.poll() is None:
            self.program.send_signal(signal.SIGTERM)
            self.program.wait(20)
        self.log.close()
        self.stand.stdin.close()
        self.stand.wait(20)
        self.agent.end()
