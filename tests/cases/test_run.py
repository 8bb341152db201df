"""`carve run` passes everything through as a shell would, and the slice lives as long as its processes."""
import json
import os
import pty
import signal
import subprocess
import time

import pytest

from conftest import BUILD, GiB, LOAD, until


@pytest.mark.parametrize("program, status", [
    (["true"], 0),
    (["sh", "-c", "exit 7"], 7),
    (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
    (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
    (["/no/such/program"], 127),
    (["/etc/passwd"], 126),
])
def test_the_exit_status_is_that_of_the_program(world, program, status):
    done = world.carve("run", "--memory", "1GiB", "--", *program)
    assert done.returncode == status, done.stderr
    assert until(lambda: not world.slices()), "the slice outlived its program"


@pytest.mark.parametrize("words, says", [
    (["--memory", "12X", "--", "true"], "--memory: '12X' is not a size"),
    (["--memory", "4096", "--", "true"], "has no unit"),
    (["--", "true"], "no memory is given"),
    (["--memory", "1GiB"], "no program is given"),
    (["--memory", "1TiB", "--", "true"], "1 TiB"),
    (["--total-memory", "5MiB", "--devices", "2", "--", "true"], "2"),
    (["--memory", "1GiB", "--devices", "3", "--", "true"], "3"),
    (["--memory", "1GiB", "--device", "GPU-nonsense", "--", "true"], "GPU-nonsense"),
    (["--memory", "1GiB", "--name", "Not A Name", "--", "true"], "Not A Name"),
    (["--memory", "0B", "--", "true"], "0"),
])
def test_an_error_of_carve_exits_with_125_and_a_message(world, words, says):
    done = world.carve("run", *words)
    assert done.returncode == 125
    assert done.stderr.startswith("carve: ") and says in done.stderr
    assert not world.slices(), "a refused request left a slice behind"


def test_input_output_and_environment_pass_through(world):
    done = subprocess.run([BUILD / "bin/carve", "run", "--memory", "1GiB", "--", "sh", "-c", "cat; echo err >&2; echo $MINE"],
                          input="in\n", env={**world.environment, "MINE": "yes"}, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("in\nyes\n", "err\n")


def test_signals_reach_the_program(world):
    program = world.begin("run", "--memory", "1GiB", "--", "sh", "-c",
                          "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    assert program.stdout.readline() == "ready\n"
    program.terminate()
    assert program.wait(10) == 5
    assert program.stdout.read() == "got it\n"


STOPS_ITSELF = ["run", "--memory", "1GiB", "--", "sh", "-c", "echo $$; kill -STOP $$; exit 6"]


def stands(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"


def test_only_the_sender_of_a_stop_signal_continues_the_program(world):
    run = world.begin(*STOPS_ITSELF)
    pid = int(run.stdout.readline())
    assert until(lambda: stands(pid))
    os.kill(pid, signal.SIGCONT)
    assert run.wait(10) == 6


def test_suspending_the_program_on_a_terminal_suspends_carve_run(world):
    run, terminal = pty.fork()
    if run == 0:
        os.execve(BUILD / "bin/carve", ["carve", *STOPS_ITSELF], world.environment)
    with open(terminal, "rb", buffering=0) as f:
        pid = int(f.readline())
        assert until(lambda: stands(pid) and stands(run))
        os.kill(run, signal.SIGCONT)
        assert os.waitstatus_to_exitcode(os.waitpid(run, 0)[1]) == 6


def test_a_terminal_stays_a_terminal(world):
    done = subprocess.run(["script", "-qec", f"{BUILD}/bin/carve run --memory 1GiB -- tty", "/dev/null"],
                          env=world.environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.stdout.startswith("/dev/pts/"), done.stdout


def test_the_slice_lingers_until_the_last_process_ends(world):
    done = world.carve("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", "sleep 3 >/dev/null 2>&1 & exit 4")
    assert done.returncode == 4
    if os.geteuid() == 0:  # Without a cgroup `carve run` waits until then.
        assert world.slices()["a"]["state"] == "lingering"
    assert until(lambda: not world.slices())


def test_stop_ends_everything_in_the_slice(world):
    program = world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", "trap '' TERM; setsid sleep 600 & sleep 600")
    assert until(lambda: "a" in world.slices() and len(world.show("a")["processes"]) >= 3)
    pids = [p["pid"] for p in world.show("a")["processes"]]
    assert world.carve("stop", "a").returncode == 0
    assert program.wait(20) in (128 + signal.SIGTERM, 128 + signal.SIGKILL)
    assert until(lambda: not world.slices())
    assert until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's agent makes cgroups")
def test_a_slice_with_a_cgroup_outlives_carve_run(world):
    program = world.begin("run", "--memory", "2GiB", "--name", "a", "--", LOAD, "--allocate", "64MiB", "--seconds", "30")
    pids = [p["pid"] for p in world.attached("a")["processes"] if p["attached"]]
    program.kill()
    program.wait()
    time.sleep(0.5)
    assert world.slices()["a"]["state"] in ("running", "lingering")
    assert all(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_a_program_that_dies_releases_its_slice_and_reports_why(world):
    program = world.begin("run", "--memory", "2GiB", "--name", "a", "--", LOAD, "--allocate", "1GiB", "--no-touch", "--seconds", "30")
    pid = next(p["pid"] for p in world.attached("a")["processes"] if p["attached"])
    os.kill(pid, signal.SIGKILL)
    assert program.wait(10) == 128 + signal.SIGKILL
    assert until(lambda: not world.slices())
    ended = [s for s in world.json("ps", "-a")["slices"] if s["name"] == "a"]
    assert ended and ended[0]["ended_because"]
    assert world.json("devices")["devices"][0]["granted_bytes"] == 0


def test_an_ended_slice_keeps_its_peak_and_a_list_shows_the_processes(world):
    load = [LOAD, "--allocate", "1GiB", "--no-touch", "--seconds"]
    world.begin("run", "--memory", "2GiB", "--name", "a", "--", *load, "600")
    assert until(lambda: "a" in world.slices() and world.show("a")["parts"][0]["peak_bytes"] >= 1 << 30)
    assert [len(s["processes"]) > 0 for s in world.json("ps")["slices"]] == [True]
    world.carve("stop", "a")
    assert until(lambda: "a" not in world.slices())
    assert world.show("a")["parts"][0]["peak_bytes"] >= 1 << 30


@pytest.mark.devices("a10x1,t4x1")
def test_a_percentage_of_unequal_devices_is_rejected(world):
    done = world.carve("run", "--devices", "2", "--memory", "80%", "--", "true")
    assert done.returncode == 125 and "the percentage is not the same amount on each; request a number of bytes" in done.stderr, done.stderr
    waits = world.carve("run", "--devices", "2", "--memory", "80%", "--wait", "--", "true")
    assert waits.returncode == 125 and "the percentage is not the same amount on each" in waits.stderr, waits.stderr
    explained = world.carve("explain", "--devices", "2", "--memory", "80%")
    assert explained.returncode == 1 and "the percentage is not the same amount on each" in explained.stdout, explained.stdout
    assert world.carve("run", "--memory", "80%", "--", "true").returncode == 0


@pytest.mark.devices("t4x1,a10x2")
def test_a_percentage_can_be_used_on_equal_devices(world):
    words = "--devices", "2", "--memory", "80%"
    assert world.carve("explain", *words).returncode == 0
    assert world.carve("run", *words, "--name", "a", "--", "true").returncode == 0
    assert sorted(p["index"] for p in world.show("a")["parts"]) == [1, 2]


def test_waiting_for_a_slice_that_can_never_fit_is_rejected(world):
    for words in (("--memory", "30GiB"), ("--devices", "3", "--memory", "1GiB")):
        done = world.carve("run", *words, "--wait", "--", "true")
        assert done.returncode == 125 and "request at most" in done.stderr and "waiting" not in done.stderr, done.stderr


def test_a_reason_that_all_devices_share_is_printed_once(world):
    done = world.carve("run", "--memory", "99GiB", "--", "true")
    assert done.returncode == 125
    assert done.stderr.startswith("carve: devices 0, 1: 99 GiB needed, ") and done.stderr.count("99 GiB needed") == 1, done.stderr


def test_a_limit_of_waiting_without_an_equals_sign_is_rejected(world):
    done = world.carve("run", "--memory", "1GiB", "--wait", "10m", "--", "true")
    assert (done.returncode, done.stderr) == (125, "carve: --wait takes its limit after '=': --wait=10m\n")


def test_waiting_ends_when_there_is_room(world):
    world.begin("run", "--memory", "20GiB", "--devices", "2", "--name", "first", "--", "sleep", "2")
    assert until(lambda: "first" in world.slices())
    assert world.carve("run", "--memory", "20GiB", "--", "true").returncode == 125
    done = world.carve("run", "--memory", "20GiB", "--wait=20s", "--", "true")
    assert done.returncode == 0 and "waiting for capacity" in done.stderr
    world.begin("run", "--memory", "20GiB", "--devices", "2", "--name", "again", "--", "sleep", "5")
    assert until(lambda: "again" in world.slices())
    assert world.carve("run", "--memory", "20GiB", "--wait=1s", "--", "true").returncode == 125


def test_a_name_can_be_used_by_one_live_slice(world):
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sleep", "20")
    assert until(lambda: "a" in world.slices())
    done = world.carve("run", "--memory", "1GiB", "--name", "a", "--", "true")
    assert done.returncode == 125 and "taken" in done.stderr


def test_an_agent_that_has_the_library_preloaded_starts_immediately(world):
    """This happens if the library is in /etc/ld.so.preload. It must also work if a killed agent left its
    sockets."""
    world.process.kill()
    world.process.wait()
    world.log.close()
    world.process_environment = {**world.environment, "LD_PRELOAD": str(BUILD / "lib/carve/libcarve.so")}
    begun = time.monotonic()
    world.start()
    assert time.monotonic() - begun < 8, "the library inside the agent waited for the agent"
    done = world.carve("run", "--memory", "2GiB", "--", LOAD, "--allocate", "3GiB", "--no-touch")
    assert json.loads(done.stdout)["error"] == "CUDA_ERROR_OUT_OF_MEMORY"


@pytest.mark.skipif(os.geteuid() != 0, reason="root's agent and an ordinary user's program")
def test_an_ordinary_user_gets_only_a_slice_of_roots_agent(world):
    """The socket is open to its group, here root's group; the uid is that of the user `nobody`."""
    nobody = ["setpriv", "--reuid=65534", "--regid=0", "--clear-groups"]

    def as_nobody(*words):
        return subprocess.run([*nobody, *map(str, words)], env=world.environment, capture_output=True, text=True, timeout=60, cwd="/")

    carve = BUILD / "bin/carve"
    done = as_nobody(carve, "run", "--memory", "2GiB", "--", LOAD, "--allocate", "1GiB", "--no-touch")
    assert done.returncode == 0, done.stderr
    world.begin("run", "--memory", "1GiB", "--name", "roots", "--", "sleep", "20")
    assert until(lambda: "roots" in world.slices())
    assert json.loads(as_nobody(carve, "ps", "-o", "json").stdout)["slices"] == []
    assert as_nobody(carve, "stop", "roots").returncode == 1 and "roots" in world.slices()
    ledger = world.folder / "state/ledger.db"
    assert ledger.stat().st_mode & 0o077 == 0 and as_nobody("cat", ledger).returncode != 0


def test_carve_runs_from_any_folder_and_as_an_ordinary_user(tmp_path):
    """Tests an ordinary user's own agent with its programs and its quota, without the machine's agent."""
    if os.geteuid() != 0:
        pytest.skip("run as root this case also plays the ordinary user")
    script = f"""
set -e
cd /
export XDG_RUNTIME_DIR=$(mktemp -d /tmp/cvu-XXXX) HOME=$(mktemp -d /tmp/cvh-XXXX)
unset CARVE_SOCKET
{BUILD}/bin/carved --sim a10x1 2>$HOME/log & agent=$!
for i in $(seq 100); do {BUILD}/bin/carve version >/dev/null 2>&1 && break; sleep 0.1; done
{BUILD}/bin/carve run --memory 2GiB -- {LOAD} --allocate 1GiB --no-touch
{BUILD}/bin/carve run --memory 2GiB -- {LOAD} --allocate 3GiB --no-touch && exit 9
kill $agent; wait $agent || true
rm -rf "$XDG_RUNTIME_DIR" "$HOME"
"""
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script],
                          capture_output=True, text=True, timeout=60, cwd="/")
    assert done.returncode == 0, done.stderr
    first, second = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["error"] is None and first["bytes_allocated"] == GiB
    assert second["error"] == "CUDA_ERROR_OUT_OF_MEMORY"


def test_variables_follow_the_rules_of_docker(world):
    file = world.folder / "variables"
    file.write_text("# comment\nA=of the file\nB=kept\nTAKEN\n")
    program = ["sh", "-c", "echo $A,$B,$TAKEN"]
    words = ["--memory", "1GiB", "--env-file", file, "-e", "A=last", "-e", "TAKEN"]
    done = world.carve("run", *words, "--", *program, env={"TAKEN": "here"})
    assert done.stdout == "last,kept,here\n", done.stderr
    detached = world.carve("run", "-d", "--name", "a", *words, "--", *program, env={"TAKEN": "here"})
    assert detached.returncode == 0 and world.carve("wait", "a").returncode == 0
    assert world.carve("logs", "a").stdout == "last,kept,here\n"


@pytest.mark.parametrize("words, says", [
    (["-e", "CUDA_VISIBLE_DEVICES=0"], "--env 'CUDA_VISIBLE_DEVICES': carve sets this variable"),
    (["-e", "CARVE_SLICE=x"], "--env 'CARVE_SLICE'"),
    (["-e", "=x"], "must be NAME=VALUE"),
    (["--env-file", "/no/such/file"], "--env-file /no/such/file: No such file"),
])
def test_variables_that_cannot_be_set_are_rejected_before_the_grant(world, words, says):
    done = world.carve("run", "--memory", "1GiB", *words, "--", "true")
    assert done.returncode == 125 and says in done.stderr, done.stderr
    assert not world.json("ps", "-a")["slices"]
