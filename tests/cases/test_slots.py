"""Tests slots: a container attaches through a directory that is mounted only into it, and the kernel
identifies its pod."""
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys

import pytest

from conftest import BUILD, LOAD, GiB, until
from support.agent import Agent
from support.over_unix import asked

POD = {"namespace": "a", "name": "web-0", "uid": "0b6c0e4e-1d2f-4b55-9d53-8f1f6a3f2f10", "container": "main"}
TRY_AGAIN = 4
FULL = "CUDA_ERROR_OUT_OF_MEMORY"


def mount_of_cgroups():
    """Returns the mount point of cgroup v2 if this process may create cgroups, otherwise None."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, mount, kind = line.split()[:3]
        if kind == "cgroup2" and os.geteuid() == 0 and os.access(mount, os.W_OK):
            return pathlib.Path(mount)
    return None


@pytest.fixture
def node(tmp_path):
    """An agent with one device and its own CDI directory."""
    agent = Agent("a10x1", "--cdi-dir", str(tmp_path / "cdi"))
    agent.cdi = tmp_path / "cdi"
    yield agent
    print("--- the agent's log:\n" + (agent.folder / "log").read_text()[-4000:])
    agent.end()


@pytest.fixture
def cgroups():
    """cgroups(UID, CONTAINER): returns the folder of that container's cgroup as kubelet would create it."""
    mount = mount_of_cgroups()
    if mount is None:
        pytest.skip("cgroups of version 2 cannot be made here")
    made = []

    def make(uid, container):
        path = mount / f"kubepods-test-{os.getpid()}" / "burstable" / f"pod{uid}" / container
        path.mkdir(parents=True, exist_ok=True)
        made.extend([path, path.parent, path.parent.parent, path.parent.parent.parent])
        return path
    yield make
    for path in sorted(set(made), key=lambda p: -len(p.parts)):
        until(lambda path=path: "populated 0" in (path / "cgroup.events").read_text())
        path.rmdir()


def call(agent, method, target, document=None):
    status, _, text = asked(agent.socket, target, method, None if document is None else json.dumps(document))
    return status, json.loads(text)


def grant(agent, slot="s017", memory=2 * GiB, **pod):
    part = {"device": agent.json("devices")["devices"][0]["uuid"], "memory_bytes": memory}
    return call(agent, "POST", "/v1/slices", {"placed": [part], "lifetime": "explicit", "slot": slot, "holder": {"pod": {**POD, **pod}}})


def directory(agent, slot="s017"):
    return agent.folder / "s.run/attach" / slot


def start(agent, *words, slot="s017", cgroup=None, stderr=None):
    """Starts a program as in a container of that slot, with the settings of the slot's CDI file."""
    environment = {**os.environ, "CARVE_SOCKET": str(directory(agent, slot) / "carved.sock"), "SIMGPU_DIR": str(agent.folder / "state/sim"),
                   "LD_PRELOAD": str(BUILD / "lib/carve/libcarve.so"), "LD_LIBRARY_PATH": str(BUILD / "lib/carve/sim")}
    enter = f"echo $$ > {cgroup}/cgroup.procs; " if cgroup else ""
    clean = {key: value for key, value in environment.items() if key != "LD_PRELOAD"}
    command = f"{enter}export LD_PRELOAD={environment['LD_PRELOAD']}; exec {LOAD} --no-touch {' '.join(map(str, words))}"
    program = subprocess.Popen(["/bin/sh", "-c", command], env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True)
    agent.programs.append(program)
    return program


def error_of(program):
    out, _ = program.communicate(timeout=60)
    return json.loads(out)["error"]


def events(agent, slice_):
    return [e["text"] for e in agent.json("events")["events"] if e["slice"] == slice_]


