"""Tests queues and custom jobs: all slices or none, phases, logs, exit statuses, retries, deadlines, and
kills of the controller."""
import json
import random
import sys
import time

import pytest

from conftest import HERE, LOAD, MiB, until
from support.job_kills import processes_of
from support.jobs import EXAMPLES, MGPU, mgpu

pytestmark = pytest.mark.usefixtures("own_network")


def python(text):
    return ("--", sys.executable, "-c", text)


SEES = f"""
import os, sys
sys.path.insert(0, {str(HERE)!r})
from driver import *
begin()
print(os.environ["CARVE_TASK_INDEX"], os.environ["CARVE_TASK_COUNT"], info()[1] >> 20)
"""
WAITS = "import time\nwhile True: time.sleep(1)"


def test_a_task_whose_quota_rejected_an_allocation_shows_this(jobs):
    jobs.queue()
    name = jobs.submit("--tasks", 1, *mgpu(10, 1024), "--", LOAD, "--allocate", "2GiB", "--no-touch")
    assert "; an allocation was refused by its GPU memory quota of 1 GiB" in jobs.becomes(name, "Failed")["reason"]
    jobs.all_slices_end()
    shown = jobs.carve("describe", f"job/{name}")
    assert "an allocation was refused by its GPU memory quota of 1 GiB" in shown, "also when its slice has ended"


def test_each_task_sees_one_device_of_its_size(jobs):
    """S4-12 with the vendor's own text: three tasks with 1000 MiB each, which is not rounded (S4-6, S4-7)."""
    jobs.carve("apply", "-f", EXAMPLES / "queue.yaml")
    out = jobs.submit("--tasks", 3, "--params", EXAMPLES / "job.sql", "--wait", *python(SEES))
    name, *lines = out.splitlines()
    assert name.startswith("custom-")
    assert sorted(lines) == [f"{name}-task-{i} {i} 3 1000" for i in range(3)], out
    status = jobs.job(name)["status"]
    assert status["phase"] == "Succeeded" and status["exitStatus"] == 0
    assert status["gpu"] == "1000 MiB, 30%" and status["memoryBytes"] == 1000 * MiB and status["shareBp"] == 3000
    assert [pod["state"] for pod in status["pods"]] == ["Succeeded"] * 3
    jobs.all_slices_end()
    assert "0 3 1000" in jobs.carve("logs", f"job/{name}", "-i", 0)
    assert "1 3 1000" not in jobs.carve("logs", f"job/{name}", "--role", "task", "-i", 0)
    assert jobs.carve("get", "jobs").splitlines()[1].split()[:4] == [name, "custom", "train", "Succeeded"]
    assert "1000 MiB, 30%" in jobs.carve("describe", "job", name)
    events = jobs.carve("events", "--for", f"job/{name}")
    assert "Admitted" in events and "JobSucceeded" in events


def test_submit_exits_with_the_exit_status_of_the_task(jobs):
    jobs.queue()
    out = jobs.submit("--wait", *mgpu(), *python("import sys; print('bye'); sys.exit(7)"), status=7)
    assert "bye" in out and "Failed: task 0: exit status 7" in out
    jobs.all_slices_end()


def test_a_failed_task_is_retried(jobs):
    jobs.queue()
    tried = jobs.folder / "tried"
    name = jobs.submit("--retries", 1, *mgpu(), *python(
        f"import os, sys\nif not os.path.exists({str(tried)!r}): open({str(tried)!r}, 'w'); sys.exit(3)"))
    status = jobs.becomes(name, "Succeeded", "Failed")
    assert status["phase"] == "Succeeded" and status["pods"][0]["attempt"] == 2


def test_each_line_of_a_job_is_printed(jobs):
    """Prints more lines than a stream can hold, and lines just before the end."""
    jobs.queue()
    out = jobs.submit("--wait", *mgpu(), "--", "sh", "-c", "seq 1 200000; echo RESULT=42")
    name, *lines = out.splitlines()
    assert lines == [*map(str, range(1, 200001)), "RESULT=42"]
    followed = jobs.carve("logs", f"job/{name}", "-f").splitlines()
    assert followed[:200001] == lines and "exit status 0" in followed[-1], "it ends with the job, without an error"
    assert jobs.carve("logs", f"job/{name}", "--tail", 0) == ""


