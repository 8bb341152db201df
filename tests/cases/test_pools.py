"""Tests nodes and node pools: labels and their synchronisation, drift, restart, the slicing check, the memory
unit, cordon and drain."""
import json
import subprocess

import pytest

from conftest import HERE, Agent, until
from support.controller import Controller
from support.over_unix import asked

SERVER = HERE / "support/http_server.py"
POLICY, UNIT = "carve.dev/compute-policy", "carve.dev/memory-unit"


class Nodes(Controller):
    """A controller with two nodes, and the verbs of the command line."""

    def carve(self, *words, status=0):
        done = subprocess.run([str(self.agent.build / "bin/carve"), *map(str, words)], capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, env={**self.agent.environment, "CARVE_CONTROLLER": str(self.socket)})
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def apply(self, document, status=0):
        path = self.folder / "document"
        documents = document if isinstance(document, list) else [document]
        path.write_text("\n".join(map(json.dumps, documents)))
        return self.carve("apply", "-f", path, status=status)

    def one(self, kind, name):
        return json.loads(self.carve("get", kind, name, "-o", "json"))

    def becomes(self, kind, name, is_so):
        assert until(lambda: is_so(self.one(kind, name)), 60, 0.1), (self.one(kind, name), self.log())
        return self.one(kind, name)

    def patch(self, name, patch, query=""):
        status, _, text = asked(self.socket, f"/v1/nodes/{name}{query}", "PATCH", json.dumps(patch))
        return status, json.loads(text)


@pytest.fixture
def nodes(world, second):
    """The nodes n1 (two A10) and n2 (one T4), both running."""
    n = Nodes({"n1": world, "n2": second})
    n.agent = world
    for name in "n1", "n2":
        n.becomes("node", name, lambda node: node["status"]["state"] == "Running")
    yield n
    print("--- the controller's log:\n" + n.log())
    for item in json.loads(n.carve("get", "services", "-o", "json"))["items"]:
        asked(n.socket, f"/v1/services/{item['metadata']['name']}", "DELETE")
    assert until(lambda: json.loads(n.carve("get", "services", "-o", "json"))["items"] == [], 60, 0.1)
    n.end()


def pool(name="p", **spec):
    return {"apiVersion": "carve.dev/v1", "kind": "Pool", "metadata": {"name": name}, "spec": spec}


def service(name="demo", **spec):
    return {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"gpu": {"memory": "2GiB"}, "run": {"command": ["sleep", "600"]}, **spec}}


def holding(agent, name, *words):
    """Starts a slice with `carve run` that runs until it is stopped."""
    agent.begin("run", "--name", name, *words, "--", "sleep", "600")
    assert until(lambda: name in agent.slices(), 30)


def test_nodes_are_objects(world, nodes):
    items = json.loads(nodes.carve("get", "nodes", "-o", "json"))["items"]
    assert [(i["apiVersion"], i["kind"], i["metadata"]["name"]) for i in items] == [("carve.dev/v1", "Node", n) for n in ("n1", "n2")]
    status = items[0]["status"]
    assert (status["state"], status["gpus"], status["gpuMemUnits"]) == ("Running", 2, {"unit": "1GiB", "capacity": 44, "allocated": 0})
    assert status["policy"] == {"desired": "fixed-share", "effective": "fixed-share", "blockedBy": []}
    assert nodes.carve("get", "nodes", "-o", "name").split() == ["node/n1", "node/n2"]
    shown = nodes.carve("get", "nodes")
    assert shown.split()[:3] == ["NAME", "STATE", "POOL"] and "0/44 x 1GiB" in shown
    assert "Schedulable=True" in nodes.carve("describe", "node", "n1")
    assert "there is no node n9; the nodes are n1, n2" in nodes.carve("get", "node", "n9", status=1)


