"""Tests a device's compute policy, which is effective once its last slice has ended and is kept over
restarts, and which slices are admitted to a device whose shares are enforced."""
import json
import os
import signal
import subprocess

import pytest

from conftest import until

FIXED, GUARANTEED, NATIVE = "fixed-share", "guaranteed-burst-share", "native-burst-share"
LABEL = "vke.volcengine.com/mgpu-compute-policy"


def holder(world, name, *options):
    """Starts a slice on device 0 that runs until it is stopped."""
    world.begin("run", "--memory", "2GiB", "--device", 0, "--name", name, *options, "--", "sleep", 600)
    assert until(lambda: world.slices().get(name, {}).get("state") == "running")


def policies(world):
    return [d["policy"] for d in world.json("devices")["devices"]]


def agrees(policy):
    return {"desired": policy, "effective": policy, "blocked_by": []}


def restart(world, *arguments, how=signal.SIGKILL):
    world.process.send_signal(how)
    world.process.wait()
    world.arguments += arguments
    world.start()


def test_a_node_without_a_label_follows_fixed_share(world):
    assert policies(world) == [agrees(FIXED)] * 2
    assert "fixed-share" in world.carve("node").stdout


def test_a_change_waits_for_the_slices_of_each_device_and_names_them(world):
    holder(world, "a", "--compute", "30%")
    assert world.carve("node", "set", "--policy", GUARANTEED).returncode == 0
    waiting = {"desired": GUARANTEED, "effective": FIXED, "blocked_by": ["a"]}
    assert policies(world) == [waiting, agrees(GUARANTEED)]
    assert world.show("a")["policy"] == FIXED, "running slices keep theirs"
    table = world.carve("devices").stdout
    assert "* device 0: policy guaranteed-burst-share takes effect when these slices have ended: a" in table
    assert world.json("node")["policy"] == {"desired": GUARANTEED, "blocked_by": ["a"]}, "absent: the devices differ"
    assert "mixed" in world.carve("node").stdout
    # Neither slice is placed on the other's device.
    for policy, device in (FIXED, 1), (GUARANTEED, 0):
        done = world.carve("explain", "--memory", "1GiB", "--compute", "10%", "--policy", policy, "--device", device)
        assert done.returncode == 1 and f"the request needs policy {policy}, but the device's effective policy is" in done.stdout
    # A slice without a policy follows its device's policy, and the parts of one slice follow one policy.
    holder(world, "b", "--compute", "10%")
    assert world.show("b")["policy"] == FIXED
    assert "devices are needed" in world.carve("explain", "--memory", "1GiB", "--compute", "5%", "--devices", 2).stdout
    world.carve("stop", "a", "b")
    assert until(lambda: policies(world) == [agrees(GUARANTEED)] * 2)
    holder(world, "c", "--compute", "10%")
    assert world.show("c")["policy"] == GUARANTEED


@pytest.mark.devices("a10x3")
def test_all_parts_of_a_slice_go_to_devices_with_one_policy(world):
    holder(world, "a", "--compute", "30%")
    world.carve("node", "set", "--policy", GUARANTEED)
    # Binpack would take the fullest device, which still has the old policy, and one of the others.
    world.begin("run", "--memory", "1GiB", "--compute", "10%", "--devices", 2, "--name", "m", "--", "sleep", 600)
    assert until(lambda: "m" in world.slices())
    shown = world.show("m")
    assert (shown["policy"], sorted(p["index"] for p in shown["parts"])) == (GUARANTEED, [1, 2])


def test_a_restart_changes_the_policy_only_if_there_are_no_slices(world):
    holder(world, "a", "--compute", "30%")
    world.carve("node", "set", "--policy", NATIVE)
    waiting = {"desired": NATIVE, "effective": FIXED, "blocked_by": ["a"]}
    restart(world)
    assert policies(world) == [waiting, agrees(NATIVE)]
    assert world.show("a")["policy"] == FIXED
    pid = world.show("a")["processes"][0]["pid"]
    world.process.send_signal(signal.SIGKILL)
    world.process.wait()
    os.kill(pid, signal.SIGKILL)
    world.start()
    assert until(lambda: policies(world) == [agrees(NATIVE)] * 2)


