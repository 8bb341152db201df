"""Tests a node of a real cluster: kubelet, containerd, the agent with simulated devices, and
carve-kubelet."""
import json
import os
import signal
import subprocess
import time

import pytest

from node_cluster import BUILD, LOAD, GiB, NodeCluster, missing, slices, until

if missing():
    pytest.skip(missing(), allow_module_level=True)

HOLD = f"{LOAD} --allocate 1GiB --seconds 600 --no-touch"
FULL = "CUDA_ERROR_OUT_OF_MEMORY"


@pytest.fixture(scope="module")
def cluster():
    c = NodeCluster()
    try:
        c.begin()
        yield c
    finally:
        for name in ("carved", "carve-kubelet"):
            print(f"--- the end of {name}'s log:\n" + c.log(name))
        c.end()


def placed(cluster, memory=2 * GiB, device=0, share=0, containers=("main",)):
    return slices(cluster.node, **{name: [(cluster.devices()[device], memory, share)] for name in containers})


def test_the_node_advertises_what_it_has(cluster):
    node = cluster.node_object()
    assert node["metadata"]["labels"]["carve.dev/node"] == "extender"
    said = json.loads(node["metadata"]["annotations"]["carve.dev/devices"])
    assert [device["uuid"] for device in said["devices"]] == cluster.devices() and said["simulated"] is True
    assert cluster.allocatable("carve.dev/memory") == sum(device["usable"] for device in said["devices"])
    assert cluster.allocatable("carve.dev/compute") == 200 and cluster.allocatable("carve.dev/slot") == 256
    assert cluster.condition("CarveReady")["status"] == "True", cluster.condition("CarveReady")
    assert cluster.condition("CarveSettingPending")["status"] == "False"


def test_a_container_sees_only_its_slice(cluster):
    with cluster.running("web", "sleep 600", placed(cluster)):
        total = int(cluster.inside("web", "/bin/guest_program", "monitor").split()[1])
        assert total == 2 * GiB, "NVML inside shows the slice"
        assert json.loads(cluster.inside("web", LOAD, "--allocate", "1GiB", "--no-touch"))["error"] is None
        assert json.loads(cluster.inside("web", LOAD, "--allocate", "3GiB", "--no-touch"))["error"] == FULL
        assert cluster.inside("web", "/bin/bash", "-c", "echo $NVIDIA_VISIBLE_DEVICES") == "void"
        cluster.kubectl("annotate", "pod", "web", "--overwrite", f"carve.dev/slices={placed(cluster, 3 * GiB)}")
        assert until(lambda: cluster.inside("web", "/bin/guest_program", "monitor").split()[1:2] == [str(3 * GiB)]), "new amounts"
        ready = [note for reason, note in cluster.events("web") if reason == "CarveSliceReady"]
        assert ready and "granted 2 GiB on device 0" in ready[0]
    assert until(lambda: cluster.slice_of("web") is None), "the slice ends with its pod"
    assert until(lambda: not cluster.cdi_files()), cluster.slices()


def test_each_container_has_its_own_slice(cluster):
    uuids = cluster.devices()
    annotation = slices(cluster.node, big=[(uuids[0], 3 * GiB, 0)], small=[(uuids[1], GiB, 0)])
    with cluster.running("two", "sleep 600", annotation, containers=("big", "small")):
        for container, device, size in (("big", uuids[0], 3 * GiB), ("small", uuids[1], GiB)):
            assert cluster.inside("two", "/bin/guest_program", "monitor", container=container).split()[1] == str(size)
            assert [part["uuid"] for part in cluster.slice_of("two", container)["parts"]] == [device]


def test_pods_that_start_at_the_same_time_get_their_own_slices(cluster):
    sizes = {f"at-once-{n}": (n + 1) * GiB for n in range(4)}
    for name, size in sizes.items():
        cluster.create(cluster.pod(name, "sleep 600"), placed(cluster, size))
    try:
        for name, size in sizes.items():
            assert until(lambda name=name: cluster.is_ready(name)), cluster.waiting(name)
            assert cluster.inside(name, "/bin/guest_program", "monitor").split()[1] == str(size)
    finally:
        for name in sizes:
            cluster.remove(name, "--wait=false")


