"""NVIDIA's own nvidia-smi in a slice shows only the slice's device, memory and processes."""
import json
import re

import pytest

from real_driver import INITIALISED, TWO, WAYS, call, driver, environment, in_slice, python, shims

# A process of the slice. Its device also has process 1 and its parent, which are not in the slice.
INSIDE = """
import ctypes, json, os, subprocess, sys
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
os.environ["RESPONDER_PIDS"] = f"1,{os.getpid()},{os.environ['OUTER']}"
out = {" ".join(words): subprocess.run([sys.argv[1], *words], capture_output=True, text=True) for words in json.loads(sys.argv[2])}
print(json.dumps([os.getpid(), {words: [done.returncode, done.stdout + done.stderr] for words, done in out.items()}]))
"""
QUERIES = [[], ["-L"], ["--query-compute-apps=pid,used_memory", "--format=csv,noheader"], ["pmon", "-c", "1"], ["-q", "-d", "PIDS"],
           ["--query-gpu=count,uuid", "--format=csv,noheader"]]
TABLE_ROW = re.compile(r"^\|\s+\d+\s+\S+\s+\S+\s+(\d+)\s+M\+C\+G", re.M)
MONITOR_ROW = re.compile(r"^\s+\d+\s+(\d+)\s+M\+C\+G", re.M)


def pids(printed):
    return {"table": [int(p) for p in TABLE_ROW.findall(printed[""][1])],
            "query": [int(row.split(",")[0]) for row in printed[" ".join(QUERIES[2])][1].splitlines()],
            "pmon": [int(p) for p in MONITOR_ROW.findall(printed["pmon -c 1"][1])],
            "-q": [int(p) for p in re.findall(r"Process ID +: (\d+)", printed["-q -d PIDS"][1])]}


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("major", INITIALISED)
def test_nvidia_smi_shows_the_slice(world, major, way):
    uuids = [d["uuid"] for d in world.json("devices")["devices"]]
    program = python(INSIDE, driver(major) / "nvidia-smi", json.dumps(QUERIES))
    with shims(major, world.socket) as folder:
        done = in_slice(world, program, {**environment(major, way, folder, uuids), "OUTER": str(world.process.pid)}, "--device", "1")
    assert done.returncode == 0, done.stderr
    own, printed = json.loads(done.stdout)
    assert all(status == 0 for status, _ in printed.values()), printed
    assert pids(printed) == {query: [own] for query in ("table", "query", "pmon", "-q")}
    assert printed["-L"][1] == f"GPU 0: NVIDIA A10 (UUID: {uuids[1]})\n"
    assert printed[" ".join(QUERIES[5])][1] == f"1, {uuids[1]}\n"
    assert "2048MiB" in printed[""][1] and "24576MiB" not in printed[""][1]


@pytest.mark.parametrize("major", INITIALISED)
def test_nvidia_smi_shows_all_processes_without_carve(world, major):
    """Otherwise the other test would prove nothing."""
    done = call(python(INSIDE, driver(major) / "nvidia-smi", json.dumps(QUERIES)), {**environment(major), "OUTER": str(world.process.pid)})
    own, printed = json.loads(done.stdout)
    for query, found in pids(printed).items():
        assert sorted(set(found)) == sorted({1, own, world.process.pid}), query
