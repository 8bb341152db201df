"""A node of a real cluster with a coordinator and its scheduler. Pods are created as users create them, and
every program can be killed."""
import http.client
import json
import pathlib
import signal
import ssl

from cluster import SYSTEM, Cluster
from node_cluster import IMAGE, NodeCluster, until

OF_KUBERNETES = ("etcd", "kube-apiserver", "containerd", "kubelet")
OURS = ("carved", "carve-kubelet", "coordinator")
KILLED = OF_KUBERNETES + OURS


class WholeCluster(NodeCluster):
    def make_account(self):
        self.control = Cluster.of(self.dir, self.port)
        self.control.install()
        bound = ("--bound-object-kind=Node", f"--bound-object-name={self.node}")
        self.write_account_config(self.control.kubectl("create", "token", "carve-agent", "-n", SYSTEM, "--duration=24h", *bound).strip())
        self.pair = self.control.start("h1")
        assert until(lambda: self.pair.health()[0] == 200), self.pair.health()[1] + self.pair.log()
        bundle = ("get", "mutatingwebhookconfiguration", "carve", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}")
        assert until(lambda: self.control.kubectl(*bundle)), self.pair.log()

    def begin(self):
        super().begin()
        labelled = until(lambda: self.node_object()["metadata"]["labels"].get("carve.dev/node") == "extender")
        assert labelled, self.log("carve-kubelet")

    def end(self):
        if hasattr(self, "control"):
            self.control.end()
        super().end()

    # Programs.
    def kill(self, name):
        if name in OF_KUBERNETES:
            self.programs.kill(name)
        elif name == "coordinator":
            self.pair.kill(name)
        else:
            self.stop(name, signal.SIGKILL)

    def restart(self, name):
        if name in OF_KUBERNETES:
            return self.programs.start(name)
        return {"carved": self.start_agent, "carve-kubelet": self.start_kubelet_program, "coordinator": self.pair.start_coordinator}[name]()

    def call(self, method, path, body=None):
        """Returns the API server's answer; status 0 if it is down."""
        try:
            return self.control.api.call(method, path, body)
        except (OSError, http.client.HTTPException, ValueError):
            return 0, {}

    def start_what_ended(self):
        self.programs.start_what_ended()
        self.pair.start_what_ended()

    def is_settled(self):
        """Returns whether every program serves again according to the node's conditions, which may be
        outdated for up to 40 s."""
        if self.carve("version").returncode != 0 or self.pair.health()[0] != 200:
            return False
        status, node = self.call("GET", f"/api/v1/nodes/{self.node}")
        if status != 200 or node["status"]["allocatable"].get("carve.dev/slot") != "256":
            return False
        conditions = {c["type"]: c["status"] for c in node["status"]["conditions"]}
        return conditions.get("Ready") == "True" and conditions.get("CarveReady") == "True"

    # Pods.
    def asking(self, name, **containers):
        """Returns a pod with containers, each given by a command and its limits."""
        made = [{"name": container, "image": IMAGE, "imagePullPolicy": "Never", "command": command, "resources": {"limits": limits}}
                for container, (command, limits) in containers.items()]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
                "spec": {"containers": made, "hostNetwork": True, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                         "automountServiceAccountToken": False}}

    def submit(self, pod):
        """The coordinator that answers the webhook may be starting."""
        path = "/api/v1/namespaces/default/pods"
        assert until(lambda: self.call("POST", path, pod)[0] in (201, 409)), self.call("POST", path, pod)

    def pods(self):
        return {pod["metadata"]["name"]: pod for pod in self.control.api.get("/api/v1/namespaces/default/pods")["items"]}

    def granted(self):
        """Returns what the annotations grant: the parts by (pod, container). Computed only from the objects,
        independently of Carve."""
        out = {}
        for name, pod in self.pods().items():
            text = pod["metadata"].get("annotations", {}).get("carve.dev/slices")
            if text and pod["status"]["phase"] not in ("Succeeded", "Failed"):
                for container, slice_ in json.loads(text)["containers"].items():
                    out[name, container] = sorted(map(tuple, slice_["parts"]))
        return out

    def held(self):
        """Returns the agent's slices as a list, so that duplicates are visible."""
        return sorted(((s["holder"]["pod"]["name"], s["holder"]["pod"]["container"]),
                       sorted((part["uuid"], part["quota_bytes"], part["share_bp"]) for part in s["parts"])) for s in self.slices())

    def metrics(self):
        tls = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", self.pair.webhook, context=tls, timeout=20)
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {self.control.api.token}"})
        text = connection.getresponse().read().decode()
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))

    def fits(self, size):
        """Returns whether a pod with this much memory fits according to the coordinator's cache."""
        request = json.dumps({"v": 1, "dialect": "carve", "given": {}, "containers": {"c": {"memory_bytes": size, "devices": 1}}, "cpu": 0})
        pod = {"metadata": {"name": "question", "namespace": "default", "uid": f"question-{size}",
                            "annotations": {"carve.dev/request": request}}}
        connection = http.client.HTTPConnection("127.0.0.1", self.pair.ports + 1, timeout=20)
        connection.request("POST", "/filter", json.dumps({"Pod": pod, "Nodes": None, "NodeNames": [self.node]}))
        answer = json.loads(connection.getresponse().read())
        assert not answer.get("Error"), answer
        return answer["NodeNames"] == [self.node]


class Program:
    """Returns a process of a pod as the host sees it. It is the same process while pid and start time are the
    same."""

    def __init__(self, pid):
        self.pid, self.began = pid, self.start_time(pid)

    @staticmethod
    def start_time(pid):
        try:
            return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
        except OSError:
            return None

    def is_alive(self):
        return self.began is not None and self.start_time(self.pid) == self.began

    def count(self):
        """Returns what `guest_program count` wrote in its container."""
        return int(pathlib.Path(f"/proc/{self.pid}/root/tmp/count").read_text())