def test_a_new_node_gets_the_labels_of_its_pool_and_follows_changes_only_with_synchronisation(nodes):
    nodes.apply(pool(labels={"vke.volcengine.com/mgpu-compute-policy": "guaranteed-burst-share", "zone": "a"}))
    nodes.carve("node", "pool", "n1", "p")
    node = nodes.becomes("node", "n1", lambda n: n["status"]["policy"]["effective"] == "guaranteed-burst-share")
    assert node["metadata"]["labels"] == {POLICY: "guaranteed-burst-share", "zone": "a"}
    labels = {POLICY: "native-burst-share", "zone": "b"}
    nodes.apply(pool(labels=labels))
    shown = nodes.becomes("pool", "p", lambda p: len(p["status"]["drift"]) == 2)
    assert shown["status"]["drift"][0] == {"node": "n1", "label": POLICY, "poolValue": "native-burst-share", "nodeValue": "guaranteed-burst-share"}
    row = nodes.carve("get", "pools").splitlines()[1].split()
    assert row == ["p", "eas", "1", "2", "1", "off", "2", "available", row[-1]]
    nodes.apply(pool(labels=labels, labelSync=True))
    nodes.becomes("pool", "p", lambda p: p["status"]["drift"] == [])
    nodes.becomes("node", "n1", lambda n: n["status"]["policy"]["effective"] == "native-burst-share")
    assert "existing nodes may keep a compute policy that differs from the pool's" in nodes.apply(pool(labels=labels))
    assert "pool p still has the nodes n1; remove each from the pool first" in nodes.carve("delete", "pool", "p", status=1)
    nodes.carve("node", "pool", "n1", "")
    nodes.carve("delete", "pool", "p")
    assert "No pools" in nodes.carve("get", "pools")


def test_a_taint_of_the_pool_repels_services_that_do_not_tolerate_it(nodes):
    taint = {"key": "team", "value": "vision", "effect": "NoSchedule"}
    nodes.apply([pool(taints=[taint], labelSync=True), {"apiVersion": "carve.dev/v1", "kind": "Node", "metadata": {"name": "n1"},
                                                        "spec": {"pool": "p"}}])
    nodes.becomes("node", "n1", lambda n: n["status"]["taints"] == ["team=vision:NoSchedule"])
    nodes.apply(service(pool="p"))
    reason = "no node accepts the slice: node n1 has the taint team=vision:NoSchedule"
    nodes.becomes("service", "demo", lambda s: any(reason in c["message"] for c in s["status"]["conditions"]))
    nodes.apply(service(pool="p", tolerations=[{"key": "team", "operator": "Exists"}]))
    nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running")
    nodes.apply(pool(labelSync=True))
    nodes.becomes("node", "n1", lambda n: n["status"]["taints"] == [])


def test_a_pool_can_reject_slices_without_a_share(nodes):
    nodes.apply(pool(bestEffort="refuse"))
    nodes.carve("node", "pool", "n1", "p")
    assert "pool p refuses slices without a share of compute" in nodes.apply(service(pool="p"), status=1)
    status, _, text = asked(nodes.socket, "/v1/nodes/n1/slices", "POST", json.dumps({"memory_bytes": 1 << 30}))
    assert status == 409 and "pool p refuses slices without a share of compute" in text
    nodes.apply(service(pool="p", gpu={"memory": "2GiB", "share": "30%"}))
    nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running")


def test_a_changed_policy_is_effective_after_a_restart_and_shows_what_blocks_it(world, nodes):
    holding(world, "a", "--memory", "1GiB", "--compute", "10%")
    nodes.carve("label", "node", "n1", f"{POLICY}=native-burst-share")
    node = nodes.becomes("node", "n1", lambda n: n["status"]["policy"]["blockedBy"] == ["a"])
    assert node["status"]["policy"]["desired"] == "native-burst-share"
    assert "-> native-burst-share (restart; blocked by a)" in nodes.carve("get", "nodes")
    assert "was not restarted within 1 s; it still has slices: a" in nodes.carve("node", "restart", "n1", "--timeout", "1s", status=1)
    refused = world.carve("run", "--memory", "1GiB", "--", "true")
    assert refused.returncode == 125 and "node n1 is being restarted" in refused.stderr
    nodes.carve("node", "restart", "n1", "--force", "--timeout", "60s")
    assert world.slices() == {}
    nodes.becomes("node", "n1", lambda n: n["status"]["policy"] == {
        "desired": "native-burst-share", "effective": "native-burst-share", "blockedBy": []})


