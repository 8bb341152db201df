"""Tests watching events: over restarts of the client and of the agent, from an event that is no longer kept,
and as another user."""
import json
import os
import signal
import threading

import pytest

from conftest import GiB, MiB, until
from support.over_unix import OverUnix, asked

KEPT = 1000
OTHER = 65533


class Watch:
    """A stream of events over the API's socket; its events are (number, text)."""

    def __init__(self, path, last_id=None):
        self.connection = OverUnix(path)
        self.connection.request("GET", "/v1/events?watch=true", headers={"Last-Event-ID": last_id} if last_id else {})
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.last_id = last_id
        self.numbers = []

    def read(self, count):
        """Reads this many more events."""
        while count > 0:
            line = self.response.readline().decode().rstrip("\n")
            if line.startswith("id: "):
                self.last_id = line[4:]
            if line.startswith("data: "):
                assert json.loads(line[6:])["time_ns"] > 0
                self.numbers.append(int(self.last_id.split("-")[1]))
                count -= 1
        return self

    def close(self):
        self.response.close()
        self.connection.close()


def change(world, times):
    """Causes this many events by changing a slice's quota."""
    connection = OverUnix(world.socket)
    for i in range(times):
        connection.request("PATCH", "/v1/slices/a", json.dumps({"memory_bytes": GiB + (i % 2 + 1) * MiB}))
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
    connection.close()


@pytest.fixture
def slice_a(world):
    assert world.carve("slice", "create", "--name", "a", "--memory", "1GiB").returncode == 0
    return world


def count(world):
    return len(world.json("events")["events"])


def test_a_watch_loses_no_event_over_restarts_of_its_client(slice_a):
    world = slice_a
    first = count(world)
    changes = threading.Thread(target=change, args=(world, KEPT - first))
    changes.start()
    last_id, numbers = None, []
    while len(numbers) < KEPT:
        watch = Watch(world.socket, last_id).read(min(70, KEPT - len(numbers)))  # Each client ends after 70 events.
        last_id = watch.last_id
        numbers += watch.numbers
        watch.close()
    changes.join()
    assert numbers == list(range(1, KEPT + 1))
    # Watches that begin again, as `carve events --watch` does, get all events that are kept.
    assert Watch(world.socket).read(KEPT).numbers == numbers


def test_a_watch_from_too_far_back_is_rejected_and_restarts_with_the_kept_events(slice_a):
    world = slice_a
    early = Watch(world.socket).read(1)
    early.close()
    change(world, KEPT + 1)  # The event after the early one is not kept.
    newest = int(Watch(world.socket).read(KEPT).last_id.split("-")[1])
    assert newest > KEPT
    status, kind, text = asked(world.socket, f"/v1/events?watch=true&after={early.last_id}")
    assert (status, kind) == (410, "application/problem+json")
    assert json.loads(text)["type"] == "carve:gone"
    assert Watch(world.socket).read(KEPT).numbers == list(range(newest - KEPT + 1, newest + 1))
    assert asked(world.socket, f"/v1/events?watch=true&after={newest + 1}")[0] == 400
    assert len(json.loads(asked(world.socket, "/v1/events")[2])["events"]) == KEPT


def lines(program, wanted):
    """Reads lines from a watching `carve` until one contains the text."""
    out = []
    while not out or wanted not in out[-1]:
        out.append(program.stdout.readline())
        assert out[-1], program.stderr.read()
    return out


def test_carve_events_watches_over_a_restart_of_the_agent_until_interrupted(slice_a):
    world = slice_a
    human = world.begin("events", "--watch")
    machine = world.begin("events", "-w", "-o", "json")
    assert " a: granted 1 GiB" in lines(human, "granted")[-1]
    assert json.loads(lines(machine, "granted")[-1])["slice"] == "a"
    assert world.carve("set", "a", "--memory", "2GiB").returncode == 0
    for program in human, machine:
        lines(program, "updated by root" if os.geteuid() == 0 else "updated by")
    world.process.send_signal(signal.SIGKILL)
    world.process.wait()
    world.start()
    for program in human, machine:
        lines(program, "adopted")  # The first event of the next agent.
    assert world.carve("set", "a", "--memory", "3GiB").returncode == 0
    for program in human, machine:
        assert "adopted" not in "".join(lines(program, "updated by")), "an event came twice"
        program.send_signal(signal.SIGINT)
        assert program.wait(10) == 130
        assert program.stderr.read().count("waiting for the agent") == 1


def test_a_watch_without_an_agent_ends_with_a_message(world):
    world.process.send_signal(signal.SIGTERM)
    world.process.wait(20)
    watch = world.carve("events", "--watch")
    assert watch.returncode == 1
    assert watch.stdout == "" and watch.stderr.startswith("carve: ")
    world.start()


@pytest.mark.skipif(os.geteuid() != 0, reason="run as root this case also plays an ordinary user")
def test_a_user_watches_the_events_of_its_own_slices_including_ended_ones(slice_a):
    world = slice_a
    os.chmod(world.socket, 0o666)
    user = {"user": OTHER, "group": OTHER, "extra_groups": []}
    watch = world.begin("events", "-w", "-o", "json", **user)
    done = world.carve("run", "--memory", "1GiB", "--name", "own", "--", "true", **user)
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in lines(watch, "ended")]
    assert {e["slice"] for e in seen} == {"own"}
    assert seen[0]["text"].startswith("granted")
    assert until(lambda: "own" not in world.slices())
    listed = json.loads(world.carve("events", "-o", "json", **user).stdout)["events"]
    assert listed == seen
    watch.send_signal(signal.SIGINT)
    assert watch.wait(10) == 130


def test_a_slice_has_no_events_of_an_earlier_slice_with_its_name(world):
    def all_lives():
        return world.carve("events", "--for", "slice/a", "--all-lives").stdout
    for ended, memory in enumerate(("1GiB", "2GiB"), 1):
        assert world.carve("run", "--memory", memory, "--name", "a", "--", "true").returncode == 0
        assert until(lambda ended=ended: all_lives().count("with usage record") == ended), all_lives()
    last = world.carve("events", "--for", "slice/a").stdout
    assert "2 GiB" in last and "1 GiB" not in last, last
    assert last == world.carve("events", "--for", "slices/a").stdout
    lives = all_lives()
    assert "1 GiB" in lives and lives.count("with usage record") == 2, lives
    ids = {e["slice_id"] for e in json.loads(world.carve("events", "--for", "slice/a", "--all-lives", "-o", "json").stdout)["events"]}
    assert len(ids) == 2 and 0 not in ids
    assert all("1 GiB" not in e["text"] for e in world.show("a")["events"])
    bare = world.carve("events", "--for", "a")
    assert bare.returncode == 2 and "--for 'a': use KIND/NAME, for example slice/a or service/a" in bare.stderr
    missing = world.carve("events", "--for", "slice/b")
    assert missing.returncode == 1 and "slice 'b' has no events" in missing.stderr
