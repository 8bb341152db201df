"""A database loses its newest changes, is replaced by an older copy, or is damaged while slices and services
run. Everything that is still running must be found again.

The kills in test_restart.py and test_storm_controller.py lose nothing that was written. Here written data is
also lost.
"""
import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import time
import urllib.request

import pytest

from conftest import GiB, HERE, LOAD, MiB, long_form, until
from support.jobs import Jobs, mgpu
from support.services import Services

pytestmark = pytest.mark.usefixtures("own_network")
needs_haproxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy")


def crash(world):
    world.process.send_signal(signal.SIGKILL)
    world.process.wait()


def ledger_files(world):
    return [path for path in (world.folder / "state").glob("ledger.db*") if "corrupt" not in path.name]


def keep_copy(world, name="older"):
    """Copies the ledger of an agent that has ended."""
    (world.folder / name).mkdir()
    for path in ledger_files(world):
        shutil.copy2(path, world.folder / name)


def put_back(world, name="older"):
    for path in ledger_files(world):
        path.unlink()
    for path in (world.folder / name).iterdir():
        shutil.copy2(path, world.folder / "state")


def cut_tail(world, bytes_=4096):
    """Simulates a disk that lost the newest writes."""
    wal = world.folder / "state/ledger.db-wal"
    assert wal.stat().st_size > bytes_
    os.truncate(wal, wal.stat().st_size - bytes_)


def hold(world, name, memory="4GiB", device=0):
    world.begin("run", "--memory", memory, "--device", device, "--name", name, "--", LOAD, "--allocate", "1GiB", "--seconds", 600)
    world.attached(name)


def granted(world, device=0):
    return world.json("devices")["devices"][device]["granted_bytes"]


def events(world):
    return [e["text"] for e in world.json("events")["events"]]


def all_ended(world):
    for name in world.slices():
        world.carve("stop", name)
    assert until(lambda: not world.slices())
    assert all(d["granted_bytes"] == 0 for d in world.json("devices")["devices"])


def test_a_live_slice_is_recorded_again_after_the_ledger_lost_its_newest_change(world):
    hold(world, "alive", "20GiB")
    before = world.slices()["alive"]
    crash(world)
    cut_tail(world)
    world.start()
    after = world.slices()["alive"]
    assert [after[word] for word in ("created_ns", "owner_uid", "state")] == [before[word] for word in ("created_ns", "owner_uid", "state")]
    assert granted(world) == 20 * GiB
    refused = world.carve("run", "--memory", "20GiB", "--device", 0, "--", "true")
    assert refused.returncode == 125, refused.stdout + refused.stderr
    assert any("its newest changes are lost" in text for text in events(world)), events(world)
    assert any("restored from its state file" in text for text in events(world)), events(world)
    count = len([text for text in (world.folder / "log").read_text().splitlines() if "newest changes are lost" in text and " error " in text])
    assert count == 1
    crash(world)
    world.start()
    assert granted(world) == 20 * GiB
    assert not any("newest changes are lost" in text for text in events(world)), "it is found once"
    all_ended(world)


def test_an_older_copy_of_the_ledger_revives_no_slice_and_loses_none(world):
    """Since the copy was made, one slice has grown, one has ended, a created one was deleted, and another one
    took over a name."""
    hold(world, "grows", "2GiB")
    hold(world, "ends", "2GiB")
    hold(world, "again", "2GiB")
    assert world.carve("slice", "create", "--memory", "2GiB", "--name", "deleted").returncode == 0
    assert world.carve("slice", "create", "--memory", "2GiB", "--name", "kept").returncode == 0
    crash(world)
    keep_copy(world)
    world.start()
    assert world.carve("set", "grows", "--memory", "6GiB").returncode == 0
    for name in ("ends", "again", "deleted"):
        assert world.carve("stop", name).returncode == 0
    assert until(lambda: set(world.slices()) == {"grows", "kept"})
    hold(world, "again", "3GiB")
    before = {name: (s["created_ns"], s["parts"][0]["quota_bytes"]) for name, s in world.slices().items()}
    newest = max(r["id"] for r in json.loads(world.get("/v1/usage")[2])["records"])
    crash(world)
    put_back(world)
    world.start()
    assert {name: (s["created_ns"], s["parts"][0]["quota_bytes"]) for name, s in world.slices().items()} == before
    assert sum(granted(world, device) for device in (0, 1)) == 11 * GiB
    hold(world, "next")
    assert max(r["id"] for r in json.loads(world.get("/v1/usage")[2])["records"]) > newest, "an id is never given twice"
    all_ended(world)