def test_the_command_line_and_the_label_set_the_desired_policy(world):
    holder(world, "a", "--compute", "30%")
    restart(world, "--policy", GUARANTEED, "--label", "zone=a")
    assert policies(world)[0] == {"desired": GUARANTEED, "effective": FIXED, "blocked_by": ["a"]}
    assert world.json("node")["labels"] == {"zone": "a"}
    world.carve("stop", "a")
    assert until(lambda: not world.slices())
    del world.arguments[-4:]
    restart(world, "--label", f"{LABEL}={NATIVE}")
    assert policies(world) == [agrees(NATIVE)] * 2
    del world.arguments[-2:]
    restart(world)
    assert policies(world) == [agrees(NATIVE)] * 2, "it was kept"
    assert world.json("node")["labels"] == {"zone": "a", LABEL: NATIVE}


def test_the_value_of_a_system_label_cannot_be_edited(world):
    label = ["node", "set", "--label"]
    assert world.carve(*label, f"{LABEL}={NATIVE}", "--label", "zone=a").returncode == 0
    assert policies(world) == [agrees(NATIVE)] * 2, "the label sets the policy"
    done = world.carve(*label, f"{LABEL}={FIXED}")
    assert done.returncode == 1 and f"{LABEL} is a system label, so its value '{NATIVE}' on this node cannot be edited" in done.stderr
    assert world.carve(*label, f"{LABEL}={NATIVE}").returncode == 0, "the same value is no change"
    done = world.carve("node", "set", "--policy", FIXED)
    assert done.returncode == 1 and f"the label {LABEL} of this node sets {NATIVE}" in done.stderr
    assert world.carve(*label, "zone=b").returncode == 0, "other labels are edited freely"

    assert world.carve(*label, f"{LABEL}-").returncode == 0
    assert policies(world) == [agrees(NATIVE)] * 2, "the policy stays"
    done = world.carve(*label, f"{LABEL}={FIXED}")
    assert done.returncode == 1 and "restart the agent, then add it again" in done.stderr
    restart(world)
    assert world.carve(*label, f"{LABEL}={FIXED}").returncode == 0
    assert policies(world) == [agrees(FIXED)] * 2
    assert world.json("node")["labels"] == {"zone": "b", LABEL: FIXED}
    # The agent refuses to start with another value.
    world.process.kill()
    world.process.wait()
    done = subprocess.run([world.build / "bin/carved", *world.arguments, "--label", f"{LABEL}={NATIVE}"], capture_output=True, text=True)
    assert done.returncode == 1 and "is a system label, so its value 'fixed-share'" in done.stderr
    world.start()


@pytest.mark.parametrize("word", ["", "a", "=b", "-", "a\tb=c"])
def test_an_invalid_label_is_rejected_before_anything_changes(world, word):
    done = world.carve("node", "set", "--label", word)
    assert done.returncode == 2 and "KEY=VALUE or KEY-" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="a slice for containers needs root")
def test_a_boot_makes_the_desired_policy_effective_for_slices_without_processes(world):
    assert world.carve("slice", "create", "--name", "kept", "--memory", "2GiB", "--compute", "30%", "--device", 0).returncode == 0
    assert world.carve("node", "set", "--policy", NATIVE).returncode == 0
    restart(world)
    assert policies(world)[0] == {"desired": NATIVE, "effective": FIXED, "blocked_by": ["kept"]}, "a restart is no boot"
    world.process.send_signal(signal.SIGKILL)
    world.process.wait()
    world.pretend_boot()
    world.start()
    assert policies(world) == [agrees(NATIVE)] * 2
    assert world.show("kept")["policy"] == NATIVE and world.show("kept")["history"][0]["policy"] == FIXED


@pytest.mark.devices("a10x1", "--policy-per-slice")
def test_slices_can_choose_their_policy_if_the_agent_allows_it(world):
    for name, policy in ("a", GUARANTEED), ("b", NATIVE), ("c", None):
        holder(world, name, "--compute", "20%", *(["--policy", policy] if policy else []))
        assert world.show(name)["policy"] == (policy or FIXED)
    assert world.carve("set", "c", "--policy", NATIVE).returncode == 0
    assert world.show("c")["policy"] == NATIVE


