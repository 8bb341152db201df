"""Tests errors that the driver reports (Xid), with simulated errors: to which slice they are attributed, and
how they affect other slices."""
import os
import re
import subprocess

import pytest

from conftest import LOAD, until

PAGE_FAULT = "Xid 31 (GPU memory page fault) on device 0 caused by process"


def fault(world, *words):
    subprocess.run([LOAD.with_name("carve-sim"), "fault", world.folder / "state/sim", *map(str, words)], check=True, capture_output=True)


def running(world, name, script):
    """Starts a shell script in a slice, and returns the process that has a context."""
    program = world.begin("run", "--memory", "4GiB", "--compute", "30%", "--device", "0", "--name", name, "--", "sh", "-c", script)
    assert until(lambda: any(p["attached"] and p["used_bytes"] for p in world.attached(name)["processes"]))
    return program, next(p["pid"] for p in world.show(name)["processes"] if p["attached"] and p["used_bytes"])


def busy(world, name):
    return world.show(name)["parts"][0]["compute"]["busy_ns"]


def events(world, name):
    return [e["text"] for e in world.show(name)["events"]]


def test_a_programs_fault_is_attributed_to_its_slice_and_its_neighbour_keeps_running(world):
    stop = world.folder / "stop"
    neighbour, _ = running(world, "b", f"while [ ! -e {stop} ]; do {LOAD} --kernels 1ms --seconds 1 || exit 1; done")
    _, pid = running(world, "a", f"{LOAD} --kernels 1ms --seconds 600; echo ended; sleep 600")
    fault(world, "xid", 31, "--pid", pid, "--device", 0)

    assert until(lambda: any(text.startswith(f"{PAGE_FAULT} {pid} (carve-load)") for text in events(world, "a")))
    assert world.show("a")["xids"] == [{"code": 31, "count": 1}]
    assert "error        Xid 31 (GPU memory page fault), 1 time\n" in world.carve("show", "a").stdout
    assert until(lambda: not any(p["pid"] == pid for p in world.show("a")["processes"])), "its context is broken, so the program ends"

    before = busy(world, "b")
    assert until(lambda: busy(world, "b") > before + 50_000_000, 60), "the neighbour's kernels run on"
    assert world.show("b")["xids"] == [] and not any("Xid" in text for text in events(world, "b"))
    stop.touch()
    assert neighbour.wait(60) == 0, neighbour.stderr.read()

    metrics = world.get("/metrics")[2]
    assert re.search(r'carve_slice_xid_total\{slice="a",account="[^"]+",xid="31"\} 1\n', metrics)
    assert re.search(r'DCGM_FI_DEV_XID_ERRORS\{gpu="0",[^}]*\} 31\n', metrics)
    assert re.search(r'carve_device_xid_total\{device="0",uuid="[^"]+",xid="31"\} 1\n', metrics)
    device = world.json("devices")["devices"][0]
    assert device["health"]["state"] == "ok", "the fault was the program's"
    assert device["xids"] == [{"code": 31, "count": 1}]


def test_the_slice_is_identified_even_if_it_ended_with_the_program(world):
    """The driver often writes its line only when the program is being cleaned up."""
    program = world.begin("run", "--memory", "1GiB", "--name", "a", "--", LOAD, "--allocate", "64MiB", "--seconds", 600)
    pid = next(p["pid"] for p in world.attached("a")["processes"] if p["attached"])
    world.carve("stop", "a")
    program.wait(30)
    assert until(lambda: "a" not in world.slices())
    address = world.json("devices")["devices"][0]["pci_id"].rsplit(".", 1)[0].lower()
    with open(world.folder / "state/sim/kernel.log", "a") as log:
        log.write(f"3,9,9,-;NVRM: Xid (PCI:{address}): 31, pid={pid}, name=gone, Ch 1\n")
    assert until(lambda: any(e["slice"] == "a" and e["text"] == f"{PAGE_FAULT} {pid} (gone)" for e in world.json("events")["events"]))


def test_lines_without_a_slice_and_hostile_lines_do_no_harm(world):
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", LOAD, "--allocate", "64MiB", "--seconds", 600)
    world.attached("a")
    address = world.json("devices")["devices"][0]["pci_id"].rsplit(".", 1)[0].lower()
    with open(world.folder / "state/sim/kernel.log", "ab") as log:
        log.write(b"\xff\x00" * 10_000 + b"\n" + b"NVRM: Xid (PCI:\n" * 100)
        log.write(b"NVRM: Xid (PCI:00ff:00:00): 31, pid=1, name=on-no-device\n")
        log.write(f"NVRM: Xid (PCI:{address}): 31, pid={os.getpid()}, name=\x1b[31mtest\n".encode() * 3)
    found = f"{PAGE_FAULT} {os.getpid()} (?[31mtest), 3 times, which is in no slice"
    assert until(lambda: any(e["slice"] == "" and e["text"] == found for e in world.json("events")["events"])), world.json("events")
    assert world.show("a")["xids"] == [] and world.show("a")["state"] == "running"


def test_an_error_of_the_device_makes_it_unhealthy(world):
    fault(world, "xid", 48, "--device", 0)
    assert until(lambda: world.json("devices")["devices"][0]["health"]["state"] == "xid")
    assert world.json("devices")["devices"][0]["health"]["reason"] == "the driver reported Xid 48 (double-bit ECC error)"


@pytest.mark.devices("a10", "--kernel-log", "/nonexistent/kmsg")
def test_an_error_is_attributed_only_to_the_device_without_the_kernels_log(world):
    (check,) = [c for c in world.json("doctor")["checks"] if c["name"] == "kernel log"]
    assert check["status"] == "degraded" and "/nonexistent/kmsg cannot be read: No such file" in check["detail"]
    assert "--kernel-log" in check["fix"]
    fault(world, "xid", 31)
    assert until(lambda: any("the driver reported Xid 31" in e["text"] for e in world.json("events")["events"]))