def test_a_pod_that_was_not_placed_here_does_not_start(cluster):
    uuid = cluster.devices()[0]
    unplaced = {"bare": (None, "pod default/bare was not placed by Carve"),
                "elsewhere": (slices("n9", main=[(uuid, GiB, 0)]), "placed on node n9, but this is node localhost"),
                "other": (slices(cluster.node, side=[(uuid, GiB, 0)]), "has no slice for container main"),
                "more": (placed(cluster, 64 * GiB), "64 GiB of device")}
    for name, (annotation, _) in unplaced.items():
        cluster.create(cluster.pod(name, "sleep 600"), annotation)
    try:
        for name, (_, message) in unplaced.items():
            assert until(lambda name=name, message=message: message in cluster.waiting(name)), cluster.waiting(name)
            assert any(reason == "CarveRefused" and message in note for reason, note in cluster.events(name))
            assert cluster.slice_of(name) is None
    finally:
        for name in unplaced:
            cluster.remove(name, "--wait=false")


def test_a_restarted_container_keeps_its_slice(cluster):
    # The first process of a container ignores signals from inside the container.
    with cluster.running("loop", f"{HOLD} & wait $!", placed(cluster), restartPolicy="Always"):
        first = cluster.slice_of("loop")
        assert until(lambda: any(p["attached"] for p in cluster.carve_show(first["name"])["processes"]))
        cluster.inside("loop", "/bin/bash", "-c", "cat /proc/[0-9]*/stat | while read -r pid name rest; do "
                                                  "[[ $name != '(carve-load)' ]] || kill -9 $pid; done")
        assert until(lambda: cluster.restarts("loop") >= 1 and cluster.is_ready("loop"))
        again = cluster.slice_of("loop")
        assert (again["name"], again["slot"]) == (first["name"], first["slot"])


def test_programs_keep_running_when_carves_programs_are_killed(cluster):
    with cluster.running("on", HOLD, placed(cluster)):
        name = cluster.slice_of("on")["name"]
        assert until(lambda: any(p["attached"] for p in cluster.carve_show(name)["processes"]))
        for program, again in (("carve-kubelet", cluster.start_kubelet_program), ("carved", cluster.start_agent)):
            cluster.stop(program, signal.SIGKILL)
            again()
            assert until(lambda: cluster.allocatable("carve.dev/slot") == 256)
            assert cluster.slice_of("on")["name"] == name and cluster.restarts("on") == 0
        assert json.loads(cluster.inside("on", LOAD, "--allocate", "1536MiB", "--no-touch"))["error"] == FULL
    with cluster.running("after", "sleep 600", placed(cluster)):
        assert cluster.slice_of("after")


def test_a_new_kubelet_finds_the_plugin_again(cluster):
    with cluster.running("stays", HOLD, placed(cluster)):
        name = cluster.slice_of("stays")["name"]
        cluster.restart_kubelet()
        assert until(lambda: cluster.log("carve-kubelet").count("device plugin registered") >= 2)
        assert until(lambda: cluster.allocatable("carve.dev/slot") == 256)
        assert until(lambda: cluster.allocatable("carve.dev/memory") > 0)
        assert cluster.restarts("stays") == 0 and cluster.slice_of("stays")["name"] == name
        with cluster.running("next", "sleep 600", placed(cluster)):
            assert cluster.inside("next", "/bin/guest_program", "monitor").split()[1] == str(2 * GiB)


def test_a_container_restarts_without_the_api_server(cluster):
    def attached(name):
        return [p["pid"] for p in cluster.carve_show(name)["processes"] if p["attached"]]
    with cluster.running("alone", f"{HOLD} & wait $!", placed(cluster), restartPolicy="Always"):
        name = cluster.slice_of("alone")["name"]
        assert until(lambda: attached(name))
        (first,) = attached(name)
        server = int((cluster.dir / "pid/kube-apiserver").read_text())
        os.kill(server, signal.SIGSTOP)
        try:
            os.kill(first, signal.SIGKILL)
            assert until(lambda: attached(name) not in ([], [first])), cluster.log("carve-kubelet")
            assert cluster.slice_of("alone")["name"] == name
        finally:
            os.kill(server, signal.SIGCONT)
        assert until(lambda: cluster.restarts("alone") >= 1)


def told(cluster, name, reason, part):
    return any(reason == r and part in note for r, note in cluster.events(name))


