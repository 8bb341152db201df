"""Ray of PyPI, unmodified: a head, workers in slices of their own, the driver as a process; all in one network without an interface."""
import json
import os
import pathlib
import signal

import pytest

from conftest import until
from support.jobs import EXAMPLES, Jobs

ENGINES = pathlib.Path(os.environ.get("CARVE_ENGINES", "/nonexistent"))
pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(not (ENGINES / "bin/ray").exists(), reason="tests/engines/run sets CARVE_ENGINES"),
]


@pytest.fixture
def jobs(world):
    world.environment["PATH"] = f"{ENGINES}/bin:" + os.environ["PATH"]
    j = Jobs({"n1": world})
    j.agent = world
    j.queue()
    yield j
    print("--- the controller's log:\n" + j.log())
    for _, name in j.items():
        print(f"--- {name}\n" + j.carve("describe", "job", name) + j.carve("logs", f"job/{name}", "--tail", 40))
    j.end()


def test_workers_see_their_slices_and_the_dashboard_shows_one_gpu_for_each(jobs):
    """S4-7, S4-10."""
    program = jobs.begin_submit("--workers", 2, "--params", EXAMPLES / "ray/show.conf", "--wait", "--", "python3", EXAMPLES / "ray/show.py",
                                engine="ray")
    out, error = program.communicate(timeout=150)
    assert program.returncode == 0, out + error
    name = out.splitlines()[0]
    facts = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    tasks = [fact["task"] for fact in facts if "task" in fact]
    assert sorted(task["worker"] for task in tasks) == ["0", "1"]
    assert [(task["devices"], task["mib"], task["results"]) for task in tasks] == [(1, 4096, [0, 2])] * 2
    assert facts[-1] == {"dashboard": [["NVIDIA A10", 4096]] * 2, "interfaces": ["lo"]}
    assert jobs.job(name)["status"]["phase"] == "Succeeded"
    jobs.all_slices_end()
    assert until(lambda: living(name) == [], 20), living(name)


def test_a_cluster_whose_head_is_killed_has_a_defined_end(jobs):
    name = jobs.submit("--params", EXAMPLES / "ray/show.conf", "--", "python3", "-c",
                       "import ray, time; ray.init(log_to_driver=False); print('connected', flush=True); time.sleep(600)", engine="ray")
    assert until(lambda: "connected" in jobs.carve("logs", f"job/{name}", "--role", "driver"), 90)
    os.kill(json.loads((jobs.state / f"programs/{name}-head-0/state.json").read_text())["program_pid"], signal.SIGKILL)
    assert jobs.becomes(name, "Failed")["reason"].startswith("head 0: signal 9")
    jobs.all_slices_end()
    assert until(lambda: living(name) == [], 20), living(name)


def living(job):
    """The command lines of the job's processes."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"CARVE_JOB={job}\0".encode() in (process / "environ").read_bytes() and os.readlink(process / "exe"):
                found.append((process / "cmdline").read_text().replace("\0", " ")[:120])
        except OSError:
            pass
    return found
