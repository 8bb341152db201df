"""The manifests run as they are installed: images made with tar alone, the coordinator and the scheduler in a pod of a real kubelet."""
import fcntl
import json
import os
import subprocess

import pytest

from cluster import BIN, BUILD, ROOT, SYSTEM, Cluster, node_object, pod_object, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a kubelet needs root")


@pytest.fixture(scope="module")
def node():
    """A cluster with a kubelet; a machine has room for one at a time."""
    with open("/tmp/carve-kubelet.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        c = Cluster(kubelet=True)
        try:
            c.begin()
            yield c
        finally:
            c.end()


def load(cluster, folder, *arguments):
    image = folder / "image.tar"
    subprocess.run([ROOT / "deploy/image/build", "--output", image, *arguments], check=True, capture_output=True)
    ctr = [BIN / "ctr", "-a", cluster.dir / "containerd/sock", "-n", "k8s.io", "images", "import", image]
    subprocess.run(ctr, check=True, capture_output=True)


def test_the_deployment_becomes_ready_and_binds(node, tmp_path):
    (tmp_path / "bin").mkdir()
    subprocess.run(["strip", "-o", tmp_path / "bin/carve-coordinator", BUILD / "bin/carve-coordinator"], check=True)
    load(node, tmp_path, tmp_path)
    load(node, tmp_path, "--program", BIN / "kube-scheduler")
    node.install(scale=None)

    def ready():
        status = node.api.get(f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/carve-coordinator")["status"]
        return status.get("readyReplicas") == 1
    assert until(ready, 90), node.kubectl("describe", "pod", "-n", SYSTEM) + node.kubectl("logs", "-n", SYSTEM, "deploy/carve-coordinator", check=False)
    node.replace_nodes([node_object(7)], keep="localhost")
    assert until(lambda: node.api.call("POST", "/api/v1/namespaces/default/pods", pod_object("p", {"carve.dev/memory": "4Gi"}))[0] == 201)
    assert node.slices("p")["node"] == "n7"
    pod = node.api.get(f"/api/v1/namespaces/{SYSTEM}/pods?labelSelector=app=carve-coordinator")["items"][0]
    assert pod["spec"]["securityContext"]["runAsUser"] == 65532
    doctor = subprocess.run([BUILD / "bin/kubectl-carve", "doctor", "-o", "json"], capture_output=True, text=True,
                            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(node.config)})
    states = {row["component"]: row["state"] for row in json.loads(doctor.stdout)["components"]}
    assert states["coordinator"] == states["webhook of pods"] == states["policies"] == "Deployed", doctor.stdout
