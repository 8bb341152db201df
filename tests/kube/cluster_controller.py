"""carve-controller --kubernetes as a process beside a test's cluster, and `carve` as its user."""
import json
import subprocess
import time

from cluster import BUILD, SYSTEM, until

SERVICE = {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "web"},
           "spec": {"replicas": 2, "run": {"image": "localhost/busybox:1", "command": ["sleep", "3600"]}, "port": 8000}}


def lease_version(server):
    """Returns the version of the controllers' Lease, which the active one renews every second."""
    leases = server.api.get("/apis/coordination.k8s.io/v1/leases")["items"]
    return [lease["metadata"]["resourceVersion"] for lease in leases if lease["metadata"]["name"] == "carve-controller"]


class ClusterController:
    """A replica of the controller. Each has its own state."""

    def __init__(self, cluster, folder, name):
        self.cluster, self.folder, self.name = cluster, folder, name
        self.socket = folder / f"{name}.sock"
        self.process = None
        # The controller has only the rights of its own account.
        server, token = f"https://127.0.0.1:{cluster.port}", cluster.token("carve-controller")
        (folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": str(cluster.dir / "pki/apiserver.crt")}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": SYSTEM}}]}))

    def start(self, wait=True):
        log = open(self.folder / f"{self.name}.log", "ab")
        self.process = subprocess.Popen(
            [BUILD / "bin/carve-controller", "--kubernetes", "--kubeconfig", self.folder / "kubeconfig", "--state", self.folder / self.name,
             "--socket", self.socket, "--listen", "none", "--log-level", "debug"],
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        if wait:
            assert until(lambda: self.carve("get", "services", check=False).returncode == 0, 60), self.log()

    def log(self):
        return (self.folder / f"{self.name}.log").read_text()

    def writes(self):
        """Returns the number of changes that the reconciler has sent to the API server."""
        return sum(f"debug {method} /api" in line for line in self.log().splitlines() for method in ("PATCH", "POST", "DELETE"))

    def is_active(self):
        held = [line for line in self.log().splitlines() if "the Lease" in line]
        return bool(held) and "holds the Lease" in held[-1]

    def carve(self, *words, stdin=None, check=True):
        done = subprocess.run([BUILD / "bin/carve", "--controller", self.socket, *map(str, words)], capture_output=True, text=True,
                              timeout=120, input=stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin))
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    def object(self, name):
        return json.loads(self.carve("get", name, "-o", "json").stdout)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=20)

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)


class Pods:
    """Makes the pods of Deployments ready, as a kubelet would. The cluster has none."""

    def __init__(self, cluster):
        self.api = cluster.api

    def all(self, name):
        path = f"/api/v1/namespaces/default/pods?labelSelector=app.kubernetes.io/name={name}"
        return [pod for pod in self.api.get(path)["items"] if "deletionTimestamp" not in pod["metadata"]]

    def run(self, name):
        """Makes all pods of the workload ready, and removes those that are ending."""
        for pod in self.api.get(f"/api/v1/namespaces/default/pods?labelSelector=app.kubernetes.io/name={name}")["items"]:
            path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
            if "deletionTimestamp" in pod["metadata"]:
                self.api.call("DELETE", path + "?gracePeriodSeconds=0")
                continue
            if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", [])):
                continue
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            status = {"phase": "Running", "startTime": now,
                      "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now},
                                     {"type": "ContainersReady", "status": "True", "lastTransitionTime": now}]}
            self.api.call("PATCH", path + "/status", {"status": status}, "application/merge-patch+json")

    def until_running(self, controller, name, seconds=60, condition=lambda status: True):
        def is_running():
            self.run(name)
            status = controller.object(f"service/{name}")["status"]
            return status.get("phase") == "Running" and condition(status)
        assert until(is_running, seconds, 0.3), (controller.object(f"service/{name}")["status"], controller.log()[-3000:])
