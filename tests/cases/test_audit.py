"""Programs that bypass the guest library are found within a second, reported with the reason, and treated as
configured."""
import os
import signal
import subprocess
import time

import pytest

from conftest import BUILD, LOAD, MiB, until

pytestmark = pytest.mark.alone

TESTS = BUILD / "tests"
ways_round = {
    "preload unset": (f"LD_PRELOAD= exec {TESTS}/escape plain 300 600", "started with LD_PRELOAD unset"),
    "dlmopen": (f"exec {TESTS}/escape dlmopen 300 600", "was bypassed"),
    "dlvsym": (f"exec {TESTS}/escape dlvsym 300 600", "was bypassed"),
    "deepbind": (f"ESCAPE_DEEPBOUND={TESTS}/libescape_deepbound.so exec {TESTS}/escape deepbind 300 600", "was bypassed"),
    "static, without libcuda": (f"exec {TESTS}/escape_raw 300 600", "statically linked"),
    "static and position-independent": (f"exec {TESTS}/escape_raw-pie 300 600", "statically linked"),
}


def caught(world, name, says):
    def told():
        return name in world.slices() and any("found unattached" in e["text"] and says in e["text"] for e in world.show(name)["events"])
    return until(told, 10)


def escape(world, script, name="a"):
    world.begin("run", "--memory", "1GiB", "--name", name, "--", "sh", "-c", f"echo $$ > {world.folder}/pid; {script}")
    assert until(lambda: (world.folder / "pid").exists())
    return int((world.folder / "pid").read_text())


def state(pid):
    """Returns the process's stat fields from its state (R, S, T, Z ...) on, or nothing. A frozen process
    appears to sleep, so its CPU time is compared as well."""
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    except OSError:
        return None


@pytest.mark.parametrize("way", ways_round)
def test_a_program_that_bypasses_the_library_is_reported_with_the_reason(world, way):
    script, says = ways_round[way]
    pid = escape(world, script)
    assert caught(world, "a", says), world.show("a")["events"]
    shown = next(p for p in world.show("a")["processes"] if p["pid"] == pid)
    assert not shown["attached"] and shown["used_bytes"] >= 300 * MiB
    assert "not attached" in world.carve("show", "a").stdout
    assert state(pid) is not None, "reporting is all that was configured"
    assert world.carve("run", "--memory", "1GiB", "--", LOAD, "--allocate", "512MiB").returncode == 0


outside = f"exec {TESTS}/escape dlmopen 300 600 1"


def test_an_attached_process_on_a_device_outside_of_its_slice_is_a_violation(world):
    world.begin("run", "--memory", "1GiB", "--name", "a", "--device", "0", "--", "sh", "-c", outside)
    violation = until(lambda: next(iter(world.show("a")["violations"]), None))
    assert violation and violation["kind"] == "bypass" and violation["count"] == 1, world.show("a")["events"]
    assert "escape dlmopen" in violation["text"] and "MiB on device 1, which is not in the slice" in violation["text"]
    assert all(process["attached"] for process in world.show("a")["processes"] if process["used_bytes"])
    # No grant covers these bytes, so they count as outside of slices.
    one = world.json("devices")["devices"][1]
    assert one["used_in_slices_bytes"] == 0 and one["used_outside_slices_bytes"] >= 300 * MiB


@pytest.mark.devices("a10x2", "--audit", "kill")
def test_a_bypassing_process_is_killed_if_so_configured(world):
    program = world.begin("run", "--memory", "1GiB", "--name", "a", "--device", "0", "--", "sh", "-c", outside)
    assert program.wait(30) == 137
    texts = [event["text"] for event in world.json("events")["events"]]
    assert any("which is not in the slice" in text for text in texts) and any("killed (--audit kill)" in text for text in texts), texts


def test_a_bypass_is_found_within_a_second(world):
    """Within a second of its first byte on the device as the simulator reports it, plus a margin for a busy
    machine."""
    waited = []
    for n in range(5):
        name = f"a{n}"
        (world.folder / "pid").unlink(missing_ok=True)
        escape(world, ways_round["preload unset"][0], name)
        show = [LOAD.with_name("carve-sim"), "show", world.folder / "state/sim", "-o", "json"]
        pid = (world.folder / "pid").read_text().strip()
        assert until(lambda: pid in subprocess.run(show, capture_output=True, text=True).stdout, 10, 0.01)
        holds = time.monotonic()
        assert until(lambda: any("found unattached" in e["text"] for e in world.show(name)["events"]), 10, 0.02)
        waited.append(time.monotonic() - holds)
        world.carve("stop", name)
    assert sorted(waited)[2] < 1.5, waited


