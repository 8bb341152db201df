"""Tests slices whose parts on several devices differ: placement, limits on each device, output, invoices and
rejections."""
import csv
import io
import json
import sys

import pytest

from conftest import GiB, until
from support.over_unix import asked

FILL = """
import ctypes, json, time
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
cu = ctypes.CDLL("libcuda.so.1")
OUT_OF_MEMORY = 2
assert cu.cuInit(0) == 0
count, out = c_int(), []
assert cu.cuDeviceGetCount(byref(count)) == 0
for number in range(count.value):
    context, free, total, quota, memory = c_void_p(), c_size_t(), c_size_t(), c_size_t(), c_uint64()
    assert cu.cuDeviceTotalMem_v2(byref(quota), number) == 0
    assert cu.cuDevicePrimaryCtxRetain(byref(context), number) == 0 and cu.cuCtxSetCurrent(context) == 0
    assert cu.cuMemGetInfo_v2(byref(free), byref(total)) == 0
    assert cu.cuMemAlloc_v2(byref(memory), c_size_t(free.value)) == 0
    assert cu.cuMemAlloc_v2(byref(memory), c_size_t(1)) == OUT_OF_MEMORY
    assert cu.cuMemGetInfo_v2(byref(free), byref(total)) == 0
    out.append([quota.value, total.value, free.value])
print(json.dumps(out), flush=True)
time.sleep(600)
"""


def begin(world, parts, *options, name="a"):
    """Runs a sleeping program in a slice with these parts; returns its parts as the agent shows them."""
    program = world.begin("run", "--name", name, "--parts", parts, *options, "--", "sleep", "600")
    assert until(lambda: name in world.slices() or program.poll() is not None)
    assert program.poll() is None, program.communicate()
    return world.slices()[name]["parts"]


