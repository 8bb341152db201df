"""`carve run -d` starts a program that outlives its shell, and `carve logs` and `carve wait` find it again."""
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import BUILD, GiB, LOAD, until


def detach(world, name, *program, options=(), **how):
    done = world.carve("run", "-d", "--memory", "1GiB", "--name", name, *options, "--", *program, **how)
    assert (done.returncode, done.stdout) == (0, f"{name}\n"), done.stderr
    return done


def logs(world, *words):
    done = world.carve("logs", *words)
    assert done.returncode == 0, done.stderr
    return done


def kept(world, name):
    """Returns the directory of the program."""
    return next((world.folder / "user-state/carve/programs").glob(f"*/{name}"))


def test_the_program_runs_in_its_slice_until_it_ends(world):
    detach(world, "a", "sh", "-c", f"{LOAD} --allocate 512MiB --no-touch --seconds 600; exit 5")
    early = world.carve("wait", "a", "--timeout", "0s")
    assert early.returncode == 125 and "slice a is still running after 0s" in early.stderr, early.stderr
    assert world.attached("a")["parts"][0]["charged_bytes"] >= GiB // 2
    os.kill(next(p["pid"] for p in world.show("a")["processes"] if p["attached"]), signal.SIGKILL)
    done = world.carve("wait", "slice/a")
    assert (done.returncode, done.stdout) == (5, "5\n"), done.stderr
    assert "a" not in world.slices(), "wait returned before the slice had ended"


def test_the_quota_applies(world):
    detach(world, "a", LOAD, "--allocate", "2GiB", "--no-touch")
    assert world.carve("wait", "a").returncode != 0
    assert json.loads(logs(world, "a").stdout)["error"] == "CUDA_ERROR_OUT_OF_MEMORY"


