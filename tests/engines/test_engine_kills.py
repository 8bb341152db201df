"""Kills (kill -9) parts of Spark and Ray jobs, the controller and the agent at random moments that are drawn
from a seed. Only with --long."""
import os
import pathlib
import random

import pytest

from conftest import long_form
from support.job_kills import begin, run_kills
from support.jobs import Jobs

ENGINES = pathlib.Path(os.environ.get("CARVE_ENGINES", "/nonexistent"))
pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(not long_form, reason="one minute for each kill: ./test --long engines"),
    pytest.mark.skipif(not (ENGINES / "bin/ray").exists(), reason="tests/engines/run sets CARVE_ENGINES"),
]

COUNT = 20  # For each engine; with the 60 in tests/cases/test_job_kills.py there are 100.
MGPU = ("--conf", "emr.serverless.mgpu.core=20", "--conf", "emr.serverless.mgpu.memory=2000")
SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SPARK = (*MGPU, *(word for key, value in {
    "spark.executor.resource.gpu.amount": 1, "spark.executor.instances": 2, "spark.driver.memory": "512m", "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": SMALL, "spark.executor.extraJavaOptions": SMALL}.items() for word in ("--conf", f"{key}={value}")))
SPARK_PROGRAM = """
import time
from pyspark.sql import SparkSession
context = SparkSession.builder.getOrCreate().sparkContext
print("sum", context.parallelize(range(8), 8).map(lambda i: (time.sleep(0.5), i)[1]).sum(), flush=True)
"""
RAY = (*MGPU, "--conf", "serverless.ray.worker.gpu.amount=1", "--workers", 2)
RAY_PROGRAM = """
import ray, time
ray.init(log_to_driver=False)
@ray.remote(num_cpus=0)
def slow(i):
    time.sleep(0.5)
    return i
print("sum", sum(ray.get([slow.remote(i) for i in range(8)])), flush=True)
"""


def victims(worker):
    """A lost head or driver ends the job, a lost worker may be survived, and a lost controller or agent is
    not noticed."""
    may_survive = {"Succeeded", "Failed"}
    return {"controller": {"Succeeded"}, "agent": {"Succeeded"}, "head-0": {"Failed"}, "head-0 supervisor": {"Failed"},
            "driver-0": {"Failed"}, "driver-0 supervisor": {"Lost"}, f"{worker}-0": may_survive, f"{worker}-1 supervisor": may_survive}


@pytest.fixture
def jobs(world):
    world.environment["PATH"] = f"{ENGINES}/bin:" + os.environ["PATH"]
    for name in ("SPARK_HOME", "PYTHONPATH"):
        world.environment.pop(name, None)
    j = Jobs({"n1": world})
    j.agent = world
    yield j
    print("--- the controller's log:\n" + j.log()[-6000:])
    j.end()


@pytest.mark.parametrize("engine", ["spark", "ray"])
def test_engines_survive_kills_at_random_moments(jobs, engine):
    begin(jobs)
    jobs.queue()
    program = jobs.folder / "program.py"
    program.write_text(SPARK_PROGRAM if engine == "spark" else RAY_PROGRAM)
    words = (*SPARK, "--", program) if engine == "spark" else (*RAY, "--", "python3", program)
    late = run_kills(jobs, random.Random(5), COUNT, lambda number: jobs.submit(*words, engine=engine),
                     victims("executor" if engine == "spark" else "worker"), 10, print)
    print(f"{engine}: slices back after at most {max(late):.3f} s (simulated devices)")
    assert max(late) < 1, late
