"""Tests the choice of a device: examples of the references, equal parts, whole devices next to shared ones,
and reasons."""
import json
import subprocess

import pytest

from conftest import BUILD, GiB, Agent, until
from support.over_unix import asked


def hold(world, name, *options, seconds="30"):
    program = world.begin("run", "--name", name, *options, "--", "sleep", seconds)
    assert until(lambda: name in world.slices() or program.poll() is not None)
    assert program.poll() is None, program.communicate()
    return [part["index"] for part in world.slices()[name]["parts"]]


def free(world):
    return [d["free_bytes"] for d in world.json("devices")["devices"]]


@pytest.mark.devices("demo15x2")
def test_binpack_fills_one_device_before_the_next(world):
    assert free(world) == [15 * GiB, 15 * GiB]
    assert hold(world, "pod1", "--memory", "2GiB") == [0]
    assert hold(world, "pod2", "--memory", "3GiB") == [0]
    assert free(world) == [10 * GiB, 15 * GiB]


@pytest.mark.devices("demo15x2", "--strategy", "spread")
def test_spread_uses_different_devices(world):
    assert hold(world, "pod1", "--memory", "2GiB") != hold(world, "pod2", "--memory", "3GiB")
    assert sorted(free(world)) == [12 * GiB, 13 * GiB]


@pytest.mark.devices("demo15x2")
def test_a_request_may_differ_from_the_agents_strategy(world):
    first = hold(world, "pod1", "--memory", "2GiB", "--strategy", "spread")
    assert first != hold(world, "pod2", "--memory", "3GiB", "--strategy", "spread")


def test_native_reserved_and_usable_memory_match_the_references(world):
    for device in world.json("devices")["devices"]:
        assert device["native_bytes"] - device["reserved_bytes"] == device["usable_bytes"] == 22731 << 20
        assert device["simulated"]


def test_parts_on_several_devices_are_equal_and_distinct(world):
    assert sorted(hold(world, "pair", "--total-memory", "8GiB", "--devices", "2")) == [0, 1]
    assert [p["quota_bytes"] for p in world.slices()["pair"]["parts"]] == [4 * GiB, 4 * GiB]
    done = world.carve("run", "--total-memory", "8193MiB", "--devices", "2", "--", "true")
    assert done.returncode == 125 and "8193 MiB" in done.stderr


def test_a_whole_device_is_granted_next_to_a_shared_one(world):
    shared = hold(world, "shared", "--memory", "1GiB")
    whole = hold(world, "whole", "--exclusive")
    assert shared != whole
    done = world.carve("run", "--exclusive", "--", "true")
    assert done.returncode == 125 and "the request is exclusive" in done.stderr
    assert hold(world, "more", "--memory", "1GiB") == shared, "nobody joins an exclusive device"


def test_memory_and_compute_must_be_free_on_the_same_device(world):
    hold(world, "a", "--memory", "1GiB", "--compute", "95%", "--device", "0")
    hold(world, "b", "--memory", "20GiB", "--device", "1")
    done = world.carve("explain", "--memory", "10GiB", "--compute", "10%")
    assert done.returncode == 1
    assert "device 0: 10% of its compute needed, 5% free" in done.stdout and "device 1: 10 GiB needed" in done.stdout
    assert "the request fits with at most 5% of the compute" in done.stdout
    world.carve("stop", "a")
    assert until(lambda: world.carve("explain", "--memory", "10GiB", "--compute", "10%").returncode == 0)


def test_the_seventeenth_isolated_slice_of_a_device_is_rejected(world):
    for i in range(16):
        hold(world, f"t{i}", "--memory", "512MiB", "--device", "0")
    done = world.carve("run", "--memory", "512MiB", "--device", "0", "--", "true")
    assert done.returncode == 125 and "16" in done.stderr


def test_explain_shows_what_each_device_lacks(world):
    done = world.carve("explain", "--memory", "24GiB")
    assert done.returncode == 1
    assert done.stdout.count("device ") >= 2 and "24 GiB" in done.stdout
    assert world.json("explain", "--memory", "1GiB")["fits"]


@pytest.mark.devices("demo15x2")
def test_explain_shows_the_chosen_device_and_the_reason(world):
    hold(world, "pod1", "--memory", "2GiB")
    done = world.carve("explain", "--memory", "3GiB")
    assert done.returncode == 0 and "the slice would be placed on device 0: 3 GiB (binpack: the fullest device that fits" in done.stdout
    assert "device 0: fits; 10 GiB would stay free" in done.stdout and "device 1: fits; 12 GiB would stay free" in done.stdout
    explained = world.carve("explain", "--memory", "3GiB", "--strategy", "spread").stdout
    assert "the slice would be placed on device 1: 3 GiB (spread: the emptiest device" in explained


def test_the_api_accepts_only_a_nodes_strategies(world):
    for strategy, status in ("spread", 200), ("fgd", 400):
        body = json.dumps({"memory_bytes": GiB, "strategy": strategy})
        answered, _, text = asked(world.socket, "/v1/explain", "POST", body)
        assert answered == status, text
    assert "'fgd' is not a strategy that agents support; use binpack or spread" in text


