"""A control plane for tests, nodes without a kubelet, and the coordinator with its scheduler."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

from programs import Programs

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("CARVE_BUILD", ROOT / "build"))
BIN = pathlib.Path(os.environ["KUBE_BUILD"]) / "bin"
GiB = 1 << 30
A10 = 22731 << 20
SYSTEM = "carve-system"


def until(true, seconds=30, every=0.1):
    """Waits until `true()` returns a true value, and returns its last value."""
    end = time.monotonic() + seconds
    while not (value := true()) and time.monotonic() < end:
        time.sleep(every)
    return value


given = []  # First ports returned so far: a free port may be about to be used.


def free_ports(count):
    """Returns the first of `count` consecutive ports that are free and were not returned before."""
    for first in range(max(given, default=27000 - 16) + 16, 32000, 16):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    s = stack.enter_context(socket.socket())
                    s.bind(("127.0.0.1", port))
            except OSError:
                continue
            given.append(first)
            return first
    raise RuntimeError("no free ports")


def uuid_of(node, device):
    return f"GPU-00000000-0000-0000-{node:04x}-{device + 1:012x}"


def node_object(number, name=None, devices=2, placement="binpack", mode=None, usable=A10):
    """Returns a Node as its agent describes it, with simulated devices. `mode` is the value of the node's
    label."""
    name = name or f"n{number}"
    described = {"v": 1, "boot": "b",
                 "devices": [{"i": i, "uuid": uuid_of(number, i), "model": "NVIDIA A10", "usable": usable, "context": 256 << 20,
                              "migrates": True, "health": "ok"} for i in range(devices)],
                 "links": [], "cpu": 64000, "memory": 256 * GiB,
                 "mode": {**({"desired": mode} if mode else {}), "effective": mode or "memory-and-compute", "blocked_by": []},
                 "policy": {"effective": "fixed-share", "blocked_by": []}, "placement": placement,
                 "best_effort": "admit", "enforcement": "library", "simulated": True}
    resources = {"cpu": "64", "memory": "256Gi", "pods": "500", "carve.dev/slot": "256", "carve.dev/memory": str(usable * devices),
                 "carve.dev/compute": str(100 * devices)}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "carve.dev/node": "extender"},
                         "annotations": {"carve.dev/devices": json.dumps(described, separators=(",", ":"))}},
            "status": {"capacity": resources, "allocatable": resources, "conditions": [{"type": "Ready", "status": "True"}]}}


def pod_object(name, limits, namespace="default", annotations=None, labels=None, **spec):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations or {}, "labels": labels or {}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}], **spec}}


def nameless_event():
    """Returns whether this is the event without a name that an API server writes to `default` if its first
    request for the default ServiceCIDR fails, as on a slow machine (kubernetes 1.36.2,
    pkg/controlplane/controller/defaultservicecidr: the event's object is the empty answer)."""
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "nameless", "namespace": "default"},
            "involvedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR"}, "type": "Warning",
            "reason": "KubernetesDefaultServiceCIDRError"}


class Api:
    """The API server, accessed over one connection with a token."""

    def __init__(self, port, ca, token):
        self.port, self.token = port, token
        self.tls = ssl.create_default_context(cafile=ca)
        self.connection = None

    def call(self, method, path, body=None, kind="application/json"):
        """Returns the status and the document."""
        for attempt in range(2):
            if self.connection is None:
                self.connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=30)
            try:
                self.connection.request(method, path, None if body is None else json.dumps(body),
                                        {"Authorization": f"Bearer {self.token}", "Content-Type": kind})
                answer = self.connection.getresponse()
                return answer.status, json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                self.connection = None
                if attempt:
                    raise

    def get(self, path):
        status, document = self.call("GET", path)
        assert status == 200, document
        return document