def test_a_missing_ledger_is_rebuilt_from_live_slices(world):
    hold(world, "a")
    crash(world)
    for path in ledger_files(world):
        path.unlink()
    world.start()
    assert set(world.slices()) == {"a"} and granted(world) == 4 * GiB
    all_ended(world)


def test_a_slice_that_ended_while_the_ledger_lost_its_grant_stays_ended(world):
    hold(world, "a")
    (pid,) = [p["pid"] for p in world.show("a")["processes"] if p["attached"]]
    crash(world)
    cut_tail(world)
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: world.programs[0].poll() is not None)
    world.start()
    assert not world.slices() and granted(world) == 0


def document(name="keepme", replicas=2, port=8000, **run):
    """With a port its replicas are ready after they have answered for a few seconds; without a port they are
    ready immediately."""
    server = ["python3", str(HERE / "support/http_server.py")] if port else ["sleep", "600"]
    return {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"replicas": replicas, "gpu": {"memory": "1GiB"}, **({"port": port} if port else {}),
                     "run": {"command": server, **run}}}


@contextlib.contextmanager
def controller(world, grace, kind=Services):
    """A controller with a copy of its database from before there was any object."""
    c = kind({"n1": world})
    c.agent = world
    c.kill()
    c.words += ["--orphan-grace", grace]
    (c.folder / "empty").mkdir()
    copy_database(c.state, c.folder / "empty")
    c.start()
    try:
        yield c
    finally:
        print("--- the controller's log:\n" + c.log()[-20000:])
        c.end()


def copy_database(source, target, name="controller.db"):
    for path in [path for path in target.glob(name + "*") if "corrupt" not in path.name]:
        path.unlink()
    for path in [path for path in source.glob(name + "*") if "corrupt" not in path.name]:
        shutil.copy2(path, target)


def lose(c):
    """While no controller runs, restores the database from before there was any object."""
    copy_database(c.folder / "empty", c.state)


def processes(world, name):
    """Returns the processes of a slice's program."""
    return sorted(p["pid"] for p in world.show(name)["processes"])


def programs_of(world):
    out = {}
    for name in world.slices():
        with contextlib.suppress(AssertionError):  # It has ended meanwhile.
            out[name] = processes(world, name)
    return out


def begun(world, c, document):
    """Applies the service and waits only for its programs, not until it counts as running. Returns the
    programs by slice."""
    c.apply(document)
    names = {f"{document['metadata']['name']}-1-{i}" for i in range(document["spec"]["replicas"])}
    def programs():
        return {name: pids for name, pids in programs_of(world).items() if name in names}
    assert until(lambda: set(programs()) == names and all(programs().values()), 60), (programs(), c.log())
    return programs()


def reasons(c):
    return [e["reason"] for e in c.json("/v1/events")["items"]]


def programs(c):
    return sorted(path.name for path in (c.state / "programs").iterdir() if not path.name.startswith("."))


@needs_haproxy
def test_programs_of_a_service_whose_records_are_lost_keep_running_when_it_is_applied_again(world):
    with controller(world, "600s") as c:
        before = begun(world, c, document())
        c.kill()
        lose(c)
        c.start()
        assert c.items() == [] and set(world.slices()) == set(before), "an operator has time to put the database back"
        c.apply(document(), "--wait")
        assert programs_of(world) == before
        assert urllib.request.urlopen(c.running("keepme")["endpoint"], timeout=10).status == 200
        assert until(lambda: reasons(c).count("OrphanAdopted") == 1), reasons(c)  # One event per object and reason.
        c.restart()
        assert programs_of(world) == before