def test_a_name_can_be_submitted_only_once(jobs):
    jobs.queue()
    jobs.submit("--name", "nightly", "--wait", *mgpu(), *python("pass"))
    assert "exit status 0" in jobs.carve("logs", "nightly"), "a name alone is also a job's"
    assert "queue/train: only jobs can be cancelled; use carve delete queue/train" in jobs.carve("cancel", "queue/train", status=2)
    assert "queue/train: only services, applications and Ray clusters have replicas" in \
        jobs.carve("scale", "queue/train", "--replicas", 2, status=2)
    again = jobs.submit("--name", "nightly", "--wait", *mgpu(), *python("pass"), status=1)
    assert "job nightly already exists" in again and "carve delete job/nightly, or give another --name" in again


def test_files_that_are_not_documents_are_rejected(jobs):
    """These are a folder, and a document of another API whose kind has the same name."""
    for words in (("eas", "create"), ("submit", "custom", "-q", "q", "--params")):
        assert f"carve: {jobs.folder}: cannot be read: it is a directory; use a file" in jobs.carve(*words, jobs.folder, "--", "true", status=1)
    other = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "pi"}, "spec": {"template": {"spec": {"containers": []}}}}
    assert "apiVersion: 'batch/v1'; the apiVersion of a Carve Job is carve.dev/v1" in jobs.apply(other, status=1)
    assert "apiVersion: is required; the apiVersion of a Carve Queue is carve.dev/v1" in jobs.apply({"kind": "Queue", "metadata": {"name": "q"}}, status=1)


def test_a_job_that_does_not_fit_waits_as_a_whole_and_shows_why(jobs):
    """All slices or none: two tasks of 60 % and 15 GiB fit on two devices but three do not, and the job
    behind waits too."""
    jobs.queue()
    first = jobs.submit("--tasks", 2, *mgpu(60, 15000), *python(WAITS))
    jobs.becomes(first, "Running")
    second = jobs.submit("--tasks", 2, *mgpu(60, 15000), *python("pass"))
    third = jobs.submit("--tasks", 1, *mgpu(5, 1000), *python("pass"))
    assert until(lambda: jobs.job(third)["status"]["position"] == 2)
    status = jobs.job(second)["status"]
    assert (status["phase"], status["position"]) == ("Queued", 1)
    assert status["reason"] == "slice 1 of 2: node n1: devices 0, 1: 15000 MiB needed, 7731 MiB free"
    assert jobs.job(third)["status"]["reason"] == f"{second} is first in the queue"
    assert len(jobs.agent.slices()) == 2
    jobs.carve("cancel", first)
    assert jobs.becomes(first, "Cancelled")["reason"] == "a user cancelled the job"
    for name in (second, third):
        jobs.becomes(name, "Succeeded")
    jobs.all_slices_end()


def test_backfill_lets_a_job_pass_that_does_not_delay_the_first_one(jobs):
    jobs.queue(backfill=True)
    first = jobs.submit("--tasks", 2, "--deadline", "1h", *mgpu(60, 15000), *python(WAITS))
    jobs.becomes(first, "Running")
    head = jobs.submit("--tasks", 2, *mgpu(60, 15000), *python("pass"))
    small = jobs.submit(*mgpu(5, 1000), *python("pass"))
    jobs.becomes(small, "Succeeded")
    assert jobs.phase(head) == "Queued"
    jobs.carve("cancel", first)
    jobs.becomes(head, "Succeeded")


def test_a_lent_quota_is_returned(jobs):
    """`own` can always get one device back: the job of `other` that waits beyond its quota is not served first."""
    jobs.queue("own", quota={"devices": 1})
    jobs.queue("other")
    lent = [jobs.submit(*mgpu(99, 20000), *python(WAITS), queue="other") for _ in range(2)]
    for name in lent:
        jobs.becomes(name, "Running")
    more = jobs.submit(*mgpu(99, 20000), *python("pass"), queue="other")
    own = jobs.submit(*mgpu(99, 20000), *python(WAITS), queue="own")
    assert until(lambda: "quota" in jobs.job(more)["status"]["reason"]), jobs.job(more)["status"]
    jobs.carve("cancel", lent[0])
    jobs.becomes(own, "Running")
    assert jobs.phase(more) == "Queued"
    both = jobs.carve("cancel", own, f"job/{lent[1]}")
    assert both.splitlines() == [f"job/{own} cancelled", f"job/{lent[1]} cancelled"]
    jobs.becomes(more, "Succeeded")


WHOLE = (*MGPU, *python(WAITS))