def answer_in(agent, slot="s017"):
    """Returns the status (wire/shm/attach.h) that this process gets when it attaches through the slot."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(str(directory(agent, slot) / "carved.sock.attach"))
        connection.send(struct.pack("<4IQ40x", 0x41565243, agent.json("version")["layout"], 64, 1, 7))
        return struct.unpack_from("<I", connection.recv(4096), 12)[0]


def end(program):
    program.terminate()
    program.communicate(timeout=30)


def test_a_slice_outlives_the_containers_of_its_pod(node, cgroups):
    status, slice_ = grant(node)
    assert status == 201 and slice_["slot"] == "s017", slice_
    name = slice_["name"]
    spec = json.loads((node.cdi / "carve.dev-slot_s017.json").read_text())
    assert spec["kind"] == "carve.dev/slot" and not list(node.cdi.glob("carve.dev-slice_*"))
    edits = spec["devices"][0]["containerEdits"]
    assert {m["containerPath"]: m["hostPath"] for m in edits["mounts"]}["/run/carve"] == str(directory(node)) and "hooks" not in edits
    for container in ("c1", "c2"):
        cgroup = cgroups(POD["uid"], container)
        first = start(node, "--allocate", "1GiB", "--seconds", "600", cgroup=cgroup)
        assert node.attached(name)["parts"][0]["quota_bytes"] == 2 * GiB
        # A second process of the container shares the quota.
        assert error_of(start(node, "--allocate", "1536MiB", cgroup=cgroup)) == FULL
        end(first)
        assert until(lambda: node.show(name)["processes"] == [] and node.show(name)["parts"][0]["charged_bytes"] == 0)
    assert len([e for e in events(node, name) if "found in" in e]) == 2, "each container was found once"


def test_neither_another_pod_nor_a_second_container_gets_the_slice(node, cgroups):
    _, slice_ = grant(node)
    name = slice_["name"]
    for _ in range(3):
        assert error_of(start(node, "--allocate", "1MiB", cgroup=cgroups("another-pod", "c1"))) not in (None, FULL)
    assert [e for e in events(node, name) if "refused: it is in pod another-pod, but slot s017 is for pod a/web-0" in e][1:] == [], \
        "a process that tries again and again makes one event"
    assert any("refused" in e for e in events(node, name)) and node.show(name)["processes"] == []
    running = start(node, "--allocate", "1GiB", "--seconds", "600", cgroup=cgroups(POD["uid"], "c1"))
    node.attached(name)
    assert error_of(start(node, "--allocate", "1MiB", cgroup=cgroups(POD["uid"], "c2"))) not in (None, FULL)
    assert any("another container of its pod" in e for e in events(node, name))
    end(running)
    assert error_of(start(node, "--allocate", "1MiB", cgroup=cgroups(POD["uid"], "c2"))) is None


def test_the_reported_container_is_the_proof_if_there_is_no_pod_cgroup(node):
    _, slice_ = grant(node)
    name = slice_["name"]
    program = start(node, "--allocate", "1GiB", "--seconds", "600")
    assert answer_in(node) == TRY_AGAIN, "nothing has proved whose process it is"
    assert call(node, "POST", f"/v1/slices/{name}/container", {"pid": program.pid, "id": "c1"})[0] == 200
    assert node.attached(name)["processes"][0]["attached"]
    assert answer_in(node) == TRY_AGAIN, "this process is in no container, and does not learn that it is in no slice"
    end(program)


def test_a_slot_has_one_slice_at_a_time(node):
    _, slice_ = grant(node)
    status, refused = grant(node, uid="u2")
    assert status == 409 and f"slot s017 still has the slice '{slice_['name']}'" in refused["detail"]
    # kubelet gives the slot to another container: no runtime may use the file of the previous slice.
    assert call(node, "DELETE", "/v1/slots/s017")[0] == 200 and not list(node.cdi.glob("*"))
    assert call(node, "DELETE", "/v1/slots/s017")[0] == 200
    assert call(node, "DELETE", "/v1/slots/s256")[0] == 400
    status, again = grant(node)
    assert (status, again["name"]) == (201, slice_["name"]) and list(node.cdi.glob("*"))
    status, moved = grant(node, slot="s018")
    assert status == 201 and moved["slot"] == "s018" and not directory(node).exists() and directory(node, "s018").is_dir()
    assert grant(node, uid="u2")[0] == 201
    assert [s["name"] for s in call(node, "GET", "/v1/slices?pod=u2")[1]["slices"]] != [slice_["name"]]
    assert len(call(node, "GET", "/v1/slices?pod=u2")[1]["slices"]) == 1 and call(node, "GET", "/v1/slices?pods=u2")[0] == 400
    assert call(node, "DELETE", f"/v1/slices/{slice_['name']}?when_empty=true")[1]["state"] == "ended"
    assert not directory(node, "s018").exists() and not (node.cdi / "carve.dev-slot_s018.json").exists()


def test_a_released_slice_ends_with_its_last_process(node, cgroups):
    _, slice_ = grant(node)
    name = slice_["name"]
    program = start(node, "--allocate", "1GiB", "--seconds", "600", cgroup=cgroups(POD["uid"], "c1"))
    node.attached(name)
    status, released = call(node, "DELETE", f"/v1/slices/{name}?when_empty=true")
    assert status == 200 and released["state"] == "running" and program.poll() is None
    assert node.show(name)["parts"][0]["charged_bytes"] > GiB // 2, "a force-deleted pod's processes keep their part"
    node.process.kill()
    node.process.wait()
    node.start()
    assert name in node.slices()
    end(program)
    assert until(lambda: name not in node.slices())
    assert not directory(node).exists()


def fd_store_of(agent):
    for folder in pathlib.Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_text() if folder.name.isdigit() else ""
        except OSError:
            continue
        if "carve-fdstore" in words and str(agent.socket) + ".run" in words:
            return int(folder.name)
    return None


def test_a_new_agent_without_fd_store_and_sockets_recovers_everything(node, cgroups):
    _, slice_ = grant(node)
    name = slice_["name"]
    cgroup = cgroups(POD["uid"], "c1")
    running = start(node, "--allocate", "1GiB", "--seconds", "600", cgroup=cgroup)
    charged = node.attached(name)["parts"][0]["charged_bytes"]
    mounted = directory(node).stat().st_ino
    store = fd_store_of(node)
    node.process.kill()
    node.process.wait()
    os.kill(store, signal.SIGKILL)
    node.start()
    shown = node.show(name)
    assert shown["slot"] == "s017" and shown["parts"][0]["charged_bytes"] == charged
    assert [p["pid"] for p in shown["processes"] if p["attached"]] == [running.pid]
    assert directory(node).stat().st_ino == mounted, "the container has this very directory mounted"
    assert error_of(start(node, "--allocate", "1536MiB", cgroup=cgroup)) == FULL
    assert error_of(start(node, "--allocate", "1MiB", cgroup=cgroups(POD["uid"], "c2"))) not in (None, FULL), "the pin is kept"
    end(running)


def test_a_program_waits_while_the_agent_is_down(node, cgroups):
    grant(node)
    cgroup = cgroups(POD["uid"], "c1")
    end(start(node, "--allocate", "64MiB", "--seconds", "600", cgroup=cgroup))
    node.process.kill()
    node.process.wait()
    waiting = [start(node, "--allocate", size, cgroup=cgroup, stderr=subprocess.PIPE) for size in ("1GiB", "3GiB")]
    said = [program.stderr.readline() for program in waiting]
    assert all(line.startswith(f"carve: waiting for the agent at {directory(node)}/carved.sock; at most 30 s") for line in said), said
    assert all(program.poll() is None for program in waiting)
    node.start()
    assert [error_of(program) for program in waiting] == [None, FULL]


def child_of(process):
    """Returns the agent that `carved --restart-after-crash` runs, or None if there is none at the moment."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0]) if children else None


