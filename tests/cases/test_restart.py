"""The agent dies, is restarted, is started twice, or finds its ledger damaged: slices continue and no record
is lost."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from conftest import BUILD, GiB, LOAD, MiB, Agent, long_form, until


def crash(world):
    world.process.send_signal(signal.SIGKILL)
    world.process.wait()


def holders(world, count, seconds=600):
    """Starts slices that only hold memory, and returns their carve run processes."""
    runs = [world.begin("run", "--memory", "2GiB", "--name", f"t{i}", "--", LOAD, "--allocate", "1GiB", "--seconds", seconds)
            for i in range(count)]
    for i in range(count):
        world.attached(f"t{i}")
    return runs


def ledger(world):
    """Returns the ledger's content without measured values."""
    return [(s["name"], s["created_ns"], [(p["uuid"], p["quota_bytes"]) for p in s["parts"]])
            for s in sorted(world.slices().values(), key=lambda s: s["name"])]


def test_slices_survive_repeated_deaths_of_the_agent(world):
    holders(world, 3)
    before = ledger(world)
    free = [d["free_bytes"] for d in world.json("devices")["devices"]]
    pids = {p["pid"] for name in world.slices() for p in world.show(name)["processes"]}
    slowest = 0
    for _ in range(50 if long_form else 5):
        crash(world)
        start = time.monotonic()
        world.start()
        slowest = max(slowest, time.monotonic() - start)
        assert ledger(world) == before
        assert [d["free_bytes"] for d in world.json("devices")["devices"]] == free
        for name in world.slices():
            part = world.show(name)["parts"][0]
            assert 1 * GiB <= part["charged_bytes"] <= part["quota_bytes"]
    for pid in pids:
        os.kill(pid, 0)
    assert slowest < 3, "taking over is a matter of a second"
    for name in list(world.slices()):
        assert world.carve("stop", name).returncode == 0
    assert until(lambda: not world.slices())
    assert all(d["granted_bytes"] == 0 for d in world.json("devices")["devices"])


def test_quotas_hold_and_new_processes_wait_while_the_agent_is_down(world):
    script = f"{LOAD} --allocate 1GiB --seconds 0.1; touch {world.folder}/gone; " \
             f"while [ ! -e {world.folder}/away ]; do sleep 0.02; done; {LOAD} --allocate 3GiB; echo status $?; " \
             f"{LOAD} --allocate 1GiB; echo status $?"
    program = world.begin("run", "--memory", "2GiB", "--name", "a", "--", "sh", "-c", script)
    assert until(lambda: (world.folder / "gone").exists(), 60)
    crash(world)
    (world.folder / "away").touch()
    time.sleep(0.5)  # The program starts without an agent and waits for it.
    world.start()
    out, err = program.communicate(timeout=30)
    assert "CUDA_ERROR_OUT_OF_MEMORY" in out and "status 1" in out and "status 0" in out, out + err
    assert until(lambda: not world.slices(), 60)


def test_processes_that_died_while_the_agent_was_down_released_everything(world):
    holders(world, 2)
    (pid,) = [p["pid"] for p in world.show("t0")["processes"] if p["attached"]]
    crash(world)
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    world.start()
    assert set(world.slices()) == {"t1"}
    assert "while the agent was not running" in world.carve("show", "t0").stdout


def test_charges_of_a_process_that_died_in_the_meantime_are_reclaimed(world):
    script = f"{LOAD} --allocate 1GiB --seconds 600 & echo $! > {world.folder}/pid; {LOAD} --allocate 512MiB --seconds 600"
    world.begin("run", "--memory", "4GiB", "--name", "a", "--", "sh", "-c", script)
    assert until(lambda: world.slices().get("a", {}).get("parts", [{}])[0].get("charged_bytes", 0) >= 2 * GiB)
    crash(world)
    os.kill(int((world.folder / "pid").read_text()), signal.SIGKILL)
    world.start()
    assert until(lambda: world.show("a")["parts"][0]["charged_bytes"] == 768 * MiB), world.show("a")


def fd_store_of(world):
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(world.socket) + ".run" in (folder / "cmdline").read_text() and "carve-fdstore" in (folder / "cmdline").read_text():
                return int(folder.name)
        except OSError:
            pass


