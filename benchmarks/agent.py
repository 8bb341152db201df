"""Measures the costs of the agent: a start in a slice, a restart after a kill, the release of an ended slice, idle time."""
import json
import os
import signal
import subprocess
import time

from measure import cpu_seconds, figure, seconds_of
from support.agent import BUILD, Agent


def start_of_a_program(agent, repeats=15):
    """Measures `carve run -- true` next to `true`, alternately."""
    inside, alone = [], []
    for _ in range(repeats):
        alone.append(1e3 * seconds_of(lambda: subprocess.run(["/bin/true"], check=True)))
        inside.append(1e3 * seconds_of(lambda: agent.carve("run", "--memory", "1GiB", "--", "/bin/true", check=True)))
    return figure("run.start", inside, "ms", 50, native=alone)


def holder(agent, name):
    program = agent.begin("run", "--memory", "4GiB", "--name", name, "--", BUILD / "bin/carve-load", "--allocate", "1GiB",
                          "--no-touch", "--seconds", "60")
    while not (pid := next((p["pid"] for s in [show(agent, name)] if s for p in s["processes"]
                            if p["attached"] and p["used_bytes"]), None)):
        time.sleep(0.02)
    return program, pid


def show(agent, name):
    done = agent.carve("show", name, "-o", "json")
    return json.loads(done.stdout) if done.returncode == 0 else None


def giving_back(agent, repeats=9):
    """Measures the time from SIGKILL of a process that holds 1 GiB to the end of its slice."""
    took = []
    for i in range(repeats):
        program, pid = holder(agent, f"victim{i}")
        start = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        while show(agent, f"victim{i}") and show(agent, f"victim{i}")["state"] != "ended":
            pass
        took.append(1e3 * (time.perf_counter() - start))
        program.wait()
    return figure("death.slice_free", took, "ms", 50)


def coming_back(agent, repeats=7):
    """Measures the time from SIGKILL of the agent to the first response of its successor, while 8 slices keep
    running."""
    programs = [holder(agent, f"slice{i}")[0] for i in range(8)]
    took = []
    for _ in range(repeats):
        agent.process.kill()
        agent.process.wait()
        took.append(1e3 * seconds_of(agent.start))
        assert len(agent.json("ps")["slices"]) == 8
        assert all(p.poll() is None for p in programs)
    return figure("agent.adopt8", took, "ms", 1000)


def idling(agent, seconds=5.0):
    """Measures the agent's CPU time in percent of one core while the 8 slices of coming_back() are idle."""
    shares = []
    for _ in range(3):
        before = cpu_seconds(agent.process)
        time.sleep(seconds)
        shares.append(100 * (cpu_seconds(agent.process) - before) / seconds)
    return figure("agent.cpu_idle", shares, "%", 1.0)


def granting(agent, repeats=60):
    """Measures granting and ending one slice over the API; both are written to disk."""
    took = []
    for _ in range(repeats):
        took.append(1e3 * seconds_of(lambda: (agent.carve("slice", "create", "--memory", "1GiB", "--name", "g", check=True),
                                              agent.carve("slice", "rm", "g", check=True))))
    return figure("slice.create_rm", took, "ms", 50)


def scraping(repeats=50):
    """Measures GET /metrics with 256 slices on 16 devices, each with a compute share: as many as an agent has isolated
    slices."""
    agent = Agent("a10x16")
    try:
        for i in range(256):
            agent.carve("slice", "create", "--memory", "1GiB", "--compute", "5%", "--name", f"slice{i}", check=True)
        took = [1e3 * seconds_of(lambda: agent.get("/metrics")) for _ in range(repeats)]
        assert agent.get("/metrics")[2].count("\ncarve_slice_memory_quota_bytes{") == 256
        return figure("agent.scrape256", took, "ms", 10)
    finally:
        agent.end()


def main():
    agent = Agent("a10x4")
    try:
        figures = [start_of_a_program(agent), granting(agent), giving_back(agent), coming_back(agent), idling(agent)]
    finally:
        agent.end()
    print(json.dumps([*figures, scraping()]))


if __name__ == "__main__":
    main()
