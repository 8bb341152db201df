"""Unmodified third-party GPU libraries (Numba and cuda-python from PyPI) in tasks of Spark and Ray: they see
the slice as their device and get its share, whatever runs in it."""
import json
import os
import pathlib
import time

import pytest

from conftest import LOAD, until
from support.jobs import Jobs

ENGINES = pathlib.Path(os.environ.get("CARVE_ENGINES", "/nonexistent"))
LIBRARIES = next(iter(pathlib.Path(os.environ.get("CARVE_ENGINES_GPU", "/nonexistent")).glob("lib/python3*/site-packages")), None)
pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(LIBRARIES is None or not (ENGINES / "bin/ray").exists(), reason="tests/engines/run sets CARVE_ENGINES_GPU"),
]

# The task: copies an array to the device and back with Numba, uses the driver's bindings for the memory and a
# failed allocation, and then runs kernels without a pause until the test has seen enough.
TASK = """
import json, os, site, subprocess, sys, time

def look(_):
    site.addsitedir(os.environ["GPU_LIBRARIES"])
    sys.path.insert(0, os.environ["GPU_LIBRARIES"])
    import numpy
    from cuda.bindings import driver
    from numba import cuda
    total = cuda.current_context().get_memory_info()[1] >> 20
    there = cuda.to_device(numpy.arange(100_000))
    same = bool((there.copy_to_host() == numpy.arange(100_000)).all())
    refused = driver.cuMemAlloc(5 << 30)[0].name
    held = driver.cuMemAlloc(3 << 30)[0].name
    load = subprocess.Popen([os.environ["LOAD"], *"--kernels 200us --no-sync --seconds 3600".split()], stdout=subprocess.DEVNULL)
    while load.poll() is None and not os.path.exists(os.environ["END"]): time.sleep(0.2)
    ran = load.poll() is None
    load.kill()
    return {"devices": len(cuda.gpus), "total": total, "same": same, "refused": refused, "held": held, "ran": ran}
"""
RAY = TASK + """
import ray
ray.init(log_to_driver=False)
while ray.cluster_resources().get("GPU", 0) < 2: time.sleep(0.2)
for fact in ray.get([ray.remote(num_gpus=1)(look).remote(i) for i in range(2)]): print(json.dumps(fact), flush=True)
"""
SPARK = TASK + """
from pyspark.sql import SparkSession
context = SparkSession.builder.getOrCreate().sparkContext
while context._jsc.sc().getExecutorMemoryStatus().size() < 3: time.sleep(0.2)  # The driver counts.
for fact in context.parallelize(range(2), 2).map(look).collect(): print(json.dumps(fact), flush=True)
"""
SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
KEYS = {
    "ray": {"serverless.ray.worker.gpu.amount": 1},
    "spark": {"spark.executor.resource.gpu.amount": 1, "spark.task.resource.gpu.amount": 1, "spark.executor.instances": 2,
              "spark.driver.memory": "512m", "spark.executor.memory": "512m", "spark.driver.extraJavaOptions": SMALL,
              "spark.executor.extraJavaOptions": SMALL}}
PODS = {"ray": "worker", "spark": "executor"}


@pytest.fixture
def jobs(world):
    world.environment["PATH"] = f"{ENGINES}/bin:" + os.environ["PATH"]
    for name in ("SPARK_HOME", "PYTHONPATH"):
        world.environment.pop(name, None)
    j = Jobs({"n1": world})
    j.agent = world
    j.queue()
    yield j
    print("--- the controller's log:\n" + j.log())
    for kind, name in j.items():
        print(f"--- {name}\n" + j.carve("describe", kind, name) + j.carve("logs", f"{kind}/{name}", "--tail", 60))
    j.end()


def compute(agent, names):
    return {name: agent.show(name)["parts"][0]["compute"] for name in names}


def charged(before, after):
    """The charge of each slice, in percent of the time that passed by the meter's clock."""
    return {n: 100 * (after[n]["busy_ns"] - before[n]["busy_ns"]) / (after[n]["as_of_ns"] - before[n]["as_of_ns"]) for n in before}


def shares_hold(agent, names, windows=120):
    """The share is a cap over the whole time, and each slice gets it in at least one window. In other windows
    the machine may be busy with other work."""
    marks, seen, missing = [compute(agent, names)], [], set(names)
    while missing and len(seen) < windows:
        time.sleep(1)
        marks.append(compute(agent, names))
        seen.append(charged(*marks[-2:]))
        missing -= {name for name, share in seen[-1].items() if share == pytest.approx(30, abs=1.5)}
    assert not missing, seen
    whole = charged(marks[0], marks[-1])
    assert all(share < 31.5 for share in whole.values()), (whole, seen)
    return whole


@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_libraries_see_the_slice_and_get_its_share(jobs, engine):
    program = jobs.folder / "program.py"
    program.write_text(RAY if engine == "ray" else SPARK)
    keys = {**KEYS[engine], "emr.serverless.mgpu.core": 30, "emr.serverless.mgpu.memory": 4096}
    words = [word for key, value in keys.items() for word in ("--conf", f"{key}={value}")]
    end = jobs.folder / "end"
    environment = {"GPU_LIBRARIES": LIBRARIES, "LOAD": LOAD, "END": end, "LD_LIBRARY_PATH": LIBRARIES / "nvidia/cuda_runtime/lib"}
    words += [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
    started = jobs.begin_submit(*words, *(("--workers", 2) if engine == "ray" else ()), "--wait", "--",
                                *(("python3", program) if engine == "ray" else (program,)), engine=engine)
    name = started.stdout.readline().strip()
    slices = [f"{name}-{PODS[engine]}-{i}" for i in range(2)]

    def all_launch():
        shown = jobs.agent.slices()
        return all(n in shown and shown[n]["parts"][0].get("compute", {}).get("leases", 0) > 3 for n in slices)
    assert until(all_launch, 120), jobs.agent.slices()
    assert len({jobs.agent.slices()[n]["parts"][0]["uuid"] for n in slices}) == 1, "both are on one device"
    whole = shares_hold(jobs.agent, slices)
    end.touch()
    out, error = started.communicate(timeout=150)
    assert started.returncode == 0, out + error
    facts = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    seen = {"devices": 1, "total": 4096, "same": True, "refused": "CUDA_ERROR_OUT_OF_MEMORY", "held": "CUDA_SUCCESS", "ran": True}
    assert facts == [seen] * 2
    print(f"{engine}: charged {whole} percent of one device (simulated)")
    jobs.all_slices_end()
