"""Tests services: replicas in their own slices behind one address, which survive kills of the controller and
are updated without losing a request."""
import collections
import http.client
import json
import os
import shutil
import signal
import subprocess
import textwrap
import threading
import time
import urllib.error
import urllib.request

import pytest

from conftest import GiB, HERE, LOAD, until
from support.services import Services

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]
SERVER = HERE / "support/http_server.py"


def document(command=None, replicas=2, memory="5GiB", share="20%", name="demo", port=8000, **spec):
    return {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"replicas": replicas, "gpu": {"memory": memory, "share": share}, "port": port,
                     "run": {"command": command or ["python3", str(SERVER)]}, **spec}}


def answer(endpoint):
    with urllib.request.urlopen(endpoint, timeout=10) as response:
        return response.read().decode()


class Clients:
    """Threads that send requests without a pause and count each answer and each failure."""

    def __init__(self, endpoint, count=4):
        self.answers, self.failures, self.ends = collections.Counter(), collections.Counter(), False
        host = endpoint.removeprefix("http://")
        self.threads = [threading.Thread(target=self.run, args=(host, i % 2 == 0)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, host, keeps):
        connection = None
        while not self.ends:
            try:
                connection = connection or http.client.HTTPConnection(host, timeout=30)
                connection.request("GET", "/")
                response = connection.getresponse()
                text = response.read().decode()
                (self.answers if response.status == 200 else self.failures)[text] += 1
                if not keeps:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException) as error:
                self.failures[repr(error)] += 1
                connection = None

    def total(self):
        return sum(self.answers.values())

    def end(self):
        self.ends = True
        for thread in self.threads:
            thread.join()


@pytest.mark.devices("a10x2")
def test_visible_devices_in_a_document_refer_to_the_devices_of_the_slice(services):
    """Two replicas fill a device each; without a slice there is no device."""
    say = ["sh", "-c", f"echo seen=$CUDA_VISIBLE_DEVICES; {LOAD} --allocate 100MiB --seconds 1 && echo has memory; sleep 600"]
    run = {"command": say, "env": {"CUDA_VISIBLE_DEVICES": "0"}}
    services.apply(document(memory="12GiB", port=None, run=run))
    status = services.running()
    assert len({replica["devices"][0] for replica in status["replicaList"]}) == 2
    for replica in (0, 1):
        assert until(lambda r=replica: "has memory" in services.carve("logs", "service/demo", "--replica", r), 60)
        assert "seen=0\n" in services.carve("logs", "service/demo", "--replica", replica)
    refused = services.apply(document(name="b", run={"command": say, "env": {"CUDA_VISIBLE_DEVICES": "1"}}), status=1)
    assert "spec.run.env.CUDA_VISIBLE_DEVICES: '1' is not a list of devices of the slice; use 0" in refused
    services.apply(document(name="c", replicas=1, port=None, gpu=None, run={"command": say}), "--wait")
    assert until(lambda: "seen=\n" in services.carve("logs", "service/c"), 60)
    time.sleep(1)
    assert "has memory" not in services.carve("logs", "service/c")


def test_a_replica_is_resized_only_by_its_document(services):
    services.apply(document(replicas=1))
    services.running()
    agent = services.agent
    refused = agent.carve("set", "demo-1-0", "--memory", "6GiB")
    assert refused.returncode == 1 and "slice demo-1-0 belongs to service/demo" in refused.stderr
    assert "carve apply or carve eas modify" in refused.stderr
    assert agent.show("demo-1-0")["parts"][0]["quota_bytes"] == 5 * GiB
    assert agent.carve("set", "demo-1-0", "--memory", "6GiB", "--force").returncode == 0
    assert agent.show("demo-1-0")["parts"][0]["quota_bytes"] == 6 * GiB