@pytest.mark.devices("a10x1", "--audit", "freeze")
def test_a_frozen_slice_does_not_run_until_it_is_thawed(world):
    pid = escape(world, ways_round["preload unset"][0].replace("exec", "") + " & while :; do :; done")
    assert until(lambda: world.slices().get("a", {}).get("state") == "frozen")
    worked = lambda: int(state(pid)[11])  # utime, in ticks
    before = worked()
    time.sleep(0.5)
    assert worked() == before, "a loop that was frozen goes on"
    thawed = world.carve("thaw", "a")
    assert thawed.returncode == 0 and thawed.stdout == "a\n"
    assert until(lambda: worked() > before + 5)
    time.sleep(2)
    assert world.slices()["a"]["state"] == "running", "whoever was thawed is let be"
    again = world.carve("thaw", "a")
    assert again.returncode == 1 and "not frozen" in again.stderr
    assert world.carve("stop", "a").returncode == 0
    assert until(lambda: not world.slices())


@pytest.mark.devices("a10x1", "--audit", "freeze")
def test_a_frozen_slice_can_be_stopped(world):
    escape(world, ways_round["preload unset"][0])
    assert until(lambda: world.slices().get("a", {}).get("state") == "frozen")
    assert world.carve("stop", "a").returncode == 0
    assert until(lambda: not world.slices())


@pytest.mark.devices("a10x1", "--audit", "kill")
def test_the_bypassing_process_is_killed_and_its_siblings_survive(world):
    script = f"{LOAD} --allocate 100MiB --seconds 600 & LD_PRELOAD= {LOAD} --allocate 300MiB --seconds 600; " \
             f"echo $? > {world.folder}/status; wait"
    escape(world, script)
    assert until(lambda: (world.folder / "status").exists() and (world.folder / "status").read_text().strip())
    assert (world.folder / "status").read_text().strip() == str(128 + signal.SIGKILL)
    slice_ = world.show("a")
    assert any("killed (--audit kill)" in e["text"] for e in slice_["events"])
    assert any(p["attached"] and p["used_bytes"] >= 100 * MiB for p in slice_["processes"])


@pytest.mark.devices("a10x1", "--audit", "kill")
def test_unmanaged_processes_and_slices_without_isolation_are_never_touched(world):
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", LOAD, "--allocate", "512MiB", "--seconds", "600")
    world.attached("a")
    environment = {**os.environ, "SIMGPU_DIR": str(world.folder / "state/sim"), "LD_LIBRARY_PATH": str(LOAD.parents[1] / "lib/carve/sim")}
    stranger = subprocess.Popen([LOAD, "--allocate", "512MiB", "--seconds", "60"], env=environment, stdout=subprocess.DEVNULL)
    try:
        world.begin("run", "--memory", "1GiB", "--name", "open", "--isolation", "none", "--", "sh", "-c",
                    f"LD_PRELOAD= exec {LOAD} --allocate 300MiB --seconds 600")
        assert caught(world, "open", "no isolation")
        assert until(lambda: any(str(stranger.pid) in s for s in world.json("devices")["devices"][0]["unmanaged_processes"]))
        time.sleep(1.5)
        assert stranger.poll() is None and {"a", "open"} <= set(world.slices())
    finally:
        stranger.kill()
        stranger.wait()


def grown(world):
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", f"LD_PRELOAD= exec {LOAD} --allocate 2GiB --seconds 600")


@pytest.mark.devices("a10x1", "--over-quota", "kill")
def test_a_slice_beyond_its_quota_is_ended_if_so_configured(world):
    grown(world)
    assert until(lambda: "a" in [s["name"] for s in world.json("ps")["slices"]])
    assert until(lambda: not world.slices())
    assert "more than its quota" in world.carve("show", "a").stdout


@pytest.mark.devices("a10x1", "--over-quota", "kill")
def test_a_program_that_handles_a_rejected_allocation_is_ended_if_so_configured(world):
    """carve-load ends at the rejected allocation, but the shell continues."""
    program = world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", f"{LOAD} --allocate 2GiB --no-touch; sleep 600")
    assert program.wait(60) == 137
    assert until(lambda: not world.slices())
    assert "it requested more than its quota" in world.carve("show", "a").stdout


@pytest.mark.devices("a10x1", "--over-quota", "report")
def test_growth_beyond_the_quota_is_only_reported_if_so_configured(world):
    script = f"LD_PRELOAD= {LOAD} --allocate 2GiB --seconds 600 & sleep 3; exec {LOAD} --allocate 512MiB"
    program = world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", script)
    assert until(lambda: "a" in world.slices() and any("only reported" in e["text"] for e in world.show("a")["events"]))
    assert until(lambda: world.slices()["a"]["state"] == "lingering"), "what was asked for was given"
    world.carve("stop", "a")
    assert program.wait(10) == 0