def test_removing_a_policy_that_a_service_needs_gives_a_warning(nodes):
    nodes.apply(service(gpu={"memory": "2GiB", "share": "30%", "policy": "fixed-share"}))
    nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running")
    assert "warning" not in nodes.carve("label", "node", "n1", f"{POLICY}=native-burst-share"), "n2 has it"
    nodes.becomes("node", "n1", lambda n: n["status"]["policy"]["desired"] == "native-burst-share")
    if nodes.one("node", "n1")["status"]["policy"]["effective"] != "native-burst-share":  # The replica runs there.
        nodes.carve("node", "restart", "n1", "--force", "--timeout", "60s")
    said = nodes.carve("label", "node", "n2", f"{POLICY}=native-burst-share")
    assert "carve: warning: no node has the policy fixed-share once node n2 has native-burst-share: the replicas of demo keep running but could not be started again" in said
    assert "node/n2 labeled" in said


def test_a_system_label_cannot_be_edited(nodes):
    key = "vke.volcengine.com/mgpu-compute-policy"
    nodes.carve("label", "node", "n1", f"{key}=fixed-share")
    nodes.carve("label", "node", "n1", f"{key}=fixed-share")  # The same value changes nothing.
    status, problem = nodes.patch("n1", {"metadata": {"labels": {key: "native-burst-share"}}})
    assert (status, problem["type"]) == (409, "carve:immutable")
    assert problem["detail"].startswith(
        f"{key} is a system label: its value 'fixed-share' on node n1 cannot be edited. Remove it (carve label node n1 {key}-), "
        "restart the node, and add it again; or let the pool's synchronisation set it")
    nodes.carve("label", "node", "n1", f"{key}-")
    assert "was removed from node n1; restart the node" in nodes.carve("label", "node", "n1", f"{key}=native-burst-share", "--overwrite", status=1)
    nodes.carve("node", "restart", "n1")
    nodes.carve("label", "node", "n1", f"{key}=native-burst-share")
    nodes.carve("label", "node", "n1", "zone=a", "ack.node.gpu.placement=spread")
    assert nodes.one("node", "n1")["metadata"]["labels"] == {POLICY: "native-burst-share", "zone": "a", "carve.dev/placement": "spread"}
    status, problem = nodes.patch("n2", {"metadata": {"labels": {"ack.node.gpu.schedule": "cgpu", "vke.node.gpu.schedule": "mgpu"}}})
    assert (status, problem["type"]) == (422, "carve:invalid")
    assert "are synonyms but have different values" in problem["detail"]


def test_a_node_without_its_labels_returns_to_the_defaults(nodes):
    nodes.carve("label", "node", "n1", f"{POLICY}=native-burst-share", f"{UNIT}=128MiB")
    nodes.becomes("node", "n1", lambda n: (n["status"]["policy"]["effective"], n["status"]["memoryUnit"]["effective"]) == (
        "native-burst-share", "128MiB"))
    nodes.carve("label", "node", "n1", f"{POLICY}-", f"{UNIT}-")
    nodes.carve("node", "restart", "n1")
    node = nodes.one("node", "n1")
    assert node["metadata"]["labels"] == {}
    assert node["status"]["policy"] == {"desired": "fixed-share", "effective": "fixed-share", "blockedBy": []}
    assert node["status"]["memoryUnit"] == {"desired": "1GiB", "effective": "1GiB", "blockedBy": []}


def test_a_label_must_have_a_key_that_a_selector_can_name(nodes):
    assert "'a b' is not a valid key; use 1 to 253 printable ASCII characters" in nodes.carve("label", "node", "n1", "a b=1", status=1)
    assert nodes.one("node", "n1")["metadata"]["labels"] == {}


@pytest.mark.parametrize("spec, stop, failed, message", [
    ({"type": "public"}, False, "resource-type",
     "pool 'p' is of type public: GPU slicing needs an EAS resource group or a Lingjun resource quota"),
    ({"sharing": False}, False, "sharing", "GPU sharing is not enabled for pool p"),
    ({}, None, "gpu-count", "pool 'p' has no GPU: its GPU column is 0"),
    ({}, True, "instance-state", "node n1 is Stopped: start it"),
])
def test_services_are_rejected_with_the_message_of_the_slicing_check(nodes, spec, stop, failed, message):
    nodes.apply(pool(**spec))
    if stop is not None:
        nodes.carve("node", "pool", "n1", "p")
    if stop:
        nodes.carve("node", "stop", "n1")
        nodes.becomes("node", "n1", lambda n: n["status"]["state"] == "Stopped")
    slicing = nodes.json("/v1/pools/p/slicing")
    assert (slicing["available"], slicing["failed"], slicing["checks"][-1]["message"]) == (False, failed, message)
    assert message in nodes.carve("explain", "slicing", "--pool", "p", status=1)
    assert f"no: {failed}" in nodes.carve("get", "pools")
    status, _, text = asked(nodes.socket, "/v1/documents", "POST", json.dumps(service(pool="p")))
    assert (status, json.loads(text)["type"], json.loads(text)["detail"]) == (409, "carve:slicing-unavailable", message)
    if stop:
        nodes.carve("node", "start", "n1")
        nodes.becomes("pool", "p", lambda p: p["status"]["slicing"]["available"])


