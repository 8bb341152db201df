"""Tests devices that are shared by means other than Carve (MIG and MPS), and what `carve devices -o wide`
reads from the driver."""
import re
import subprocess

import pytest

from conftest import LOAD, until


def fault(world, *words):
    subprocess.run([LOAD.with_name("carve-sim"), "fault", world.folder / "state/sim", *words], check=True, capture_output=True)


def mode(world, device=0):
    return world.json("devices")["devices"][device]["mode"]


@pytest.mark.devices("a10x2")
@pytest.mark.parametrize("kind,way_out", [("mig", "nvidia-smi -mig 0"), ("mps", "nvidia-cuda-mps-control")])
def test_a_device_that_is_shared_by_other_means_is_shown_but_not_offered(world, kind, way_out):
    # An MPS server is visible through its clients, here a program that uses the device.
    world.begin("run", "--memory", "4GiB", "--device", 0, "--name", "a", "--", LOAD, "--kernels", "1ms", "--seconds", 600)
    assert until(lambda: world.slices().get("a", {}).get("state") == "running")
    assert until(lambda: world.show("a")["processes"] and world.show("a")["processes"][0]["attached"])
    fault(world, kind, "--device", "0")
    assert until(lambda: mode(world) == kind) and mode(world, 1) == "whole"

    done = world.carve("explain", "--memory", "1GiB", "--device", 0)
    assert done.returncode == 1 and way_out in done.stdout
    assert world.json("explain", "--memory", "1GiB")["chosen"] == [1], "the other device is offered"
    assert f"{kind} mode" in world.carve("devices").stdout
    (check,) = [c for c in world.json("doctor")["checks"] if c["name"] == "device 0 mode"]
    assert check["status"] == "degraded" and way_out in check["fix"]
    assert any(way_out in e["text"] for e in world.json("events")["events"])
    assert world.slices()["a"]["state"] == "running", "a slice that lives there is not ended"

    fault(world, "clear", "--device", "0")
    assert until(lambda: mode(world) == "whole")
    assert world.carve("explain", "--memory", "1GiB", "--device", 0).returncode == 0


def test_wide_output_shows_what_the_driver_reports(world):
    assert until(lambda: world.json("devices")["devices"][0]["readings"])
    device = world.json("devices")["devices"][0]
    assert {"temperature_celsius", "power_milliwatts", "power_limit_milliwatts", "sm_clock_mhz", "memory_clock_mhz",
            "memory_busy_percent", "memory_reserved_bytes", "energy_millijoules"} == set(device["readings"])
    assert re.fullmatch(r"[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.0", device["pci_id"])
    heading, row = world.carve("devices", "-o", "wide").stdout.splitlines()[:2]
    assert all(word in heading for word in ("UTIL", "TEMP", "POWER", "CLOCK", "PCI"))
    assert device["pci_id"] in row and f"{device['readings']['temperature_celsius']} C" in row
    metrics = world.get("/metrics")[2]
    assert "carve_device_temperature_celsius{" in metrics and "carve_device_power_watts{" in metrics


def test_an_exclusive_slice_also_has_compute_figures(world):
    world.begin("run", "--exclusive", "--name", "whole", "--", LOAD, "--kernels", "5ms", "--seconds", 600)
    assert until(lambda: world.slices().get("whole", {}).get("state") == "running")
    assert until(lambda: world.show("whole")["parts"][0]["utilization_percent"] > 50)
    assert "carve_slice_compute_utilization_ratio{" in world.get("/metrics")[2]
