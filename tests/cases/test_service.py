"""Tests the programs as their systemd units start them: only with the unit's address families, and before
kubelet."""
import os
import re
import shutil
import subprocess
import sys
import urllib.request

import pytest

from conftest import BUILD, HERE, until
from support.kubelet_stand import KubeletStand

UNIT = HERE.parent / "deploy/carved.service.in"
KUBELET_UNIT = HERE.parent / "deploy/carve-kubelet.service.in"


def settings_of(unit):
    """Returns the settings by name, each with its values in order."""
    out = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.M):
        out.setdefault(name, []).append(value)
    return out


@pytest.fixture
def restricted(world):
    """restricted(FAMILIES): starts a second agent with only these address families and with metrics on a free
    port. Returns its process and its log."""
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


def test_the_agent_reports_that_it_cannot_serve_metrics_without_inet(restricted):
    agent, log = restricted(["AF_UNIX"])
    assert agent.wait(20) == 1
    assert "127.0.0.1:0" in log.read_text() and "Address family not supported" in log.read_text()


def test_the_unit_lets_the_agent_read_the_kernels_log():
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.M))
    assert "CAP_SYSLOG" in settings["CapabilityBoundingSet"].split()
    assert not {"ProtectKernelLogs", "PrivateDevices", "DevicePolicy"} & set(settings), "/dev/kmsg is a device"


def test_both_programs_of_a_node_start_before_kubelet():
    agent, kubelet = settings_of(UNIT), settings_of(KUBELET_UNIT)
    assert agent["Before"] == kubelet["Before"] == ["kubelet.service"]
    assert "carved.service" in kubelet["After"][0].split() and "Requires" not in kubelet, "each restarts alone"
    assert agent["Restart"] == kubelet["Restart"] == ["always"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("name", ["carved", "carve-kubelet", "carve-controller"])
def test_systemd_accepts_the_unit(name, tmp_path):
    """For systemd an unknown setting is only a warning, so the test searches systemd's output for it."""
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", (BUILD / f"deploy/{name}.service").read_text(), flags=re.M)
    (tmp_path / f"{name}.service").write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / f"{name}.service"], capture_output=True, text=True)
    assert f"{name}.service" not in done.stderr, done.stderr


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_a_container_starts_with_the_rights_that_the_unit_leaves_to_carve_kubelet():
    settings = settings_of(KUBELET_UNIT)
    assert settings["CapabilityBoundingSet"] == [""]
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    families = [sys.executable, HERE / "support/address_families.py", *settings["RestrictAddressFamilies"][0].split(), "--"]
    node = KubeletStand(before=[*families, *bare])
    try:
        node.place("web-0")
        assert node.ask("allocate s017") == ["carve.dev/slot=s017"]
        node.ask("devices web-0 main s017")
        assert node.ask("start s017") is None, node.text()
        assert node.attach_socket("s017").parent.is_dir()
    finally:
        node.end()