def test_a_file_changes_only_the_named_pai_eas_service(services):
    path = services.folder / "eas.json"
    def write(**metadata):
        path.write_text(json.dumps({"metadata": {"instance": 1, "gpu_memory": 2, **metadata}, "containers": [{"script": "sleep 600"}]}))
        return path
    services.carve("eas", "create", write(name="svc_a"))
    assert "exists" in services.carve("eas", "create", "--no-wait", write(name="svc_a", gpu_memory=3), status=1)
    assert "the name differs from service" in services.carve("eas", "modify", "svc_a", "-s", write(name="svc_b"), status=1)
    assert services.items() == [("services", "svc-a")]
    path.write_text('{"metadata": {"gpu_memory": 4, "rpc": {}}}')
    assert "warning: metadata.rpc" in services.carve("eas", "modify", "svc_a", "-s", path)
    assert services.service("svc-a")["spec"]["gpu"]["memory"] == "4GiB"
    path.write_text('{"name": "svc_a", "metadata": {"gpu_memory": 5}}')
    services.carve("eas", "modify", "svc_a", "-s", path)
    assert services.service("svc-a")["spec"]["gpu"]["memory"] == "5GiB", "a file without containers is a fragment"
    path.write_text('{"name": "svc_b", "metadata": {"gpu_memory": 6}}')
    assert "the name differs from service" in services.carve("eas", "modify", "svc_a", "-s", path, status=1)
    assert "nothing to change; use -s FILE or -D FIELD=VALUE" in services.carve("eas", "modify", "svc_a", status=2)


def test_an_eas_document_becomes_two_replicas_on_one_device_behind_one_address(world, services):
    eas = {"metadata": {"name": "My_Model", "instance": 2, "gpu_memory": 5, "gpu_core_percentage": 20, "rpc": {}},
           "containers": [{"command": f"exec python3 {SERVER}", "port": 8000, "env": [{"name": "TOKEN", "value": "secret"}]}]}
    path = services.folder / "eas.json"
    path.write_text(json.dumps(eas))
    shown = services.carve("eas", "create", path)
    assert "warning: metadata.rpc has no e" in shown and "[OK] Waiting [Total: 2, Pending: 2, Running: 0]" in shown
    assert "[OK] service My_Model created" in shown and json.loads(services.carve("eas", "ls", "-o", "json"))["items"][0]["metadata"]["name"] == "my-model"
    assert shown.index("[OK] Service is running") < shown.index("http://127.0.0.1:")
    status = services.running("my-model")
    replicas = status["replicaList"]
    assert len(replicas) == 2 and replicas[0]["devices"] == replicas[1]["devices"]
    slices = {s["name"]: s for s in world.json("ps")["slices"]}
    assert set(slices) == {"my-model-1-0", "my-model-1-1"}
    for name, s in slices.items():
        assert (s["parts"][0]["quota_bytes"], s["parts"][0]["share_bp"], s["policy"]) == (5 * GiB, 2000, "fixed-share")
        assert s["labels"]["carve.dev/kind"] == "service" and s["labels"]["carve.dev/name"] == "my-model"
        assert s["labels"]["carve.dev/replica"] == name[-1] and s["account"]
    seen = {answer(status["endpoint"]) for _ in range(20)}
    assert seen == {"my-model replica 0 revision 1\n", "my-model replica 1 revision 1\n"}
    stored = services.service("my-model")["spec"]["source"]
    assert stored == {"dialect": "eas", "document": json.dumps(eas)}, "byte for byte"
    assert "secret" not in services.log()
    supervisors = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert "carve-supervise" in supervisors and "secret" not in supervisors
    # More memory without a restart.
    services.carve("eas", "modify", "My_Model", "-Dmetadata.gpu_memory=6")
    assert until(lambda: world.show("my-model-1-0")["parts"][0]["quota_bytes"] == 6 * GiB, 30)
    after = services.running("my-model")
    assert after["revision"] == 1 and after["restarts"] == 0 and after["memoryText"] == "6 GiB"
    heading, row = services.carve("eas", "ls").splitlines()
    assert heading.split() == ["SERVICENAME", "INSTANCE", "CREATETIME", "UPDATETIME", "STATUS", "ENDPOINT"]
    assert row.split()[:2] == ["My_Model", "2"] and row.split()[4:] == ["Running", status["endpoint"]]
    assert "my-model-1-1" in services.carve("eas", "w", "My_Model")