def test_a_dead_fd_store_is_replaced(world):
    holders(world, 1)
    old = fd_store_of(world)
    os.kill(old, signal.SIGKILL)
    assert until(lambda: fd_store_of(world) not in (None, old))
    time.sleep(0.2)
    crash(world)
    world.start()
    assert world.show("t0")["parts"][0]["charged_bytes"] >= GiB


@pytest.mark.skipif(os.geteuid() != 0, reason="another process's pages can be had by root alone")
def test_the_report_page_is_recovered_from_a_slice_even_without_the_fd_store(world):
    holders(world, 1)
    fd_store = fd_store_of(world)
    crash(world)
    os.kill(fd_store, signal.SIGKILL)
    world.start()
    assert world.show("t0")["parts"][0]["charged_bytes"] >= GiB
    assert any("recovered from one of its processes" in e["text"] for e in world.show("t0")["events"])


def test_a_damaged_ledger_is_moved_aside_and_rebuilt_from_running_slices(world):
    holders(world, 2)
    before = ledger(world)
    crash(world)
    book = world.folder / "state/ledger.db"
    for part in ("-wal", "-shm"):
        (world.folder / ("state/ledger.db" + part)).unlink(missing_ok=True)
    book.write_bytes(b"this is no ledger" * 1000)
    world.start()
    assert ledger(world) == before
    (aside,) = (world.folder / "state").glob("ledger.db.corrupt-*")
    assert aside.read_bytes().startswith(b"this is no ledger")
    assert "the ledger was damaged" in (world.folder / "log").read_text()
    crash(world)
    world.start()
    assert ledger(world) == before


def test_slices_for_containers_survive_a_reboot_and_programs_have_ended(world):
    (run,) = holders(world, 1)
    assert world.carve("slice", "create", "--memory", "2GiB", "--name", "kept").returncode == 0
    (pid,) = [p["pid"] for p in world.show("t0")["processes"] if p["attached"]]
    crash(world)
    os.kill(pid, signal.SIGKILL)
    run.wait()  # No process survives a reboot.
    world.pretend_boot()
    world.start()
    assert set(world.slices()) == {"kept"}
    assert "rebooted" in world.carve("show", "t0").stdout
    page = (world.folder / "s.run/kept.ctl").stat().st_ino
    crash(world)
    world.start()
    assert set(world.slices()) == {"kept"} and (world.folder / "s.run/kept.ctl").stat().st_ino == page


@pytest.mark.skipif(os.geteuid() != 0, reason="only with cgroups can processes be known without their notes")
def test_removed_pages_are_recreated_for_live_processes(world):
    holders(world, 1)
    crash(world)
    for file in (world.folder / "s.run").glob("t0.*"):
        file.unlink()
    world.start()
    assert world.show("t0")["state"] in ("running", "lingering")
    assert until(lambda: world.show("t0")["parts"][0]["charged_bytes"] >= GiB), "what the driver shows is charged"
    world.carve("stop", "t0")
    assert until(lambda: not world.slices())


def test_account_labels_and_units_survive_a_lost_ledger(world):
    crash(world)
    world.arguments += ["--memory-unit", "128MiB"]
    world.start()
    program = ["run", "--gpu-mem", "16", "--account", "research", "--label", "team=a", "--label", "run=7", "--name", "a", "--", "sleep", "600"]
    world.begin(*program)
    assert until(lambda: world.slices().get("a", {}).get("state") == "running")

    def usage(query=""):
        return json.loads(world.get("/v1/usage" + query)[2])["records"]

    def kept():
        shown = world.show("a")
        return shown["account"], shown["labels"], shown["memory_units"], shown["parts"][0]["quota_bytes"], shown["parts"][0]["usable_bytes"], shown["parts"][0]["native_bytes"], shown["parts"][0]["device_name"]

    before = kept()
    assert before[:4] == ("research", {"team": "a", "run": "7"}, {"count": 16, "unit": "128MiB"}, 2 * GiB)
    device = world.json("devices")["devices"][0]
    assert before[4:] == (device["usable_bytes"], device["native_bytes"], device["name"])
    assert "16 x 128 MiB = 2 GiB" in world.carve("show", "a").stdout
    crash(world)
    for part in (world.folder / "state").glob("ledger.db*"):
        part.write_bytes(b"x" * 8192)
    world.start()
    assert kept() == before
    (record,) = [r for r in usage() if r["slice"]["name"] == "a"]
    assert record["slice"]["account"] == "research" and record["slice"]["memory_units"] == {"count": 16, "unit": "128MiB"}
    assert "to" not in record and record["slice"]["parts"][0]["memory_bytes"] == 2 * GiB
    world.carve("stop", "a")
    assert until(lambda: any("to" in r for r in usage()))
    assert usage(f"?after={record['id']}") == []


