"""Unmodified Ray from PyPI: a head, workers in their own slices, and the driver as a process, all in one
network without an interface."""
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import until
from support.job_kills import processes_of
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
    for kind, name in j.items():
        print(f"--- {name}\n" + j.carve("describe", kind, name) + j.carve("logs", f"{kind}/{name}", "--tail", 40))
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
    assert until(lambda: processes_of(name) == [], 20), processes_of(name)


def test_a_cluster_whose_head_is_killed_has_a_defined_end(jobs):
    name = jobs.submit("--params", EXAMPLES / "ray/show.conf", "--", "python3", "-c",
                       "import ray, time; ray.init(log_to_driver=False); print('connected', ray.cluster_resources().get('GPU'), flush=True)\n"
                       "time.sleep(600)", engine="ray")
    assert until(lambda: "connected" in jobs.carve("logs", f"job/{name}", "--role", "driver"), 90)
    assert "connected 1.0" in jobs.carve("logs", f"job/{name}", "--role", "driver"), "the driver begins when the workers have joined"
    os.kill(json.loads((jobs.state / f"programs/{name}-head-0/state.json").read_text())["program_pid"], signal.SIGKILL)
    assert jobs.becomes(name, "Failed")["reason"].startswith("head 0: signal 9")
    jobs.all_slices_end()
    assert until(lambda: processes_of(name) == [], 20), processes_of(name)


def asked(status, path, token):
    request = urllib.request.Request(status["dashboard"] + path, headers={"Authorization": "Bearer " + token} if token else {})
    return json.load(urllib.request.urlopen(request, timeout=30))


def gpus(status):
    """Returns the GPUs of the cluster's nodes on its dashboard, with name and MiB."""
    nodes = asked(status, "/nodes?view=summary", status["dashboardToken"])["data"]["summary"]
    living = [node for node in nodes if node["raylet"]["state"] == "ALIVE"]  # Ended nodes remain listed for a while.
    return sorted([gpu["name"], gpu["memoryTotal"]] for node in living for gpu in node.get("gpus") or [])


JOB = """
import pynvml, ray, time

@ray.remote(num_cpus=0)
class Meeting:
    def __init__(self):
        self.here = set()

    def arrived(self, task):
        self.here.add(task)
        return len(self.here)

@ray.remote(num_gpus=1)
def look(task, meeting):
    pynvml.nvmlInit()
    while ray.get(meeting.arrived.remote(task)) < 3:  # Each task runs on another worker.
        time.sleep(0.1)
    return pynvml.nvmlDeviceGetCount(), pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).total >> 20

ray.init(log_to_driver=False)
meeting = Meeting.remote()
print("sizes", sorted(ray.get([look.remote(i, meeting) for i in range(3)])), flush=True)
"""


def submitted(jobs, status, folder, status_wanted=0):
    """Runs Ray's own job client outside of the cluster's network."""
    done = subprocess.run([str(ENGINES / "bin/ray"), "job", "submit", "--working-dir", str(folder), "--", "python", "job.py"], text=True,
                          capture_output=True, timeout=150, env={**os.environ, "PATH": f"{ENGINES}/bin:" + os.environ["PATH"],
                                                                 "RAY_API_SERVER_ADDRESS": status["dashboard"], "RAY_AUTH_MODE": "token",
                                                                 "RAY_AUTH_TOKEN": status["dashboardToken"]})
    assert done.returncode == status_wanted, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_cluster_stays_until_it_is_deleted(jobs):
    """S4-11: workers of two sizes, jobs by Ray's own client, the dashboard outside of the network; it outlives its parts."""
    spec = {"queue": "train", "engineHome": f"{ENGINES}/bin", "workers": [{"replicas": 2, "mgpuCore": 30, "mgpuMemory": 4096},
                                                                         {"replicas": 1, "mgpuCore": 50, "mgpuMemory": 8192}]}
    cluster = {"apiVersion": "carve.dev/v1", "kind": "RayCluster", "metadata": {"name": "shared"}, "spec": spec}
    shown = jobs.apply(cluster, "--wait")
    assert "raycluster/shared created" in shown and "raycluster/shared is Running" in shown
    status = jobs.becomes("shared", "Running", kind="raycluster")
    assert status["gpu"] == "2 of 4 GiB, 30%; 1 of 8 GiB, 50%" and status["slices"] == 3
    assert {n: (s["parts"][0]["quota_bytes"] >> 20, s["parts"][0]["share_bp"]) for n, s in jobs.agent.slices().items()} == {
        "shared-worker-0": (4096, 3000), "shared-worker-1": (8192, 5000), "shared-worker-2": (4096, 3000)}
    status = jobs.status("shared", "raycluster")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        until(lambda: answers(status), 60)
        asked(status, "/nodes?view=summary", "")
    assert until(lambda: gpus(status) == [["NVIDIA A10", 4096], ["NVIDIA A10", 4096], ["NVIDIA A10", 8192]], 60), gpus(status)
    folder = jobs.folder / "work"
    folder.mkdir()
    (folder / "job.py").write_text(JOB)
    for _ in range(2):  # The cluster stays.
        assert "sizes [(1, 4096), (1, 4096), (1, 8192)]" in submitted(jobs, status, folder)
    assert "spec.workers[0].mgpuCore: 20: only spec.workers[].replicas" in jobs.apply(
        {**cluster, "spec": {**spec, "workers": [{**spec["workers"][0], "mgpuCore": 20}, spec["workers"][1]]}}, status=1)
    assert "raycluster/shared unchanged" in jobs.apply(cluster)
    assert "3/3" in jobs.carve("get", "rayclusters") and status["dashboard"] in jobs.carve("describe", "raycluster/shared")

    jobs.restart()  # The cluster keeps running at the same address.
    os.kill(json.loads((jobs.state / "programs/shared-worker-0/state.json").read_text())["program_pid"], signal.SIGKILL)
    assert until(lambda: [p["attempt"] for p in jobs.status("shared", "raycluster")["pods"]] == [1, 2, 1, 1], 60)
    assert jobs.becomes("shared", "Running", kind="raycluster")["dashboard"] == status["dashboard"]
    os.kill(json.loads((jobs.state / "programs/shared-head-0/state.json").read_text())["program_pid"], signal.SIGKILL)
    assert until(lambda: min(p["attempt"] for p in jobs.status("shared", "raycluster")["pods"]) > 1, 60)
    jobs.becomes("shared", "Running", kind="raycluster")
    assert until(lambda: answers(status) and len(gpus(status)) == 3, 60)
    assert "sizes [(1, 4096), (1, 4096), (1, 8192)]" in submitted(jobs, status, folder)

    assert "queue train has 1 Ray cluster; delete it first" in jobs.carve("delete", "queue/train", status=1)
    jobs.carve("delete", "raycluster/shared")
    assert until(lambda: jobs.items() == [], 30)
    jobs.all_slices_end()
    assert until(lambda: processes_of("shared") == [], 20), processes_of("shared")