@pytest.mark.devices("a10x2", "--best-effort", "refuse")
def test_a_slice_without_a_share_can_be_rejected_next_to_enforced_shares(world):
    holder(world, "free")  # As before, no slice's share is enforced.
    assert world.show("free")["isolation"] == "memory" and world.show("free")["enforcement"]["compute"]["level"] == "none"
    world.carve("stop", "free")
    holder(world, "a", "--compute", "30%")
    assert world.show("a")["isolation"] == "memory+compute"
    for options in [], ["--isolation", "none"], ["--compute", "10%", "--isolation", "memory"]:
        done = world.carve("explain", "--memory", "1GiB", "--device", 0, *options)
        assert done.returncode == 1 and "start carved without --best-effort refuse" in done.stdout
    assert json.loads(world.carve("explain", "--memory", "1GiB", "-o", "json").stdout)["chosen"] == [1]
    done = world.carve("run", "--memory", "1GiB", "--isolation", "memory+compute", "--", "true")
    assert done.returncode == 125 and "--compute 30%" in done.stderr


def test_a_slice_without_a_share_gets_the_time_that_the_others_leave(world):
    holder(world, "a", "--compute", "60%")
    holder(world, "free", "--isolation", "memory")
    assert world.show("free")["enforcement"]["compute"] == {
        "level": "none", "reason": "best effort: it runs when slices with a share are idle", "by": ["a"]}
    assert world.show("a")["enforcement"]["compute"]["level"] == "library", "its share is enforced beside the other"
    assert "best effort: it runs when slices with a share are idle: a" in world.carve("show", "free").stdout
    assert world.json("node")["admit_best_effort"] is True


@pytest.mark.devices("a10x1", "--policy", NATIVE)
def test_a_weight_promises_nothing_and_can_be_left_out(world):
    for name in "a", "b", "c":
        holder(world, name, "--compute", "60%")
    holder(world, "equal")
    device = world.json("devices")["devices"][0]
    assert device["share_granted_bp"] == 18000 and device["commitment"] == "normal"
    assert world.show("equal")["enforcement"]["compute"]["reason"] == "no share: it gets the mean weight of the slices that have one"
    restart(world)
    assert sorted(world.slices()) == ["a", "b", "c", "equal"]


@pytest.mark.devices("a10x1", "--overcommit-compute")
def test_overcommitted_compute_is_granted_if_configured_and_shown(world):
    holder(world, "a", "--compute", "80%")
    holder(world, "free")
    assert world.json("devices")["devices"][0]["commitment"] == "normal"
    holder(world, "b", "--compute", "20%")
    assert world.json("devices")["devices"][0]["commitment"] == "tight"
    holder(world, "c", "--compute", "20%")
    device = world.json("devices")["devices"][0]
    assert (device["commitment"], device["share_granted_bp"]) == ("over-committed", 12000)
    assert "120% over-committed" in world.carve("devices").stdout
    restart(world)
    assert world.json("devices")["devices"][0]["commitment"] == "over-committed"
    world.carve("stop", "a")
    assert until(lambda: world.json("devices")["devices"][0]["share_granted_bp"] == 4000)


def test_shares_above_100_percent_are_rejected_unless_overcommitment_is_allowed(world):
    holder(world, "a", "--compute", "97%")
    assert world.json("devices")["devices"][0]["commitment"] == "normal"
    done = world.carve("explain", "--memory", "1GiB", "--compute", "4%", "--device", 0)
    assert done.returncode == 1 and "4% of its compute needed, 3% free" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="run as root this case also plays an ordinary user")
def test_only_the_agents_user_may_change_its_policy(world):
    os.chmod(world.socket, 0o666)
    done = world.carve("node", "set", "--policy", NATIVE, user=65534, group=65534, extra_groups=[])
    assert done.returncode == 1 and "only operators may change the node" in done.stderr
    holder(world, "secret", "--compute", "30%")
    world.carve("node", "set", "--policy", NATIVE)
    seen = world.carve("devices", user=65534, group=65534, extra_groups=[]).stdout
    assert "secret" not in seen and "another user's slice" in seen