def test_growth_beyond_the_quota_blocks_further_allocations_and_is_reported(world):
    script = f"LD_PRELOAD= {LOAD} --allocate 2GiB --seconds 600 & sleep 3; exec {LOAD} --allocate 64MiB"
    program = world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", script)
    assert program.wait(20) == 1
    assert "further allocations are refused" in world.carve("show", "a").stdout
    world.carve("stop", "a")
    assert "OUT_OF_MEMORY" in program.stderr.read()


def short_escapes(world, name, times):
    """Repeatedly allocates 12 GiB without the library, each time in a process that lives for 0.1 s. The slice
    ends when the caller creates FOLDER/end."""
    script = f"for i in $(seq {times}); do LD_PRELOAD= {LOAD} --allocate 12GiB --no-touch --seconds 0.1 >&2 & echo $!; wait; done; " \
             f"until test -e {world.folder}/end; do sleep 0.05; done"
    program = world.begin("run", "--memory", "1GiB", "--name", name, "--", "sh", "-c", script)
    return program, {int(program.stdout.readline()) for _ in range(times)}


def named(world, pids):
    texts = [e["text"] for e in world.json("events")["events"]]
    return {pid for pid in pids if any(f"process {pid} " in text and ("has ended" in text or "unattached" in text) for text in texts)}


def doctor_on_ended(world):
    return next(c for c in world.json("doctor")["checks"] if c["name"] == "audit of ended processes")


@pytest.mark.devices("a10x1")
def test_a_bypass_that_ends_before_the_next_sample_is_reported(world):
    assert until(lambda: doctor_on_ended(world)["status"] == "ok")
    program, pids = short_escapes(world, "a", 20)
    assert until(lambda: named(world, pids) == pids), (pids - named(world, pids), world.json("events")["events"])
    bypass = next(v for v in world.show("a")["violations"] if v["kind"] == "bypass")
    print(f"{bypass['count']} of {len(pids)} were seen in the slice")
    assert bypass["count"] >= len(pids) // 2, "a process of 0.1 s is seen in its slice's cgroup"
    (world.folder / "end").touch()
    assert program.wait(10) == 0


@pytest.mark.devices("a10x1")
def test_attached_processes_that_end_immediately_are_not_accused(world):
    assert until(lambda: doctor_on_ended(world)["status"] == "ok")
    script = f"for i in $(seq 20); do {LOAD} --allocate 64MiB --seconds 0 || exit 1; done; LD_PRELOAD= {LOAD} --allocate 64MiB --seconds 0"
    program = world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", f"{script}; sleep 600")
    # The last process never attached. Once it is reported, the others have been judged.
    assert until(lambda: any("has ended" in e["text"] or "unattached" in e["text"] for e in world.show("a")["events"]))
    found = [e["text"] for e in world.json("events")["events"] if "has ended" in e["text"] or "unattached" in e["text"]]
    assert len(found) == 1, found
    world.carve("stop", "a")
    program.wait(10)


@pytest.mark.devices("a10x1")
def test_a_short_bypass_is_not_seen_without_accounting_and_the_doctor_reports_that(world):
    fault = [LOAD.with_name("carve-sim"), "fault", world.folder / "state/sim", "no-accounting"]
    subprocess.run(fault, check=True, capture_output=True)
    assert until(lambda: doctor_on_ended(world)["status"] == "degraded")
    assert "does not support accounting mode" in doctor_on_ended(world)["detail"]
    program, pids = short_escapes(world, "a", 3)
    # The last process could not be reported at a later time, so it is held until a sample shows it.
    last = world.begin("run", "--memory", "1GiB", "--name", "b", "--", "sh", "-c", f"LD_PRELOAD= exec {LOAD} --allocate 64MiB --seconds 600")
    assert caught(world, "b", "LD_PRELOAD")
    assert not any("has ended" in e["text"] for e in world.json("events")["events"])
    (world.folder / "end").touch()
    world.carve("stop", "b")
    assert program.wait(10) == 0 and last.wait(10) is not None and pids


@pytest.mark.devices("a10x1")
def test_a_slice_finds_only_its_own_processes_in_the_accounts(world, inside, beside):
    assert until(lambda: doctor_on_ended(world)["status"] == "ok")
    beside("import time; c = begin(); p = allocate(64 << 20); time.sleep(600)")
    other = next(iter(world.attached("beside")["processes"]))["pid"]
    inside(f"""
import os
c = begin()
nvml = Nvml()
assert nvml.accounted() == {{os.getpid()}}, nvml.accounted()
assert nvml.account(os.getpid()).running == 1
assert nvml.account({other}) == 6, "NVML_ERROR_NOT_FOUND"
""")
    world.carve("stop", "beside")
