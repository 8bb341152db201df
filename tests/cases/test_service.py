"""The agent as deploy/carved.service starts it: with the address families of the unit and no others."""
import re
import subprocess
import sys
import urllib.request

import pytest

from conftest import BUILD, HERE, until

UNIT = HERE.parent / "deploy/carved.service.in"


@pytest.fixture
def restricted(world):
    """restricted(FAMILIES): starts a second agent with metrics on a free port; returns its process and its log."""
    agents = []

    def start(families):
        log = world.folder / "restricted.log"
        with open(log, "wb") as out:
            agents.append(subprocess.Popen(
                [sys.executable, HERE / "support/address_families.py", *families, "--", BUILD / "bin/carved", "--sim", "a10x1",
                 "--state", world.folder / "restricted", "--socket", world.folder / "r", "--metrics-listen", "127.0.0.1:0"],
                stdout=out, stderr=out))
        return agents[0], log
    yield start
    for agent in agents:
        agent.terminate()
        agent.wait(20)


def test_metrics_are_served_under_the_units_address_families(restricted):
    (families,) = re.findall(r"^RestrictAddressFamilies=(.*)$", UNIT.read_text(), re.M)
    agent, log = restricted(families.split())
    address = lambda: re.findall(r"metrics served at (http://127\.0\.0\.1:\d+/metrics)", log.read_text())
    assert until(lambda: address() or agent.poll() is not None, 20)
    assert agent.poll() is None, log.read_text()
    assert "carve_device_memory_native_bytes" in urllib.request.urlopen(address()[0], timeout=10).read().decode()


def test_without_inet_the_agent_says_that_it_cannot_serve_metrics(restricted):
    agent, log = restricted(["AF_UNIX"])
    assert agent.wait(20) == 1
    assert "127.0.0.1:0" in log.read_text() and "Address family not supported" in log.read_text()


def test_the_unit_lets_the_agent_read_the_kernels_log():
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.M))
    assert "CAP_SYSLOG" in settings["CapabilityBoundingSet"].split()
    assert not {"ProtectKernelLogs", "PrivateDevices", "DevicePolicy"} & set(settings), "/dev/kmsg is a device"
