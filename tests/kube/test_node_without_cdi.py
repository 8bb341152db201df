"""Tests a runtime that silently ignores CDI devices (Debian's containerd 1.6), with which containers get
their slices by mounts."""
import json
import pathlib
import subprocess

import pytest

from node_cluster import LOAD, GiB, NodeCluster, missing, slices, until

if missing():
    pytest.skip(missing(), allow_module_level=True)


@pytest.fixture(scope="module")
def cluster():
    version = subprocess.run(["/usr/bin/containerd", "--version"], capture_output=True, text=True).stdout \
        if pathlib.Path("/usr/bin/containerd").exists() else "none"
    if " 1.6." not in version:
        pytest.skip(f"needs Debian's containerd 1.6 (apt-get install containerd); here is {version.strip()}")
    c = NodeCluster(containerd="/usr/bin")
    try:
        c.begin()
        yield c
    finally:
        print("--- the end of carve-kubelet's log:\n" + c.log("carve-kubelet"))
        c.end()


def test_a_container_gets_its_slice_by_mounts_and_the_node_reports_it(cluster):
    ready = cluster.condition("CarveReady")
    assert (ready["status"], ready["reason"]) == ("True", "NoCdi"), ready
    assert "degraded: no CDI" in ready["message"] and "containerd 1.6." in ready["message"]
    assert until(lambda: any(reason == "CarveNoCdi" and "degraded: no CDI" in note for reason, note in cluster.events(cluster.node)))
    with cluster.running("old", "sleep 600", slices(cluster.node, main=[(cluster.devices()[1], 2 * GiB, 0)])):
        count, total = cluster.inside("old", "/bin/guest_program", "monitor").split()[:2]
        assert (count, int(total)) == ("1", 2 * GiB), "the guest library shows the slice alone"
        assert json.loads(cluster.inside("old", LOAD, "--allocate", "3GiB", "--no-touch"))["error"] == "CUDA_ERROR_OUT_OF_MEMORY"
        assert not any(reason == "CarveNotMounted" for reason, _ in cluster.events("old"))
        assert until(lambda: cluster.carve_show(cluster.slice_of("old")["name"])["processes"]), "the container was reported"