@needs_haproxy
def test_a_service_that_is_applied_with_another_spec_takes_over_the_names(world):
    with controller(world, "600s") as c:
        before = begun(world, c, document(port=None))
        c.kill()
        lose(c)
        c.start()
        c.apply(document(port=None, env={"OTHER": "1"}))

        def replaced():
            after = programs_of(world)
            return set(after) == set(before) and all(after[name] and not set(after[name]) & set(before[name]) for name in before)
        assert until(replaced, 60), (before, programs_of(world), c.log())
        assert granted(world) + granted(world, 1) == 2 * GiB


@needs_haproxy
@pytest.mark.parametrize("how", ["older copy", "damaged"])
def test_programs_that_no_object_owns_end_after_the_grace_period(world, how):
    with controller(world, "1s") as c:
        if how == "damaged":
            c.apply(document(), "--wait")
            endpoint = c.running("keepme")["endpoint"]
        else:
            begun(world, c, document(port=None))
        c.kill()
        if how == "damaged":
            for path in c.state.glob("controller.db*"):
                path.write_bytes(b"this is no database" * 1000)
        else:
            lose(c)
        c.start()
        assert until(lambda: not world.slices() and programs(c) == [], 60), (world.slices(), programs(c), c.log())
        assert until(lambda: "OrphanEnded" in reasons(c)), reasons(c)
        assert c.log().count("program keepme-1-0 was ended, because its record is missing from the database") == 1
        assert granted(world) + granted(world, 1) == 0
        if how == "damaged":
            with pytest.raises(OSError):
                urllib.request.urlopen(endpoint, timeout=10)
        begun(world, c, document(port=None))


@needs_haproxy
def test_the_pods_of_a_lost_job_end_and_the_job_can_be_submitted_again(world):
    with controller(world, "1s", Jobs) as c:
        c.queue()
        script = f"echo started >> {c.folder}/starts; sleep 600"
        c.submit("--name", "j", *mgpu(), "--", "sh", "-c", script)
        c.becomes("j", "Running")
        assert until(lambda: (c.folder / "starts").exists())
        c.kill()
        lose(c)
        c.start()
        assert until(lambda: not world.slices() and programs(c) == [], 60), (world.slices(), programs(c), c.log())
        c.queue()
        c.submit("--name", "j", *mgpu(), "--", "sh", "-c", script)
        c.becomes("j", "Running")
        assert until(lambda: (c.folder / "starts").read_text() == "started\nstarted\n")
        c.carve("cancel", "j")


def attaches(world, name, memory="1GiB"):
    done = world.carve("run", "--memory", memory, "--name", name, "--", LOAD, "--allocate", "512MiB", "--seconds", "0.1")
    return done.returncode == 0


def test_removed_sockets_of_the_agent_are_recreated(world):
    hold(world, "before")
    for path in (world.socket, world.folder / "s.attach"):
        path.unlink()
    assert until(lambda: world.carve("version").returncode == 0, 20), "the agent can be reached again"
    assert until(lambda: attaches(world, "after"), 30)
    assert len([e for e in events(world) if "was removed and has been recreated" in e and "socket" in e]) == 3, events(world)
    assert set(world.slices()) == {"before"}