def shown(parts):
    return [(p["index"], p["quota_bytes"] // GiB, p["share_bp"]) for p in parts]


def test_both_quotas_can_be_filled_to_the_byte(world):
    program = world.begin("run", "--name", "a", "--parts", "8GiB:30%,4GiB:10%", "--", sys.executable, "-c", FILL)
    line = program.stdout.readline()
    assert line, program.communicate()
    # The program's first device has the first part.
    assert json.loads(line) == [[8 * GiB, 8 * GiB, 0], [4 * GiB, 4 * GiB, 0]]
    parts = world.show("a")["parts"]
    assert [(p["quota_bytes"], p["charged_bytes"]) for p in parts] == [(8 * GiB, 8 * GiB), (4 * GiB, 4 * GiB)]
    assert parts[0]["index"] != parts[1]["index"]


def test_each_device_has_its_own_share(world):
    """Each device offers what its part of the slice leaves, and arbitrates that part under its own share."""
    parts = begin(world, "8GiB:30%,4GiB:10%")
    for part in parts:
        rest = f"{100 - part['share_bp'] // 100}%"
        full = world.carve("run", "--memory", "1GiB", "--device", str(part["index"]), "--compute", rest, "--", "true")
        assert full.returncode == 0, full.stderr
        more = world.carve("run", "--memory", "1GiB", "--device", str(part["index"]), "--compute", "95%", "--", "true")
        assert more.returncode == 125 and f"95% of its compute needed, {rest} free" in more.stderr, more.stderr
    assert [p["compute"]["granted_bp"] for p in world.show("a")["parts"]] == [3000, 1000]


def test_the_output_shows_each_part(world):
    begin(world, "8GiB:30%,4GiB:10%")
    line = next(line for line in world.carve("ps").stdout.splitlines() if line.startswith("a "))
    assert "0 B / 12 GiB" in line and "30%,10%" in line, line
    text = world.carve("show", "a").stdout
    assert "different parts of several devices" in text
    rows = [line.split() for line in text.splitlines() if "NVIDIA A10" in line]
    assert [row[3:5] for row in rows] == [["8", "GiB"], ["4", "GiB"]] and [row[-2] for row in rows] == ["30%", "10%"], text
    assert "8 GiB,4 GiB" in world.carve("show", "--history", "a").stdout
    begin(world, "1GiB:5%,1GiB:5%", name="equal")
    assert "equal parts of several devices" in world.carve("show", "equal").stdout


def test_all_parts_are_granted_or_none(world):
    """Each device serves one of the two parts, or none does."""
    world.begin("run", "--name", "first", "--memory", "16GiB", "--device", "0", "--", "sleep", "600")
    assert until(lambda: "first" in world.slices())
    before = [d["free_bytes"] for d in world.json("devices")["devices"]]
    refused = world.carve("run", "--parts", "8GiB,7GiB", "--", "true")
    assert refused.returncode == 125
    assert "2 parts need a device each; part 1 (8 GiB) fits on device 1 only; part 2 (7 GiB) fits on device 1 only" in refused.stderr
    assert [d["free_bytes"] for d in world.json("devices")["devices"]] == before
    assert shown(begin(world, "4GiB:10%,16GiB:20%")) == [(0, 4, 1000), (1, 16, 2000)]


def test_explain_shows_the_devices_of_each_part(world):
    explained = world.json("explain", "--parts", "4GiB,20GiB")
    assert explained["fits"] and sorted(explained["chosen"]) == [0, 1], explained
    assert "4 GiB and 20 GiB" in explained["message"], explained
    world.begin("run", "--memory", "20GiB", "--device", "1", "--name", "b", "--", "sleep", "600")
    assert until(lambda: "b" in world.slices())
    refused = world.carve("explain", "--parts", "4GiB,20GiB")
    assert refused.returncode == 1 and "part 1 (4 GiB) fits on device 0 only" in refused.stdout, refused.stdout


@pytest.mark.devices("a10x1,t4x1")
def test_parts_can_be_percentages_of_devices_of_different_sizes(world):
    usable = [d["usable_bytes"] for d in world.json("devices")["devices"]]
    parts = begin(world, "80%,90%")
    by_device = {p["index"]: p["quota_bytes"] for p in parts}
    assert len(by_device) == 2
    shares = sorted(round(100 * by_device[i] / usable[i]) for i in by_device)
    assert shares == [80, 90], (by_device, usable)


@pytest.mark.parametrize("words, says", [
    (["--parts", "8GiB:30%,4Gib:10%"], "--parts: part 2 '4Gib:10%': memory '4Gib' is not a size; try 4GiB"),
    (["--parts", "8GiB:30%,4GiB:110%"], "share '110%' is not between 0.01% and 100%"),
    (["--parts", "8GiB:30%,4GiB"], "part 2 has no share, but part 1 has one"),
    (["--parts", ","], "part 1 '': no memory given"),
    (["--parts", "8GiB,4GiB", "--memory", "1GiB"], "leave out --memory"),
    (["--parts", "8GiB,4GiB", "--compute", "10%"], "leave out --compute"),
    (["--parts", "8GiB,4GiB", "--devices", "2"], "leave out --devices"),
    (["--parts", "8GiB,4GiB", "--device", "0"], "2 devices are requested, but the request allows only 1; allow 2 or more"),
    (["--parts", "8GiB,4GiB,1GiB"], "3 parts need a device each, but the node has 2"),
    (["--parts", "8GiB,1KiB"], "parts[1]: 1 KiB of memory is too little"),
    (["--parts", "30GiB,4GiB", "--wait"], "request at most"),
])
def test_invalid_parts_are_rejected_by_name(world, words, says):
    refused = world.carve("run", *words, "--", "true")
    assert refused.returncode == 125 and says in refused.stderr, refused.stderr


@pytest.mark.parametrize("body, says", [
    ({"parts": [{"memory_bytes": GiB, "share_bp": 10}, {"memory_bytes": GiB}]}, "parts[1]: give a compute share on each"),
    ({"parts": [{"memory_bytes": GiB}, {}]}, "parts[1]: set exactly one of memory_bytes, memory_bp and memory_units"),
    ({"parts": [{"memory_bytes": GiB}, {"memory_bytes": 2 * GiB}], "memory_bytes": GiB}, "leave out memory_bytes"),
    ({"parts": [{"memory_bytes": GiB}, {"memory_bytes": 2 * GiB}], "devices": 3}, "leave out devices"),
    ({"parts": [{"memory_bytes": 1 << 20, "share_bp": 0}]}, "parts[0]: a compute share must be above 0%"),
    ({"parts": [{"memory_bytes": GiB}] * 17}, "17 devices are requested; a slice can have 1 to 16"),
    ({"parts": [{"memory": "1GiB"}]}, "parts[0].memory"),
])
def test_the_api_names_the_part_in_a_rejection(world, body, says):
    status, _, answer = asked(world.socket, "/v1/slices", "POST", json.dumps(body))
    assert status == 400 and says in answer, answer


def test_parts_keep_their_amounts_while_they_run(world):
    begin(world, "8GiB:30%,4GiB:10%")
    for change in (["--memory", "2GiB"], ["--compute", "20%"]):
        refused = world.carve("set", "a", *change)
        assert refused.returncode != 0 and "stop the slice and request one with other parts" in refused.stderr, refused.stderr
    changed = world.carve("set", "a", "--latency")
    assert changed.returncode == 0 and "a: 8 GiB,4 GiB, 30%,10%" in changed.stdout, changed.stdout
    assert shown(world.slices()["a"]["parts"]) == shown(world.show("a")["parts"])


def test_parts_outlive_the_agent(world):
    parts = shown(begin(world, "8GiB:30%,4GiB:10%"))
    world.process.kill()
    world.process.wait()
    world.start()
    assert shown(world.slices()["a"]["parts"]) == parts == shown(world.show("a")["parts"])


def test_a_service_can_have_parts_and_its_invoice_has_a_line_for_each(world, services):
    """The document's parts become slices; each part is a line of the invoice, with its own amounts."""
    document = {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "demo"},
                "spec": {"gpu": {"parts": [{"memory": "8GiB", "share": "30%"}, {"memory": "4GiB", "share": "10%"}]},
                         "run": {"command": ["sleep", "1000"]}}}
    services.node_becomes("n1", "reachable")
    [planned] = json.loads(services.apply(document, "--dry-run", "-o", "json"))["items"]
    assert planned["placement"][0]["memory_bytes"] == [8 * GiB, 4 * GiB], planned
    services.apply(document)
    status = services.running()
    assert status["gpu"] == "8 GiB, 30% and 4 GiB, 10% of 2 devices", status
    [slice_] = world.slices().values()
    assert [(p["quota_bytes"], p["share_bp"]) for p in slice_["parts"]] == [(8 * GiB, 3000), (4 * GiB, 1000)]
    assert len(set(status["replicaList"][0]["devices"])) == 2

    assert world.carve("set", slice_["name"], "--latency", "--force").returncode == 0

    def rows():
        return list(csv.DictReader(io.StringIO(services.carve("bill", "-o", "csv"))))

    # Each part has a line before and after the change of the class.
    assert until(lambda: len(rows()) == 4, 60, 0.2), rows()
    assert sorted((row["memory_bytes"], row["share_bp"]) for row in rows()) == \
        sorted([(str(8 * GiB), "3000"), (str(4 * GiB), "1000")] * 2)
    document["spec"]["gpu"]["parts"][1]["memory"] = "4G"
    refused = services.apply(document, status=1)
    assert "spec.gpu.parts[1].memory: '4G' is not a size" in refused, refused
    document["spec"]["gpu"]["parts"][1]["memory"] = "5GiB"
    services.apply(document)
    services.running(revision=2)  # Other parts need another slice, so the replica is replaced.
    assert until(lambda: [p["quota_bytes"] for s in world.slices().values() for p in s["parts"]] == [8 * GiB, 5 * GiB], 60, 0.1)
