"""The manifests run as they are installed: images made with tar alone, the coordinator and the scheduler in a pod of a real kubelet."""
import fcntl
import json
import os
import shutil
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


def install(cluster, folder):
    """Installs all programs that are built, in pods. The agent has simulated devices and folders of its own."""
    (folder / "bin").mkdir()
    for program in (BUILD / "bin").glob("carve*"):
        subprocess.run(["strip", "-o", folder / "bin" / program.name, program], check=True)
    for program in ("sh", "sleep"):
        shutil.copy(f"/bin/{program}", folder / "bin")
    if (BUILD / "lib/carve").exists():
        shutil.copytree(BUILD / "lib/carve", folder / "lib/carve", symlinks=True)
    load(cluster, folder, folder)
    load(cluster, folder, "--program", BIN / "kube-scheduler")
    node, indent = f"{cluster.folder}/n", "\n        - "
    server = f'{{name: KUBERNETES_SERVICE_HOST, value: 127.0.0.1}}{indent}{{name: KUBERNETES_SERVICE_PORT, value: "{cluster.port}"}}'
    cluster.install(scale=None, paths={
        "/var/lib/carve": f"{node}/state", "/run/carve": f"{node}/run",
        "/run/containerd/containerd.sock": f"{cluster.dir}/containerd/sock", "/run/containerd\n": f"{cluster.dir}/containerd\n",
        "path: /var/lib/kubelet/pod-resources\n": f"path: {cluster.dir}/kubelet/pod-resources\n",
        "        - --driver-root=/host\n": "        - --sim=a10x2\n",
        f"{indent}name: NODE_NAME": f"{indent}{server}{indent}name: NODE_NAME"})


@pytest.fixture(scope="module")
def carve(node, tmp_path_factory):
    install(node, tmp_path_factory.mktemp("prefix"))

    def ready():
        status = node.api.get(f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/carve-coordinator")["status"]
        return status.get("readyReplicas") == 1
    assert until(ready, 60), node.kubectl("describe", "pod", "-n", SYSTEM)
    return node


def test_the_deployment_becomes_ready_and_binds(carve):
    carve.replace_nodes([node_object(7)], keep="localhost")
    pod = pod_object("p", {"carve.dev/memory": "4Gi"})
    assert until(lambda: carve.api.call("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201)
    assert carve.slices("p")["node"] == "n7"
    pod = carve.api.get(f"/api/v1/namespaces/{SYSTEM}/pods?labelSelector=app=carve-coordinator")["items"][0]
    assert pod["spec"]["securityContext"]["runAsUser"] == 65532
    doctor = subprocess.run([BUILD / "bin/kubectl-carve", "doctor", "-o", "json"], capture_output=True, text=True,
                            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(carve.config)})
    states = {row["component"]: row["state"] for row in json.loads(doctor.stdout)["components"]}
    assert states["coordinator"] == states["webhook of pods"] == states["policies"] == "Deployed", doctor.stdout


@pytest.mark.skipif(not (BUILD / "bin/carve-kubelet").exists(), reason="carve-kubelet is not built")
def test_a_stateful_set_of_another_product_runs_inside_its_quota(carve):
    carve.delete_pods()
    carve.kubectl("delete", "nodes", "n7", "--ignore-not-found")
    carve.kubectl("label", "node", "localhost", "carve.dev/bookkeeper=extender")

    def is_served():
        found = carve.api.get("/api/v1/nodes/localhost")
        slots = found["status"]["allocatable"].get("carve.dev/slot")
        return found["metadata"]["labels"].get("carve.dev/node") == "extender" and slots == "256"
    assert until(is_served, 60), carve.kubectl("describe", "pod", "-n", SYSTEM)
    command = "carve-load --allocate 1GiB --no-touch; carve-load --allocate 3GiB --no-touch; exec sleep 600"
    container = {"name": "binpack-1", "image": "localhost/carve:latest", "imagePullPolicy": "Never",
                 "command": ["/usr/bin/sh", "-c", command],
                 "resources": {"limits": {"aliyun.com/gpu-mem": "2"}}}
    carve.kubectl("apply", "-f", "-", stdin={
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "binpack", "namespace": "default"},
        "spec": {"replicas": 3, "serviceName": "binpack", "podManagementPolicy": "Parallel",
                 "selector": {"matchLabels": {"app": "binpack"}},
                 "template": {"metadata": {"labels": {"app": "binpack"}}, "spec": {"hostNetwork": True, "containers": [container]}}}})

    def logs():
        texts = [carve.kubectl("logs", f"binpack-{i}", check=False) for i in range(3)]
        return texts if all(text.count("bytes_allocated") == 2 for text in texts) else None
    texts = until(logs, 60)
    assert texts, carve.kubectl("get", "events", "-n", "default")
    for text in texts:
        assert '"bytes_allocated":1073741824' in text and '"error":"CUDA_ERROR_OUT_OF_MEMORY"' in text, text
    assert [carve.slices(f"binpack-{i}")["containers"]["binpack-1"]["parts"][0][1] for i in range(3)] == [2 << 30] * 3
    carve.kubectl("delete", "statefulset", "binpack")
    carve.kubectl("delete", "pods", "--all", "--grace-period=1")