def test_a_gpu_queue_and_an_mgpu_queue_lend_devices_to_each_other(jobs):
    """Each queue can always get one of the two devices back: what the other queue uses of it is returned when
    its jobs end, and no job is stopped."""
    jobs.queue("whole", gpu="gpu", quota={"devices": 1})
    jobs.queue("parts", quota={"devices": 1})

    def device(name):
        return jobs.job(name)["status"]["pods"][0]["devices"]

    parts = [jobs.submit(*mgpu(30, 4096), *python(WAITS), queue="parts") for _ in range(6)]
    for name in parts:
        jobs.becomes(name, "Running")  # Three on each device, of which one is lent.
    whole = jobs.submit(*WHOLE, queue="whole")
    more = jobs.submit(*mgpu(30, 4096), *python(WAITS), queue="parts")
    assert until(lambda: "quota" in jobs.job(more)["status"]["reason"]), jobs.job(more)["status"]
    assert "devices 0, 1" in jobs.job(whole)["status"]["reason"], jobs.job(whole)["status"]
    lent = [name for name in parts if device(name) == device(parts[0])]
    for name in lent[:2]:
        jobs.carve("cancel", name)
        jobs.becomes(name, "Cancelled")
    assert jobs.phase(whole) == "Queued" and jobs.phase(more) == "Queued"
    jobs.carve("cancel", lent[2])
    jobs.becomes(whole, "Running")  # The last job on that device has ended.
    assert device(whole) == device(parts[0]) and jobs.phase(more) == "Queued"
    assert [jobs.phase(name) for name in parts if name not in lent] == ["Running"] * 3

    for name in parts:
        if name not in lent:
            jobs.carve("cancel", name)
    jobs.becomes(more, "Running")
    jobs.carve("cancel", more)
    jobs.becomes(more, "Cancelled")
    second, third = (jobs.submit(*WHOLE, queue="whole") for _ in range(2))
    jobs.becomes(second, "Running")  # The device of `parts` is lent.
    own = jobs.submit(*mgpu(30, 4096), *python(WAITS), queue="parts")
    assert until(lambda: "quota" in jobs.job(third)["status"]["reason"]), jobs.job(third)["status"]
    jobs.carve("cancel", second)
    jobs.becomes(own, "Running")
    assert jobs.phase(third) == "Queued"
    jobs.carve("cancel", whole, own, third)
    jobs.all_slices_end()


def test_a_queue_has_limits(jobs):
    jobs.queue(maxRunning=1)
    first = jobs.submit(*mgpu(), *python(WAITS))
    second = jobs.submit("--priority", -1, *mgpu(), *python("pass"))
    urgent = jobs.submit("--priority", 5, *mgpu(), *python("pass"))
    jobs.becomes(first, "Running")
    assert until(lambda: jobs.job(urgent)["status"]["position"] == 1)
    assert jobs.job(urgent)["status"]["reason"] == "queue train runs as many jobs as its maxRunning allows"
    assert jobs.job(second)["status"]["position"] == 2
    jobs.carve("cancel", first)
    jobs.becomes(second, "Succeeded")
    assert jobs.phase(urgent) == "Succeeded"


def test_jobs_that_a_queue_does_not_allow_are_rejected_at_submission(jobs):
    """S4-2, S4-5, S4-15, S4-16; the messages are in the table of engines/engine_pods_test.cc."""
    jobs.queue("whole", gpu="gpu")
    jobs.queue("strict", strict=True)
    assert "carve: queue whole provides whole GPUs: leave out emr.serverless.mgpu.core" in jobs.submit(
        *mgpu(), *python("pass"), queue="whole", status=1)
    assert "'7' is neither a multiple of 5 nor 99" in jobs.submit(*mgpu(7), *python("pass"), queue="strict", status=1)
    assert "22731 MiB of the largest device" in jobs.submit(*mgpu(30, 30000), *python("pass"), queue="strict", status=1)
    assert "there is no queue 'train'; the queues are strict, whole" in jobs.submit(*mgpu(), *python("pass"), status=1)
    assert "no compute group 'x'; its compute groups are default" in jobs.submit("--compute-group", "x", *mgpu(), *python("pass"), queue="strict", status=1)
    assert "queue whole is a GPU queue, which cannot be changed; create another queue" in jobs.apply(
        {"apiVersion": "carve.dev/v1", "kind": "Queue", "metadata": {"name": "whole"}, "spec": {"gpu": "mgpu"}}, status=1)
    much = jobs.submit("--conf", "serverless.custom.job.gpu.enabled=true", "--conf", "serverless.custom.job.task.gpus=3", *python("pass"),
                       queue="whole", status=1)
    assert "no node has room for a slice of 3 whole devices, even if it is empty; request less" in much
    whole = jobs.submit("--conf", "serverless.custom.job.gpu.enabled=true", "--conf", "serverless.custom.job.task.gpus=2", "--wait",
                        *python("import os; print(len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')))"), queue="whole")
    assert whole.splitlines()[-1] == "2", whole
    jobs.carve("delete", "queue/whole")
    assert "strict" in jobs.carve("get", "queues")


