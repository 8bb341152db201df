"""Invoices from the usage records of a cluster's nodes: a node with a real kubelet, and a second one whose slices are
granted as its carve-kubelet would. Carve-controller runs outside of the cluster with the rights of its account."""
import contextlib
import datetime
import fractions
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess

import pytest
from cluster import free_ports
from node_cluster import BUILD, GiB, ROOT, NodeCluster, missing, slices, until

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")
SYSTEM = "carve-system"
A10 = 22731 << 20


class UnixConnection(http.client.HTTPConnection):
    """An agent's API on its socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


class BilledCluster(NodeCluster):
    second = "n2"

    def make_account(self):
        base = ROOT / "deploy/kubernetes/base"
        for file in ("namespace.yaml", "access.yaml", "billing.yaml"):
            self.kubectl("apply", "-f", base / file)
        self.write_account_config(self.agent_token(self.node))

    def agent_token(self, node):
        return self.kubectl("create", "token", "carve-agent", "-n", SYSTEM, "--duration=24h", "--bound-object-kind=Node",
                            f"--bound-object-name={node}").strip()

    def begin(self):
        super().begin()
        self.port2 = free_ports(1)
        self.socket2 = self.folder / "s2"
        self.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.second}}))
        first = self.account_config.read_text()
        self.write_account_config(self.agent_token(self.second))
        (self.folder / "n2.kubeconfig").write_text(self.account_config.read_text())
        self.account_config.write_text(first)
        (self.folder / "plugins").mkdir()
        self.start_second_agent()
        self.start_second_kubelet_program()
        config = json.loads(first)
        config["users"][0]["user"]["token"] = self.kubectl("create", "token", "carve-billing", "-n", SYSTEM, "--duration=24h").strip()
        self.billing_config = self.folder / "billing.kubeconfig"
        self.billing_config.write_text(json.dumps(config))
        self.start_controller()
        for node in (self.node, self.second):
            assert until(lambda node=node: "carve.dev/reader" in self.get("node", node)["metadata"].get("annotations", {})), self.log("carve-kubelet")

    def start_second_agent(self):
        self.start("carved2", BUILD / "bin/carved", "--sim", "a10x2", "--state", self.folder / "state2", "--socket", self.socket2,
                   "--cdi-dir", self.folder / "cdi2", "--bookkeeper", "kubernetes")
        assert until(lambda: self.socket2.exists() and self.records(self.socket2) is not None), self.log("carved2")

    def start_second_kubelet_program(self):
        self.start("carve-kubelet2", BUILD / "bin/carve-kubelet", "--node-name", self.second, "--agent-socket", self.socket2,
                   "--plugin-dir", self.folder / "plugins", "--pod-resources", self.folder / "none", "--runtime", self.dir / "containerd/sock",
                   "--kubeconfig", self.folder / "n2.kubeconfig", "--metrics", f"127.0.0.1:{self.port2}")

    def start_controller(self):
        self.start("controller", BUILD / "bin/carve-controller", "--state", self.folder / "controller", "--socket", self.folder / "c",
                   "--listen", "none", "--kubernetes-nodes", self.billing_config, "--usage-interval", "1s")
        assert until(lambda: self.control("get", "tariffs").returncode == 0), self.log("controller")

    def control(self, *words, text=None):
        return subprocess.run([str(BUILD / "bin/carve"), *map(str, words)], env={**os.environ, "CARVE_CONTROLLER": str(self.folder / "c")},
                              input=text, capture_output=True, text=True, timeout=60)

    def call(self, path, method, target, body=None):
        connection = UnixConnection(path)
        connection.request(method, target, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or "null")

    def records(self, path):
        """Returns all usage records of the agent, or None if it does not respond."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.call(path, "GET", "/v1/usage?after=0")[1]["records"]
        return None

    def create_in(self, name_space, name, node, uuid, memory, share=0, account=None):
        """Creates a pod and binds it to the node, as the coordinator does. Returns its uid."""
        pod = self.pod(name, "sleep 3600")
        pod["metadata"].update(namespace=name_space, labels={"carve.dev/sliced": "true", "team": "x",
                                                             **({"carve.dev/account": account} if account else {})})
        self.kubectl("create", "-f", "-", text=json.dumps(pod))
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "annotations": {
            "carve.dev/slices": slices(node, main=[(uuid, memory, share)])}}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        self.kubectl("create", "--raw", f"/api/v1/namespaces/{name_space}/pods/{name}/binding", "-f", "-", text=json.dumps(binding))
        return json.loads(self.kubectl("get", "pod", name, "-n", name_space, "-o", "json"))["metadata"]["uid"]

    def grant_second(self, name_space, name, uid, uuid, memory, share, account):
        status, answer = self.call(self.socket2, "POST", "/v1/slices", {
            "placed": [{"device": uuid, "memory_bytes": memory, "share_bp": share}], "lifetime": "explicit", "account": account,
            "holder": {"pod": {"namespace": name_space, "name": name, "uid": uid, "container": "main"}}})
        assert status in (200, 201), answer

    def bill(self, *words):
        # A month that begins during the test would split the lines.
        year = datetime.datetime.now(datetime.timezone.utc).year
        period = ("--from", f"{year - 1}-01-01", "--to", f"{year + 1}-12-31")
        done = self.control("bill", "-o", "json", "--lines", *period, *words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def cluster():
    c = BilledCluster()
    try:
        c.begin()
        yield c
    finally:
        for name in ("carved", "carve-kubelet", "carve-kubelet2", "controller"):
            print(f"--- the end of {name}'s log:\n" + c.log(name))
        c.end()


def millionths(record):
    """Returns the GPU-hours of an ended record in millionths, computed from its own numbers: half to even, for each
    part."""
    nanoseconds = record["to"]["monotonic_ns"] - record["from"]["monotonic_ns"]
    total = 0
    for part in record["slice"]["parts"]:
        ratio = max(fractions.Fraction(part.get("share_bp", 0), 10_000), fractions.Fraction(part["memory_bytes"], part["usable_bytes"]))
        total += round(fractions.Fraction(nanoseconds, 3600 * 10**9) * 10 * ratio * 10**6)
    return total


def in_millionths(text):
    whole, decimals = text.split(".")
    return int(whole) * 10**6 + int(decimals)


def test_the_invoice_of_a_cluster_is_the_sum_of_its_nodes_records(cluster):
    cluster.kubectl("create", "namespace", "a")
    cluster.kubectl("create", "namespace", "b")
    one, two = cluster.devices()
    second_devices = [d["uuid"] for d in cluster.call(cluster.socket2, "GET", "/v1/devices")[1]["devices"]]
    assert second_devices
    cluster.create_in("a", "web-0", cluster.node, one, 2 * GiB, 3000)
    cluster.create_in("b", "web-0", cluster.node, two, 5 * GiB, account="research")
    for name_space in ("a", "b"):
        ready = until(lambda ns=name_space: cluster.kubectl("get", "pod", "web-0", "-n", ns, "-o", "jsonpath={.status.phase}") == "Running", 120)
        assert ready, cluster.kubectl("describe", "pod", "web-0", "-n", name_space) + cluster.log("carve-kubelet")
    uid = cluster.create_in("a", "far-0", cluster.second, second_devices[0], 3 * GiB, 1000)
    cluster.grant_second("a", "far-0", uid, second_devices[0], 3 * GiB, 1000, "a")

    lines = until(lambda: (b := cluster.bill()["lines"]) and len(b) == 3 and b)
    assert lines, cluster.log("controller")
    assert {(line["node"], line["namespace"], line["pod"], line["account"], line["open"]) for line in lines} == {
        (cluster.node, "a", "web-0/main", "a", True), (cluster.node, "b", "web-0/main", "research", True),
        (cluster.second, "a", "far-0/main", "a", True)}
    assert all(line["labels"]["team"] == "x" for line in lines if line["node"] == cluster.node)

    # Everything that takes part is killed while slices begin and end.
    cluster.stop("controller", signal.SIGKILL)
    uid = cluster.create_in("b", "far-1", cluster.second, second_devices[0], GiB)
    cluster.grant_second("b", "far-1", uid, second_devices[0], GiB, 0, "b")
    cluster.stop("carve-kubelet2", signal.SIGKILL)
    cluster.stop("carved2", signal.SIGKILL)
    cluster.start_controller()
    events = until(lambda: "UsageReadFailed" in (t := cluster.control("events", "--for", f"node/{cluster.second}").stdout) and t)
    assert events, cluster.log("controller")
    cluster.start_second_agent()
    cluster.start_second_kubelet_program()  # With another certificate.
    cluster.stop("carve-kubelet", signal.SIGKILL)
    cluster.start_kubelet_program()
    assert until(lambda: len(cluster.bill()["lines"]) == 4, 90), cluster.log("controller")
    for name_space, name in (("a", "web-0"), ("b", "web-0"), ("a", "far-0"), ("b", "far-1")):
        cluster.kubectl("delete", "pod", name, "-n", name_space, "--grace-period=0", "--force")
        if name == "far-0":
            cluster.stop("controller", signal.SIGKILL)
            cluster.start_controller()

    def records():
        found = (cluster.records(cluster.socket) or []) + (cluster.records(cluster.socket2) or [])
        return found if len(found) == 4 and all(record.get("to") for record in found) else None
    own = until(records, 90)
    assert own, (cluster.records(cluster.socket), cluster.records(cluster.socket2), cluster.log("carve-kubelet2"))
    bill = until(lambda: (b := cluster.bill()) and not any(line["open"] for line in b["lines"]) and b, 90)
    assert bill, cluster.log("controller")
    assert len(bill["lines"]) == 4
    assert in_millionths(bill["total"]["gpu_hours"]) == sum(map(millionths, own))
    by_namespace = {group["key"]: in_millionths(group["gpu_hours"]) for group in cluster.bill("--by", "namespace")["items"]}
    assert by_namespace == {ns: sum(millionths(r) for r in own if r["slice"]["holder"]["pod"]["namespace"] == ns) for ns in ("a", "b")}
    assert {g["key"] for g in cluster.bill("--by", "node")["items"]} == {cluster.node, cluster.second}
    for by in ("node", "device", "namespace", "account", "label:team"):
        done = cluster.control("usage", "--by", by, "-o", "json")
        assert json.loads(done.stdout)["total"]["gpu_hours"] == bill["total"]["gpu_hours"], done.stderr
    explained = cluster.control("bill", "explain", next(l["id"] for l in bill["lines"] if l["pod"] == "far-0/main")).stdout
    assert "pod        far-0 in namespace a, container main" in explained and f"node       {cluster.second}" in explained, explained


def test_a_program_that_poses_as_a_node_learns_nothing(cluster):
    """It has the node's address but not its key. The node's real port rejects tokens for anything else."""
    address = json.loads(cluster.get("node", cluster.second)["metadata"]["annotations"]["carve.dev/reader"])["address"]
    cluster.stop("carve-kubelet2", signal.SIGKILL)
    pem = cluster.folder / "impostor.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={cluster.second}", "-keyout", pem,
                    "-out", f"{pem}.crt"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(f"{pem}.crt", pem)
    host, port = address.rsplit(":", 1)
    connections, received = 0, []
    with socket.create_server((host, int(port)), reuse_port=False) as server:
        server.settimeout(60)
        while connections < 2:
            peer, _ = server.accept()
            connections += 1
            with contextlib.suppress(OSError), tls.wrap_socket(peer, server_side=True) as encrypted:
                encrypted.settimeout(5)
                received.append(encrypted.recv(65536))
    assert not any(received), "the controller sent something to the impostor"
    cluster.start_second_kubelet_program()
    events = until(lambda: "UsageReadResumed" in (t := cluster.control("events", "--for", f"node/{cluster.second}").stdout) and t, 90)
    assert events and "pinned public key" in cluster.log("controller"), cluster.log("controller")


def test_a_used_up_budget_is_published(cluster):
    budget = {"apiVersion": "carve.dev/v1", "kind": "Budget", "metadata": {"name": "tiny"},
              "spec": {"account": "research", "gpuHours": "0.000001", "then": "refuse"}}
    assert cluster.control("apply", "-f", "-", text=json.dumps(budget)).returncode == 0

    def used():
        text = cluster.get("configmap", "carve-budgets", "-n", SYSTEM)["metadata"].get("annotations", {}).get("carve.dev/used-budgets")
        return text and json.loads(text)["accounts"]
    assert until(lambda: used() == {"research": "tiny"}), (used(), cluster.log("controller"))
    assert cluster.control("delete", "budget", "tiny").returncode == 0
    assert until(lambda: used() == {}), used()
