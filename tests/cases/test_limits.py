"""Tests CPU and memory limits of replicas with real cgroups, if this user may create them."""
import json
import pathlib
import re

import pytest

from conftest import until

pytestmark = pytest.mark.usefixtures("own_network")

NOT_ENFORCED = "limit: not enforced: "


def document(command, name="demo", **spec):
    return {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"replicas": 1, "run": {"command": list(command)}, **spec}}


def limited(services, document_):
    """Applies the document, or skips the test if this machine does not enforce its limits."""
    services.apply(document_)
    warnings = services.service("demo")["status"]["warnings"]
    if any(NOT_ENFORCED in warning for warning in warnings):
        pytest.skip("; ".join(warnings))


def cgroup_of(pid, controller):
    """Returns the directory of a process's cgroup."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if controller in controllers.split(",") or (number == "0" and controllers == ""):
            for mount in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
                fields, _, rest = mount.partition(" - ")
                kind, _, options = rest.split(" ", 2)
                if (controllers == "" and kind == "cgroup2") or (kind == "cgroup" and controller in options.split(",")):
                    root, point = fields.split()[3:5]
                    return pathlib.Path(point + path.removeprefix(root.rstrip("/")))
    raise AssertionError(f"process {pid} has no cgroup with {controller}")


def program_of(services, name="demo"):
    """Returns the pids of the only replica's program and of its supervisor."""
    replica = services.running(name)["replicaList"][0]
    state = json.loads((services.state / "programs" / replica["slice"] / "state.json").read_text())
    assert until(lambda: b"sleep" in pathlib.Path(f"/proc/{state['program_pid']}/cmdline").read_bytes(), 60, 0.01), "it was executed"
    return state["program_pid"], state["supervisor_pid"]


@pytest.mark.parametrize("gpu", [None, {"memory": "1GiB"}], ids=["without a slice", "with a slice"])
def test_the_programs_cgroups_have_the_limits(services, gpu):
    limited(services, document(["sleep", "1000"], cpu={"limit": "1500m"}, memory={"limit": "64MiB"}, **({"gpu": gpu} if gpu else {})))
    program, supervisor = program_of(services)
    cpu, memory = cgroup_of(program, "cpu"), cgroup_of(program, "memory")
    assert re.fullmatch(r"demo-1-0", memory.name) and memory.parent.parent.name == "carve-replicas", memory
    if (cpu / "cpu.max").exists():
        assert (cpu / "cpu.max").read_text().split() == ["150000", "100000"]
        assert (memory / "memory.max").read_text().strip() == str(64 << 20)
    else:
        assert (cpu / "cpu.cfs_quota_us").read_text().strip() == "150000"
        assert (memory / "memory.limit_in_bytes").read_text().strip() == str(64 << 20)
    assert cgroup_of(supervisor, "memory") != memory, "its supervisor is not limited"
    services.carve("delete", "service/demo")
    assert until(lambda: not cpu.exists() and not memory.exists(), 60, 0.05), "they are removed with the replica"


def test_a_replica_killed_by_its_memory_limit_reports_it(services):
    limited(services, document(["python3", "-c", "x = bytearray(256 << 20)"], memory={"limit": "64MiB"}))

    def last_exit():
        replicas = services.service("demo")["status"]["replicaList"]
        return replicas[0]["lastExit"] if replicas else ""
    assert until(last_exit, 60, 0.1), services.log()
    assert last_exit() == "signal 9: its memory limit of 64 MiB was exceeded"
    events = json.loads(services.carve("events", "--for", "service/demo", "-o", "json"))["items"]
    failed = {event["reason"]: event for event in events}["ReplicaFailed"]
    assert "its memory limit of 64 MiB was exceeded" in failed["message"]


def test_a_killed_controller_leaves_no_cgroup_behind(services):
    limited(services, document(["sleep", "1000"], memory={"limit": "64MiB"}))
    program, _ = program_of(services)
    memory = cgroup_of(program, "memory")
    services.restart()
    assert memory.exists() and program_of(services)[0] == program, "the program runs on in its cgroup"
    services.carve("delete", "service/demo")
    assert until(lambda: not memory.exists(), 60, 0.05)


def test_a_limit_that_is_not_enforced_gives_a_warning(services):
    shown = services.apply(document(["sleep", "1000"], cpu={"limit": "1"}, memory={"limit": "1GiB"}))
    warnings = services.service("demo")["status"]["warnings"]
    for warning in warnings:
        assert re.match(r"(cpu|memory) limit: not enforced: ", warning) and warning in shown


def test_a_request_for_more_cores_than_the_node_has_is_rejected_with_the_figures(services):
    assert until(lambda: services.json("/v1/nodes/n1")["status"]["cpuMilli"], 60, 0.1)
    cores = services.json("/v1/nodes/n1")["status"]["cpuMilli"] // 1000
    refused = services.apply(document(["sleep", "1000"], gpu={"memory": "1GiB"}, cpu={"request": str(cores + 1)}), status=1)
    assert f"request less: node n1: a replica requests {cores + 1} cores, but only {cores} of {cores} are free" in refused
    services.apply(document(["sleep", "1000"], gpu={"memory": "1GiB"}, cpu={"request": str(cores)}))
    services.running()
