"""Processes of one slice export and import memory in random order, and some of them are killed. No byte on
the device may remain uncharged.

The processes take their steps one after the other. After each step the device's own figure is compared with
the charges, so the test does not depend on timing. CARVE_LONG=1 runs fifty times as many steps.
"""
import json
import subprocess
import sys

import pytest

from conftest import GiB, HERE, LOAD, long_form, until

STEPS = 20_000 if long_form else 400

# The program in the slice: it starts the processes, lets a random one take a step or kills it, prints what it
# did, and waits for a line.
STAGE = """
import os, random, socket, subprocess, sys
random.seed(int(sys.argv[1]))
mailbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for end in mailbox:
    end.setblocking(False)
ends = [end.fileno() for end in mailbox]
started = 0

def start():
    global started
    started += 1
    words = [sys.executable, os.environ["ACTOR"], f"{sys.argv[1]}{started:04}", ",".join(map(str, ends))]
    return subprocess.Popen(words, pass_fds=ends, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

def say(process, what):
    print(process.pid, what, flush=True)
    sys.stdin.readline()

actors = [start() for _ in range(4)]
for actor in actors:
    assert actor.stdout.readline().startswith("begin")
for step in range(int(sys.argv[2])):
    at = random.randrange(len(actors))
    if random.random() < 0.01:
        actors[at].kill()
        actors[at].wait()
        say(actors[at], "killed")
        actors[at] = start()
    else:
        actors[at].stdin.write("step\\n")
        actors[at].stdin.flush()
    say(actors[at], actors[at].stdout.readline().strip() or "ended")
for actor in actors:
    actor.kill()
    actor.wait()
for end in mailbox:
    end.close()
print("all ended", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_exports_imports_and_deaths_leaves_a_byte_uncharged(world, seed):
    def on_device():
        words = [LOAD.with_name("carve-sim"), "show", world.folder / "state/sim", "-o", "json"]
        shown = subprocess.run(words, capture_output=True, check=True)
        device = json.loads(shown.stdout)["devices"][0]
        return device["used_bytes"] - device["reserved_bytes"]

    def charged():
        return world.show("steps")["parts"][0]["charged_bytes"]

    # Four contexts, and room for so much that a third of the requests is refused.
    program = subprocess.Popen(world.words("run", "--memory", "4GiB", "--device", "0", "--name", "steps", "--", sys.executable, "-c", STAGE,
                                           seed, STEPS), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env={**world.environment, "PYTHONPATH": str(HERE), "ACTOR": str(HERE / "cases/export_actor.py")})
    world.programs.append(program)
    trail = []
    for line in program.stdout:
        trail = [*trail[-5:], line.strip()]
        pid, what, *figure = line.split()
        if pid == "all":
            assert until(lambda: charged() == on_device() == 0), (charged(), on_device())
        elif what == "killed":  # The agent learns of it by and by; the driver knows it at once.
            assert until(lambda: charged() == on_device()), trail
        else:
            assert figure and on_device() <= int(figure[0]) <= 4 * GiB, trail
        program.stdin.write("\n")
        program.stdin.flush()
    assert program.wait(20) == 0 and trail[-1] == "all ended"
