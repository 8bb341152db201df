"""Tests the limits of users and accounts: who may set them, what they refuse, and that no order of requests, restart or
kill of the agent exceeds them."""
import json
import os
import signal
import subprocess

import pytest

from conftest import GiB, Agent, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="run as root these cases play two users")
ANNA, BOB = ({"user": uid, "group": uid, "extra_groups": []} for uid in (65533, 65532))


@pytest.fixture
def node():
    agent = Agent("a10x2")
    agent.socket.chmod(0o666)
    yield agent
    print((agent.folder / "log").read_text()[-3000:])
    agent.end()


def begin(agent, name, memory, who, *words):
    """Starts a slice that lives until it is stopped, and waits until the agent knows it."""
    program = agent.begin("run", "--memory", memory, "--name", name, *words, "--", "sleep", "600", **who)
    assert until(lambda: name in agent.slices() or program.poll() is not None)
    assert name in agent.slices(), program.stderr.read()
    return program


def refusal(agent, who, *words):
    done = agent.carve("run", *words, "--", "true", **who)
    assert done.returncode == 125, done.stdout + done.stderr
    return done.stderr


def test_a_limit_refuses_one_user_and_not_the_other(node):
    assert node.carve("limit", "set", "65533", "--memory", "6GiB", "--slices", "2").returncode == 0
    begin(node, "first", "4GiB", ANNA)
    message = refusal(node, ANNA, "--memory", "3GiB")
    assert "holds 4 GiB of the limit of 6 GiB of memory, and 2 GiB are left; request at most 2 GiB, or stop a slice" in message
    assert "65533" in message
    begin(node, "theirs", "8GiB", BOB)
    begin(node, "second", "2GiB", ANNA)
    assert "holds 2 of the limit of 2 slices" in refusal(node, ANNA, "--memory", "1GiB")
    explained = node.carve("explain", "--memory", "1GiB", **ANNA)
    assert "holds 2 of the limit of 2 slices" in explained.stdout + explained.stderr
    assert node.carve("stop", "first", **ANNA).returncode == 0
    assert node.carve("run", "--memory", "1GiB", "--", "true", **ANNA).returncode == 0


def test_a_change_of_a_slice_keeps_the_limit(node):
    begin(node, "a", "4GiB", ANNA)
    assert node.carve("limit", "set", "*", "--memory", "5GiB", "--compute", "50%").returncode == 0
    refused = node.carve("set", "a", "--memory", "6GiB", **ANNA)
    assert refused.returncode == 1 and "request at most 5 GiB" in refused.stderr
    assert node.carve("set", "a", "--memory", "6GiB").returncode == 1, "the limit is the owner's, also if root changes the slice"
    assert node.carve("set", "a", "--memory", "5GiB", "--compute", "50%", **ANNA).returncode == 0
    assert node.carve("limit", "set", "*", "--memory", "2GiB").returncode == 0
    assert node.carve("set", "a", "--memory", "3GiB", **ANNA).returncode == 0, "a slice above a new limit may shrink"
    assert node.carve("run", "--memory", "8GiB", "--", "true").returncode == 0, "'*' does not limit root"


def test_users_see_only_their_own_limits_and_change_none(node):
    for words in (("65533", "--slices", "3"), ("*", "--slices", "1"), ("--account", "team", "--memory", "1TiB")):
        assert node.carve("limit", "set", *words).returncode == 0
    begin(node, "a", "1GiB", ANNA)
    own = json.loads(node.carve("limit", "ls", "-o", "json", **ANNA).stdout)["items"]
    assert [(view["limit"]["uid"], view["held"]["slices"], view["held"]["memory_bytes"]) for view in own] == [(65533, 1, GiB)]
    default = json.loads(node.carve("limit", "ls", "-o", "json", **BOB).stdout)["items"]
    assert [(view["limit"]["user"], view["held"]["slices"]) for view in default] == [("*", 0)]
    assert len(node.json("limit", "ls")["items"]) == 3
    refused = node.carve("limit", "set", "65533", "--slices", "100", **ANNA)
    assert refused.returncode == 1 and "only operators may change limits" in refused.stderr
    assert node.carve("limit", "rm", "65533", **ANNA).returncode == 1
    assert node.carve("limit", "rm", "65533").returncode == 0
    assert "limit of 1 slice," in refusal(node, ANNA, "--memory", "1GiB"), "the default applies again"


def test_a_device_limit_places_slices_on_devices_that_the_user_has(node):
    assert node.carve("limit", "set", "65533", "--devices", "1").returncode == 0
    begin(node, "a", "4GiB", ANNA)
    begin(node, "b", "4GiB", ANNA, "--strategy", "spread")
    devices = {part["index"] for name in "ab" for part in node.show(name)["parts"]}
    assert len(devices) == 1
    other = 1 - devices.pop()
    assert "holds 1 of the limit of 1 device," in refusal(node, ANNA, "--memory", "1GiB", "--device", other)
    assert "2 devices requested" in refusal(node, ANNA, "--total-memory", "2GiB", "--devices", "2")


def test_concurrent_requests_get_no_more_than_the_limit(node):
    assert node.carve("limit", "set", "*", "--memory", "5GiB", "--slices", "50").returncode == 0
    programs = [node.begin("run", "--memory", "1GiB", "--", "sleep", "600", **who) for _ in range(8) for who in (ANNA, BOB)]
    assert until(lambda: len(node.slices()) + sum(p.poll() is not None for p in programs) == len(programs), 60)
    held = [s["owner_uid"] for s in node.slices().values()]
    assert sorted(held) == [65532] * 5 + [65533] * 5
    assert sum(p.poll() == 125 for p in programs) == 6


def test_limits_survive_a_kill_of_the_agent(node):
    assert node.carve("limit", "set", "65533", "--memory", "4GiB").returncode == 0
    begin(node, "a", "3GiB", ANNA)
    node.process.send_signal(signal.SIGKILL)
    node.process.wait()
    node.start()
    node.socket.chmod(0o666)
    assert "1 GiB are left" in refusal(node, ANNA, "--memory", "2GiB")
    node.process.send_signal(signal.SIGTERM)
    node.process.wait()
    limits = node.folder / "state/limits.json"
    kept = limits.read_text()
    limits.write_text(kept[:-10])
    started = subprocess.run([node.build / "bin/carved", *node.arguments], capture_output=True, text=True, timeout=60)
    assert started.returncode == 1 and "limits.json" in started.stderr, "without its limits the agent would grant too much"
    limits.write_text(kept)
    node.start()


def test_wrong_limits_are_rejected(node):
    for words, message in ((("set", "65533"), "at least one of"), (("set", "nobody-here", "--slices", "1"), "there is no user"),
                           (("set", "--slices", "1"), "either USER or --account"), (("set", "*", "--compute", "x"), "percentage"),
                           (("set", "*", "--slices", "-1"), "must be a number"), (("set", "*", "--memory", "9"), "--memory '9'")):
        done = node.carve("limit", *words)
        assert done.returncode == 2 and message in done.stderr, (words, done)
    done = node.carve("limit", "rm", "--account", "none")
    assert done.returncode == 1 and "there is no limit 'account:none'" in done.stderr
    assert node.carve("limit", "set", "*", "--slices", "0").returncode == 0
    assert "the limit is 0 slices" in refusal(node, ANNA, "--memory", "1GiB")
    assert node.carve("limit", "set", "*", "--slices", "none").returncode == 0
    assert node.carve("run", "--memory", "1GiB", "--", "true", **ANNA).returncode == 0
