"""A database loses its newest changes, is replaced by an older copy, or is damaged, while slices and services run: what lives is found again.

The kills of test_restart.py and test_storm_controller.py lose nothing that was written. Here what was written is lost too.
"""
import contextlib
import json
import os
import shutil
import signal

import pytest

from conftest import GiB, LOAD, Agent, until


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
    """What a disk loses that did not keep the newest writes."""
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


def test_a_living_slice_is_recorded_again_after_the_ledger_lost_its_newest_change(world):
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


def test_an_older_copy_of_the_ledger_revives_nothing_and_loses_nothing(world):
    """Since the copy one slice has grown, one has ended, a created one was deleted, and another took over a name."""
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


def test_a_missing_ledger_is_made_again_from_what_lives(world):
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