def test_a_job_that_can_never_start_is_rejected_and_blocks_no_other_job(jobs):
    jobs.queue()
    out = jobs.submit("--tasks", 8, *mgpu(), *python("pass"), status=1)
    assert "all devices together have room for only 6 of the job's 8 slices" in out
    assert "all devices together have room for only 2 of the job's 5 slices" in jobs.submit("--tasks", 5, *mgpu(80), *python("pass"), status=1)
    jobs.becomes(jobs.submit(*mgpu(), *python("pass")), "Succeeded")
    assert "warning:" in jobs.submit("--name", "b", "--conf", "a.gpu.vendor=x", *mgpu(), *python("pass"))


def test_apply_waits_until_a_job_runs(jobs):
    jobs.queue()
    document = {"apiVersion": "carve.dev/v1", "kind": "Job", "metadata": {"name": "waited"},
                "spec": {"queue": "train", "run": {"command": ["sleep", "100"]}}}
    out = jobs.apply(document, "--wait")
    assert "job/waited is Running" in out and jobs.phase("waited") == "Running", out
    jobs.carve("cancel", "waited")
    cluster = {"apiVersion": "carve.dev/v1", "kind": "RayCluster", "metadata": {"name": "waits"},
               "spec": {"queue": "train", "engineHome": str(jobs.folder), "workers": [{"replicas": 1, "mgpuCore": 30, "mgpuMemory": 4096}]}}
    for name in ("ray", "python3"):
        program = jobs.folder / name
        program.write_text("#!/bin/sh\nexec sleep 600\n")
        program.chmod(0o755)
    out = jobs.apply(cluster, "--wait")
    assert "raycluster/waits is Running" in out and jobs.status("waits", "raycluster")["phase"] == "Running", out
    jobs.carve("delete", "raycluster/waits")


def test_a_deadline_ends_a_job_and_a_time_to_live_removes_it(jobs):
    jobs.queue()
    name = jobs.submit("--deadline", "1s", "--ttl", "1s", *mgpu(), *python(WAITS))
    assert until(lambda: name not in jobs.carve("get", "jobs"), 60)
    jobs.all_slices_end()
    assert "deadlineSeconds 1 was exceeded" in jobs.carve("events", "--for", f"job/{name}")


LEAVES = "import subprocess; print(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid)"


def test_processes_that_a_task_leaves_behind_end_with_its_slice(jobs):
    """Spark's driver leaves its Python process behind when its JVM is killed; the slice would live as long as
    that process."""
    jobs.queue()
    name, printed = jobs.submit("--wait", *mgpu(), *python(LEAVES)).splitlines()
    assert jobs.phase(name) == "Succeeded"
    jobs.all_slices_end()
    left = int(printed.split()[-1])
    assert until(lambda: left not in dict(processes_of(name)), 10), (printed, processes_of(name))


def test_the_last_value_of_a_repeated_key_is_used(jobs):
    jobs.queue()
    conf = ("--conf", "emr.serverless.mgpu.core=40", "--conf", "emr.serverless.mgpu.core=35")
    out = jobs.submit("--params", EXAMPLES / "job.sql", *conf, *python("pass"))
    name, warning = out.splitlines()  # Standard output, then standard error.
    assert warning == "carve: warning: --conf emr.serverless.mgpu.core is given twice; the last value, '35', is used"
    assert jobs.job(name)["status"]["gpu"] == "1000 MiB, 35%"


def test_a_killed_task_fails_and_its_slice_ends(jobs):
    jobs.queue()
    name = jobs.submit("--tasks", 2, *mgpu(), *python("import os, signal, time\n"
                                                      "if os.environ['CARVE_TASK_INDEX'] == '1': os.kill(os.getpid(), signal.SIGKILL)\n"
                                                      "time.sleep(1000)"))
    status = jobs.becomes(name, "Failed")
    assert status["reason"].startswith("task 1: signal 9") and status["exitStatus"] == 137
    jobs.all_slices_end()


def test_the_programs_of_a_deleted_job_end_before_it_is_removed(jobs):
    jobs.queue()
    name = jobs.submit(*mgpu(), *python(WAITS))
    jobs.becomes(name, "Running")
    assert "has 1 unfinished job" in jobs.carve("delete", "queue/train", status=1)
    jobs.carve("delete", f"job/{name}")
    assert until(lambda: jobs.items() == [], 30)
    jobs.all_slices_end()
    jobs.carve("delete", "queue/train")