@pytest.mark.devices("demo15x2")
def test_explain_shows_what_would_fit_and_which_move_would_make_room(world):
    assert hold(world, "a", "--memory", "7GiB", "--device", "0") != hold(world, "b", "--memory", "7GiB", "--device", "1")
    done = world.carve("explain", "--memory", "12GiB")
    assert done.returncode == 1
    assert "the largest free block is 8 GiB: the request fits with 4 GiB less" in done.stdout
    assert "moving 'a' (7 GiB) from device 0 to device 1 would make room" in done.stdout
    assert sorted(free(world)) == [8 * GiB, 8 * GiB], "nobody was moved"
    assert "2 devices are needed, but only 0 of 2 fit" in world.carve("explain", "--memory", "9GiB", "--devices", "2").stdout


def test_a_device_can_be_named_by_index_uuid_or_prefix(world):
    uuids = [d["uuid"] for d in world.json("devices")["devices"]]
    assert hold(world, "i", "--memory", "1GiB", "--device", "1") == [1]
    assert hold(world, "u", "--memory", "1GiB", "--device", uuids[1]) == [1]
    shortest = next(uuids[1][:n] for n in range(5, 41) if not uuids[0].startswith(uuids[1][:n]))
    assert hold(world, "b", "--memory", "1GiB", "--device", shortest) == [1]


@pytest.mark.devices("demo15x2")
def test_spread_puts_replicas_of_one_application_on_different_devices(world):
    """Device 1 is the fuller device and still gets the second replica, even after another agent has taken
    over."""
    assert hold(world, "stranger", "--memory", "5GiB", "--device", "1") == [1]
    web = ("--memory", "1GiB", "--strategy", "spread", "--application", "web")
    assert hold(world, "web-1", *web) == [0]
    assert hold(world, "other", "--memory", "1GiB", "--strategy", "spread") == [0]
    assert world.show("web-1")["application"] == "web" and "web" in world.carve("show", "web-1").stdout
    world.process.kill()
    world.process.wait()
    world.start()
    assert hold(world, "web-2", *web) == [1]


@pytest.mark.devices("demo15x2", "--strategy", "spread")
def test_consolidate_shows_the_necessary_moves_and_moves_no_slice(world):
    assert hold(world, "a", "--memory", "2GiB") != hold(world, "b", "--memory", "3GiB")
    before = world.json("ps")["slices"]
    plan = world.json("consolidate")
    assert plan["emptied"] == [0] and plan["moved_bytes"] == 2 * GiB
    assert plan["moves"] == [{"slice": "a", "from": 0, "to": 1, "memory_bytes": 2 * GiB, "share_bp": 0}], plan
    assert "device 0 would be empty after 1 move of 2 GiB in all. No slice was moved." in world.carve("consolidate").stdout
    assert [s["parts"] for s in world.json("ps")["slices"]] == [s["parts"] for s in before]
    more = world.carve("consolidate", "--devices", "2")
    assert more.returncode == 1 and "no plan was found for 2" in more.stdout


@pytest.fixture
def world_of():
    """world_of(SPEC, carved's options): an agent with the devices that the test describes."""
    worlds = []

    def make(*arguments):
        worlds.append(Agent(*arguments))
        return worlds[-1]
    yield make
    for world in worlds:
        world.end()


FOUR = "devices:\n  - {profile: t4, count: 2, numa: 0}\n  - {profile: t4, count: 2, numa: 1}\nnvlink:\n  - [1, 2, 4]\n"


def test_several_devices_are_the_best_connected_ones(world_of, tmp_path):
    """The driver's order comes first: the pair of NVLink, then one NUMA node. A file overrides it."""
    spec = tmp_path / "four.yaml"
    spec.write_text(FOUR)
    world = world_of(str(spec))
    explained = world.json("explain", "--memory", "1GiB", "--devices", "2")
    assert explained["chosen"] == [1, 2] and explained["message"].endswith("the devices are connected by NVLink"), explained
    assert hold(world, "whole", "--exclusive", "--device", "1") == [1]
    assert hold(world, "near", "--memory", "1GiB", "--devices", "2") == [2, 3]
    assert "a NUMA node" in world.json("explain", "--memory", "1GiB", "--devices", "2")["message"]


def test_a_topology_file_overrides_the_drivers_topology(world_of, tmp_path):
    spec = tmp_path / "four.yaml"
    spec.write_text(FOUR)
    matrix = tmp_path / "matrix"
    links = [["X", "SYS", "PIX", "SYS"], ["SYS", "X", "SYS", "SYS"], ["PIX", "SYS", "X", "SYS"], ["SYS", "SYS", "SYS", "X"]]
    matrix.write_text("\tGPU0\tGPU1\tGPU2\tGPU3\n" + "".join(f"GPU{i}\t" + "\t".join(row) + "\n" for i, row in enumerate(links)))
    world = world_of(str(spec), "--topology", str(matrix))
    explained = world.json("explain", "--memory", "1GiB", "--devices", "2")
    assert explained["chosen"] == [0, 2] and "a PCIe switch" in explained["message"], explained


def test_a_topology_that_contradicts_itself_is_rejected(tmp_path):
    matrix = tmp_path / "matrix"
    matrix.write_text("\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tSYS\tX\n")
    done = subprocess.run([BUILD / "bin/carved", "--sim", "a10x2", "--state", tmp_path / "state", "--socket", tmp_path / "s",
                           "--topology", matrix],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and f"--topology {matrix}: line 3: column GPU0: GPU1 to GPU0" in done.stderr, done.stderr
