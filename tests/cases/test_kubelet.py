"""Tests carve-kubelet with a real agent: from kubelet's slot to a container's slice, and what survives the
death of each program."""
import json
import os
import subprocess
import threading
import time

import pytest

from conftest import BUILD, LOAD, GiB, until
from support.kubelet_stand import KubeletStand

ATTACHED_DIRECTORY = "runs without its slice"


@pytest.fixture
def node():
    stand = KubeletStand()
    yield stand
    stand.end()
    print("--- carve-kubelet's log:\n" + stand.text())


def start_container(node, slot, *words):
    """Starts a program with the settings of the slot's CDI file, but without a container."""
    environment = {**os.environ, "CARVE_SOCKET": str(node.attach_socket(slot)), "SIMGPU_DIR": str(node.agent.folder / "state/sim"),
                   "LD_LIBRARY_PATH": str(BUILD / "lib/carve/sim")}
    command = f"export LD_PRELOAD={BUILD}/lib/carve/libcarve.so; exec {LOAD} --no-touch {' '.join(words)}"
    program = subprocess.Popen(["/bin/sh", "-c", command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               text=True)
    node.agent.programs.append(program)
    return program


def slice_of(node, pod):
    for slice_ in node.agent.slices().values():
        if slice_["holder"]["pod"]["name"] == pod:
            return slice_
    return None


def begin(node, pod, slot, memory=2 * GiB):
    uid = node.place(pod, memory)
    assert node.ask(f"allocate {slot}") == [f"carve.dev/slot={slot}"]
    node.ask(f"devices {pod} main {slot}")
    assert node.ask(f"start {slot}") is None
    return uid


def test_the_node_advertises_the_capacity_of_the_agent(node):
    def ready():
        return any(c["type"] == "CarveReady" and c["status"] == "True" for c in node.ask("node")["status"].get("conditions", []))
    assert until(ready, 30), node.ask("node")
    said = node.ask("node")
    device = node.agent.json("devices")["devices"][0]
    assert said["metadata"]["labels"]["carve.dev/node"] == "extender"
    assert json.loads(said["metadata"]["annotations"]["carve.dev/devices"])["devices"][0]["uuid"] == device["uuid"]
    assert said["status"]["capacity"]["carve.dev/memory"] == str(device["usable_bytes"])
    node.agent.process.kill()
    node.agent.process.wait()
    assert until(lambda: not ready(), 30)
    assert node.ask("node")["status"]["capacity"]["carve.dev/memory"] == str(device["usable_bytes"])
    node.agent.start()
    assert until(ready, 30)


def test_a_slot_becomes_the_slice_that_was_placed(node):
    uid = begin(node, "web-0", "s017")
    slice_ = slice_of(node, "web-0")
    assert (slice_["slot"], slice_["holder"]["pod"]["uid"], slice_["parts"][0]["quota_bytes"]) == ("s017", uid, 2 * GiB)
    assert (node.folder / "cdi/carve.dev-slot_s017.json").exists() and node.attach_socket("s017").parent.is_dir()
    assert until(lambda: any(reason == "CarveSliceReady" and "granted 2 GiB on device 0" in note for reason, note in node.ask("events")))
    # A container that runs without the attach directory is reported, and does not prove anything about the
    # slot.
    program = start_container(node, "s017", "--allocate", "1GiB", "--seconds", "60")
    node.ask(f"container c1 {uid} main {program.pid}")
    assert until(lambda: any(reason == "CarveNotMounted" and ATTACHED_DIRECTORY in note for reason, note in node.ask("events")), 30)
    program.kill()
    # When the container starts again, it gets the same slice.
    assert node.ask("start s017") is None
    assert slice_of(node, "web-0")["name"] == slice_["name"]
    node.ask("remove web-0")
    assert until(lambda: slice_of(node, "web-0") is None, 30)
    assert until(lambda: not (node.folder / "cdi/carve.dev-slot_s017.json").exists())


def test_new_amounts_in_the_annotation_reach_the_slice(node):
    uid = begin(node, "web-0", "s017")
    name = slice_of(node, "web-0")["name"]
    assert node.place("web-0", 3 * GiB) == uid
    assert until(lambda: slice_of(node, "web-0")["parts"][0]["quota_bytes"] == 3 * GiB, 30)
    assert slice_of(node, "web-0")["name"] == name and node.ask("start s017") is None


def test_pods_get_their_slices_whatever_order_kubelet_uses(node):
    for number, slot in ((0, "s003"), (2, "s001"), (1, "s002")):
        assert node.ask(f"allocate {slot}") == [f"carve.dev/slot={slot}"]
        node.place(f"p{number}", (number + 1) * GiB)
        node.ask(f"devices p{number} main {slot}")
    node.ask("devices p0 main s003")  # kubelet may call twice.
    for slot, memory in (("s002", 2), ("s001", 3), ("s003", 1)):
        assert node.ask(f"start {slot}") is None
        mine = [s for s in node.agent.slices().values() if s["slot"] == slot]
        assert [s["parts"][0]["quota_bytes"] for s in mine] == [memory * GiB]


def test_a_container_of_a_pod_that_was_not_placed_does_not_start(node):
    node.ask("pod bare -")
    node.ask("devices bare main s001")
    assert node.ask("start s001") == "pod a/bare was not placed by Carve: it has no annotation carve.dev/slices"
    node.ask('pod forged {"v":1,"node":"n1","containers":{"main":{"parts":[["GPU-00000000-0000-0000-0000-00000000beef",1,0]]}}}')
    node.ask("devices forged main s002")
    assert "this node has no device GPU-00000000-0000-0000-0000-00000000beef" in node.ask("start s002")
    node.ask('pod other {"v":1,"node":"n2","containers":{}}')
    node.ask("devices other main s003")
    assert "was placed on node n2" in node.ask("start s003")
    assert "there is no slot" in node.ask("start s999") and node.agent.slices() == {}
    assert until(lambda: len([1 for reason, _ in node.ask("events") if reason == "CarveRefused"]) == 3)


def test_a_slot_is_given_to_the_next_pod_when_the_previous_one_is_gone(node):
    begin(node, "first", "s017")
    name = slice_of(node, "first")["name"]
    node.place("second")
    node.ask("devices -")
    node.ask("devices second main s017")
    assert node.ask("allocate s017") == ["carve.dev/slot=s017"]
    assert not (node.folder / "cdi/carve.dev-slot_s017.json").exists(), "no runtime may use the file of the pod before"
    node.ask("remove first")
    assert node.ask("start s017") is None
    assert slice_of(node, "first") is None and slice_of(node, "second")["name"] != name


def test_killed_programs_are_replaced_without_a_change(node):
    begin(node, "web-0", "s017")
    name = slice_of(node, "web-0")["name"]
    node.kill()
    node.start()
    assert slice_of(node, "web-0")["name"] == name
    node.ask("restart")
    assert until(lambda: node.ask("registrations") == 1, 30), "kubelet's new socket"
    node.agent.process.kill()
    node.agent.process.wait()
    node.agent.start()
    assert node.ask("start s017") is None and slice_of(node, "web-0")["name"] == name
    begin(node, "web-1", "s018")
    assert len(node.agent.slices()) == 2


@pytest.mark.parametrize("victim", ["carve-kubelet", "carved"])
def test_a_kill_at_any_step_of_a_start_leaves_one_slice_or_none(node, victim):
    for step in range(10):
        pod, slot = f"p{step}", f"s{step:03}"
        node.place(pod, GiB)
        node.ask(f"devices {pod} main {slot}")
        starting = threading.Thread(target=node.ask, args=(f"start {slot} 5",))
        starting.start()
        time.sleep(step * 0.002)  # A start takes about 10 ms.
        if victim == "carved":
            node.agent.process.kill()
            node.agent.process.wait()
            node.agent.start()
        else:
            node.kill()
        starting.join()
        if victim != "carved":
            node.start()
        assert node.ask(f"start {slot}") is None
        mine = [s for s in node.agent.slices().values() if s["holder"]["pod"]["name"] == pod]
        assert [s["slot"] for s in mine] == [slot] and (node.folder / f"cdi/carve.dev-slot_{slot}.json").exists()
    device = node.agent.json("devices")["devices"][0]
    assert device["granted_bytes"] == 10 * GiB and len(node.agent.slices()) == 10


def test_containers_restart_without_an_api_server_and_nothing_is_released(node):
    begin(node, "web-0", "s017")
    name = slice_of(node, "web-0")["name"]
    node.ask("api off")
    assert node.ask("start s017") is None and slice_of(node, "web-0")["name"] == name
    node.kill()
    node.start()
    node.ask("devices new main s018")
    assert node.ask("start s018 1") is not None, "nothing is known of its pod"
    assert [s["name"] for s in node.agent.slices().values()] == [name]
    node.ask("api on")
    node.place("new")
    assert until(lambda: node.ask("start s018") is None, 60)