def test_a_program_that_breaks_its_limits_has_events(cluster):
    # The driver that is behind the shim, used without the shim.
    bypass = f"unset LD_PRELOAD; export LD_LIBRARY_PATH=/usr/lib/carve/driver; exec {LOAD} --allocate 3GiB --no-touch --seconds 600"
    with cluster.running("breaks", bypass, placed(cluster, 2 * GiB)):
        assert until(lambda: told(cluster, "breaks", "CarveBypass", "found unattached with")), cluster.events("breaks")
        assert until(lambda: told(cluster, "breaks", "CarveOverQuota", "beyond its quota of 2 GiB")), cluster.events("breaks")


def fault(cluster, *words):
    subprocess.run([BUILD / "bin/carve-sim", "fault", cluster.folder / "state/sim", *map(str, words)], check=True, capture_output=True)


def test_changes_of_devices_are_events(cluster):
    with cluster.running("faulty", HOLD, placed(cluster)):
        name = cluster.slice_of("faulty")["name"]
        attached = until(lambda: [p["pid"] for p in cluster.carve_show(name)["processes"] if p["attached"]])
        fault(cluster, "xid", 31, "--pid", attached[0], "--device", 0)
        assert until(lambda: told(cluster, "faulty", "CarveXid", "its processes caused Xid 31 (GPU memory page fault)"))
        assert until(lambda: told(cluster, cluster.node, "CarveXid", "device 0"))
    fault(cluster, "device-lost", "--device", 1)
    try:
        assert until(lambda: told(cluster, cluster.node, "CarveDeviceLost", "device 1")), cluster.events(cluster.node)
        assert until(lambda: said(cluster)["devices"][1]["health"] == "lost")
    finally:
        fault(cluster, "clear")
        cluster.stop("carved")  # A device that fell off the bus is not trusted until the agent restarts.
        cluster.start_agent()
    assert until(lambda: told(cluster, cluster.node, "CarveDeviceRecovered", "device 1")), cluster.events(cluster.node)
    assert until(lambda: said(cluster)["devices"][1]["health"] == "ok")


def test_a_copy_of_an_attach_directory_gives_no_access(cluster):
    with cluster.running("owner", "sleep 600", placed(cluster, 4 * GiB)):
        slot = cluster.slice_of("owner")["slot"]
        stolen = {"name": "stolen", "hostPath": {"path": f"{cluster.socket}.run/attach/{slot}"}}
        thief = cluster.pod("thief", "sleep 600", volumes=[stolen])
        thief["spec"]["containers"][0]["volumeMounts"] = [{"name": "stolen", "mountPath": "/stolen"}]
        cluster.create(thief, placed(cluster, GiB))
        try:
            assert until(lambda: cluster.is_ready("thief")), cluster.waiting("thief")
            command = f"CARVE_SOCKET=/stolen/carved.sock {LOAD} --allocate 2GiB --no-touch"
            assert json.loads(cluster.inside("thief", "/bin/bash", "-c", command))["error"] is not None
            assert not any(p["attached"] for p in cluster.carve_show(cluster.slice_of("owner")["name"])["processes"])
            assert json.loads(cluster.inside("thief", LOAD, "--allocate", "512MiB", "--no-touch"))["error"] is None
        finally:
            cluster.remove("thief", "--wait=true")


def test_processes_of_a_force_deleted_pod_keep_their_part(cluster):
    usable = json.loads(cluster.node_object()["metadata"]["annotations"]["carve.dev/devices"])["devices"][1]["usable"]
    cluster.create(cluster.pod("stubborn", f"trap '' TERM; {LOAD} --allocate 1GiB --seconds 8 --no-touch; sleep 1",
                               terminationGracePeriodSeconds=30), placed(cluster, usable - GiB, device=1))
    assert until(lambda: cluster.is_ready("stubborn")), cluster.waiting("stubborn")
    cluster.remove("stubborn", "--grace-period=0", "--force", "--wait=false")
    with cluster.running("heir", "sleep 600", placed(cluster, 2 * GiB, device=1)):
        assert cluster.slice_of("stubborn") is None, "the heir waited for the last process of the slice before"


