"""Tests the agent with NVIDIA's own NVML: the devices that it finds, its doctor, and which processes it
attributes to a slice."""
import json
import os
import subprocess

import pytest

from conftest import GiB, MiB, until
from real_driver import INITIALISED, TWO, WAYS, driver, environment, python, shims, with_variables
from support.agent import Agent

HOLD = """
import ctypes, os, signal
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
print(os.getpid(), flush=True)
signal.pause()
"""


@pytest.fixture
def agent(major, tmp_path):
    """The device files show the processes in the file `pids`, each with 100 MiB on every device."""
    pids = tmp_path / "pids"
    pids.write_text("")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "CARVE_", "CUDA_", "NVIDIA_"))}
    agent = Agent(None, "--cdi-dir", tmp_path / "cdi",
                  environment={**clean, **environment(major), "RESPONDER_COMPUTE_PIDS": str(pids)})
    agent.pids = pids
    yield agent
    agent.end()


def statuses(agent, major):
    """Returns {check: (status, detail)} of the doctor, which compares the entries of this driver's
    libcuda."""
    done = agent.carve("doctor", "-o", "json", env={"LD_LIBRARY_PATH": str(driver(major))})
    return {check["name"]: (check["status"], check["detail"]) for check in json.loads(done.stdout)["checks"]}


@pytest.mark.parametrize("major", INITIALISED)
def test_the_agent_finds_the_devices_and_its_doctor_is_right(agent, major):
    devices = agent.json("devices")["devices"]
    assert [(d["uuid"], d["name"], d["pci_id"]) for d in devices] == [(uuid, "NVIDIA A10", f"00000000:0{i + 1}:00.0")
                                                                    for i, uuid in enumerate(TWO)]
    assert all(d["native_bytes"] == d["free_bytes"] == 24 * GiB and d["mode"] == "whole" and not d["simulated"] for d in devices)
    table = [line.split() for line in agent.carve("devices").stdout.splitlines()]
    assert [row[:5] for row in table[1:3]] == [[str(i), "NVIDIA", "A10", "24", "GiB"] for i in range(2)]
    found = statuses(agent, major)
    assert found["devices"] == ("ok", "2 devices found through NVML")
    assert found["driver samples"][0] == found["audit"][0] == found["coverage"][0] == "ok", found
    assert "device 0 mode" not in found and "nvidia-smi in slices" not in found
    # Only what the responder lacks is reported as missing from the driver.
    assert found["device 1 context"] == ("degraded", "device 1: NVML does not report the memory of each process")
    assert found["audit of ended processes"][0] == "degraded" and "does not support accounting mode" in found["audit of ended processes"][1]


@pytest.mark.parametrize("major", ["550"])
def test_the_agent_offers_no_slices_on_a_device_with_mps(agent, major):
    agent.process.terminate()
    agent.process.wait()
    agent.process_environment["RESPONDER_PIDS"] = "1"
    agent.start()
    assert all(d["mode"] == "mps" for d in agent.json("devices")["devices"])
    assert statuses(agent, major)["device 0 mode"][0] == "degraded"
    refused = agent.carve("run", "--memory", "2GiB", "--", "/bin/true")
    assert refused.returncode == 125 and "MPS" in refused.stderr, refused


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("major", INITIALISED)
def test_the_agent_attributes_only_the_processes_of_a_slice_to_it(agent, major, way):
    with shims(major, agent.socket) as folder:
        inside = agent.begin("run", "--memory", "2GiB", "--name", "a", "--device", "1", "--",
                             *with_variables(python(HOLD), environment(major, way, folder)))
        outside = subprocess.Popen(python(HOLD), env={**os.environ, **environment(major)}, stdout=subprocess.PIPE, text=True)
        try:
            pid, stranger = [int(process.stdout.readline()) for process in (inside, outside)]
            agent.pids.write_text(f"{pid},{stranger}")
            shown = until(lambda: (s := agent.show("a"))["parts"][0]["used_bytes"] and s)
            assert shown, agent.show("a")
            device = agent.json("devices")["devices"][1]
        finally:
            outside.kill()
            outside.wait()
    assert [(p["pid"], p["attached"]) for p in shown["processes"]] == [(pid, True)]
    (part,) = shown["parts"]
    assert (part["uuid"], part["quota_bytes"], part["used_bytes"], part["charged_bytes"]) == (TWO[1], 2 * GiB, 100 * MiB, 100 * MiB)
    assert (device["used_in_slices_bytes"], device["used_outside_slices_bytes"]) == (100 * MiB, 100 * MiB)
    assert [f"process {stranger} " in text for text in device["unmanaged_processes"]] == [True]