def test_rollouts_and_kills_of_the_controller_lose_no_request_and_restart_no_program(world, services):
    services.apply(document(), "--wait")
    pids = {name: [p["pid"] for p in s["processes"]] for name, s in ((n, world.show(n)) for n in ("demo-1-0", "demo-1-1"))}
    clients = Clients(services.running()["endpoint"])
    try:
        services.restart()
        assert {n: [p["pid"] for p in world.show(n)["processes"]] for n in pids} == pids, "a restart of the controller restarts no program"
        for revision in (2, 3):
            services.apply(document(["env", f"REVISION={revision}", "python3", str(SERVER)]))
            assert until(lambda: services.service("demo")["status"]["revision"] == revision, 60)
            services.restart()
            before = clients.total()
            services.running(revision=revision)
            assert until(lambda: clients.total() > before + 100, 60)
    finally:
        clients.end()
    assert not clients.failures, clients.failures
    assert clients.total() > 500 and {text.split()[-1] for text in clients.answers} == {"1", "2", "3"}
    assert set(world.slices()) == {"demo-3-0", "demo-3-1"}
    assert services.running()["restarts"] == 0


def test_a_killed_replica_is_restarted_and_its_end_is_shown(world, services):
    services.apply(document(["sh", "-c", "echo to be seen; exec python3 " + str(SERVER)], replicas=1), "--wait")
    (pid,) = [p["pid"] for p in world.show("demo-1-0")["processes"]]
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: services.service("demo")["status"]["restarts"] == 1, 60)
    status = services.running()
    assert status["replicaList"][0]["restarts"] == 1
    assert "to be seen" in services.carve("logs", "demo") and "to be seen" in services.carve("logs", "demo", "--previous")
    assert world.slices() == ["demo-1-0"] or list(world.slices()) == ["demo-1-0"], "its slice was kept"