class Cluster:
    """Without a kubelet the nodes are objects that stay ready; with a kubelet there is a node `localhost`.
    `flags` are those of the API server."""

    def __init__(self, kubelet=False, flags=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ck-", dir="/tmp"))
        self.port = free_ports(10)
        self.dir = self.folder / "kube"
        self.env = {**os.environ, "KUBE_DIR": str(self.dir), "KUBE_PORT": str(self.port), "KUBE_KUBELET": "yes" if kubelet else "no",
                    "KUBE_APISERVER_FLAGS": f"--disable-admission-plugins=TaintNodesByCondition {flags}",
                    "KUBE_MANAGER_FLAGS": "--controllers=*,-node-lifecycle-controller"}
        self.pairs = {}
        self.webhook = None
        self.is_up = False

    def begin(self):
        done = subprocess.run([HERE / "up.sh", "up"], env=self.env, capture_output=True, text=True, timeout=240)
        self.is_up = True
        assert done.returncode == 0, done.stdout + done.stderr
        self.connect()

    def connect(self):
        self.programs = Programs(self.dir, BIN)
        self.config = self.dir / "admin.kubeconfig"
        token = (self.dir / "pki/tokens.csv").read_text().split(",")[0]
        self.api = Api(self.port, str(self.dir / "pki/apiserver.crt"), token)

    @classmethod
    def of(cls, folder, port):
        """A cluster that already runs in KUBE_DIR. end() ends only what this object started."""
        cluster = cls()
        cluster.dir, cluster.port = folder, port
        cluster.connect()
        return cluster

    def end(self):
        for pair in list(self.pairs.values()):
            pair.end()
        if self.is_up:
            subprocess.run([HERE / "up.sh", "down"], env=self.env, capture_output=True, timeout=120)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kubectl(self, *arguments, stdin=None, check=True, config=None):
        """Returns what kubectl printed on standard output and standard error."""
        done = subprocess.run([BIN / "kubectl", f"--kubeconfig={config or self.config}", *arguments], text=True, timeout=120,
                              input=stdin if isinstance(stdin, str) or stdin is None else json.dumps(stdin), capture_output=True)
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def refused(self, *arguments, **more):
        """Returns the message with which kubectl fails."""
        text = self.kubectl(*arguments, check=False, **more)
        assert "rror" in text or "denied" in text, text
        return text

    def install(self, scale=0, paths=None):
        """Installs the overlay `loopback` once, with a free port for the webhooks. Without a kubelet the
        coordinators run as processes. `paths` contains replacements for texts in the manifests."""
        if self.webhook:
            return
        self.webhook = free_ports(1)
        manifests = self.kubectl("kustomize", str(ROOT / "deploy/kubernetes/overlays/loopback"))
        if scale is None:  # The pods use the ports in the manifests.
            self.webhook = 9443
        manifests = manifests.replace("127.0.0.1:9443", f"127.0.0.1:{self.webhook}").replace('"26440"', f'"{self.port}"')
        for what, here in {**(paths or {})}.items():
            assert what in manifests, what
            manifests = manifests.replace(what, here)
        self.kubectl("apply", "--server-side", "-f", "-", stdin=manifests)
        if scale is not None:
            self.kubectl("scale", "deployment/carve-coordinator", "-n", SYSTEM, f"--replicas={scale}")

    def replace_nodes(self, nodes, keep=None):
        """Describes the nodes as their agents would. The policy that reserves this for the agents is off
        meanwhile."""
        binding = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
        kept = self.api.get(f"{binding}/carve-nodes")
        self.api.call("DELETE", f"{binding}/carve-nodes")
        self.kubectl("delete", "nodes", "--all" if keep is None else f"--selector=kubernetes.io/hostname!={keep}")
        for node in nodes:
            assert until(lambda: self.api.call("POST", "/api/v1/nodes", node)[0] == 201), node["metadata"]["name"]
        kept["metadata"] = {"name": "carve-nodes"}
        assert self.api.call("POST", binding, kept)[0] == 201
        annotation = {"metadata": {"annotations": {"carve.dev/devices": "{}"}}}
        path = f"/api/v1/nodes/{nodes[0]['metadata']['name']}?dryRun=All"
        assert until(lambda: self.api.call("PATCH", path, annotation, "application/merge-patch+json")[0] == 422), "the policy is not back"

    def token(self, account, *bound):
        return self.kubectl("create", "token", account, "-n", SYSTEM, "--duration=1h", *bound).strip()

    def agent_api(self, node):
        """Returns the API as the node's agent uses it."""
        token = self.token("carve-agent", "--bound-object-kind=Node", f"--bound-object-name={node}")
        return Api(self.port, str(self.dir / "pki/apiserver.crt"), token)

    def create(self, *pods):
        for o in pods:
            status, answer = self.api.call("POST", f"/api/v1/namespaces/{o['metadata']['namespace']}/pods", o)
            assert status == 201, answer

    def pod(self, name, namespace="default"):
        return self.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def events(self, namespace="default"):
        """Returns (name, reason, note) of each event. The name and the note may be empty: see
        nameless_event()."""
        found = self.api.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
        return [(e["regarding"].get("name", ""), e.get("reason", ""), e.get("note", "")) for e in found]

    def slices(self, name, namespace="default", seconds=30):
        """Returns the slices of a pod, once it is bound."""
        def bound():
            pod = self.pod(name, namespace)
            return pod if pod["spec"].get("nodeName") else None
        pod = until(bound, seconds)
        events = ("get", "events", "-n", namespace, "--field-selector", f"involvedObject.name={name}")
        assert pod, f"{name} is not bound: " + self.kubectl(*events)
        return json.loads(pod["metadata"]["annotations"]["carve.dev/slices"])

    def delete_pods(self, namespace="default"):
        """Deletes all pods. Without a kubelet no container has to end."""
        self.api.call("DELETE", f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0")
        assert until(lambda: not self.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"])

    def start(self, name, answers_webhooks=True):
        """A coordinator with its scheduler. Only one at a time has the port of the webhooks."""
        pair = Pair(self, name, self.webhook if answers_webhooks else None)
        self.pairs[name] = pair
        pair.start()
        return pair


class Pair:
    """A coordinator and its scheduler in a UTS namespace, as if on a host with its own name."""

    def __init__(self, cluster, name, webhook):
        self.cluster, self.name = cluster, name
        self.ports = free_ports(4)
        self.webhook = webhook or self.ports
        self.folder = cluster.folder / name
        self.folder.mkdir(exist_ok=True)
        self.processes = {}

    def start(self):
        c = self.cluster
        token = c.token("carve-coordinator")
        (self.folder / "token").write_text(token)
        server, ca = f"https://127.0.0.1:{c.port}", c.dir / "pki/apiserver.crt"
        (self.folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": str(ca)}}],
            "users": [{"name": "u", "user": {"token": token}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        config = c.kubectl("get", "configmap", "carve-scheduler", "-n", SYSTEM, "-o", "jsonpath={.data.config\\.yaml}")
        config = config.replace("127.0.0.1:9470", f"127.0.0.1:{self.ports + 1}")
        client = f"clientConnection: {{kubeconfig: {self.folder}/kubeconfig, qps: 500, burst: 1000}}"
        (self.folder / "scheduler.yaml").write_text(f"{config}\n{client}\n")
        self.start_coordinator()
        self.start_scheduler()

    def start_scheduler(self):
        self.run("scheduler", BIN / "kube-scheduler", f"--config={self.folder}/scheduler.yaml", f"--secure-port={self.ports + 3}",
                 "--bind-address=127.0.0.1", f"--cert-dir={self.folder}", f"--authentication-kubeconfig={self.folder}/kubeconfig",
                 f"--authorization-kubeconfig={self.folder}/kubeconfig")

    def start_coordinator(self):
        c = self.cluster
        self.run("coordinator", BUILD / "bin/carve-coordinator", f"--apiserver=https://127.0.0.1:{c.port}",
                 f"--ca={c.dir}/pki/apiserver.crt", f"--token-file={self.folder}/token",
                 f"--extender=127.0.0.1:{self.ports + 1}", f"--webhook=127.0.0.1:{self.webhook}",
                 f"--health=127.0.0.1:{self.ports + 2}")

    def start_what_ended(self):
        """Restarts what has ended, as a kubelet would. A scheduler that cannot renew its Lease ends."""
        for name, start in (("coordinator", self.start_coordinator), ("scheduler", self.start_scheduler)):
            if name not in self.processes or self.processes[name].poll() is not None:
                start()

    def run(self, what, *command):
        log = open(self.folder / f"{what}.log", "ab")
        hostname = f'hostname {self.name}; exec "$@"'
        self.processes[what] = subprocess.Popen(["unshare", "--uts", "sh", "-c", hostname, "sh", *map(str, command)], stdout=log,
                                                stderr=subprocess.STDOUT, start_new_session=True)

    def health(self, path="/readyz"):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.ports + 2, timeout=5)
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode().strip()
        except OSError as error:
            return 0, str(error)

    def log(self, what="coordinator"):
        return (self.folder / f"{what}.log").read_text()

    def kill(self, what, sig=signal.SIGKILL):
        process = self.processes.pop(what, None)
        if process:
            process.send_signal(sig)
            process.wait(timeout=20)

    def end(self):
        """Ends both; the scheduler releases the Lease."""
        for what in list(self.processes):
            self.kill(what, signal.SIGTERM)
