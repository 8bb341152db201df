"""A complete node of a real Kubernetes: control plane, containerd, kubelet, the agent with simulated devices,
and carve-kubelet.

Pods are bound by the tests, with the annotation that the coordinator would write.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from cluster import free_ports
from programs import Programs

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("CARVE_BUILD", ROOT / "build"))
KUBE_BUILD = pathlib.Path(os.environ.get("KUBE_BUILD", pathlib.Path.home() / ".cache/carve/kube"))
IMAGE = "localhost/carve-node:1"
GiB = 1 << 30
MiB = 1 << 20
LOAD = "/bin/carve-load"


def until(true, seconds=60, every=0.1):
    """Waits until `true()` returns a true value, and returns its last value."""
    end = time.monotonic() + seconds
    while not (value := true()) and time.monotonic() < end:
        time.sleep(every)
    return value


def slices(node, policy="fixed-share", **containers):
    """Returns the annotation of a pod. Containers are given by name, each with a list of parts (UUID, bytes,
    basis points)."""
    def placed(parts):
        isolation = "memory+compute" if any(share for _, _, share in parts) else "memory"
        return {"parts": [list(part) for part in parts], "isolation": isolation, "policy": policy, "latency_class": "batch"}
    return json.dumps({"v": 1, "node": node, "containers": {name: placed(parts) for name, parts in containers.items()}},
                      separators=(",", ":"))


def missing():
    """Returns why there can be no node here, or None if nothing is missing. It is an error if a program is
    missing that tests/kube/run should have built."""
    if not os.environ.get("CARVE_KUBE"):
        return "needs a real Kubernetes: tests/kube/run"
    if os.geteuid() != 0:
        return "kubelet needs root"
    for program in ("runc", "busybox", "etcd"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    built = [BUILD / "bin" / name for name in ("carved", "carve", "carve-kubelet", "carve-load", "carve-sim")]
    built += [BUILD / "tests/guest_program", BUILD / "lib/carve/libcarve.so", BUILD / "lib/carve/sim/libcuda.so.1"]
    built += [BUILD / f"lib/carve/shim/{name}" for name in ("libcuda.so.1", "libnvidia-ml.so.1")]
    absent = [str(file) for file in built if not file.exists()]
    assert not absent, f"not built: {', '.join(absent)}; tests/kube/run builds them"
    return None


class NodeCluster:
    """Only one can run on a machine at a time, because kubelet's folder for plugins has a fixed path."""

    node = "localhost"

    # `containerd` is the folder of containerd and ctr, or None for those that were built.
    def __init__(self, spec="a10x2", containerd=None):
        self.lock = open("/tmp/carve-kubelet.lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cn-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.dir = self.folder / "k"
        self.cdi = pathlib.Path("/var/run/cdi")
        self.socket = self.folder / "s"
        self.port = free_ports(10)
        self.env = {**os.environ, "KUBE_BUILD": str(KUBE_BUILD), "KUBE_DIR": str(self.dir), "KUBE_PORT": str(self.port)}
        self.spec = spec
        self.containerd = pathlib.Path(containerd or KUBE_BUILD / "bin")
        if containerd:
            self.env["KUBE_CONTAINERD"] = containerd
        self.processes = {}
        self.is_up = False

    def begin(self):
        done = subprocess.run([HERE / "up.sh", "up"], env=self.env, capture_output=True, text=True, timeout=300)
        self.is_up = True
        assert done.returncode == 0, done.stdout + done.stderr
        self.programs = Programs(self.dir, f"{self.containerd}:{KUBE_BUILD}/bin")
        self.config = str(self.dir / "admin.kubeconfig")
        self.import_image()
        self.make_account()
        self.start_agent()
        self.start_kubelet_program()
        assert until(lambda: self.allocatable("carve.dev/slot") == 256), self.log("carve-kubelet")
        assert until(lambda: self.allocatable("carve.dev/memory") > 0), self.log("carve-kubelet")

    def end(self):
        for name in list(self.processes):
            self.stop(name)
        if self.is_up:
            subprocess.run([HERE / "up.sh", "down"], env=self.env, capture_output=True, timeout=120)
        for file in self.cdi_files():
            file.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.lock.close()

    # Programs.
    def start(self, name, *words, **more):
        log = open(self.folder / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, stdin=subprocess.DEVNULL, **more)

    def start_agent(self):
        self.start("carved", BUILD / "bin/carved", "--sim", self.spec, "--state", self.folder / "state", "--socket", self.socket,
                   "--cdi-dir", self.cdi, "--bookkeeper", "kubernetes")
        until(lambda: self.carve("version").returncode == 0 or self.processes["carved"].poll() is not None)
        assert self.processes["carved"].poll() is None, self.log("carved")

    def start_kubelet_program(self):
        # Like its container: root without capabilities.
        bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if shutil.which("setpriv") else []
        self.start("carve-kubelet", *bare, BUILD / "bin/carve-kubelet", "--node-name", self.node, "--agent-socket", self.socket,
                   "--kubelet-dir", self.dir / "kubelet", "--plugin-dir", "/var/lib/kubelet/device-plugins", "--runtime", self.dir / "containerd/sock",
                   "--kubeconfig", self.account_config, "--log-level", "debug")

    def stop(self, name, how=signal.SIGTERM):
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait(20)

    def log(self, name):
        file = self.folder / f"{name}.log"
        return file.read_text()[-6000:] if file.exists() else ""

    def restart_kubelet(self):
        self.programs.kill("kubelet")
        self.programs.start("kubelet")

    def cdi_files(self):
        """Returns the CDI files of this agent's slots and claims; those of other agents on the machine may be
        in the same folder."""
        found = []
        for file in self.cdi.glob("carve.dev-*.json"):
            with contextlib.suppress(FileNotFoundError):
                if str(self.folder) in file.read_text():
                    found.append(file)
        return found

    # The agent.
    def carve(self, *words):
        return subprocess.run([str(BUILD / "bin/carve"), *map(str, words)], env={**os.environ, "CARVE_SOCKET": str(self.socket)},
                              capture_output=True, text=True, timeout=60)

    def slices(self):
        done = self.carve("ps", "-o", "json")
        return json.loads(done.stdout)["slices"] if done.returncode == 0 else []

    def slice_of(self, pod, container="main"):
        for slice_ in self.slices():
            holder = slice_.get("holder", {}).get("pod", {})
            if (holder.get("name"), holder.get("container")) == (pod, container):
                return slice_
        return None

    def carve_show(self, name):
        return json.loads(self.carve("show", name, "-o", "json").stdout)

    def device_documents(self):
        return json.loads(self.carve("devices", "-o", "json").stdout)["devices"]

    def devices(self):
        return [device["uuid"] for device in self.device_documents()]

    # The cluster.
    def kubectl(self, *words, text=None, check=True):
        done = subprocess.run([str(KUBE_BUILD / "bin/kubectl"), "--kubeconfig", self.config, *map(str, words)], input=text,
                              capture_output=True, text=True, timeout=120)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if check else done

    def get(self, *words):
        done = self.kubectl("get", *words, "-o", "json", check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def node_object(self):
        return self.get("node", self.node)

    def allocatable(self, resource):
        text = (self.node_object() or {}).get("status", {}).get("allocatable", {}).get(resource, "0")
        number, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()
        return int(number) * {"": 1, "k": 1000, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}[unit]

    def condition(self, kind):
        return {c["type"]: c for c in self.node_object()["status"]["conditions"]}.get(kind)

    def make_account(self):
        """Creates carve-kubelet's service account with the same rights as that of the DaemonSet."""
        rules = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
                 {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["patch"]},
                 {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
                 {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"],
                  "verbs": ["get", "list", "watch", "create", "update", "delete"]},
                 {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]}]
        subject = {"kind": "ServiceAccount", "name": "carve-agent", "namespace": "default"}
        objects = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "carve-agent"}},
                   {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "carve-agent"},
                    "rules": rules},
                   {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "carve-agent"},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "carve-agent"},
                    "subjects": [subject]}]
        self.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        self.write_account_config(self.kubectl("create", "token", "carve-agent", "--duration=24h").strip())

    def write_account_config(self, token):
        config = json.loads(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                      "certificate-authority": str(self.dir / "pki/apiserver.crt")}}],
            "users": [{"name": "carve", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "carve"}}]}))
        self.account_config = self.folder / "carve.kubeconfig"
        self.account_config.write_text(json.dumps(config))

    def pod(self, name, command, containers=("main",), **spec):
        """Returns a pod that no scheduler handles. `command` is the containers' shell command."""
        made = [{"name": container, "image": IMAGE, "imagePullPolicy": "Never", "command": ["/bin/bash", "-c", command],
                 "resources": {"limits": {"carve.dev/slot": "1"}}} for container in containers]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "spec": {"containers": made, "hostNetwork": True, "schedulerName": "by-hand", "restartPolicy": "Never",
                         "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False, **spec}}

    def create(self, pod, annotation=None):
        """Creates the pod and binds it to this node, with the annotation in one write."""
        name = pod["metadata"]["name"]
        self.kubectl("create", "-f", "-", text=json.dumps(pod))
        annotations = {} if annotation is None else {"carve.dev/slices": annotation}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "annotations": annotations},
                   "target": {"apiVersion": "v1", "kind": "Node", "name": self.node}}
        self.kubectl("create", "--raw", f"/api/v1/namespaces/default/pods/{name}/binding", "-f", "-", text=json.dumps(binding))

    def phase(self, name):
        pod = self.get("pod", name)
        return pod and pod["status"]["phase"]

    def is_ready(self, name):
        pod = self.get("pod", name)
        return pod and all(s["ready"] for s in pod["status"].get("containerStatuses", [{"ready": False}]))

    def restarts(self, name):
        return self.get("pod", name)["status"]["containerStatuses"][0]["restartCount"]

    def waiting(self, name):
        """Returns why the pod's container does not start."""
        pod = self.get("pod", name)
        status = (pod or {}).get("status", {}).get("containerStatuses", [{}])[0]
        return status.get("state", {}).get("waiting", {}).get("message", "")

    def output(self, name, container="main"):
        done = self.kubectl("logs", name, "-c", container, check=False)
        return done.stdout

    def inside(self, name, *words, container="main"):
        done = self.kubectl("exec", name, "-c", container, "--", *words, check=False)
        return done.stdout.strip()

    def events(self, name):
        found = self.get("events.events.k8s.io") or {"items": []}
        return [(e["reason"], e.get("note", "")) for e in found["items"] if e["regarding"].get("name") == name]

    def remove(self, name, *words):
        self.kubectl("delete", "pod", name, "--ignore-not-found", *words)

    @contextlib.contextmanager
    def running(self, name, command, annotation, **more):
        self.create(self.pod(name, command, **more), annotation)
        try:
            assert until(lambda: self.is_ready(name)), (self.waiting(name), self.events(name), self.log("carve-kubelet"))
            yield
        finally:
            self.remove(name, "--wait=true")

    def import_image(self):
        """Builds an image with a shell, the workload and a program that prints what NVML reports."""
        root, out = self.folder / "image/root", self.folder / "image/archive"
        out.mkdir(parents=True)
        for folder in ("bin", "lib64", "lib/x86_64-linux-gnu", "tmp", "proc", "dev", "sys"):
            (root / folder).mkdir(parents=True)
        for program in ("/bin/bash", "/bin/sleep", "/bin/cat", str(BUILD / "bin/carve-load"), str(BUILD / "tests/guest_program")):
            shutil.copy(program, root / "bin")
            for library in re.findall(r"/\S+", subprocess.run(["ldd", program], capture_output=True, text=True).stdout):
                shutil.copy(library, root / "lib64" if "ld-linux" in library else root / "lib/x86_64-linux-gnu")
        for library in ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"):
            shutil.copy(f"/lib/x86_64-linux-gnu/{library}", root / "lib/x86_64-linux-gnu")
        (root / "usr").symlink_to(".")
        layer = out / "layer.tar"
        subprocess.run(["tar", "-C", root, "--owner=0", "--group=0", "-cf", layer, "."], check=True)
        digest = subprocess.run(["sha256sum", layer], capture_output=True, text=True, check=True).stdout.split()[0]
        # CUDA's base images request all devices from NVIDIA's runtime with this variable.
        config = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
                  "config": {"Env": ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all"], "Cmd": ["/bin/bash"]}}
        (out / "config.json").write_text(json.dumps(config))
        (out / "manifest.json").write_text(json.dumps([{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]))
        archive = self.folder / "image.tar"
        subprocess.run(["tar", "-C", out, "-cf", archive, "manifest.json", "config.json", "layer.tar"], check=True)
        subprocess.run([self.containerd / "ctr", "-a", self.dir / "containerd/sock", "-n", "k8s.io", "images", "import", archive],
                       check=True, capture_output=True)
        shutil.rmtree(self.folder / "image")
        archive.unlink()