def eas(nodes, *status, **metadata):
    document = {"metadata": {"name": "e", "gpu_memory": 2, **metadata}, "containers": [{"command": "sleep 600"}]}
    path = nodes.folder / "eas.json"
    path.write_text(json.dumps(document))
    return nodes.carve("apply", "-f", path, "--dry-run", status=status[0] if status else 0)


def test_a_pai_eas_document_gets_slices_only_in_its_resource_groups(nodes):
    """A pool of type ecs gives slices to other documents. Without a pool, the controller's nodes are one
    group."""
    assert "service/e checked" in eas(nodes)
    nodes.apply(pool(type="ecs"))
    nodes.carve("node", "pool", "n1", "p")
    nodes.becomes("pool", "p", lambda p: p["status"]["slicing"]["available"])
    message = "pool 'p' is of type ecs: GPU slicing needs an EAS resource group or a Lingjun resource quota"
    assert message in eas(nodes, 1, resource="p")
    shown = nodes.carve("explain", "slicing", "--pool", "p")
    assert message in shown and "slicing is available, but not to documents of PAI-EAS" in shown
    assert "available, but not to PAI-EAS" in nodes.carve("get", "pools")
    assert "metadata.resource: is required, because GPU slicing needs an EAS resource group" in eas(nodes, 1)
    assert "service/e checked" in eas(nodes, gpu=1, resource="p"), "a whole device is no slice"
    nodes.apply(pool(type="EAS Resource Group"))
    assert "; use one of: p" in eas(nodes, 1)
    assert "service/e checked" in eas(nodes, resource="p")
    assert "metadata.resource: there is no pool 'q'; the pools are p" in eas(nodes, 1, resource="q")


def test_a_starting_node_becomes_available_by_itself(nodes):
    agent = Agent("t4x1", "--start-delay", "5s")
    late = Nodes({"late": agent}, "--expected-start", "300s")
    late.agent = agent
    try:
        late.apply(pool())
        late.carve("node", "pool", "late", "p")
        starting = late.becomes("node", "late", lambda n: n["status"]["gpus"] == 1)
        if starting["status"]["state"] == "Starting":
            assert 200 < starting["status"]["readyInSeconds"] <= 300
            assert "node late is Starting: wait for it to be running" in late.carve("explain", "slicing", "--pool", "p", status=1)
        late.becomes("pool", "p", lambda p: p["status"]["slicing"]["available"])
        assert agent.carve("run", "--memory", "1GiB", "--", "true").returncode == 0
    finally:
        late.end()
        agent.end()