def test_a_program_that_never_starts_is_retried_with_back_off_and_its_exit_status_shown(services):
    services.apply(document(["sh", "-c", "echo no model >&2; exit 3"], replicas=1))
    assert until(lambda: services.service("demo")["status"]["restarts"] >= 1, 60)
    assert until(lambda: services.service("demo")["status"]["replicaList"][0]["state"] == "CrashLoopBackOff", 60)
    assert services.service("demo")["status"]["replicaList"][0]["lastExit"] == "exit status 3"
    assert "no model" in services.carve("logs", "demo", "--previous")
    assert "CrashLoopBackOff" in services.carve("describe", "service/demo")
    environment = {**services.agent.environment, "CARVE_CONTROLLER": str(services.socket)}
    waiting = subprocess.Popen([str(services.agent.build / "bin/carve"), "rollout", "status", "service/demo"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert any("Running: 0]: 1 program ended and will be started again" in line for line in waiting.stderr)
    finally:
        waiting.kill()
        waiting.wait()


def test_a_replica_cannot_exceed_its_quota_and_a_service_that_does_not_fit_shows_why(world, services):
    load = [str(LOAD), "--allocate", "3GiB", "--no-touch", "--seconds", "600"]
    services.apply(document(load, replicas=1, memory="2GiB", port=None))
    assert until(lambda: services.service("demo")["status"]["restarts"] >= 1, 60), "3 GiB do not fit into 2 GiB"
    services.apply(document(load, replicas=1, memory="4GiB", port=None), "--wait")
    assert world.show("demo-1-0")["parts"][0]["quota_bytes"] == 4 * GiB, "made larger in place"
    services.apply(document(load, replicas=64, memory="20GiB", share="50%", name="large", port=None))

    def reasons():
        return [c["reason"] for c in services.service("large")["status"]["conditions"] if c["type"] == "Progressing"]
    assert until(lambda: reasons() == ["NoCapacity"], 60), services.service("large")["status"]
    assert services.service("large")["status"]["replicas"] <= 2


def test_an_update_that_fits_nowhere_keeps_the_serving_replica(world, services):
    """The device has 6 GiB free next to the replica of 4 GiB, so 12 GiB do not fit even if the replica
    ends."""
    for name, memory in (("0", "22GiB"), ("1", "12GiB")):
        world.begin("run", "--name", f"held-{name}", "--device", name, "--memory", memory, "--", "sleep", "300")
        assert until(lambda name=name: f"held-{name}" in world.slices())
    services.apply(document(replicas=1, memory="4GiB"), "--wait")
    refused = services.apply(document(replicas=1, memory="30GiB"), status=1)
    assert "spec.gpu.memory: '30GiB': the largest device has" in refused and "request at most" in refused, refused
    services.apply(document(replicas=1, memory="12GiB"))

    def progress():
        return [c for c in services.service("demo")["status"]["conditions"] if c["type"] == "Progressing"][0]
    assert until(lambda: "the old replicas keep running" in (seen := progress())["message"] and seen["reason"] == "NoCapacity", 60), progress()
    time.sleep(3)
    status = services.service("demo")["status"]
    assert status["readyReplicas"] == 1 and [r["revision"] for r in status["replicaList"]] == [1], status


def test_a_service_can_be_scaled_stopped_and_started(world, services):
    services.apply(document(replicas=1), "--wait")
    services.carve("scale", "service/demo", "--replicas", 3, "--wait")
    assert len(world.slices()) == 3
    services.carve("eas", "stop", "demo")
    assert until(lambda: services.service("demo")["status"]["phase"] == "Stopped" and not world.slices(), 60)
    services.carve("eas", "start", "demo")
    assert len(services.running()["replicaList"]) == 3


@pytest.mark.parametrize("text,messages", [
    ("kind: Service\nspec: {replcas: 2}\n", ["spec.replcas: unknown field"]),
    ("kind: Servise\n", ["kind: 'Servise' is not a kind; the kinds are Service, Application"]),
    ("apiVersion: carve.dev/v1\nkind: Service\nmetadata: {name: A}\nspec: {replicas: 100}\n",
     ["metadata.name: 'A' is not a valid name", "spec.run: there is nothing to run; add command", "spec.replicas: 100 is not between 0 and 64"]),
    ('{"metadata":{"name":"a","gpu_memory":1.5},"containers":[{"command":"x"}]}', ["metadata.gpu_memory: 1.5 is not a whole number of at least 1"]),
    ('{"metadata":{"name":"a","gpu_memory":40},"containers":[{"command":"x"}]}', ["40 GiB is more than the 22731 MiB that are usable on the largest device; request at most 22 GiB"]),
    ("a: 010\n", ["line 1: a: 010 starts with 0", "write 10 for the number"]),
])
def test_an_invalid_document_is_rejected_with_all_its_errors(services, text, messages):
    assert until(lambda: services.nodes()["n1"]["devices"], 30)
    shown = services.apply(text, status=1)
    assert all(message in shown for message in messages), shown
    assert json.loads(services.carve("get", "services", "-o", "json"))["items"] == []


def test_a_caller_over_tcp_needs_a_token(world):
    services = Services({"n1": world}, "--listen", "127.0.0.1:0")
    services.agent = world
    try:
        port = next(line.split("127.0.0.1:")[1].split(",")[0] for line in services.log().splitlines() if "API served at" in line)

        def status(path, method="GET", token=None, body=None):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method, data=body,
                                             headers={"Authorization": f"Bearer {token}"} if token else {})
            try:
                return urllib.request.urlopen(request, timeout=10).status
            except urllib.error.HTTPError as error:
                return error.code
        viewer = services.carve("token", "create", "see", "--role", "viewer").strip()
        operator = services.carve("token", "create", "all", "--role", "operator").strip()
        text = json.dumps(document(replicas=0)).encode()
        assert [status("/v1/services", token=t) for t in (None, viewer, operator)] == [401, 200, 200]
        assert [status("/v1/documents", "POST", t, text) for t in (None, viewer, operator)] == [401, 403, 201]
        assert viewer not in services.log() and operator not in services.log()
        assert viewer.encode() not in b"".join(f.read_bytes() for f in services.state.glob("controller.db*")), "only its hash is stored"
        services.carve("token", "rm", "see")
        assert status("/v1/services", token=viewer) == 401
    finally:
        services.end()


def test_the_examples_run(services):
    for name, file in ("demo-eas", "eas.json"), ("demo", "service.yaml"):
        services.carve("apply", "-f", HERE.parent / "examples" / file, "--wait")
        assert answer(services.running(name)["endpoint"]) in ("replica 0, revision 1\n", "replica 1, revision 1\n")


def cpu_seconds(pid):
    user, system = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_the_agent_is_idle_while_programs_are_idle(services, world):
    """The programs run in slices that outlive them. The agent must handle each notification of their cgroups
    only once."""
    services.apply(document())
    services.running()
    pid, before, begin = world.process.pid, cpu_seconds(world.process.pid), time.monotonic()
    assert not until(lambda: cpu_seconds(pid) - before > 1, 5), "1 s of processor time in 5 s"
    assert cpu_seconds(pid) - before < 0.2 * (time.monotonic() - begin)


def test_another_program_on_a_replicas_port_gets_no_request(services):
    """A user listens on the port of a program that takes long to load, and answers its probes; the program
    then cannot listen."""
    listens = services.folder / "listens"
    script = f'echo "$PORT" >> {services.folder}/ports; while [ ! -e {listens} ]; do sleep 0.1; done; exec python3 {SERVER}'
    services.apply(document(["sh", "-c", script], replicas=1))
    ports = services.folder / "ports"
    assert until(lambda: ports.exists() and ports.read_text().endswith("\n"), 60)
    port = int(ports.read_text().split()[-1])
    other = subprocess.Popen(["/usr/bin/python3", "-c", textwrap.dedent(f"""
        import http.server
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"other program")
        http.server.ThreadingHTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
        """)], stderr=subprocess.DEVNULL, **({"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}))
    try:
        def degraded():
            conditions = services.service("demo")["status"].get("conditions", [])
            return next((c["message"] for c in conditions if c["type"] == "Degraded"), "")

        assert until(lambda: f"port {port} is used by another program" in degraded(), 60, 0.1), services.service("demo")["status"]
        status = services.service("demo")["status"]
        assert status["readyReplicas"] == 0 and status["phase"] != "Running", status
        with pytest.raises(urllib.error.HTTPError) as refused:
            answer(status["endpoint"])
        assert refused.value.code == 503, "no server is behind the endpoint"
        listens.touch()  # Its program fails to listen, ends, and is started again at another port.
        status = services.running()
        assert int(ports.read_text().split()[-1]) != port
        assert answer(status["endpoint"]) != "other program"
    finally:
        other.kill()
        other.wait()


def test_a_dry_run_shows_where_each_new_replica_would_be_placed(services):
    """Two simulated A10: each has room for four replicas of 5 GiB."""
    def forecast(replicas):
        [applied] = json.loads(services.apply(document(replicas=replicas), "--dry-run", "-o", "json"))["items"]
        assert applied["action"] == "checked"
        return applied["placement"]

    services.node_becomes("n1", "reachable")  # Then its devices are known.
    rows = forecast(9)
    assert [(row["node"], row["devices"]) for row in rows[:8]] == [("n1", [0])] * 4 + [("n1", [1])] * 4, rows
    assert rows[8]["node"] == "" and rows[8]["message"].startswith("node n1: "), rows[8]
    assert "replica 8: waits; node n1: " in services.apply(document(replicas=9), "--dry-run")
    assert services.items() == [], "a dry run keeps nothing"
    services.apply(document(replicas=1))
    services.running()
    assert [row["replica"] for row in forecast(2)] == [1], "the first one runs already"
