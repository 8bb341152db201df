"""Unmodified Spark from PyPI: a master, one Worker per executor in its own slice, and the driver in its own
slice."""
import glob
import json
import os
import pathlib
import signal

import pytest

from conftest import until
from support.job_kills import processes_of
from support.jobs import EXAMPLES, Jobs

ENGINES = pathlib.Path(os.environ.get("CARVE_ENGINES", "/nonexistent"))
pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(not (ENGINES / "bin/python").exists(), reason="tests/engines/run sets CARVE_ENGINES"),
]

# For small machines: JVMs that compile little and collect with one thread start in half the time.
SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
FAST = [word for key, value in {
    "spark.driver.memory": "512m", "spark.executor.memory": "512m", "spark.driver.extraJavaOptions": SMALL,
    "spark.executor.extraJavaOptions": SMALL}.items() for word in ("--conf", f"{key}={value}")]


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


def spark(jobs, *words):
    return jobs.begin_submit(*FAST, *words, engine="spark")


def name_of(program):
    return program.stdout.readline().strip()


def listeners():
    """Returns the addresses on which programs listen in this network."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}").readlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A"}


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}  # In the kernel's format.


def at_once(tasks):
    moments = sorted([(t["begin"], 1) for t in tasks] + [(t["end"], -1) for t in tasks])
    most = now = 0
    for _, step in moments:
        now += step
        most = max(most, now)
    return most


def test_tasks_of_an_executor_share_its_slice(jobs):
    """S4-7 to S4-9: ten tasks run at the same time in one executor's slice. Each sees one GPU of 4096 MiB,
    and allocating the fifth GiB fails."""
    program = spark(jobs, "--params", EXAMPLES / "spark/show.conf", "--wait", "--", EXAMPLES / "spark/show.py")
    name = name_of(program)
    jobs.becomes(name, "Running", "Failed")
    slices = jobs.agent.slices()
    assert sorted(slices) == [f"{name}-{pod}" for pod in ("driver-0", "executor-0", "executor-1")]
    devices = {slice_name: s["parts"][0]["uuid"] for slice_name, s in slices.items()}
    assert devices[f"{name}-executor-0"] == devices[f"{name}-executor-1"], "two executors share one device"
    assert until(lambda: "Registered app" in jobs.carve("logs", f"job/{name}", "--role", "head"), 60)
    assert listeners() <= LOOPBACK
    out, error = program.communicate(timeout=120)
    assert program.returncode == 0, out + error
    facts = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    tasks = [fact["task"] for fact in facts if "task" in fact]
    assert len(tasks) == 20
    for executor in ("executor0", "executor1"):
        assert at_once([t for t in tasks if t["executor"] == executor]) == 10
    assert {(t["devices"], t["mib"], tuple(t["addresses"])) for t in tasks} == {(1, 4096, ("0",))}
    assert [fact["allocations"] for fact in facts if "allocations" in fact] == [[0, 2]]
    assert [fact["driver"] for fact in facts if "driver" in fact] == [[1, 4096]]
    status = jobs.job(name)["status"]
    assert status["phase"] == "Succeeded"
    assert "getGpusResources.sh cannot be executed; Carve's own script is used instead" in jobs.carve("logs", f"job/{name}", "--role", "executor")
    assert {d["key"] for d in status["derived"]} >= {"spark.cores.max", "spark.ui.enabled"}
    jobs.all_slices_end()
    folders = f"/tmp/carve-{jobs.job(name)['metadata']['uid'].split('-')[0]}-*"
    assert until(lambda: glob.glob(folders) == [], 20), "what killed JVMs leave is removed with the pod's folder"


PI = """
import sys, time
from pyspark.sql import SparkSession
context = SparkSession.builder.getOrCreate().sparkContext
time.sleep(%s)
print("sum", context.parallelize(range(8), 8).sum(), flush=True)
sys.exit(%s)
"""
SMALL_JOB = ("--conf", "spark.executor.resource.gpu.amount=1", "--conf", "emr.serverless.mgpu.core=20", "--conf", "emr.serverless.mgpu.memory=2000")


DRIVER_GPU = ("--conf", "spark.driver.resource.gpu.amount=1")


def application(jobs, seconds=0, status=0):
    path = jobs.folder / "application.py"
    path.write_text(PI % (seconds, status))
    return str(path)


def pid_of(jobs, program):
    return json.loads((jobs.state / f"programs/{program}/state.json").read_text())["program_pid"]


def test_a_job_has_the_result_of_its_driver(jobs):
    """The user's discovery script is run because it is executable."""
    script, runs = jobs.folder / "discover", jobs.folder / "runs"
    script.write_text(f"""#!/bin/sh\necho run >> {runs}\necho '{{"name": "gpu", "addresses": ["0"]}}'\n""")
    script.chmod(0o755)
    own = ("--conf", f"spark.executor.resource.gpu.discoveryScript={script}")
    program = spark(jobs, *SMALL_JOB, *own, "--wait", "--", application(jobs, status=3))
    name = name_of(program)
    out, error = program.communicate(timeout=120)
    assert program.returncode == 3 and "sum 28" in out, out + error
    status = jobs.job(name)["status"]
    assert (status["phase"], status["exitStatus"]) == ("Failed", 3)
    assert runs.read_text().splitlines() == ["run"]
    jobs.all_slices_end()


def test_a_job_whose_programs_are_killed_has_a_defined_end(jobs):
    """After kill -9 of the only executor's Worker, of the master, or of the driver's JVM, which leaves its
    Python behind, the job has failed, and no slice or process is left."""
    for pod in ("executor-0", "head-0", "driver-0"):
        name = jobs.submit(*FAST, *SMALL_JOB, *DRIVER_GPU, "--", application(jobs, 600), engine="spark")
        jobs.becomes(name, "Running")
        assert until(lambda: "Registered app" in jobs.carve("logs", f"job/{name}", "--role", "head"), 60)
        os.kill(pid_of(jobs, f"{name}-{pod}"), signal.SIGKILL)
        status = jobs.becomes(name, "Failed")
        assert f"{pod.split('-')[0]} 0: signal 9" in status["reason"], status
        jobs.all_slices_end()
        assert until(lambda: processes_of(name) == [], 20), processes_of(name)


def test_simultaneous_jobs_do_not_interfere(jobs):
    """Two masters run on one machine, and each job has its own ports. Executors with two cores run two tasks
    at the same time in one slice."""
    programs = [spark(jobs, *SMALL_JOB, "--conf", "spark.executor.cores=2", "--wait", "--", application(jobs)) for _ in range(2)]
    names = [name_of(program) for program in programs]
    for program in programs:
        out, error = program.communicate(timeout=240)
        assert program.returncode == 0 and "sum 28" in out, out + error
    for name in names:
        head = jobs.carve("logs", f"job/{name}", "--role", "head")
        assert "BindException" not in head and "REST" not in head, head
    jobs.all_slices_end()