def start_another(world, *arguments):
    return subprocess.run([BUILD / "bin/carved", *map(str, arguments)], capture_output=True, text=True, timeout=30)


def test_a_second_agent_does_not_start_and_names_the_first(world):
    first = str(world.process.pid)
    state = start_another(world, "--sim", "a10x2", "--state", world.folder / "state", "--socket", world.folder / "other")
    assert state.returncode == 1 and first in state.stderr and "state" in state.stderr
    socket = start_another(world, "--sim", "a10x2", "--state", world.folder / "other", "--socket", world.socket)
    assert socket.returncode == 1 and first in socket.stderr and "socket" in socket.stderr
    # The same devices with another state directory and socket.
    (world.folder / "third").mkdir()
    (world.folder / "third/sim").symlink_to(world.folder / "state/sim")
    (world.folder / "third/sim.spec").write_text((world.folder / "state/sim.spec").read_text())
    devices = start_another(world, "--sim", "a10x2", "--state", world.folder / "third", "--socket", world.folder / "third.sock")
    assert devices.returncode == 1 and first in devices.stderr and "devices" in devices.stderr


@pytest.mark.parametrize("words, status, says", [
    (["--nonsense"], 2, "--nonsense"),
    (["--sim", "a10x2", "--state", "/tmp/cv-x", "--socket", "/tmp/" + "x" * 120], 2, "at most 107"),
    (["--sim", "a10x2", "--state", "/dev/null/x", "--socket", "/tmp/cv-y"], 1, "/dev/null"),
    (["--sim", "nocard", "--state", "/tmp/cv-z", "--socket", "/tmp/cv-z.sock"], 1, "nocard"),
    (["--log-level", "loud"], 2, "loud"),
    (["--reserve", "lots"], 2, "lots"),
    (["--audit", "shoot"], 2, "report, freeze or kill"),
    (["--over-quota", "ignore"], 2, "report, refuse or kill"),
])
def test_an_invalid_start_gives_a_message_and_an_exit_status(words, status, says, tmp_path):
    done = start_another(None, *(word.replace("/tmp/cv-", f"{tmp_path}/") for word in words))
    assert done.returncode == status, done.stderr
    assert says in done.stderr and "carved: " in done.stderr


def test_slices_keep_running_after_an_ordinary_end_and_the_next_agent_adopts_them(world):
    holders(world, 1)
    world.process.send_signal(signal.SIGTERM)
    assert world.process.wait(10) == 0
    world.start()
    assert world.show("t0")["state"] == "running"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_blocks_new_slices_and_loses_none(tmp_path):
    w = Agent.__new__(Agent)
    small = tmp_path / "s"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", small], check=True)
    try:
        Agent.__init__(w, "a10x2")
        w.process.send_signal(signal.SIGTERM)
        w.process.wait()
        w.arguments[w.arguments.index("--state") + 1] = str(small / "state")
        # Only the ledger is on the small disk, because simulated devices would fail on a full disk.
        (small / "state").mkdir()
        (small / "state/sim").symlink_to(w.folder / "state/sim")
        (small / "state/sim.spec").write_text((w.folder / "state/sim.spec").read_text())
        w.start()
        holders(w, 1)
        before = ledger(w)
        filler = small / "filler"
        with open(filler, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError:
                pass
        refused = w.carve("run", "--memory", "1GiB", "--name", "b", "--", "true")
        for i in range(40):  # The log may have free pages.
            if refused.returncode != 0:
                break
            refused = w.carve("run", "--memory", "1GiB", "--name", f"b{i}", "--", "true")
        assert refused.returncode == 125 and "disk is full" in refused.stderr, refused.stderr
        assert [s for s in ledger(w) if s[0] == "t0"] == before
        filler.unlink()
        assert w.carve("run", "--memory", "1GiB", "--name", "c", "--", "true").returncode == 0
        crash(w)
        w.start()
        assert [s for s in ledger(w) if s[0] == "t0"] == before
    finally:
        w.end()
        subprocess.run(["umount", "-l", small], check=True)