def test_a_crashed_agent_is_restarted_in_its_container(node, cgroups):
    node.process.terminate()
    node.process.wait()
    node.arguments.append("--restart-after-crash")
    node.start()
    _, slice_ = grant(node)
    cgroup = cgroups(POD["uid"], "c1")
    running = start(node, "--allocate", "1GiB", "--seconds", "600", cgroup=cgroup)
    node.attached(slice_["name"])
    for _ in range(3):
        crashed = child_of(node.process)
        os.kill(crashed, signal.SIGKILL)
        assert error_of(start(node, "--allocate", "1536MiB", cgroup=cgroup)) == FULL
        assert error_of(start(node, "--allocate", "256MiB", cgroup=cgroup)) is None
        assert until(lambda crashed=crashed: child_of(node.process) not in (None, crashed))
    attached = lambda: [p["pid"] for p in node.show(slice_["name"])["processes"] if p["attached"]]
    assert until(lambda: attached() == [running.pid]), "the others have ended: " + str(attached())
    end(running)
    node.process.terminate()
    assert node.process.wait(20) == 0
    node.arguments.append("--reserve=1000GiB")
    assert subprocess.run([BUILD / "bin/carved", *node.arguments], capture_output=True, timeout=20).returncode not in (0, None), "no crash"


def test_slices_are_only_for_pods_if_kubernetes_manages_them(tmp_path):
    agent = Agent("a10x1", "--cdi-dir", str(tmp_path / "cdi"), "--bookkeeper", "kubernetes")
    try:
        refused = agent.carve("run", "--memory", "1GiB", "--", "true")
        assert refused.returncode != 0 and "Kubernetes manages the slices of this node" in refused.stderr
        assert agent.json("node")["bookkeeper"] == "kubernetes"
        assert "Kubernetes manages slices" in agent.carve("doctor").stdout
        assert grant(agent)[0] == 201
        if os.geteuid() == 0:
            agent.socket.chmod(0o666)
            asking = "import json, sys; sys.path.insert(0, sys.argv[2]); from support.over_unix import asked; " \
                     "print(asked(sys.argv[1], '/v1/slices', 'POST', json.dumps({'memory_bytes': 1 << 30}))[2])"
            other = subprocess.run(["/usr/bin/python3", "-c", asking, str(agent.socket), str(pathlib.Path(__file__).parents[1])],
                                   user=65534, group=65534, extra_groups=[], capture_output=True, text=True)
            assert "only root may create them" in other.stdout, other
    finally:
        agent.end()