def control_pages(world, name):
    """Returns the inodes of the control pages that the slice's processes have mapped."""
    out = set()
    for process in world.show(name)["processes"]:
        if process["attached"]:
            lines = pathlib.Path(f"/proc/{process['pid']}/maps").read_text().splitlines()
            out |= {line.split()[4] for line in lines if f"{name}.ctl" in line}
    return out


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's maps")
def test_a_removed_runtime_directory_is_recreated_and_slices_keep_their_pages(world):
    second = f"while [ ! -e {world.folder}/second ]; do sleep 0.02; done; {LOAD} --allocate 256MiB --seconds 600"
    third = f"while [ ! -e {world.folder}/third ]; do sleep 0.02; done; {LOAD} --allocate 256MiB --seconds 600"
    world.begin("run", "--memory", "4GiB", "--name", "a", "--", "sh", "-c", f"({second}) & ({third}) & {LOAD} --allocate 1GiB --seconds 600")
    world.attached("a")

    def has_attached(count):
        return sum(p["attached"] for p in world.show("a")["processes"]) == count

    shutil.rmtree(world.folder / "s.run")
    assert until(lambda: (world.folder / "s.run/a.state").exists(), 20)
    assert until(lambda: attaches(world, "another"), 30), "new slices are granted"
    (world.folder / "second").touch()
    assert until(lambda: has_attached(2), 20)
    before = control_pages(world, "a")
    assert len(before) == 1, "what the agent writes reaches processes of before and after"
    assert len([e for e in events(world) if "s.run was removed and has been recreated" in e]) == 1
    crash(world)
    world.start()
    (world.folder / "third").touch()
    assert until(lambda: has_attached(3), 20), world.show("a")
    assert control_pages(world, "a") == before
    assert until(lambda: world.show("a")["parts"][0]["charged_bytes"] >= 1536 * MiB)
    assert not any("recreated" in text or "report page" in text for text in events(world)), events(world)
    all_ended(world)


def test_a_removed_socket_of_the_controller_is_recreated(world):
    with controller(world, "60s") as c:
        c.socket.unlink()
        assert until(c.answers, 20)
        assert c.log().count(f"the socket {c.socket} was removed and has been recreated") == 1


def test_a_program_that_removes_its_files_is_started_once_and_ends_with_its_service(world):
    """Without a slice, no cgroup shows the program."""
    with controller(world, "60s") as c:
        script = f"cd {c.state}/programs/bare-1-0; rm -f lock state.json; echo $$ >> {c.folder}/pids; exec sleep 600"
        c.apply({"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "bare"},
                 "spec": {"replicas": 1, "run": {"command": ["sh", "-c", script]}}})
        pids = c.folder / "pids"
        assert until(lambda: pids.exists() and pids.read_text().count("\n") == 1, 30)
        c.restart()
        assert until(lambda: c.service("bare")["status"].get("replicaList"), 30)
        (pid,) = pids.read_text().split()
        c.carve("delete", "service/bare")
        assert until(lambda: c.items() == [], 60), c.log()
        assert not pathlib.Path(f"/proc/{pid}").exists()
        assert pids.read_text().split() == [pid], "it was started once"


class Storm:
    """Damages the databases of an agent and a controller one after the other, and records what was done and
    what resulted."""

    NAMES = {"ledger": "ledger.db", "objects": "controller.db", "usage": "usage.db"}
    HOWS = ["cut", "flip", "zero", "missing", "older"]

    def __init__(self, world, c, dice):
        self.world, self.c, self.dice = world, c, dice
        self.done = collections.Counter()
        self.copies = collections.defaultdict(list)
        self.longest_start = 0

    def place(self, target):
        return self.world.folder / "state" if target == "ledger" else self.c.state

    def files(self, target):
        return sorted(path for path in self.place(target).glob(self.NAMES[target] + "*") if "corrupt" not in path.name)

    def round(self):
        target = self.dice.choice(["ledger", "ledger", "objects", "objects", "usage"])
        how = self.dice.choice(self.HOWS)
        process = self.world.process if target == "ledger" else self.c.process
        process.kill()
        process.wait()
        if how == "older" and not self.copies[target]:
            how = "cut"
        if len(self.copies[target]) < 3 or self.dice.random() < 0.2:
            self.copies[target].append({path.name: path.read_bytes() for path in self.files(target)})
        if self.dice.random() < 0.4:
            self.checkpoint(target)
        getattr(self, how)(target)
        self.done[f"{target} {how}"] += 1
        begin = time.monotonic()
        (self.world if target == "ledger" else self.c).start()
        self.longest_start = max(self.longest_start, time.monotonic() - begin)

    def checkpoint(self, target):
        """Moves the contents of the write-ahead log, whose pages have checksums, to the database, whose pages
        have none."""
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(self.place(target) / self.NAMES[target])) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def cut(self, target):
        """Cuts off the end of the write-ahead log or of the database."""
        logs = [path for path in self.files(target) if path.name.endswith("-wal") and path.stat().st_size > 0]
        path = self.dice.choice(logs or self.files(target))
        os.truncate(path, self.dice.randrange(path.stat().st_size))

    def written(self, target):
        return [path for path in self.files(target) if path.stat().st_size > 0 and not path.name.endswith("-shm")]

    def flip(self, target):
        path = self.dice.choice(self.written(target))
        data = bytearray(path.read_bytes())
        for _ in range(20):
            data[self.dice.randrange(len(data))] ^= 1 << self.dice.randrange(8)
        path.write_bytes(data)

    def zero(self, target):
        path = self.dice.choice(self.written(target))
        data = bytearray(path.read_bytes())
        at = self.dice.randrange(len(data)) // 4096 * 4096
        data[at:at + 4096] = bytes(len(data[at:at + 4096]))
        path.write_bytes(data)

    def missing(self, target):
        for path in self.dice.choice([self.files(target), self.written(target)[-1:]]):
            path.unlink()

    def older(self, target):
        for path in self.files(target):
            path.unlink()
        for name, data in self.dice.choice(self.copies[target]).items():
            (self.place(target) / name).write_bytes(data)