def test_nodes_and_pools_are_watched(nodes):
    words = [str(nodes.agent.build / "bin/carve"), "get"]
    environment = {**nodes.agent.environment, "CARVE_CONTROLLER": str(nodes.socket)}
    nodes.apply(pool())
    for kind, name, change, row in (("nodes", "n1", ("cordon", "n1"), ["n1", "Running,cordoned"]),
                                    ("pools", "p", ("node", "pool", "n1", "p"), ["p", "eas", "1"])):
        watch = subprocess.Popen([*words, kind, "-w"], stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert watch.stdout.readline().split()[0] == "NAME"
            while watch.stdout.readline().split()[0] != name:
                pass
            nodes.carve(*change)
            while watch.stdout.readline().split()[:len(row)] != row:
                pass
        finally:
            watch.kill()
            watch.communicate()


def test_the_node_of_a_silent_agent_is_shown_as_stopped(world, nodes):
    nodes.agent.process.kill()
    nodes.agent.process.wait()
    nodes.becomes("node", "n1", lambda n: n["status"]["state"] == "Stopped")
    world.start()
    nodes.becomes("node", "n1", lambda n: n["status"]["state"] == "Running")


def test_the_memory_unit_changes_when_no_slice_in_units_runs(world, nodes):
    holding(world, "a", "--gpu-mem", "2")
    heading, row = world.carve("ps", "-o", "wide").stdout.splitlines()
    assert "UNITS" in heading and "WORKLOAD" in heading and "2 x 1 GiB" in row, row
    holding(world, "b", "--memory", "1GiB")
    status, problem = nodes.patch("n1", {"metadata": {"labels": {"gpuMemoryUnit": "64MiB"}}})
    assert (status, problem["type"]) == (422, "carve:invalid") and "gpuMemoryUnit 64MiB: must be 1GiB or 128MiB" in problem["detail"]
    status, problem = nodes.patch("n1", {"metadata": {"labels": {"gpuMemoryUnit": "128MiB"}}})
    assert (status, problem["type"], problem["blockedBy"]) == (409, "carve:blocked", ["a"])
    refused = world.carve("node", "set", "--memory-unit", "128MiB")
    assert refused.returncode == 1 and "the memory unit stays 1GiB while slices that were requested in units run: a" in refused.stderr
    nodes.carve("label", "node", "n1", f"{UNIT}=128MiB", "--when-free")
    nodes.becomes("node", "n1", lambda n: n["status"]["memoryUnit"] == {"desired": "128MiB", "effective": "1GiB", "blockedBy": ["a"]})
    refused = world.carve("run", "--gpu-mem", "1", "--", "true")
    assert refused.returncode == 125 and "the memory unit changes from 1GiB to 128MiB when a has ended" in refused.stderr
    assert world.carve("run", "--memory", "1GiB", "--", "true").returncode == 0
    world.carve("stop", "a")
    node = nodes.becomes("node", "n1", lambda n: n["status"]["memoryUnit"]["effective"] == "128MiB")
    assert node["status"]["gpuMemUnits"]["capacity"] == 2 * 177
    assert world.json("node")["memory_unit"] == "128MiB"
    world.process.terminate()
    world.process.wait(20)
    world.start()
    assert world.json("node")["memory_unit"] == "128MiB"


def test_removing_the_unit_label_does_not_change_the_unit_while_slices_use_it(world, nodes):
    nodes.carve("label", "node", "n1", f"{UNIT}=128MiB")
    nodes.becomes("node", "n1", lambda n: n["status"]["memoryUnit"]["effective"] == "128MiB")
    holding(world, "a", "--gpu-mem", "16")
    assert "the memory unit of node n1 stays 128MiB while slices that were requested in units run: a" in \
        nodes.carve("label", "node", "n1", f"{UNIT}-", status=1)
    world.carve("stop", "a")
    assert until(lambda: world.json("ps")["slices"] == [], 20)
    nodes.carve("label", "node", "n1", f"{UNIT}-")
    nodes.becomes("node", "n1", lambda n: n["status"]["memoryUnit"]["effective"] == "1GiB")


def test_labels_of_a_running_agent_have_the_same_meaning_as_in_a_controller(world):
    def label(*words, status=0):
        done = world.carve("node", "set", *(word for label in words for word in ("--label", label)))
        assert done.returncode == status, done.stderr
        return done.stderr
    label("carve.dev/compute-policy=native-burst-share")
    assert {d["policy"]["effective"] for d in world.json("devices")["devices"]} == {"native-burst-share"}
    done = world.carve("node", "set", "--policy", "fixed-share", "--label", "team=ml")
    assert done.returncode == 1 and "carve node set --label carve.dev/compute-policy-" in done.stderr, done.stderr
    assert "team" not in world.json("node")["labels"], "a refused change changes nothing"
    assert "the label carve.dev/compute-policy sets the same property and is native-burst-share" in label(
        "vke.volcengine.com/mgpu-compute-policy=fixed-share", status=1)
    label("gpuMemoryUnit=128MiB")
    assert world.json("node")["memory_unit"] == "128MiB"
    holding(world, "a", "--gpu-mem", "16")
    for change in "gpuMemoryUnit=1GiB", "gpuMemoryUnit-":
        assert "the memory unit stays 128MiB while slices that were requested in units run: a" in label(change, status=1)
        assert world.json("node")["labels"]["gpuMemoryUnit"] == "128MiB", "as before"
    for key in "ack.node.gpu.schedule=share", "carve.dev/placement=spread":
        assert f"carve label node NAME {key}" in label(key, status=1)
    world.process.terminate()
    world.process.wait(20)
    world.start()
    assert world.json("node")["memory_unit"] == "128MiB", "labels are kept"


def test_the_17th_slice_of_128_mib_on_one_device_is_rejected_until_one_ends(nodes):
    nodes.carve("label", "node", "n2", f"{UNIT}=128MiB")
    nodes.becomes("node", "n2", lambda n: n["status"]["memoryUnit"]["effective"] == "128MiB")
    agent = Agent("t4x1", "--memory-unit", "128MiB", "--context-charge", "reserve")
    try:
        for i in range(16):
            assert agent.carve("slice", "create", "--gpu-mem", "1", "--name", f"s{i}").returncode == 0, i
        refused = agent.carve("slice", "create", "--gpu-mem", "1", "--name", "s16")
        assert refused.returncode == 1 and "it has 16 isolated slices, the maximum" in refused.stderr, refused.stderr
        agent.carve("stop", "s3")
        assert agent.carve("slice", "create", "--gpu-mem", "1", "--name", "s16").returncode == 0
    finally:
        agent.end()


def test_a_cordoned_node_gets_no_slices(world, nodes):
    nodes.carve("cordon", "n1")
    nodes.becomes("node", "n1", lambda n: not n["spec"]["schedulable"])
    def is_refused():
        done = world.carve("run", "--memory", "1GiB", "--", "true")
        return done.returncode == 125 and "node n1 is cordoned by" in done.stderr
    assert until(is_refused, 30)
    nodes.apply(service())
    status = nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running")["status"]
    assert status["replicaList"][0]["node"] == "n2"
    nodes.carve("uncordon", "n1")
    assert until(lambda: world.carve("run", "--memory", "1GiB", "--", "true").returncode == 0, 30)


def test_a_drain_moves_services_and_stops_at_slices_of_carve_run(world, nodes):
    nodes.carve("cordon", "n2")
    nodes.apply(service())
    nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running" and s["status"]["replicaList"][0]["node"] == "n1")
    nodes.carve("uncordon", "n2")
    holding(world, "own", "--memory", "1GiB")
    assert "own would be ended; stop these slices, or use --force" in nodes.carve("drain", "n1", "--timeout", "90s", status=1)
    shown = nodes.carve("drain", "n1", "--force", "--timeout", "90s")
    assert "service/demo moves" in shown and "node/n1 drained" in shown
    status = nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running")["status"]
    assert [r["node"] for r in status["replicaList"]] == ["n2"] and world.slices() == {}


def test_a_drain_moves_only_the_replicas_of_its_node(nodes):
    run = {"command": ["sh", "-c", 'exec python3 -m http.server --bind 127.0.0.1 "$PORT"']}
    document = service(replicas=2, gpu={"memory": "8GiB"}, port=8080, run=run)
    nodes.carve("cordon", "n2")
    nodes.apply({**document, "spec": {**document["spec"], "replicas": 1}})
    nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running")
    nodes.carve("uncordon", "n2")
    nodes.carve("cordon", "n1")
    nodes.apply(document)
    before = nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running" and s["status"]["readyReplicas"] == 2)["status"]
    assert {r["slice"]: r["node"] for r in before["replicaList"]} == {"demo-1-0": "n1", "demo-1-1": "n2"}
    # n2 has one T4 of 15 GiB, which has no room for another 8 GiB.
    stays = nodes.carve("drain", "n1", "--timeout", "5s", status=1)
    assert "service/demo moves" in stays and "service/demo: node n1 is drained; replica 0 stays there: " in stays, stays
    assert "node n1 was not drained within 5 s; it still has slices: demo-1-0" in stays
    asked(nodes.socket, "/v1/services/demo", "PATCH", json.dumps({"spec": {"gpu": {"memory": "7GiB"}}}))
    shown = nodes.carve("drain", "n1", "--timeout", "90s")
    assert "node/n1 drained" in shown
    after = nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running")["status"]
    assert {r["slice"]: r["node"] for r in after["replicaList"]} == {"demo-1-1": "n2", "demo-1-64": "n2"}
    assert (after["revision"], after["restarts"], {r["index"] for r in after["replicaList"]}) == (1, 0, {0, 1})
    nodes.carve("uncordon", "n1")
    assert not nodes.one("node", "n1")["spec"]["draining"]


def test_a_missing_pool_is_rejected_with_the_list_of_pools(nodes):
    nodes.apply(pool("a10"))
    status, _, text = asked(nodes.socket, "/v1/documents", "POST", json.dumps(service(pool="b")))
    assert (status, json.loads(text)["type"]) == (422, "carve:invalid")
    assert json.loads(text)["detail"] == "spec.pool: there is no pool 'b'; the pools are a10"
    nodes.apply(pool("a10", sharing=False))
    nodes.carve("node", "pool", "n2", "a10")
    assert "GPU sharing is not enabled for pool a10" in nodes.apply(service(pool="a10"), status=1)
    nodes.apply(pool("a10", sharing=True))
    nodes.apply(service(pool="a10"))
    status = nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running")["status"]
    assert status["replicaList"][0]["node"] == "n2"


def test_resource_groups_are_pools_and_slices_are_listed_as_objects(world, nodes):
    nodes.apply(pool("a10"))
    nodes.carve("node", "pool", "n2", "a10")
    nodes.becomes("pool", "a10", lambda p: p["status"]["nodes"] == 1)
    assert "a10" in nodes.carve("eas", "resource", "ls") and "instance-state: ok" in nodes.carve("eas", "resource", "desc", "a10")
    assert [line.split()[0] for line in nodes.carve("eas", "resource", "li", "a10").splitlines()] == ["INSTANCENAME", "n2"]
    holding(world, "own", "--memory", "1GiB")
    assert [s["name"] for s in json.loads(nodes.carve("get", "slices", "-o", "json"))["items"]] == ["own"]
    assert json.loads(nodes.carve("get", "slice/own", "-o", "json"))["name"] == "own" and "own" in nodes.carve("describe", "slice", "own")
    assert nodes.carve("get", "slice/own", "-o", "yaml").startswith("name: own\n") and nodes.carve("get", "slices", "-o", "name") == "slice/own\n"
    nodes.carve("delete", "slice/own")
    assert world.slices() == {}, "it has ended when the command returns"


def test_the_example_creates_a_pool_whose_nodes_follow_it(nodes):
    nodes.carve("apply", "-f", HERE.parent / "examples/pool.yaml")
    nodes.carve("node", "pool", "n2", "a10")
    nodes.becomes("node", "n2", lambda n: n["status"]["policy"]["effective"] == "guaranteed-burst-share")
    assert "slicing is available" in nodes.carve("explain", "slicing", "--pool", "a10")


def test_units_are_those_of_the_node_of_a_replica(nodes):
    """`gpu-mem: 2` is 2 GiB on n1 and 256 MiB on n2. The dry run shows the bytes for the node that it chose,
    and the slice gets them."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "demo"}, "spec": {"containers": [
        {"name": "c", "command": ["sleep", "600"], "resources": {"limits": {"aliyun.com/gpu-mem": 2}}}]}}
    nodes.carve("label", "node", "n2", f"{UNIT}=128MiB")
    nodes.becomes("node", "n2", lambda n: n["status"]["memoryUnit"]["effective"] == "128MiB")
    path = nodes.folder / "pod"
    path.write_text(json.dumps(pod))
    for cordoned, node, size, total in ("n2", "n1", "2 GiB", 2 << 30), ("n1", "n2", "256 MiB", 256 << 20):
        nodes.carve("cordon", cordoned)
        shown = nodes.carve("apply", "-f", path, "--dry-run")
        assert f"replica 0: node {node}, device 0, {size}" in shown, shown
        nodes.carve("apply", "-f", path)
        status = nodes.becomes("service", "demo", lambda s: s["status"]["phase"] == "Running")["status"]
        assert (status["replicaList"][0]["node"], status["memoryBytes"]) == (node, total), status
        nodes.carve("delete", "service", "demo")
        nodes.carve("uncordon", cordoned)
