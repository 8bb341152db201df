"""Tests shares of real processes with the shipped agent and library on a simulated device, under the real
clock. Two shared cores run the device, the slices and the arbiter, so tolerances are wide; tests/share
asserts the exact figures in virtual time."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from conftest import BUILD, LOAD, until

pytestmark = pytest.mark.alone

ONE_DEVICE = pytest.mark.devices("a10x1", "--policy", "fixed-share")
GUARANTEED = pytest.mark.devices("a10x1", "--policy", "guaranteed-burst-share")


def load(world, name, share, words, seconds, *options):
    return world.begin("run", "--memory", "1GiB", "--compute", f"{share}%", "--name", name, *options, "--", LOAD, *words.split(),
                       "--seconds", seconds)


def result(program):
    out, error = program.communicate(timeout=90)
    assert program.returncode == 0, error
    return json.loads(out.splitlines()[-1])


def kernel_percent(program):
    r = result(program)
    return 100 * r["kernel_ns"] / r["elapsed_ns"]


def compute(world, device=0):
    return {name: part["compute"] for name, s in world.slices().items() for part in s["parts"]
            if part["index"] == device and part.get("compute")}


def charged(world, seconds, device=0):
    """Returns each slice's charge in percent of the elapsed time on the arbiter's clock."""
    before = compute(world, device)
    time.sleep(seconds)
    after = compute(world, device)
    return {n: 100 * (after[n]["busy_ns"] - before[n]["busy_ns"]) / (after[n]["as_of_ns"] - before[n]["as_of_ns"])
            for n in after if n in before}


def in_some_window(world, holds, seconds=2, device=0, tries=4):
    """Returns whether the charges are as expected in one of several windows; in the others the machine may be
    busy with other work."""
    seen = []
    for _ in range(tries):
        seen.append(charged(world, seconds, device))
        if holds(seen[-1]):
            return
    raise AssertionError(seen)


def all_run(world, *names):
    assert until(lambda: all(compute(world).get(n, {}).get("leases", 0) > 3 for n in names)), compute(world)


@ONE_DEVICE
@pytest.mark.parametrize("words", ["", "--no-sync", "--no-sync --graphs", "--no-sync --streams 4", "--no-sync --processes 3"])
def test_a_fixed_share_is_a_cap_even_on_an_empty_device(world, words):
    alone = load(world, "a", 30, f"--kernels 200us {words}", 8)
    all_run(world, "a")
    in_some_window(world, lambda had: had["a"] == pytest.approx(30, abs=1.5), tries=3)
    assert 18 <= kernel_percent(alone) <= (93 if "processes" in words else 31.5)  # Each of the three processes counts its own work.


@GUARANTEED
@pytest.mark.parametrize("words", ["", "--no-sync", "--no-sync --graphs", "--no-sync --streams 4", "--no-sync --processes 3"])
def test_a_guaranteed_share_is_kept_next_to_a_greedy_neighbour(world, words):
    greedy = load(world, "greedy", 60, "--kernels 200us --no-sync --streams 4", 11)
    a = load(world, "a", 30, f"--kernels 200us {words}", 10)
    all_run(world, "a", "greedy")
    in_some_window(world, lambda had: had["a"] >= 28 and had["greedy"] >= 56 and sum(had.values()) >= 92)
    for program in a, greedy:
        result(program)


@GUARANTEED
def test_a_burst_slice_gets_the_whole_device_if_no_other_slice_runs(world):
    environment = {**os.environ, "SIMGPU_DIR": str(world.folder / "state/sim"), "LD_LIBRARY_PATH": str(BUILD / "lib/carve/sim")}
    ratios = []
    for _ in range(3):
        native = subprocess.run([LOAD, *"--kernels 200us --no-sync --seconds 1".split()], env=environment, stdout=subprocess.PIPE,
                                check=True)
        native = json.loads(native.stdout)
        inside = result(load(world, "a", 30, "--kernels 200us --no-sync", 1))
        until(lambda: not world.slices())
        ratios.append(inside["kernels_completed"] / inside["elapsed_ns"] / (native["kernels_completed"] / native["elapsed_ns"]))
    assert max(ratios) >= 0.95, ratios


@pytest.mark.devices("a10x1", "--policy", "native-burst-share")
def test_native_weights_are_proportions_without_a_guarantee(world):
    programs = [load(world, "a", 60, "--kernels 200us --no-sync", 11), load(world, "b", 20, "--kernels 200us --no-sync", 11)]
    all_run(world, "a", "b")
    in_some_window(world, lambda had: had["a"] / had["b"] == pytest.approx(3, rel=0.2))
    for p in programs:
        result(p)


@GUARANTEED
def test_an_idle_slice_leaves_its_time_and_gets_it_back_immediately(world):
    a = load(world, "a", 50, "--kernels 200us --no-sync", 14)
    work = f"{LOAD} --kernels 200us --no-sync --seconds"
    b = world.begin("run", "--memory", "1GiB", "--compute", "50%", "--name", "b", "--", "sh", "-c", f"{work} 3; sleep 4; {work} 7")
    all_run(world, "a", "b")
    in_some_window(world, lambda had: had["b"] >= 45, 1, tries=2)
    assert until(lambda: charged(world, 0.5)["a"] >= 90, 8, 0), "the pause is a's"
    assert until(lambda: charged(world, 0.5)["b"] >= 45, 8, 0), "and then it is not"
    result(a)
    b.communicate()


@ONE_DEVICE
def test_a_share_can_change_while_the_program_runs(world):
    programs = [load(world, name, 20, "--kernels 200us --no-sync", 11) for name in ("a", "b")]
    all_run(world, "a", "b")
    in_some_window(world, lambda had: had["a"] == pytest.approx(20, abs=1.5), 1)
    assert world.carve("set", "a", "--compute", "60%").returncode == 0
    in_some_window(world, lambda had: had["a"] == pytest.approx(60, abs=2), 1)
    for p in programs:
        result(p)


@ONE_DEVICE
def test_fixed_shares_follow_the_timetable_while_there_is_no_agent(world):
    seconds = 10
    shares = {"a": 20, "b": 30, "c": 50}
    programs = {name: load(world, name, share, "--kernels 200us --no-sync", seconds) for name, share in shares.items()}
    all_run(world, *shares)
    world.process.kill()
    world.process.wait()
    time.sleep(5)
    world.start()
    assert until(lambda: len(compute(world)) == 3)
    in_some_window(world, lambda had: all(had[name] == pytest.approx(share, abs=3) for name, share in shares.items()), 0.7)
    # Five of the ten seconds were without an agent; the rest of the total belongs to the other five.
    had = {name: kernel_percent(program) for name, program in programs.items()}
    total = sum(had.values())
    assert total >= 60, had
    for name, share in shares.items():
        assert 100 * had[name] / total == pytest.approx(share, abs=8), had


BYPASS_GATE = pathlib.Path(__file__).with_name("bypass_gate.py")


def bypass(world):
    """Runs a slice that bypasses its gate next to one that does not. Returns how many of the driver's samples
    showed the first one."""
    honest = load(world, "honest", 60, "--kernels 200us --no-sync", 25)
    all_run(world, "honest")
    began = world.folder / "began"
    env = {"PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[1]), "BEGAN": str(began)}
    world.begin("run", "--memory", "1GiB", "--compute", "10%", "--name", "hostile", "--", "/usr/bin/python3", BYPASS_GATE, env=env)
    samples = lambda: int(re.search(r"^carve_driver_samples_total (\d+)", world.get("/metrics")[2], re.M)[1])
    assert until(began.exists, every=0.01)
    before = samples()
    named = until(lambda: next((e["text"] for e in world.json("events")["events"] if "found running beyond its leases" in e["text"]), None),
                  20, 0.02)
    assert named, (world.folder / "log").read_text()[-2000:]
    return honest, named, samples() - before


@ONE_DEVICE
def test_a_slice_that_bypasses_its_gate_is_detected_and_reported(world):
    _, named, samples = bypass(world)
    assert "bypasses its launch gate" in named and "python3" in named
    # Every 200 ms the driver records one of the two processes. 42 of its periods prove half of the time; a
    # sample is taken every 0.25 s.
    assert samples <= 100


@pytest.mark.devices("a10x1", "--policy", "fixed-share", "--audit", "kill")
def test_a_slice_that_keeps_to_its_share_is_not_accused_next_to_a_larger_one(world):
    # The driver reports the busy time of the whole device for the process that it records.
    programs = [load(world, name, share, "--kernels 200us --no-sync", 8) for name, share in (("large", 70), ("small", 10))]
    all_run(world, "large", "small")
    for program in programs:
        result(program)
    assert not [e["text"] for e in world.json("events")["events"] if "found" in e["text"]]


@pytest.mark.devices("a10x1", "--policy", "fixed-share", "--audit", "freeze")
def test_a_slice_that_bypasses_its_gate_is_frozen_and_the_others_get_their_shares(world):
    bypass(world)
    assert until(lambda: world.show("hostile")["state"] == "frozen")
    in_some_window(world, lambda had: had["honest"] == pytest.approx(60, abs=3), 1)
    utilised = until(lambda: world.json("devices")["devices"][0]["utilization_percent"] <= 75)
    assert utilised, "the device does nothing for it any more"


@pytest.mark.devices("a10x1", "--policy", "fixed-share", "--audit", "kill")
def test_a_slice_that_bypasses_its_gate_is_ended_if_so_configured(world):
    honest, _, _ = bypass(world)
    assert until(lambda: "hostile" not in world.slices())
    in_some_window(world, lambda had: had["honest"] == pytest.approx(60, abs=3), 1)
    result(honest)


@pytest.mark.devices("a10x2", "--policy", "guaranteed-burst-share")
def test_a_slice_on_two_devices_gets_its_share_of_both(world):
    gang = world.begin("run", "--total-memory", "2GiB", "--devices", 2, "--compute", "40%", "--name", "gang", "--", LOAD, "--device", "all",
                       *"--kernels 200us --no-sync".split(), "--seconds", 14)
    beside = [load(world, f"n{i}", 60, "--kernels 200us --no-sync", 14, "--device", i) for i in range(2)]
    assert until(lambda: all(c.get("gang", {}).get("leases", 0) > 3 for c in (compute(world, 0), compute(world, 1))))
    for device in range(2):
        in_some_window(world, lambda had: had["gang"] >= 36 and had[f"n{device}"] >= 54, 1, device)
    for p in (gang, *beside):
        result(p)


@pytest.mark.devices("a10x2", "--policy", "guaranteed-burst-share")
def test_parts_that_differ_get_their_own_share_of_each_device(world):
    gang = world.begin("run", "--parts", "2GiB:40%,1GiB:20%", "--device", "0,1", "--name", "gang", "--", LOAD, "--device", "all",
                       *"--kernels 200us --no-sync".split(), "--seconds", 14)
    assert until(lambda: "gang" in world.slices())
    shares = {part["index"]: part["share_bp"] // 100 for part in world.slices()["gang"]["parts"]}
    assert sorted(shares.values()) == [20, 40]
    beside = [load(world, f"n{i}", 100 - shares[i], "--kernels 200us --no-sync", 14, "--device", i) for i in range(2)]
    assert until(lambda: all(c.get("gang", {}).get("leases", 0) > 3 for c in (compute(world, 0), compute(world, 1))))
    for device, share in shares.items():
        in_some_window(world, lambda had: had["gang"] >= 0.9 * share and had[f"n{device}"] >= 0.9 * (100 - share), 1, device)
    for p in (gang, *beside):
        result(p)


@GUARANTEED
def test_a_killed_lease_holder_leaves_the_device_immediately(world):
    victim = load(world, "victim", 50, "--kernels 200us --no-sync", 20)
    other = load(world, "other", 50, "--kernels 200us --no-sync", 8)
    all_run(world, "victim", "other")
    os.kill(world.show("victim")["processes"][0]["pid"], signal.SIGKILL)
    in_some_window(world, lambda had: had["other"] >= 95, 0.7)
    result(other)
    victim.communicate()