def test_lasting_ledger_drift_is_shown_in_the_nodes_object(cluster):
    def written():
        text = cluster.node_object()["metadata"]["annotations"].get("carve.dev/ledger")
        return json.loads(text)["parts"] if text else None
    cluster.create(cluster.pod("lasts", HOLD), placed(cluster, 2 * GiB))
    assert until(lambda: cluster.is_ready("lasts")), cluster.waiting("lasts")
    assert written() is None
    cluster.kubectl("annotate", "pod", "lasts", "--overwrite", f"carve.dev/slices={placed(cluster, GiB)}")
    (part,) = until(written, 90)
    assert (part["pod"], part["container"], part["memory"]) == ("default/lasts", "main", 2 * GiB), "it cannot have less than it holds"
    cluster.kubectl("annotate", "pod", "lasts", "--overwrite", f"carve.dev/slices={placed(cluster, 2 * GiB)}")
    assert until(lambda: written() is None)
    cluster.remove("lasts", "--wait=true")


def label(cluster, *words):
    cluster.kubectl("label", "node", cluster.node, "--overwrite", *words)


def said(cluster):
    return json.loads(cluster.node_object()["metadata"]["annotations"]["carve.dev/devices"])


def busy(cluster, *names):
    """Returns the counts of the slices' meters: the busy time, and when it was read on the arbiter's
    clock."""
    counts = {name: cluster.slice_of(name)["parts"][0].get("compute") or {} for name in names}
    return {name: (count.get("busy_ns", 0), count.get("as_of_ns", 0)) for name, count in counts.items()}


def percents(cluster, *names, seconds=2):
    """Returns what each pod's slice was charged, in percent of the device's time."""
    before = busy(cluster, *names)
    time.sleep(seconds)
    after = busy(cluster, *names)
    return {name: 100 * (after[name][0] - before[name][0]) / max(after[name][1] - before[name][1], 1) for name in names}


def in_some_window(cluster, names, holds, tries=8):
    """Returns whether the charges are as expected in one of several windows; in the others the machine may be
    busy with other work."""
    seen = []
    for _ in range(tries):
        seen.append(percents(cluster, *names))
        if holds(**seen[-1]):
            return
    raise AssertionError(seen)


# Under each policy: two pods of 30 % and 70 % that both have work, and the first one without the other.
# Tolerances are those of tests/cases/test_shares.py.
SHARES = {"fixed-share": (lambda a, b: abs(a - 30) <= 1.5 and abs(b - 70) <= 3.5, lambda a: abs(a - 30) <= 1.5),
          "guaranteed-burst-share": (lambda a, b: a >= 28 and b >= 65 and a + b >= 92, lambda a: a >= 90)}


@pytest.mark.parametrize("policy", SHARES)
def test_two_pods_get_the_same_shares_as_on_one_machine(cluster, policy):
    def compute(name, percent):
        parts = [(cluster.devices()[0], GiB, 100 * percent)]
        return cluster.running(name, f"exec {LOAD} --kernels 200us --no-sync --seconds 600", slices(cluster.node, policy, main=parts))
    both, alone = SHARES[policy]
    try:
        label(cluster, f"carve.dev/compute-policy={policy}")
        assert until(lambda: said(cluster)["policy"]["effective"] == policy)
        with compute("a", 30):
            with compute("b", 70):
                assert until(lambda: all(count for count, _ in busy(cluster, "a", "b").values()))
                in_some_window(cluster, ("a", "b"), both)
            in_some_window(cluster, ("a",), alone)
    finally:
        label(cluster, "carve.dev/compute-policy-")
    assert until(lambda: said(cluster)["policy"]["effective"] == "fixed-share")


def test_labels_change_the_settings_of_the_node(cluster):
    try:
        label(cluster, "carve.dev/compute-policy=native-burst-share")
        assert until(lambda: said(cluster)["policy"]["effective"] == "native-burst-share")
        assert until(lambda: cluster.allocatable("carve.dev/compute") == 3200)
        label(cluster, "carve.dev/compute-policy-")
        assert until(lambda: cluster.allocatable("carve.dev/compute") == 200)
        label(cluster, "carve.dev/mode=memory", "ack.node.gpu.schedule=share")
        assert until(lambda: cluster.condition("CarveReady")["status"] == "False")
        assert "different values" in cluster.condition("CarveReady")["message"]
        assert until(lambda: cluster.allocatable("carve.dev/memory") == 0)
        assert "carve.dev/node" not in cluster.node_object()["metadata"]["labels"]
    finally:
        label(cluster, "carve.dev/mode-", "ack.node.gpu.schedule-", "carve.dev/compute-policy-")
    assert until(lambda: cluster.condition("CarveReady")["status"] == "True" and cluster.allocatable("carve.dev/memory") > 0)
