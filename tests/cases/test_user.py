"""Tests an ordinary user's agent: without cgroups, a slice is a process tree under its `carve run`. Also
tests other users."""
import grp
import json
import os
import signal
import time

import pytest

from conftest import BUILD, GiB, LOAD, Agent, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="run as root these cases also play ordinary users")
USER, OTHER = 65534, 65533


@pytest.fixture
def user_world():
    w = Agent("a10x2", uid=USER)
    yield w
    print((w.folder / "log").read_text()[-3000:])
    w.end()


def test_a_slice_is_a_process_tree_and_lingers_until_its_last_process_ends(user_world):
    w = user_world
    pid, leave = w.folder / "pid", w.folder / "leave"
    program = w.begin("run", "--memory", "2GiB", "--name", "a", "--", "sh", "-c",
                      f"setsid sh -c '{LOAD} --allocate 1GiB --seconds 600 & echo $! > {pid}' & while [ ! -e {leave} ]; do sleep 0.02; done; exit 3")
    assert until(lambda: w.slices().get("a", {}).get("state") == "running")
    leave.touch()
    assert until(lambda: w.slices().get("a", {}).get("state") == "lingering")
    assert until(lambda: w.attached("a")["parts"][0]["charged_bytes"] > GiB), "an orphan of an orphan is still inside"
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert program.wait(15) == 3
    assert until(lambda: not w.slices())


def test_stopping_a_slice_ends_its_whole_process_tree(user_world):
    w = user_world
    program = w.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", "setsid setsid sleep 600 & (sleep 600 &) ; sleep 600")
    assert until(lambda: "a" in w.slices() and len(w.show("a")["processes"]) >= 4)
    pids = [p["pid"] for p in w.show("a")["processes"]]
    assert w.carve("stop", "a").returncode == 0
    program.wait(10)
    assert until(lambda: not w.slices())
    assert until(lambda: not any(os.path.exists(f"/proc/{pid}") and "Z" not in open(f"/proc/{pid}/stat").read().split(")")[1][:3]
                                 for pid in pids))


def test_the_death_of_carve_run_ends_its_process_tree(user_world):
    w = user_world
    program = w.begin("run", "--memory", "2GiB", "--name", "a", "--", "sh", "-c",
                      f"setsid {LOAD} --allocate 1GiB --seconds 600 & sleep 600")
    w.attached("a")
    pids = [p["pid"] for p in w.show("a")["processes"]]
    time.sleep(1.2)
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert until(lambda: not w.slices())
    assert "supervisor" in w.carve("show", "a").stdout
    assert until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


def test_a_process_tree_survives_the_agents_death(user_world):
    w = user_world
    w.begin("run", "--memory", "2GiB", "--name", "a", "--", "sh", "-c", f"{LOAD} --allocate 1GiB --seconds 600 & sleep 600")
    w.attached("a")
    for _ in range(3):
        w.process.send_signal(signal.SIGKILL)
        w.process.wait()
        w.start()
        part = w.show("a")["parts"][0]
        assert part["charged_bytes"] > GiB and w.show("a")["state"] == "running"
    assert w.carve("stop", "a").returncode == 0
    assert until(lambda: not w.slices())


def test_the_doctor_reports_what_is_degraded(user_world):
    checks = {c["name"]: c for c in json.loads(user_world.carve("doctor", "-o", "json").stdout)["checks"]}
    for name in ("sealed limits", "cgroup per slice"):
        assert checks[name]["status"] == "degraded" and checks[name]["fix"], checks[name]


def test_the_api_rejects_callers_inside_a_process_tree(user_world):
    w = user_world
    done = w.carve("run", "--memory", "1GiB", "--", "sh", "-c", f"{BUILD}/bin/carve ps; {BUILD}/bin/carve run --memory 1GiB -- true")
    assert done.returncode == 125 and "runs in slice" in done.stderr, done.stderr


def test_members_of_the_operators_group_operate():
    group = grp.getgrgid(1).gr_name
    agent = Agent("a10x2", "--operators-group", group)
    try:
        agent.socket.chmod(0o666)
        user = {"user": USER, "group": USER, "extra_groups": []}
        member = {"user": OTHER, "group": OTHER, "extra_groups": [1]}
        agent.begin("run", "--memory", "1GiB", "--name", "theirs", "--", "sleep", "600", **user)
        assert until(lambda: "theirs" in agent.slices())
        other = {**member, "extra_groups": []}
        assert "no slice 'theirs'" in agent.carve("stop", "theirs", **other).stderr
        refused = agent.carve("node", "set", "--label", "zone=a", **other)
        assert refused.returncode == 1 and "only operators may change the node" in refused.stderr
        assert agent.carve("node", "set", "--label", "zone=a", **member).returncode == 0
        assert agent.carve("stop", "theirs", **member).returncode == 0
        assert until(lambda: not agent.slices())
        assert f"the group {group} (gid 1)" in agent.carve("doctor").stdout
    finally:
        agent.end()


def test_another_user_sees_and_stops_only_its_own_slices(world):
    world.socket.chmod(0o666)
    own = {"user": OTHER, "group": OTHER, "extra_groups": []}
    world.begin("run", "--memory", "1GiB", "--name", "roots", "--", "sleep", "600")
    world.begin("run", "--memory", "1GiB", "--name", "theirs", "--", "sleep", "600", **own)
    assert until(lambda: len(world.slices()) == 2)
    seen = json.loads(world.carve("ps", "-o", "json", **own).stdout)["slices"]
    assert [s["name"] for s in seen] == ["theirs"]
    for words in (("show", "roots"), ("stop", "roots")):
        refused = world.carve(*words, **own)
        assert refused.returncode != 0 and "no slice 'roots'" in refused.stderr
    assert world.carve("slice", "create", "--memory", "1GiB", "--name", "c", **own).returncode != 0
    assert world.carve("stop", "theirs", **own).returncode == 0
    assert until(lambda: set(world.slices()) == {"roots"})
    assert {s["owner_uid"] for s in world.slices().values()} == {0}