def test_the_longest_names_of_kubernetes_are_accepted(node):
    longest = {"namespace": "n" * 63, "name": "p" * 253, "container": "c" * 63}
    status, made = grant(node, **longest)
    assert status == 201, made
    assert {key: made["holder"]["pod"][key] for key in longest} == longest
    assert f'pod="{longest["name"]}"' in asked(node.socket, "/metrics")[2]
    for key, value in longest.items():
        status, refused = grant(node, slot="s018", **{**longest, key: value + "x", "uid": "another-pod"})
        assert status == 400, (key, refused)


def test_a_pod_may_have_the_same_name_as_anothers_slice(node):
    _, first = grant(node)
    status, second = grant(node, slot="s018", name=first["name"], uid="another-pod")
    assert status == 201 and second["name"] != first["name"], second
    assert call(node, "DELETE", f"/v1/slices/{first['name']}")[0] == 200
    assert until(lambda: first["name"] not in node.slices()) and list(node.slices()) == [second["name"]]


@pytest.mark.parametrize("trouble", ["no directory", "full"])
def test_no_slice_is_granted_if_its_cdi_file_cannot_be_written(node, trouble):
    if trouble == "full":
        full = ["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=1", "none", node.cdi]
        node.cdi.mkdir(exist_ok=True)
        if os.geteuid() != 0 or subprocess.run(full, capture_output=True).returncode != 0:
            pytest.skip("a full filesystem cannot be mounted here")
    else:
        shutil.rmtree(node.cdi, ignore_errors=True)
        node.cdi.write_text("")
    try:
        status, refused = grant(node)
        assert status == 503 and str(node.cdi) in refused["detail"], refused
        assert node.slices() == {}, "nothing stays behind"
    finally:
        if trouble == "full":
            subprocess.run(["umount", node.cdi], check=True)
        else:
            node.cdi.unlink()
    assert grant(node)[0] == 201 and (node.cdi / "carve.dev-slot_s017.json").exists()


def test_a_process_of_another_slices_container_is_rejected_by_name(node):
    """This also works without a pod's cgroup, because the agent knows to which container the process
    belongs."""
    _, mine = grant(node)
    _, other = grant(node, slot="s018", name="thief", uid="another-pod")
    script = f"""
import socket, struct, sys
sys.stdin.readline()
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
    s.connect("{directory(node)}/carved.sock.attach")
    s.send(struct.pack("<4IQ40x", 0x41565243, {node.json("version")["layout"]}, 64, 1, 7))
    print(struct.unpack_from("<I", s.recv(4096), 12)[0], flush=True)
"""
    thief = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    node.programs.append(thief)
    assert call(node, "POST", f"/v1/slices/{other['name']}/container", {"pid": thief.pid, "id": "c1"})[0] == 200
    status, _ = thief.communicate("go\n", timeout=30)
    assert int(status) not in (0, TRY_AGAIN)
    assert any("refused: it is in pod a/thief, container main, but slot s017 is for pod a/web-0" in e for e in events(node, mine["name"]))
    (violation,) = call(node, "GET", f"/v1/slices/{mine['name']}")[1]["violations"]
    assert (violation["kind"], violation["count"]) == ("foreign-process", 1)


def test_a_program_that_attaches_endlessly_uses_no_resources(node):
    _, made = grant(node)

    def descriptors():
        return len(os.listdir(f"/proc/{node.process.pid}/fd"))
    answer_in(node)
    before = descriptors()
    assert {answer_in(node) for _ in range(1000)} == {answer_in(node)}
    assert until(lambda: descriptors() <= before + 2), (before, descriptors())
    assert len(events(node, made["name"])) < 40
    status, shown = call(node, "GET", f"/v1/slices/{made['name']}")
    assert status == 200 and not any(process["attached"] for process in shown["processes"])


CLAIM = "5e0f4b1a-7a11-4b3c-9a3e-0f5b6a1c2d3e"


def grant_claim(agent, memory=2 * GiB, uid=CLAIM):
    part = {"device": agent.json("devices")["devices"][0]["uuid"], "memory_bytes": memory}
    return call(agent, "POST", "/v1/slices", {"placed": [part], "lifetime": "explicit", "holder": {"claim": uid}})