STAYS = """
import os, ray, time

@ray.remote(num_gpus=1)
class Holder:
    def where(self):
        return os.environ["CARVE_INDEX"]

ray.init(log_to_driver=False)
holder = Holder.remote()
print("held by", ray.get(holder.where.remote()), flush=True)
while not os.path.exists({end!r}):
    time.sleep(0.2)
print("still held by", ray.get(holder.where.remote()), flush=True)
"""


def test_a_cluster_gets_more_and_fewer_workers_while_a_program_runs_on_it(jobs):
    """The numbers of workers change in place: the head, the other workers and the submitted program keep running."""
    spec = {"queue": "train", "engineHome": f"{ENGINES}/bin", "workers": [{"replicas": 1, "mgpuCore": 30, "mgpuMemory": 4096}]}
    cluster = {"apiVersion": "carve.dev/v1", "kind": "RayCluster", "metadata": {"name": "shared"}, "spec": spec}
    jobs.apply(cluster)
    status = jobs.becomes("shared", "Running", kind="raycluster")
    assert until(lambda: answers(status) and len(gpus(status)) == 1, 60)
    folder, end = jobs.folder / "work", jobs.folder / "end"
    folder.mkdir()
    (folder / "job.py").write_text(STAYS.format(end=str(end)))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        output = pool.submit(submitted, jobs, status, folder)
        assert until(lambda: "held by" in logs_of_programs(status), 60)
        jobs.apply({**cluster, "spec": {**spec, "workers": [{**spec["workers"][0], "replicas": 3}]}})
        assert until(lambda: sorted(jobs.agent.slices()) == [f"shared-worker-{i}" for i in range(3)], 60)
        assert until(lambda: len(gpus(status)) == 3, 60), gpus(status)
        jobs.carve("scale", "raycluster/shared", "--replicas", 1)
        assert until(lambda: sorted(jobs.agent.slices()) == ["shared-worker-0"], 60), jobs.agent.slices()
        assert until(lambda: len(gpus(status)) == 1, 90), gpus(status)
        end.touch()
        assert "still held by 0" in output.result()
    shown = jobs.status("shared", "raycluster")
    assert shown["phase"] == "Running" and shown["dashboard"] == status["dashboard"]
    assert [(pod["role"], pod["index"], pod["attempt"]) for pod in shown["pods"]] == [("head", 0, 1), ("worker", 0, 1)]
    assert "workers[0]: 1 -> 3" in jobs.carve("events", "--for", "raycluster/shared") or \
        "workers[0]: 3 -> 1" in jobs.carve("events", "--for", "raycluster/shared")
    jobs.carve("delete", "raycluster/shared")
    assert until(lambda: jobs.items() == [], 30)
    jobs.all_slices_end()


def logs_of_programs(status):
    """Returns the output of the programs that were submitted to the cluster."""
    token = status["dashboardToken"]
    names = [program["submission_id"] for program in asked(status, "/api/jobs/", token)]
    return "".join(asked(status, f"/api/jobs/{name}/logs", token)["logs"] or "" for name in names)


def answers(status):
    try:
        return asked(status, "/api/version", status["dashboardToken"])
    except (urllib.error.URLError, OSError) as error:
        return isinstance(error, urllib.error.HTTPError)