def test_the_two_streams_stay_apart_and_the_files_are_private(world):
    detach(world, "a", "sh", "-c", "echo out $MINE; echo err >&2; pwd; umask; cat", env={"MINE": "yes"}, cwd="/usr")
    assert world.carve("wait", "a").stdout == "0\n"
    done = logs(world, "a")
    umask = subprocess.run(["sh", "-c", "umask"], capture_output=True, text=True).stdout
    assert (done.stdout, done.stderr) == (f"out yes\n/usr\n{umask}", "err\n")
    for path in [kept(world, "a"), *kept(world, "a").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("program, status, says", [
    (["/no/such/program"], 127, "there is no such program"),
    (["/etc/passwd"], 126, "Permission denied"),
])
def test_a_program_that_cannot_start_is_reported_and_leaves_nothing(world, program, status, says):
    done = world.carve("run", "-d", "--memory", "1GiB", "--name", "a", "--", *program)
    assert (done.returncode, done.stdout) == (status, "") and says in done.stderr, done.stderr
    assert until(lambda: not world.slices())
    assert not list((world.folder / "user-state/carve/programs").glob("*/a"))


def test_a_name_that_exists_is_rejected_and_free_again_after_the_wait(world):
    detach(world, "a", "sh", "-c", "echo first; sleep 600")
    done = world.carve("run", "-d", "--memory", "1GiB", "--name", "a", "--", "true")
    assert done.returncode == 125 and "taken" in done.stderr
    assert logs(world, "a").stdout == "first\n", "a rejected start removed the output of the running program"
    assert world.carve("stop", "a").returncode == 0
    done = world.carve("wait", "a")
    assert (done.returncode, done.stdout) == (137, "137\n")
    for word in "second", "third":
        detach(world, "a", "echo", word)
        assert world.carve("wait", "a").returncode == 0
        assert logs(world, "slice/a").stdout == word + "\n"


def test_the_program_outlives_its_shell_and_its_terminal(world):
    """script(1) closes the terminal, and its shell ends, when the command has ended."""
    command = f"{BUILD}/bin/carve run -d --memory 1GiB --name a -- sh -c 'while [ ! -e {world.folder}/go ]; do sleep 0.05; done; tty; exit 4'"
    done = subprocess.run(["script", "-qec", command, "/dev/null"], env=world.environment, capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL)
    assert done.stdout.strip() == "a"
    (world.folder / "go").touch()
    assert world.carve("wait", "a").stdout == "4\n"
    assert logs(world, "a").stdout == "not a tty\n"


def test_a_pipe_of_the_caller_is_not_kept_open(world):
    """`NAME=$(carve run -d ...)` returns although the program still runs."""
    shell = f"name=$({BUILD}/bin/carve run -d --memory 1GiB -- sleep 600 2>&1 3>&1); echo got $name"
    done = subprocess.run(["sh", "-c", shell], env=world.environment, capture_output=True, text=True, timeout=60)
    assert re.fullmatch(r"got \S+\n", done.stdout), done
    assert done.stdout.split()[1] in world.slices()


def test_the_program_survives_a_killed_agent(world):
    detach(world, "a", "sh", "-c", f"{LOAD} --allocate 64MiB --no-touch --seconds 600; exit 6")
    world.attached("a")
    world.process.kill()
    world.process.wait()
    assert logs(world, "a").returncode == 0, "logs needs no agent"
    world.start()
    load = next(p["pid"] for p in world.attached("a")["processes"] if p["attached"])
    os.kill(load, signal.SIGKILL)
    assert world.carve("wait", "a").stdout == "6\n"


def test_without_an_agent_nothing_is_started(world):
    world.process.kill()
    world.process.wait()
    done = world.carve("run", "-d", "--memory", "1GiB", "--", "touch", world.folder / "ran")
    assert done.returncode == 125 and done.stdout == "" and "agent" in done.stderr
    world.start()
    assert not (world.folder / "ran").exists()


def test_killing_the_supervisor_ends_the_program_and_wait_reports_it(world):
    detach(world, "a", "sleep", "600")
    os.kill(json.loads((kept(world, "a") / "state.json").read_text())["supervisor_pid"], signal.SIGKILL)
    done = world.carve("wait", "a")
    assert done.returncode == 125 and "is unknown" in done.stderr
    assert until(lambda: not world.slices())


def test_two_million_lines_are_kept_within_the_limit(world):
    detach(world, "a", "sh", "-c", "seq 2000000; echo the last one")
    assert world.carve("wait", "a").stdout == "0\n"
    files = list((kept(world, "a") / "log").iterdir())
    assert len(files) <= 5 and sum(f.stat().st_size for f in files) <= 50 << 20
    lines = logs(world, "a", "--tail", "3").stdout.splitlines()
    assert lines == ["1999999", "2000000", "the last one"]
    followed = logs(world, "-f", "a").stdout.splitlines()
    assert followed[-3:] == lines and len(followed) > 200000


def test_following_ends_with_the_program(world):
    detach(world, "a", "sh", "-c", f"echo begin; while [ ! -e {world.folder}/go ]; do sleep 0.05; done; echo end")
    follower = world.begin("logs", "-f", "slice/a")
    assert follower.stdout.readline() == "begin\n"
    (world.folder / "go").touch()
    assert follower.stdout.read() == "end\n" and follower.wait(10) == 0


def test_remaining_processes_end_with_the_program(world):
    detach(world, "a", "sh", "-c", "setsid sleep 600 & echo $!; exit 3")
    assert world.carve("wait", "a").stdout == "3\n"
    pid = int(logs(world, "a").stdout)
    assert until(lambda: not os.path.exists(f"/proc/{pid}")) and "a" not in world.slices()


def test_a_slice_without_kept_output_is_explained(world):
    world.begin("run", "--memory", "1GiB", "--name", "foreground", "--", "sleep", "600")
    assert until(lambda: "foreground" in world.slices())
    for verb in "logs", "wait":
        done = world.carve(verb, "slice/foreground" if verb == "logs" else "foreground")
        assert done.returncode != 0 and "was not started with 'carve run -d'" in done.stderr, done.stderr
        done = world.carve(verb, "slice/none" if verb == "logs" else "none")
        assert done.returncode != 0 and "there is no slice" in done.stderr, done.stderr
    done = world.carve("logs", "slice/foreground", "--role", "driver")
    assert done.returncode == 2 and "a slice has one program" in done.stderr


def test_a_state_folder_that_cannot_be_used_starts_nothing(world):
    done = world.carve("run", "-d", "--memory", "1GiB", "--", "true", env={"XDG_STATE_HOME": "/proc/nothing"})
    assert done.returncode == 125 and "/proc/nothing" in done.stderr and done.stdout == ""
    assert until(lambda: not world.slices())


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk, and plays an ordinary user")
def test_a_full_disk_starts_nothing_and_stops_no_program(world):
    disk = world.folder / "user-state"
    disk.mkdir(mode=0o700)
    script = f"""
set -e
mount -t tmpfs -o size=256k none {disk}
carve() {{ {BUILD}/bin/carve "$@"; }}
carve run -d --memory 1GiB --name a -- sh -c 'seq 200000; exit 7' >/dev/null
carve wait a || true
carve logs --tail 1 a 2>&1 >/dev/null | tail -1 || true
head -c 1M /dev/zero > {disk}/fill || true
carve run -d --memory 1GiB --name b -- true 2>&1 || echo status $?
"""
    done = subprocess.run(["unshare", "-m", "bash", "-c", script], env=world.environment, capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert lines[0] == "7", done
    assert any("No space left" in line for line in lines) and lines[-1] == "status 125", done
    assert until(lambda: not world.slices())


@pytest.mark.skipif(os.geteuid() != 0, reason="root's agent and an ordinary user's program")
def test_two_users_do_not_see_each_others_output(world):
    home = world.folder / "nobody"
    home.mkdir()
    os.chown(home, 65534, 0)

    def as_nobody(*words):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=0", "--clear-groups", BUILD / "bin/carve", *words], cwd="/",
                              env={**world.environment, "XDG_STATE_HOME": str(home)}, capture_output=True, text=True, timeout=60)
    done = as_nobody("run", "-d", "--memory", "1GiB", "--name", "theirs", "--", "sh", "-c", "id -u; sleep 600")
    assert done.stdout == "theirs\n", done.stderr
    assert until(lambda: as_nobody("logs", "theirs").stdout == "65534\n")
    for verb in (["logs", "slice/theirs"], ["wait", "theirs"]):
        refused = world.carve(*verb)
        assert refused.returncode != 0 and "nobody" in refused.stderr, refused.stderr
    detach(world, "roots", "sleep", "600")
    assert as_nobody("logs", "slice/roots").returncode == 1
    assert world.carve("stop", "theirs").returncode == 0
    assert as_nobody("wait", "theirs").stdout == "137\n"


def test_lines_can_be_printed_with_their_times(world):
    detach(world, "a", "sh", "-c", "echo out; echo err >&2")
    world.carve("wait", "a")
    done = logs(world, "--timestamps", "a")
    for text, line in (("out", done.stdout), ("err", done.stderr)):
        time, rest = line.split(" ", 1)
        assert rest == f"{text}\n" and time.endswith("Z") and time[10] == "T", line