def test_a_killed_controller_continues_where_it_was(jobs):
    """Kills the controller at random moments while jobs are submitted and run. Each task must run once, and
    nothing may be left."""
    jobs.queue()
    log = jobs.folder / "ran"
    chance = random.Random(7)
    names = []
    for _ in range(6):
        names.append(jobs.submit("--tasks", 2, *mgpu(), *python(
            f"import os, time\nopen({str(log)!r}, 'a').write(os.environ['CARVE_JOB'] + os.environ['CARVE_TASK_INDEX'] + '\\n')\ntime.sleep(0.3)")))
        time.sleep(chance.random() * 0.2)
        jobs.restart()
    waiting = jobs.begin_submit("--wait", *mgpu(), *python("import time; time.sleep(1); print('end')"))
    jobs.restart()
    for name in names:
        assert jobs.becomes(name, "Succeeded", "Failed", "Lost")["phase"] == "Succeeded", jobs.job(name)
    assert sorted(log.read_text().split()) == sorted(f"{name}{task}" for name in names for task in (0, 1))
    out, error = waiting.communicate(timeout=60)
    assert waiting.returncode in (0, 1), (out, error)  # 1 if the controller was down at the submission.
    jobs.all_slices_end()


def test_a_job_is_rendered_for_kubernetes_and_not_submitted(jobs):
    jobs.queue()
    manifest = jobs.submit("--tasks", 2, "--name", "a", "--render", *mgpu(), *python("pass"))
    assert 'kind: "Job"' in manifest and "carve.dev/compute: 30" in manifest and "completions: 2" in manifest
    assert jobs.items() == []


def test_a_block_pasted_as_one_line_is_rejected(jobs):
    """The comment at the beginning would swallow every parameter."""
    jobs.queue()
    path = jobs.folder / "flat.sql"
    path.write_text((EXAMPLES / "job.sql").read_text().replace("\n", " "))
    refused = jobs.submit("--params", path, *python("pass"), status=1)
    assert "is in a comment, and the text sets no parameter; a comment extends to the end of its line" in refused
    assert json.loads(jobs.carve("get", "jobs", "-o", "json"))["items"] == []


def test_a_job_without_a_gpu_has_no_slice(jobs):
    jobs.queue()
    out = jobs.submit("--wait", *python("import os; print(repr(os.environ.get('CUDA_VISIBLE_DEVICES')))"))
    assert "''" in out.splitlines()
    assert "queue train divides GPUs, but the job requests none, so its pods see no device" in out
    status = jobs.job(out.splitlines()[0])["status"]
    assert status["phase"] == "Succeeded" and status["slices"] == 0 and status["gpu"] == ""


def test_the_labels_of_an_applied_object_can_change_without_its_spec(jobs):
    """`carve apply` of a document with other labels, and `carve label`, for a running job and for other
    objects."""
    jobs.queue()
    documents = [
        {"kind": "Queue", "spec": {"weight": 2}},
        {"kind": "Job", "spec": {"queue": "train", "run": {"command": ["sleep", "3600"]}}},
        {"kind": "Tariff", "spec": {"currency": "EUR", "from": "2026-01-01", "pricePerGpuHour": "1"}},
        {"kind": "Budget", "spec": {"account": "a", "gpuHours": "1"}},
        {"kind": "Pool", "spec": {}},
    ]
    for document in documents:
        kind = document["kind"].lower()
        document |= {"apiVersion": "carve.dev/v1", "metadata": {"name": "a", "labels": {"team": "a"}}}
        jobs.apply(document)
        document["metadata"]["labels"] = {"team": "b"}
        assert jobs.apply(document).startswith(f"{kind}/a configured\n")
        assert jobs.apply(document).startswith(f"{kind}/a unchanged\n")
        assert jobs.carve("label", f"{kind}/a", "zone=z", "team-") == f"{kind}/a labeled\n"
        assert json.loads(jobs.carve("get", kind, "a", "-o", "json"))["metadata"]["labels"] == {"zone": "z"}
        assert "team: b -> (none), zone: (none) -> z" in jobs.carve("events", "--for", f"{kind}/a")
    assert [item["metadata"]["name"] for item in json.loads(jobs.carve("get", "jobs", "-l", "zone=z", "-o", "json"))["items"]] == ["a"]
    assert jobs.carve("label", "job", "a", "zone-") == "job/a unlabeled\n"
    assert "must be KEY=VALUE" in jobs.carve("label", "job", "a", "zone", status=2)
    assert "no label is given" in jobs.carve("label", "job/a", status=2)
    assert "applies only to the memory unit of a node" in jobs.carve("label", "job/a", "b=c", "--when-free", status=2)
