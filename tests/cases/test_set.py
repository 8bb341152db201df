"""Tests carve set, which gives a slice more or less while it runs. An impossible change is rejected with an
error and has no effect."""
import json
import os
import signal
import subprocess

import pytest

from conftest import BUILD, GiB, LOAD, MiB, until
from support.over_unix import asked


def holder(world, name="a", memory="4GiB", allocate="2GiB", *options):
    """Starts a slice that only holds memory."""
    world.begin("run", "--memory", memory, "--device", 0, "--name", name, *options, "--", LOAD, "--allocate", allocate, "--no-touch",
                "--seconds", 600)
    assert until(lambda: name in world.slices())
    least = int(allocate.removesuffix("GiB")) * GiB
    assert until(lambda: world.show(name)["parts"][0]["charged_bytes"] > least, 30)
    return world.show(name)


def quota(world, name="a"):
    return world.show(name)["parts"][0]["quota_bytes"]


def test_memory_can_grow_if_the_device_has_it_free(world):
    holder(world, memory="3GiB", allocate="2GiB")
    free = world.json("devices")["devices"][0]["free_bytes"]
    assert world.carve("set", "a", "--memory", "6GiB").returncode == 0
    assert quota(world) == 6 * GiB
    assert world.json("devices")["devices"][0]["free_bytes"] == free - 3 * GiB
    done = world.carve("set", "a", "--memory", "60GiB")
    assert done.returncode == 1 and "54 GiB more needed" in done.stderr
    assert quota(world) == 6 * GiB


def test_a_change_can_be_checked_without_being_made(world):
    holder(world, memory="3GiB", allocate="2GiB")

    def checked(**change):
        status, _, text = asked(world.socket, "/v1/slices/a?dryRun=true", "PATCH", json.dumps(change))
        return status, text
    assert checked(memory_bytes=6 * GiB)[0] == 200
    status, text = checked(memory_bytes=60 * GiB)
    assert status == 409 and "57 GiB more needed" in text
    status, text = checked(memory_bytes=GiB)
    assert status == 409 and "carve-load" in text and "its quota must currently be at least" in text
    assert quota(world) == 3 * GiB
    assert len(world.show("a")["history"]) == 1, "no period has begun"


def test_the_running_program_gets_more_and_less(world):
    script = f"{LOAD} --allocate 3GiB --no-touch; echo first $?; touch {world.folder}/asked; " \
             f"while [ ! -e {world.folder}/more ]; do sleep 0.02; done; " \
             f"{LOAD} --allocate 3GiB --no-touch; echo then $?; touch {world.folder}/had; " \
             f"while [ ! -e {world.folder}/less ]; do sleep 0.02; done; {LOAD} --allocate 1GiB --no-touch; echo last $?"
    program = world.begin("run", "--memory", "2GiB", "--name", "a", "--", "sh", "-c", script)
    assert until(lambda: (world.folder / "asked").exists(), 30)
    assert world.carve("set", "a", "--memory", "4GiB").returncode == 0
    (world.folder / "more").touch()
    assert until(lambda: (world.folder / "had").exists(), 30)
    assert until(lambda: world.carve("set", "a", "--memory", "1GiB").returncode == 0), "nothing is in use any more"
    (world.folder / "less").touch()
    out, err = program.communicate(timeout=30)
    assert [line for line in out.splitlines() if line.split()[0] in ("first", "then", "last")] == ["first 1", "then 0", "last 1"], out + err


def test_memory_can_shrink_to_the_bytes_in_use_and_a_rejection_names_their_holders(world):
    shown = holder(world)
    used = shown["parts"][0]["charged_bytes"]
    (pid,) = [p["pid"] for p in shown["processes"] if p["attached"]]
    done = world.carve("set", "a", "--memory", "1GiB")
    assert done.returncode == 1
    assert f"process {pid} (" in done.stderr and "carve-load" in done.stderr and "its quota must currently be at least" in done.stderr
    assert quota(world) == 4 * GiB
    assert world.carve("set", "a", "--memory", f"{used // MiB}MiB").returncode == 0
    assert quota(world) == used
    assert world.carve("set", "a", "--memory", f"{used // MiB - 1}MiB").returncode == 1
    assert any("memory" in e["text"] and "instead of 4 GiB" in e["text"] for e in world.show("a")["events"])


