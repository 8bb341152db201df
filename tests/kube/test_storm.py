"""Every program of a node and of the control plane is killed while pods run, one by one and together, as
drawn from a seed. The programs in the pods count in the device's memory and must not notice anything.
CARVE_LONG=1 runs 50 rounds instead of 3."""
import os
import random

import pytest

from node_cluster import GiB, LOAD, missing, until
from whole_cluster import KILLED, Program, WholeCluster

if missing():
    pytest.skip(missing(), allow_module_level=True)

ROUNDS = 50 if os.environ.get("CARVE_LONG") else 3
MiB = 1 << 20
SETTLING = 240  # In seconds; a restarted kubelet waits for leases and back-offs.


@pytest.fixture(scope="module")
def cluster():
    c = WholeCluster()
    try:
        c.begin()
        yield c
    finally:
        for name in ("carved", "carve-kubelet"):
            print(f"--- the end of {name}'s log:\n" + c.log(name))
        print("--- the end of the coordinator's log:\n" + c.pair.log()[-6000:])
        c.end()


def counting(size):
    """Counts in `size` bytes of device memory. At each step it requests as much again, which must fail."""
    return ["/bin/guest_program", "count", "/tmp/count", str(size * 3 // 4 - 512 * MiB), str(size)], {"carve.dev/memory": str(size)}


def working():
    return [LOAD, "--kernels", "200us", "--seconds", "86400"], {"carve.dev/memory": str(GiB), "carve.dev/compute": "20"}


STANDING = {"one": {"main": counting(2 * GiB)}, "two": {"left": counting(2 * GiB), "right": counting(3 * GiB)},
            "busy": {"main": working(), "beside": counting(2 * GiB)}}


def programs(cluster):
    """Returns the attached process of each container, once each has one."""
    def found():
        out = {}
        for s in cluster.slices():
            pids = [p["pid"] for p in cluster.carve_show(s["name"])["processes"] if p["attached"]]
            if pids:
                out[s["holder"]["pod"]["name"], s["holder"]["pod"]["container"]] = Program(pids[0])
        return out if len(out) == sum(map(len, STANDING.values())) else None
    return until(found)


def victims(chance, number):
    """Yields the programs to kill: first each by itself, then several together, and every third time all."""
    if number % 3 == 2:
        return chance.sample(KILLED, len(KILLED))
    return chance.sample(KILLED, 1 if number % 3 == 0 else chance.randint(2, len(KILLED) - 1))


def settles(cluster, condition):
    """Waits for the condition. Restarts what ends meanwhile, because a kubelet ends if its container runtime
    starts later."""
    def checked():
        cluster.start_what_ended()
        return condition()
    return until(checked, SETTLING, 0.5)


def is_not_admitted(cluster, name):
    """Returns whether kubelet gave up on the pod because the plugin died during a call. Such a pod never
    starts; its controller creates another one."""
    status = (cluster.get("pod", name) or {}).get("status", {})
    return status.get("phase") == "Failed" and status.get("reason") == "UnexpectedAdmissionError"


def has_started(cluster, name):
    return cluster.is_ready(name) or is_not_admitted(cluster, name)


def counts(those):
    return {who: program.count() for who, program in those.items() if who != ("busy", "main")}


def moved_on(those, before):
    return all(now > before[who] for who, now in counts(those).items())


def test_no_program_notices_kills_of_other_programs(cluster):
    chance = random.Random(16)
    for name, containers in STANDING.items():
        cluster.submit(cluster.asking(name, **containers))
    those = programs(cluster)
    assert those, (cluster.pods(), cluster.log("carve-kubelet"))
    identities = {name: [s["containerID"] for s in pod["status"]["containerStatuses"]] for name, pod in cluster.pods().items()}
    killed = dict.fromkeys(KILLED, 0)
    for number in range(ROUNDS):
        guest = f"guest-{number}"  # Its start or its end coincides with the kills.
        cluster.submit(cluster.asking(guest, main=counting(chance.choice((2, 3, 4)) * GiB)))
        if chance.random() < 0.5:
            assert settles(cluster, lambda: cluster.is_ready(guest)), (cluster.waiting(guest), cluster.events(guest))
            cluster.remove(guest, "--wait=false")
        down = victims(chance, number)
        for name in down:
            cluster.kill(name)
            killed[name] += 1
        before = counts(those)
        assert until(lambda: moved_on(those, before)), f"round {number}: a program waits for {down}"
        for name in chance.sample(down, len(down)):
            cluster.restart(name)
        assert settles(cluster, cluster.is_settled), (number, down, cluster.pair.health(), cluster.log("carve-kubelet"))
        if guest in cluster.pods() and "deletionTimestamp" not in cluster.pods()[guest]["metadata"]:
            started = settles(cluster, lambda: has_started(cluster, guest))
            assert started, (number, down, cluster.waiting(guest), cluster.events(guest))
            cluster.remove(guest, "--wait=false")
        check(cluster, those, identities, number)
    assert sum(killed.values()) >= ROUNDS, killed
    print(f"{ROUNDS} rounds, kills {killed}, counts {counts(those)}")
    for name in STANDING:
        cluster.remove(name, "--wait=false")
    assert settles(cluster, lambda: not cluster.slices() and not cluster.cdi_files()), (cluster.slices(), cluster.cdi_files())


def check(cluster, those, identities, number):
    """Checks that after settling there are the same programs and the same slices in cache, annotations and
    agent."""
    assert settles(cluster, lambda: set(cluster.pods()) == set(STANDING)), (number, set(cluster.pods()))
    assert all(program.is_alive() for program in those.values()), number
    before = counts(those)
    assert until(lambda: moved_on(those, before)), number
    for name, pod in cluster.pods().items():
        states = pod["status"]["containerStatuses"]
        assert [s["containerID"] for s in states] == identities[name] and not any(s["restartCount"] for s in states), (number, name)
    granted = sorted(cluster.granted().items())
    assert settles(cluster, lambda: cluster.held() == granted), (number, cluster.held(), granted)
    for s in cluster.slices():
        assert all(part["charged_bytes"] <= part["quota_bytes"] for part in s["parts"]), (number, s)
    # The coordinator's cache must agree with the referee's sums: what is free, to the MiB.
    usable = {d["uuid"]: d["usable_bytes"] for d in cluster.device_documents()}
    free = max(size - sum(part[1] for _, parts in granted for part in parts if part[0] == uuid) for uuid, size in usable.items())
    assert settles(cluster, lambda: cluster.fits(free) and not cluster.fits(free + MiB)), (number, free, granted)
    figures = cluster.metrics()
    assert figures["carve_overcommitted_devices"] == "0", (number, figures)
