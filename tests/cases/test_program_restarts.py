"""`carve run -d --restart on-failure:N`: a failed program is started again in its slice."""
import os
import pathlib
import signal

import pytest

from conftest import until

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's agent makes cgroups")


def detach(world, script, *options):
    done = world.carve("run", "-d", "--memory", "1GiB", "--name", "a", *options, "--", "sh", "-c", script, cwd=world.folder)
    assert (done.returncode, done.stdout) == (0, "a\n"), done.stderr


def runs(world):
    path = world.folder / "runs"
    return path.read_text().count("x") if path.exists() else 0


def all_of_name(world):
    return [s for s in world.json("ps", "-a")["slices"] if s["name"] == "a"]


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_that_fails_is_started_again_at_most_n_times(world):
    detach(world, "echo x >> runs; echo attempt $(wc -l < runs); exit 3", "--restart", "on-failure:2")
    assert world.carve("wait", "a").stdout == "3\n"
    assert runs(world) == 3 and len(all_of_name(world)) == 1, "in one slice"
    assert world.carve("logs", "a").stdout == "attempt 3\n"
    previous = world.carve("logs", "-p", "a")
    assert previous.stdout == "attempt 2\n" and "exit status 3; starting the program again in 200 ms, restart 2 of 2" in previous.stderr
    row = next(line for line in world.carve("ps", "-a").stdout.splitlines() if line.startswith("a "))
    assert row.split()[2] == "3", row


def test_a_program_that_succeeds_is_not_started_again(world):
    detach(world, "echo x >> runs; [ $(wc -l < runs) = 2 ]", "--restart", "on-failure")
    assert world.carve("wait", "a").stdout == "0\n" and runs(world) == 2
    assert until(lambda: world.slices() == {}, 30)


@is_root
def test_the_processes_that_a_program_leaves_behind_are_killed_before_the_next_start(world):
    detach(world, "echo x >> runs; n=$(wc -l < runs); sleep 600 > /dev/null 2>&1 & echo $! > pid$n; [ $n = 1 ] && exit 1; exec sleep 600",
           "--restart", "on-failure:5")
    assert until(lambda: runs(world) == 2, 30)
    left = int((world.folder / "pid1").read_text())
    assert until(lambda: not is_alive(left), 30)
    assert world.slices()["a"]["state"] == "running"


def test_a_stopped_program_is_not_started_again(world):
    detach(world, "echo x >> runs; exec sleep 600", "--restart", "on-failure")
    assert until(lambda: runs(world) == 1, 30)
    assert world.carve("stop", "a").returncode == 0
    assert world.carve("wait", "a").stdout == f"{128 + signal.SIGKILL}\n" and runs(world) == 1
    assert world.slices() == {}


def test_the_slice_ends_with_its_supervisor(world):
    detach(world, "echo x >> runs; echo $PPID > supervisor; exec sleep 600", "--restart", "on-failure")
    assert until(lambda: (world.folder / "supervisor").exists() and (world.folder / "supervisor").read_text().strip(), 30)
    os.kill(int((world.folder / "supervisor").read_text()), signal.SIGKILL)
    assert until(lambda: world.slices() == {}, 30)
    assert all_of_name(world)[0]["ended_because"] == "its supervisor ended"


def test_a_program_is_started_again_after_a_restart_of_the_agent(world):
    detach(world, "echo x >> runs; [ $(wc -l < runs) -gt 1 ] && exec sleep 600; while ! [ -e go ]; do sleep 0.05; done; exit 1", "--restart", "on-failure")
    assert until(lambda: runs(world) == 1, 30)
    world.process.kill()
    world.process.wait()
    world.start()
    (world.folder / "go").touch()
    assert until(lambda: runs(world) == 2, 30)
    assert world.slices()["a"]["state"] == "running"


def test_the_time_limit_ends_the_restarts(world):
    detach(world, "echo x >> runs; exec sleep 600", "--restart", "on-failure", "--time", "1s")
    assert world.carve("wait", "a").stdout == f"{128 + signal.SIGTERM}\n" and runs(world) == 1
    assert all_of_name(world)[0]["ended_because"] == "its time limit of 1s was reached"


@pytest.mark.parametrize("words, answer", [(("--restart", "on-failure"), "--restart needs -d"), (("-d", "--restart", "always"), "'always' is not no, on-failure or"),
                                           (("-d", "--restart", "on-failure:0"), "is not no,"), (("-d", "--restart", "on-failure:-1"), "is not no,"),
                                           (("-d", "--restart", "on-failure:x"), "is not no,"), (("-d", "--restart", "on-failures"), "is not no,")])
def test_a_wrong_policy_is_rejected(world, words, answer):
    done = world.carve("run", "--memory", "1GiB", *words, "--", "true")
    assert done.returncode == 125 and answer in done.stderr
    assert world.slices() == {}