def set_pods(agent, name, *uids):
    pods = [{"namespace": "a", "name": f"p{i}", "uid": uid} for i, uid in enumerate(uids)]
    return call(agent, "POST", f"/v1/slices/{name}/pods", {"pods": pods})


def test_containers_of_all_pods_of_a_claim_share_its_slice(node, cgroups):
    point = f"c-{CLAIM}"
    status, slice_ = grant_claim(node)
    name = slice_["name"]
    assert status == 201 and grant_claim(node)[1]["name"] == name, "a claim has one slice"
    spec = json.loads((node.cdi / f"carve.dev-claim_{point}.json").read_text())
    assert spec["kind"] == "carve.dev/claim" and spec["devices"][0]["name"] == point
    mounts = {m["containerPath"]: m["hostPath"] for m in spec["devices"][0]["containerEdits"]["mounts"]}
    assert mounts["/run/carve"] == str(directory(node, point))
    assert set_pods(node, name, "u1", "u2")[0] == 200
    running = [start(node, "--allocate", "500MiB", "--seconds", "600", slot=point, cgroup=cgroups("u1", c)) for c in ("c1", "c2")]
    assert until(lambda: node.show(name)["parts"][0]["charged_bytes"] > 1400 << 20)
    assert error_of(start(node, "--allocate", "500MiB", slot=point, cgroup=cgroups("u2", "c1"))) == FULL, "the quota is the claim's"
    # A pod that the agent does not know is looked up; one that may not use the claim is rejected.
    late = start(node, "--allocate", "1MiB", slot=point, cgroup=cgroups("u3", "c1"))
    foreign = start(node, "--allocate", "1MiB", slot=point, cgroup=cgroups("u4", "c1"))
    assert until(lambda: node.show(name).get("unknown_pods") == ["u3", "u4"])
    assert set_pods(node, name, "u1", "u2", "u3")[0] == 200
    assert error_of(late) is None and error_of(foreign) not in (None, FULL)
    assert any("pod u4 were refused: it may not use claim" in e for e in events(node, name))
    # The next agent knows the pods and writes the CDI file again.
    (node.cdi / f"carve.dev-claim_{point}.json").unlink()
    node.process.kill()
    node.process.wait()
    node.start()
    assert (node.cdi / f"carve.dev-claim_{point}.json").exists()
    assert error_of(start(node, "--allocate", "1MiB", slot=point, cgroup=cgroups("u3", "c2"))) is None
    for program in running:
        end(program)
    assert call(node, "DELETE", f"/v1/slices/{name}?when_empty=true")[0] == 200
    assert until(lambda: name not in node.slices())
    assert not directory(node, point).exists() and not list(node.cdi.glob("*claim*"))
    assert grant_claim(node)[0] == 201, "a claim may be prepared again after it was released"


def test_a_container_with_two_claims_is_rejected(node, cgroups):
    other = "6e0f4b1a-7a11-4b3c-9a3e-0f5b6a1c2d3e"
    names = [grant_claim(node, GiB, uid)[1]["name"] for uid in (CLAIM, other)]
    for name in names:
        assert set_pods(node, name, "u1")[0] == 200
    point = f"c-{CLAIM}"
    programs = [start(node, "--allocate", "1MiB", slot=point, cgroup=cgroups("u1", c)) for c in ("c1", "c2")]
    assert answer_in(node, point) == TRY_AGAIN
    message = "container c1 has 2 claims of carve.dev; use one claim with 2 requests"
    report = {"pid": programs[0].pid, "id": "c1", "refusal": message}
    assert call(node, "POST", f"/v1/slices/{names[0]}/container", report)[0] == 200
    assert call(node, "POST", f"/v1/slices/{names[0]}/container", {"pid": programs[1].pid, "id": "c2"})[0] == 200
    assert error_of(programs[0]) not in (None, FULL) and error_of(programs[1]) is None
    assert any(message in e for e in events(node, names[0]))


def test_pods_of_a_claim_are_checked(node, cgroups):
    _, of_pod = grant(node)
    assert set_pods(node, of_pod["name"], "u1")[1]["detail"].endswith("does not belong to a claim")
    name = grant_claim(node)[1]["name"]
    assert set_pods(node, name, "u 1")[0] == 400 and set_pods(node, name, *map(str, range(257)))[0] == 400
    assert set_pods(node, name, *map(str, range(256)))[0] == 200
    assert set_pods(node, "none", "u1")[0] == 404
