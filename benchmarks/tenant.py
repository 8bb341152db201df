"""What becoming a member of a slice costs a program: its first cuInit, over a driver whose own takes 2 us.

The agent is the real one, warm. `carve run` starts the program each time; only cuInit is measured.
"""
import json
import subprocess

from measure import BUILD, Agent, figure

PROBE = [BUILD / "bin/bench_tenant", "--attach", "0"]
LIBRARIES = f"LD_LIBRARY_PATH={BUILD / 'tests/standin'}"


def attaching(agent, repeats=31):
    alone, added = [], []
    for _ in range(repeats):
        alone.append(float(subprocess.run(["env", LIBRARIES, *PROBE], capture_output=True, text=True, check=True).stdout) / 1e3)
        inside = agent.carve("run", "--memory", "1GiB", "--", "env", LIBRARIES, *PROBE)
        added.append(float(inside.stdout) / 1e3 - alone[-1])
    return figure("tenant.attach", added, "ms added", 2, native=alone, where="stand-in driver")


if __name__ == "__main__":
    agent = Agent()
    try:
        print(json.dumps([attaching(agent)]))
    finally:
        agent.end()