def test_shares_and_classes_can_change_and_every_period_is_recorded(world):
    holder(world, "a", "4GiB", "1GiB", "--compute", "30%")
    holder(world, "b", "2GiB", "1GiB", "--compute", "50%")
    assert world.carve("set", "a", "--compute", "40%", "--latency").returncode == 0
    done = world.carve("set", "a", "--compute", "51%")
    assert done.returncode == 1 and "51% of its compute needed, 50% free" in done.stderr
    assert world.carve("set", "a", "--batch", "--compute", "50%", "--memory", "3GiB").returncode == 0
    done = world.carve("set", "a", "--memory", "2GiB", "--compute", "60%")
    assert done.returncode == 1, "all or nothing"
    held = [(p["share_bp"], p["latency_class"], p["memory_bytes"]) for p in world.show("a")["history"]]
    assert held == [(3000, "batch", 4 * GiB), (4000, "latency", 4 * GiB), (5000, "batch", 3 * GiB)]
    periods = world.show("a")["history"]
    assert all(a["to_ns"] == b["from_ns"] for a, b in zip(periods, periods[1:])) and periods[-1]["to_ns"] == 0
    table = world.carve("show", "a", "--history").stdout.splitlines()
    assert len(table) == 4 and "40%" in table[2] and "latency" in table[2]
    # The records are the same after the end of the agent and after the end of the slice.
    world.process.send_signal(signal.SIGKILL)
    world.process.wait()
    world.start()
    assert world.show("a")["history"] == periods
    assert quota(world) == 3 * GiB
    world.carve("stop", "a")
    assert until(lambda: world.show("a")["state"] == "ended")
    assert [p["share_bp"] for p in world.show("a")["history"]] == [3000, 4000, 5000]


def test_a_share_that_is_set_later_is_enforced_like_an_initial_one(world):
    holder(world)
    assert world.show("a")["isolation"] == "memory"
    assert world.carve("set", "a", "--compute", "20%").returncode == 0
    assert world.show("a")["isolation"] == "memory+compute"


def test_a_policy_that_the_device_does_not_follow_is_rejected(world):
    holder(world, "a", "4GiB", "1GiB", "--compute", "30%")
    done = world.carve("set", "a", "--policy", "native-burst-share")
    assert done.returncode == 1 and "device 0 follows fixed-share" in done.stderr and "carve node set" in done.stderr
    assert world.carve("set", "a", "--policy", "fixed-share").returncode == 0


def test_an_exclusive_slice_cannot_be_changed(world):
    world.begin("run", "--exclusive", "--name", "w", "--", "sleep", 600)
    assert until(lambda: "w" in world.slices())
    done = world.carve("set", "w", "--memory", "1GiB")
    assert done.returncode == 1 and "is exclusive" in done.stderr


def test_parts_on_several_devices_change_together(world):
    world.begin("run", "--total-memory", "4GiB", "--devices", 2, "--compute", "30%", "--name", "m", "--", "sleep", 600)
    assert until(lambda: "m" in world.slices())
    assert world.carve("set", "m", "--memory", "3GiB", "--compute", "60%").returncode == 0
    assert [(p["quota_bytes"], p["share_bp"]) for p in world.show("m")["parts"]] == [(3 * GiB, 6000)] * 2
    assert world.carve("set", "m", "--memory", "50GiB").returncode == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="run as root this case also plays an ordinary user")
def test_another_users_slice_cannot_be_changed(world):
    os.chmod(world.socket, 0o666)
    holder(world)
    done = world.carve("set", "a", "--memory", "5GiB", user=65534, group=65534, extra_groups=[])
    assert done.returncode == 1 and "there is no slice 'a'" in done.stderr
    inside = world.carve("run", "--memory", "1GiB", "--", BUILD / "bin/carve", "set", "a", "--memory", "5GiB")
    assert inside.returncode == 1 and "manage slices from a process outside" in inside.stderr
    assert quota(world) == 4 * GiB


# Runs until 20 changes were rejected. A slow machine needs more tries, because one more change is accepted
# each second.
LOOP = """
import http.client, json, socket, sys
refused = n = 0
while refused < 20 and n < 5000:
    connection = http.client.HTTPConnection("x")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(sys.argv[1])
    connection.request("PATCH", "/v1/slices/a", json.dumps({"memory_bytes": (3 + n % 2) << 30}))
    answer = connection.getresponse()
    refused += answer.status == 429
    n += 1
    print(json.dumps([answer.status, json.loads(answer.read()).get("detail")]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the case becomes another user: run it as root")
def test_a_user_who_changes_a_slice_in_a_loop_is_slowed_down(world):
    """Each change is a record that the ledger keeps."""
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    os.chmod(world.socket, 0o666)
    program = world.begin("run", "--memory", "4GiB", "--name", "a", "--", "sleep", "600", **nobody)
    try:
        assert until(lambda: "a" in world.slices()), program.communicate()
        done = subprocess.run(["/usr/bin/python3", "-c", LOOP, world.socket], capture_output=True, text=True, check=True, **nobody)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        accepted = [n for n, (status, _) in enumerate(answers) if status == 200]
        refused = [detail for status, detail in answers if status == 429]
        assert len(accepted) >= 100 and len(refused) == 20 and len(accepted) + len(refused) == len(answers), answers
        assert "slice a was changed 100 times in a row" in refused[0]
        assert quota(world) == (3 + accepted[-1] % 2) * GiB
        assert world.carve("set", "a", "--memory", "5GiB").returncode == 0, "an operator may always"
    finally:
        world.carve("stop", "a")
        program.wait()