@needs_haproxy
def test_live_objects_and_no_others_are_kept_after_any_corruption(world):
    seed = int(os.environ.get("CARVE_SEED", "1"))
    dice = random.Random(seed)
    service = document(port=None)
    with controller(world, "1s") as c:
        for name in ("h0", "h1"):
            hold(world, name, "4GiB", int(name[1]))
        assert world.carve("slice", "create", "--memory", "2GiB", "--name", "kept").returncode == 0
        programs_before = begun(world, c, service)
        storm = Storm(world, c, dice)
        expected = {"h0": 4, "h1": 4, "kept": 2, "keepme-1-0": 1, "keepme-1-1": 1}
        short_lived = adopted = 0

        def rests():
            """Returns whether the slices are the expected ones, no program is left over, and all bytes are
            accounted for."""
            slices = {name: s["parts"][0]["quota_bytes"] // GiB for name, s in world.slices().items()}
            return slices == expected and programs(c) == ["keepme-1-0", "keepme-1-1"] and (
                sum(granted(world, device) for device in (0, 1)) == sum(expected.values()) * GiB)

        for number in range(200 if long_form else 12):
            if dice.random() < 0.5:  # Something that an older copy could revive or lose.
                name = f"short{number}"
                assert world.carve("slice", "create", "--memory", "1GiB", "--name", name).returncode == 0
                short_lived += 1
                if dice.random() < 0.5:
                    expected[name] = 1
                else:
                    world.carve("stop", name)
            for name in [name for name in expected if name.startswith("short") and dice.random() < 0.3]:
                world.carve("stop", name)
                del expected[name]
            storm.round()
            if ("services", "keepme") not in c.items():
                c.apply(service)
            assert until(rests, 30, 0.1), (number, storm.done, world.slices(), expected, programs(c), c.log()[-3000:])
            programs_now = programs_of(world)
            adopted += all(programs_now[name] == before for name, before in programs_before.items())
            programs_before = {name: programs_now[name] for name in programs_before}
            assert all(run.poll() is None for run in world.programs), "the programs of slices run on"
            refused = world.carve("run", "--memory", "21GiB", "--", "true")
            assert refused.returncode == 125, "no memory is granted twice"
        log = (world.folder / "log").read_text(errors="replace") + c.log()
        print(f"seed {seed}: {sum(storm.done.values())} corruptions {dict(storm.done)}; {short_lived} short-lived slices, "
              f"{log.count('was moved to')} databases moved aside, {log.count('newest changes are lost (it')} rollbacks found, "
              f"{log.count('restored from its state file')} slices recorded again, the service's programs ran on in {adopted}, "
              f"longest start {storm.longest_start:.2f} s")
        for name in [name for name in expected if not name.startswith("keepme")]:
            world.carve("stop", name)
